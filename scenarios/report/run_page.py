"""The page of a run: what ``run`` prints, in the same order, with figures and all alternatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.errors import UserError
from regretless.market.logs.counted import agents_in
from regretless.scenarios import verdict as wording
from regretless.scenarios.logs.reading import log_parts, regret_curves
from regretless.scenarios.logs.run_directory import MANIFEST, read_run
from regretless.scenarios.report import (  # noqa: F401 - they register their figures
    forecast_figures,
    market_figures,
    run_figures,
)
from regretless.scenarios.report.figures import Run, draw_figures
from regretless.scenarios.report.page import (
    Part,
    charts,
    legible,
    notes,
    page,
    table_part,
    written_by,
)
from regretless.scenarios.solution_lines import gain_text, line_on_anarchy, lines_on_methods

REQUIRED_IN_MANIFEST = {"scenario", "config", "seed", "rounds", "status", "guarantee"}
MAX_WORST_AGENTS = 5  # whose regret is taken apart
SMALLEST_SHOWN = 5e-5  # a smaller contribution would be printed as zero
READ_TABLES = """import pandas as pd
agents = pd.read_{ending}("agents.{ending}")
regret_log = pd.read_{ending}("regret_log.{ending}")"""
NO_MODELS = (
    'No models were compared. Under kind = "decision-swap", models = ["panel"] in [forecaster] '
    "compares seven, and bounds the regret to each where its guarantee applies."
)
ORIGINS_TITLE = "Actions whose replacement would have avoided most loss"
UNMEASURED = "Swap regret was not measured."
ABOUT_ORIGINS = (
    "The agents with the greatest regret, action by action: how often it was played, its best "
    "replacement in hindsight, and the regret per round that comes from it. Actions without a name "
    "are numbered from 0."
)
UNIT_HEADERS = ["mean, in units", "worst agent, in units"]
BOUND_HEADERS = [f"bound, {condition}" for condition in wording.BOUNDS]
ALTERNATIVE_HEADERS = [
    "cohort",
    "alternative",
    "loss",
    "difference",
    "95 % interval",
    "better off",
]
REGRET_HEADERS = [
    "cohort",
    "measure",
    "agents",
    "mean",
    "worst agent",
    *UNIT_HEADERS,
    *BOUND_HEADERS,
]
ORIGIN_HEADERS = [
    "cohort",
    "agent",
    "action",
    "best replacement",
    "best policy",
    "regret",
    "rounds played",
    "regret from it",
]
SOLUTION_HEADERS = [
    "cohort",
    "solution",
    "average loss",
    "welfare",
    "greatest gain",
    "distance to correlated",
    "distance to coarse correlated",
]
PLAY_IS_UNCOUNTED = (
    "What was played has no row and no distances: profiles are counted where they are few enough "
    "for tables, and agents are not shared out among workers."
)
ABOUT_SOLUTIONS = (
    "What is lost in play and in the solutions of the stage game. Welfare is minus the sum of the "
    "losses, in units of the utility. The greatest gain is the most that an agent would gain by a "
    "deviation, in the same units. Distances, in total variation, are those of the profiles that "
    "were played in the run, and in each declared window, from the (coarse) correlated equilibria."
)
OPTIONAL_HEADERS = [  # left out where nothing is
    *UNIT_HEADERS,
    *BOUND_HEADERS,
    "best policy",
    *SOLUTION_HEADERS[4:],
]


def text(directory: Path) -> str:
    """Return the page of a run's directory; UserError if its logs cannot be read."""
    manifest, tables = _read_logs(directory)
    config = manifest["config"]
    rounds_played = _rounds_played(manifest, tables)
    run = Run(config, tables, manifest.get("actions", {}), rounds_played=rounds_played)
    verdict = run.table("verdict")
    figures = draw_figures("run", run)
    description = config.get("description")
    source = config.get("source")
    sections: dict[str, list[Part]] = {
        "Alternatives in hindsight": _parts_on_alternatives(verdict, run.agents),
        "Regret": [_table(REGRET_HEADERS, list(_regret_cells(run.agents)))],
        "Solutions": _parts_on_solutions(run.table("solutions")),
        "Forecast": notes(_lines_on_forecast(manifest), "line"),
        "Agents": [],
        "Market": [],
        "Network": [],
        "Definitions": [Part("terms", wording.definitions(verdict, run.agents))],
        "Files": _parts_on_files(directory, tables),
    }
    for name in sections:
        sections[name] += charts(figures, name)
    sections["Regret"] += _parts_on_origins(run)
    if sections["Solutions"] and "solutions" not in figures:
        sections["Solutions"] += notes([_why_no_solutions_are_drawn(run)])
    return page(
        "report.html",
        name=manifest["scenario"],
        sections={name: parts for name, parts in sections.items() if parts},
        facts=_facts(manifest, tables),
        sentences=wording.sentences(verdict, run.agents) if len(verdict) else (),
        beside=notes([f"Description of the scenario: {description}" if description else ""]),
        footer=(f"Source: {source}. " if source else "") + written_by(manifest),
    )


def _parts_on_alternatives(verdict: pd.DataFrame, agents: pd.DataFrame) -> list[Part]:
    """Return notes and a table of all alternatives, the least loss of each cohort first."""
    remarks = [f"{line[0].upper()}{line[1:]}." for line in wording.describe_intervals(verdict)]
    has_models = not verdict.empty and (verdict["kind"] == "model").any()
    has_followers = (agents["kind"] == "follower").any()  # others would follow no model
    if has_followers and not has_models:
        remarks = [NO_MODELS, *remarks]
    if verdict.empty:
        return [*notes(remarks), _table(ALTERNATIVE_HEADERS, [])]
    rows = []
    for cohort, alternatives in verdict.groupby("cohort", sort=False):
        ranked = alternatives.sort_values("mean_loss", kind="stable")
        rows += [[str(cohort), *wording.alternative_cells(row)] for row in wording.records(ranked)]
    return [*notes(remarks), _table(ALTERNATIVE_HEADERS, rows)]


def _parts_on_solutions(solutions: pd.DataFrame) -> list[Part]:
    """Return the table of play and solutions, the price of anarchy, and how they were found."""
    if solutions.empty:
        return []
    rows = []
    for cohort, of_cohort in solutions.groupby("cohort", sort=False):
        for row in wording.records(of_cohort.dropna(subset="mean_loss")):
            numbers = [
                f"{row['mean_loss']:.4f}",
                f"{row['welfare']:.4f}",
                gain_text(row["certificate"]),
                _cell(row["distance_ce"], ".4f"),
                _cell(row["distance_cce"], ".4f"),
            ]
            rows.append([str(cohort), row["name"], *numbers])
    anarchy = line_on_anarchy(solutions)
    parts = notes([f"{anarchy[0].upper()}{anarchy[1:]}." if anarchy else ""], "line")
    if rows:
        parts += [*notes([ABOUT_SOLUTIONS]), _table(SOLUTION_HEADERS, rows)]
        if "play" not in solutions["name"].to_numpy():
            parts += notes([PLAY_IS_UNCOUNTED])
    is_window = solutions["name"].str.startswith("play, ")  # found as the play of the run
    return [*parts, Part("bullets", list(lines_on_methods(solutions[~is_window])))]


def _cell(value: float, digits: str) -> str:
    """Write a number, or nothing where there is none."""
    return "" if np.isnan(value) else format(value, digits)


def _why_no_solutions_are_drawn(run: Run) -> str:
    """Say why there is no figure of the solutions; "" where no solution was found."""
    if run.table("solutions")["mean_loss"].isna().all():
        return ""
    return "No figure of losses between the solutions: it takes two rounds, and one was played."


def _parts_on_files(directory: Path, tables: Mapping[str, pd.DataFrame]) -> list[Part]:
    """Return how the tables of a run are read, and which there are."""
    ending = "csv" if (directory / "agents.csv").is_file() else "parquet"
    other_files = [f"{name}.{ending}" for name in tables if name not in {"agents", "regret_curves"}]
    return [
        Part("code", READ_TABLES.format(ending=ending)),
        Part("note", f"In the folder of this page. Other tables: {', '.join(other_files)}."),
    ]


def _parts_on_origins(run: Run) -> list[Part]:
    """Return what the regret of the worst agents is made of, or that it was not measured."""
    rows = list(_origin_cells(run))
    if rows:
        table = _table(ORIGIN_HEADERS, rows, n_text_columns=5)
        return [Part("head", ORIGINS_TITLE), table, Part("note", ABOUT_ORIGINS)]
    return notes([UNMEASURED]) if run.regret.isna().all() else []


def _table(headers: list[str], rows: list[list[str]], *, n_text_columns: int = 2) -> Part:
    """Return a table without what no row has, and without the cohort where there is one alone.

    The first columns are text, and the first two of them name the row.
    """
    has_one_cohort = len({row[0] for row in rows}) == 1
    shown_columns = []
    for column, header in enumerate(headers):
        is_empty = not any(row[column] for row in rows)
        is_left_out = header in OPTIONAL_HEADERS and is_empty
        if not is_left_out and not (has_one_cohort and column == 0):
            shown_columns.append(column)
    shown_headers = [headers[column] for column in shown_columns]
    shown_rows = [[row[column] for column in shown_columns] for row in rows]
    n_left_aligned = sum(column < n_text_columns for column in shown_columns)
    n_naming = sum(column < 2 for column in shown_columns)
    return table_part(
        shown_headers, shown_rows, n_text_columns=n_left_aligned, n_naming_columns=n_naming
    )


def _read_logs(directory: Path) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
    """Return the manifest and the tables of a run; UserError if they are not those of a run."""
    with legible(directory, what="its logs", cure="run it again"):
        manifest, tables = read_run(directory, without={"regret_log"})  # which may exceed memory
        if "agents" in tables:
            tables["regret_curves"] = regret_curves(log_parts(directory), tables["agents"])
    if not isinstance(manifest, dict) or not manifest.keys() >= REQUIRED_IN_MANIFEST:
        raise UserError(f"{directory / MANIFEST} is not a run's; give a directory that has one")
    if "agents" not in tables or tables["agents"].empty:
        reason = f"{directory} holds no agents table"
        raise UserError(f"{reason}; wait for its run to end or run it again")
    if "verdict" in tables and not {"difference", "effective"} <= set(tables["verdict"]):
        raise UserError(f"{directory} is of an older version; run it again")
    if "trusted" not in tables["agents"]:
        raise UserError(f"{directory} is of an older version; run it again")
    return manifest, tables


def _facts(manifest: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> str:
    """Say how many rounds were played, what is guaranteed, and what the run noted."""
    n_planned = manifest["rounds"]
    n_played = _rounds_played(manifest, tables)
    rounds = f"{n_played:,}" if n_played == n_planned else f"{n_played:,} of {n_planned:,}"
    plural = "" if n_planned == 1 else "s"
    sentences = [f"{rounds} round{plural}, seed {manifest['seed']}, {manifest['status']}."]
    sentences.append(_sentence_on_guarantees(manifest["guarantee"]))
    sentences += manifest.get("data", [])
    sentences += [f"{note}." for note in manifest.get("notes", [])]
    return " ".join(sentences)


def _rounds_played(manifest: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> int:
    """Return how many rounds were played, of which the table of rounds may have logged a few."""
    return int(manifest.get("played", len(tables.get("rounds", ()))))


def _sentence_on_guarantees(label_of_cohort: Mapping[str, str]) -> str:
    """Say what regret is guaranteed, once if it is the same for all cohorts."""
    labels = set(label_of_cohort.values())
    if len(labels) == 1:
        (label,) = labels
        whose = " of every cohort" if len(label_of_cohort) > 1 else ""
        return f"Guaranteed regret{whose}: {label}."
    listed = ", ".join(f"{cohort} {label}" for cohort, label in label_of_cohort.items())
    return f"Guaranteed regret: {listed}."


def _regret_cells(agents: pd.DataFrame) -> Iterator[list[str]]:
    """Yield the cells of each measure of a cohort, with the bounds beside decision swap regret."""
    for cohort, members in agents.groupby("cohort", sort=False):
        unit = wording.unit_of(members)
        for measure, mean, worst, *in_units in wording.regret_rows(members):
            bounds = [""] * len(wording.BOUNDS)
            if measure == "decision swap":
                bounds = _bound_cells(members)
            with_unit = [f"{value} {unit}".strip() if value else "" for value in in_units]
            n_agents = f"{agents_in(members):,}"
            yield [str(cohort), measure, n_agents, mean, worst, *with_unit, *bounds]


def _bound_cells(members: pd.DataFrame) -> list[str]:
    """Write each kind of bound on the decision swap regret of a cohort's agents."""
    bounds = wording.bounds_to_print(members)
    is_trusted = wording.is_trusted(members)
    cells = {}
    for condition, column in wording.BOUNDS.items():
        text = wording.bound_text(bounds.get(condition, np.nan), 4)
        has_bound = members[column].notna()
        if condition == wording.GIVEN_VARIATION and condition not in bounds and is_trusted.any():
            text = wording.TRUSTED
            has_bound = is_trusted
        if condition == wording.BEFORE and wording.UNCORRECTED in bounds:
            bound = wording.bound_text(bounds[wording.UNCORRECTED], 4)
            text = f"{bound} {wording.UNCORRECTED}"
        if has_bound.any():
            text += wording.of_agents(has_bound, members)
        cells[condition] = text
    return list(cells.values())


def _lines_on_forecast(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the forecaster, and which reference each block broadcasts."""
    forecaster = manifest["config"].get("forecaster", {})
    yield f"Forecaster: {forecaster.get('kind', 'unknown')}."
    reference = (forecaster.get("reference") or {}).get("kind", "a reference model")
    noted_blocks = {}
    for block in manifest.get("blocks", []):
        if "first_correction" in block:  # a run of an older version has not noted it
            noted_blocks[block["name"]] = block
    labels = manifest["guarantee"].values()
    yield from wording.describe_corrections(reference, noted_blocks, labels=labels)


def _origin_cells(run: Run) -> Iterator[list[str]]:
    """Yield what the regret of the worst agents is made of, action by action."""
    swaps = run.table("swaps")
    if swaps.empty:
        return
    agents = run.agents.assign(regret=run.regret).dropna(subset="regret")
    different_agents = agents.drop_duplicates(["cohort", "mean_loss", "regret"])
    for agent in wording.records(different_agents.nlargest(MAX_WORST_AGENTS, "regret")):
        is_shown = swaps["contribution"].abs() >= SMALLEST_SHOWN
        swaps_of_agent = swaps[(swaps["agent"] == agent["agent"]) & is_shown]
        ranked = swaps_of_agent.sort_values("contribution", ascending=False, kind="stable")
        for swap in wording.records(ranked):
            action, replacement, policy, times_played, gain = swap_cells(swap)
            yield [
                str(agent["cohort"]),
                str(agent["agent"]),
                action,
                replacement,
                policy,
                f"{agent['regret']:.4f}",
                times_played,
                gain,
            ]


def swap_cells(swap: Mapping[str, Any]) -> list[str]:
    """Write an action, its best replacements, how often it was played, and their contribution."""
    named_actions = {key: value for key, value in swap.items() if isinstance(value, str)}
    return [
        named_actions.get("action_name", f"action {swap['action']}"),
        named_actions.get("best_replacement_name", f"action {swap['best_replacement']}"),
        named_actions.get("best_policy", ""),
        f"{swap['count']:,.0f}",
        f"{swap['contribution']:.4f}",
    ]
