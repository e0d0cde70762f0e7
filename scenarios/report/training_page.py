"""The page of a training: what attackers extract, how they learned, and what their plans do.

Drawn from the table of attackers, the curve and the files with the best plans, as ``regretless
train`` left them.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.agents.adversaries.learned import ANNOUNCED_PLAY, FORECAST, LAST_PLAY
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import draw_figures, figure
from regretless.scenarios.report.page import Part, charts, legible, page, table_part
from regretless.scenarios.training.results import CURVE, TABLE, VACUOUS_CAP, file_of, says_nothing

MEAN_OVER_RUNS = 32  # of the mean in the curve
HEADERS = [
    "cohort",
    "paid",
    "best commitment",
    "commitment value",
    "surplus",
    "95 % interval",
    "cap of the attackers tried",
    "cap of any attacker",
]
ABOUT_SURPLUS = (
    "Paid is the leader's payoff per round and agent, and the best commitment what the same "
    "distribution in every round was paid in the same runs. "
    "The surplus that was found is a lower bound on what an attacker extracts from the cohort. The "
    "cap of the attackers tried is what the swap regret of the judged runs allowed at most. The "
    "cap of any attacker is known before a run, where a theorem applies."
)


@dataclass(frozen=True, eq=False)
class Training:
    """What the figures of a training are drawn from.

    Attributes
    ----------
    attackers : DataFrame
        The table of attackers, a row per cohort.
    curve : DataFrame
        What each run of the training paid.
    best_plans : list of dict
        The parsed scenario file with the best plan against each cohort.
    """

    attackers: pd.DataFrame
    curve: pd.DataFrame
    best_plans: list[dict[str, Any]]


def text(folder: Path) -> str:
    """Return the page of a training's folder; UserError if its files cannot be read."""
    with legible(folder, what="what was trained", cure="train again"):
        training = _read_training(folder)
        attackers = training.attackers.to_dict("records")
        scenario = training.best_plans[0]["name"]
        n_rounds = training.best_plans[0]["rounds"]
        n_runs = len(training.curve) // len(attackers)
        figures = draw_figures("training", training)
        table = table_part(HEADERS, [_cells(attacker) for attacker in attackers])
        sections: dict[str, list[Part]] = {
            "Surplus": [table, Part("note", ABOUT_SURPLUS)],
            "Learning": charts(figures, "Learning"),
            "Plans": charts(figures, "Plans"),
        }
        return page(
            "report.html",
            name=f"Trained against {scenario}",
            title=f"{scenario}, trained attackers",
            sections=sections,
            facts=f"{n_runs:,} runs of {n_rounds:,} rounds for each cohort.",
            sentences=[sentence(attacker) for attacker in attackers],
        )


def _read_training(folder: Path) -> Training:
    attackers = pd.read_csv(folder / TABLE)
    curve = pd.read_csv(folder / CURVE)
    best_plans = []
    for cohort in attackers["cohort"]:
        path = folder / file_of(str(cohort))
        best_plans.append(tomllib.loads(path.read_text(encoding="utf-8")))
    return Training(attackers, curve, best_plans)


def _cells(attacker: dict[Any, Any]) -> list[str]:
    """Write the row of a cohort."""
    return [
        str(attacker["cohort"]),
        _number(attacker["paid"]),
        _number(attacker["commitment_paid"]),
        _number(attacker["value"]),
        _number(attacker["surplus"]),
        f"{_number(attacker['low'])} to {_number(attacker['high'])}",
        _number(attacker["cap"]),
        _number(attacker["certified"]),
    ]


def sentence(attacker: dict[Any, Any]) -> str:
    """Say what was found against a cohort, and what a theorem says of those who try more."""
    cohort = attacker["cohort"]
    if np.isnan(attacker["value"]):
        interval = f"{_number(attacker['paid_low'])} to {_number(attacker['paid_high'])}"
        return (
            f"{cohort} pays the attacker {attacker['paid']:.3f} per round and agent (95 % interval "
            f"{interval}), {attacker['commitment_paid']:.3f} by the best commitment tried; no "
            "value of commitment is known, and no cap."
        )
    if attacker["low"] > 0:
        finding = (
            f"The attacker takes {attacker['surplus']:.3f} per round and agent from {cohort} "
            "beyond what it could commit to"
        )
    elif attacker["high"] < 0:
        finding = (
            f"No plan that was tried takes anything from {cohort}: the best gets "
            f"{-attacker['surplus']:.3f} per round and agent less than what it could commit to"
        )
    else:
        finding = f"Whether a plan takes anything from {cohort} is open"
    if np.isnan(attacker["certified"]):
        cap = "no theorem limits it"
    elif says_nothing(attacker):
        cap = VACUOUS_CAP.format(attacker["most"])
    else:
        cap = f"no attacker takes above {attacker['certified']:.3f}"
    interval = f"95 % interval {_number(attacker['low'])} to {_number(attacker['high'])}"
    return f"{finding} ({interval}); {cap}."


def _number(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:.3f}"


@figure("training", window=MEAN_OVER_RUNS)
def learned(training: Training) -> go.Figure:
    """Draw the payments of all runs, with what the cohort's attacker could reach."""
    panels: dict[Any, list[go.Scatter]] = {}
    for attacker in training.attackers.to_dict("records"):
        is_of_cohort = training.curve["cohort"] == attacker["cohort"]
        panels[attacker["cohort"]] = _learning_curves(attacker, training.curve[is_of_cohort])
    return theme.draw_panels(panels, x="run", y="paid per round")


def _learning_curves(attacker: dict[Any, Any], runs: pd.DataFrame) -> list[go.Scatter]:
    """Draw a dot per run against a cohort, their moving mean, and levels to compare with."""
    smoothed = runs["paid"].rolling(MEAN_OVER_RUNS, min_periods=1).mean()
    first_and_last_run = runs["run"].iloc[[0, -1]]
    value = attacker["value"]
    marks = [
        theme.line(runs["run"], runs["paid"], "a run").update(
            mode="markers", marker={"size": 4, "color": theme.BLUE, "opacity": 0.35}
        ),
        theme.line(runs["run"], smoothed, f"mean of {MEAN_OVER_RUNS}", color=theme.BLUE),
    ]
    levels = [
        ("best plan, other seeds", attacker["paid"], theme.GREEN, "solid"),
        ("commitment value", value, theme.FAINT, "dash"),
        ("cap of any attacker", value + attacker["certified"], theme.VERMILLION, "dash"),
    ]
    for name, level, colour, dash in levels:
        marks.append(theme.line(first_and_last_run, [level] * 2, name, color=colour, dash=dash))
    for mark in marks:
        mark.update(hovertemplate=mark.hovertemplate.replace("round", "run"))
    return marks


@figure("training")
def plans(training: Training) -> go.Figure:
    """Draw a map per cohort: a row per outcome (and what was played last), a column per phase."""
    map_of_cohort = {}
    for plan in training.best_plans:
        map_of_cohort[plan["adversary"]["cohort"]] = _probabilities(plan)
    rows_of_cohort = {cohort: list(table.index) for cohort, table in map_of_cohort.items()}
    chart = theme.make_slotted_panels(rows_of_cohort)
    for panel, table in enumerate(map_of_cohort.values(), start=1):
        heatmap = go.Heatmap(
            z=table.to_numpy(),
            x=table.columns,
            y=list(range(len(table))),
            zmin=0,
            zmax=1,
            colorscale="Blues",
            showscale=False,
            xgap=1,
            ygap=1,
            hovertemplate="%{x} of the run: %{z:.3f}<extra></extra>",
        )
        chart.add_trace(heatmap, row=panel, col=1)
    return chart.update_xaxes(title_text="part of the run", row=len(map_of_cohort))


def _probabilities(plan: dict[str, Any]) -> pd.DataFrame:
    """Return a plan's probabilities, a row per outcome and a column per phase.

    A plan that looks at something has such rows for each combination of what it looks at.
    """
    adversary = plan["adversary"]
    distributions = np.array(adversary["distributions"])  # (phases, answers, outcomes)
    outcome_names = _outcome_names(adversary)
    answers = [""]
    if distributions.shape[1] > 1:
        answers = _names_of_answers(plan, outcome_names)
    row_names = []
    for answer in answers:
        row_names += [theme.shorten(outcome + answer, 60) for outcome in outcome_names]
    n_phases = len(distributions)
    phases = [f"{phase + 1} / {n_phases}" for phase in range(n_phases)]
    return pd.DataFrame(distributions.reshape(n_phases, -1).T, index=row_names, columns=phases)


def _names_of_answers(plan: dict[str, Any], outcome_names: list[str]) -> list[str]:
    """Name each combination of what a plan looks at, the last fastest."""
    adversary = plan["adversary"]
    cohort = next(member for member in plan["cohort"] if member["name"] == adversary["cohort"])
    actions = cohort.get("action_names") or [f"action {s}" for s in range(cohort["actions"])]
    names_of_look = {
        LAST_PLAY: [f", after {action}" for action in actions],
        ANNOUNCED_PLAY: [f", before {action}" for action in actions],
        FORECAST: [f", forecast {outcome}" for outcome in outcome_names],
    }
    answers = [""]
    for look in adversary["looks_at"]:
        answers = [answer + name for answer, name in product(answers, names_of_look[look])]
    return answers


def _outcome_names(adversary: dict[str, Any]) -> list[str]:
    """Name each outcome of a plan's support: a corner by its coordinate, another by all of them."""
    support = np.array(adversary["support"])
    coordinate_names = adversary.get("outcome_names")
    if not coordinate_names:
        coordinate_names = [f"outcome {k}" for k in range(support.shape[1])]
    names = []
    for outcome in support:
        is_corner = outcome.max() == outcome.sum() == 1
        if is_corner:
            names.append(coordinate_names[outcome.argmax()])
        else:
            coordinates = ", ".join(f"{coordinate:g}" for coordinate in outcome)
            names.append(f"({coordinates})")
    return names
