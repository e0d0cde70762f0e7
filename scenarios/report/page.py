"""One self-contained HTML page from the logs of a run: no network, nothing but the logs.

The page is a function of the tables and the manifest's seed, rounds, status and configuration:
the same logs give the same bytes. Of a study directory ``scenarios.report.study_page`` makes the
page.

Every figure is drawn once, by Plotly, whose script stands in the page (docs/decisions.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.market.core.errors import UserError
from regretless.market.logs.welfare import agents_in, mean_of
from regretless.scenarios.logs.curves import leading_regret, log_parts, regret_curves
from regretless.scenarios.logs.directory import MANIFEST, read_run
from regretless.scenarios.logs.ownership import REPORT
from regretless.scenarios.report import course, market_figures, run_figures, verdict
from regretless.scenarios.report.charts import card, dated, scripts
from regretless.scenarios.report.html import cell, page, save, table
from regretless.scenarios.report.run_figures import Tables
from regretless.scenarios.report.study_page import write_study_report
from regretless.scenarios.report.training_page import write_training_report
from regretless.scenarios.studies.directory import RECORD
from regretless.scenarios.summary import REGRETS, figure, mean_and_worst, promise
from regretless.scenarios.training import TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


NEEDED = {"scenario", "config", "seed", "rounds", "status", "guarantee"}  # of a manifest
WORST = 5  # agents whose regret is taken apart
LEAST = 5e-5  # a smaller contribution would be printed as zero


def write_report(run: Path) -> Path:
    """Write ``report.html`` into the directory of a run, a study or a training, in one step.

    Raises
    ------
    UserError
        If the directory is none of these, its logs cannot be read, or the page cannot be written.
    """
    if (run / RECORD).is_file():
        return write_study_report(run, run / REPORT)
    if (run / TABLE).is_file():
        return write_training_report(run, run / REPORT)
    if not (run / MANIFEST).is_file():
        reason = f"{run} is no run's directory, no study's and no training's"
        raise UserError(f"{reason}: it has no {MANIFEST}, {RECORD} or {TABLE}; give one")
    manifest, tables = _logs(run)
    ending = "csv" if (run / "agents.csv").is_file() else "parquet"
    body = "\n".join(_sections(manifest, tables, ending))
    return save(page(manifest["scenario"], body, scripts()), run / REPORT)


def _logs(run: Path) -> tuple[dict[str, Any], Tables]:
    try:
        manifest, tables = read_run(run, without={"regret_log"})  # which may exceed memory
        if "agents" in tables:
            tables["regret_curves"] = regret_curves(log_parts(run), tables["agents"])
    except UserError:
        raise
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{run}: its logs cannot be read: {reason}; run it again") from error
    if not isinstance(manifest, dict) or not manifest.keys() >= NEEDED:
        raise UserError(f"{run / MANIFEST} is not a run's; give a directory that has one")
    if "agents" not in tables or tables["agents"].empty:
        raise UserError(f"{run} holds no agents table; wait for its run to end or run it again")
    return manifest, tables


def _sections(manifest: dict[str, Any], tables: Tables, ending: str) -> Iterator[str]:
    config, agents = manifest["config"], tables["agents"]
    yield f"<h1>{escape(manifest['scenario'])}</h1>"
    for line in verdict.told(tables):
        yield f'<p class="claim">{escape(line)}</p>'
    yield f'<p class="note">{escape(_facts(manifest, tables))}</p>'
    if config.get("claim"):
        yield f'<p class="note">Its file says: {escape(config["claim"])}</p>'
    yield "<h2>Summary</h2>"
    yield _summary(agents)
    yield from verdict.section(manifest, tables)
    yield "<h2>Figures</h2>"
    yield _figures(config, tables)
    yield "<h2>Where the regret comes from</h2>"
    yield _worst(agents, tables.get("swaps"))
    yield "<h2>The logs in pandas</h2>"
    yield _how_to_read(tables, ending)
    version = manifest.get("versions", {}).get("regretless", "")
    source = f"Source: {config['source']}. " if config.get("source") else ""
    yield f"<footer>{escape(f'{source}Written by regretless {version}'.strip())}.</footer>"


def _facts(manifest: dict[str, Any], tables: Tables) -> str:
    planned, played = manifest["rounds"], len(tables.get("rounds", ()))
    rounds = f"{played:,}" if played == planned else f"{played:,} of {planned:,}"
    labels = (f"{name}: {label}" for name, label in manifest["guarantee"].items())
    facts = [
        f"{rounds} round{'s' * (planned != 1)}, seed {manifest['seed']}, {manifest['status']}.",
        f"Forecaster: {manifest['config'].get('forecaster', {}).get('kind', 'unknown')}.",
        f"Guarantee per cohort: {', '.join(labels)}.",
    ]
    notes = (f"{note}." for note in manifest.get("notes", []))
    return " ".join([*facts, *manifest.get("data", []), *notes])


def _summary(agents: pd.DataFrame) -> str:
    regrets = [f"{name} regret" for name in REGRETS]
    bounds = ["bound from bias", "bound from variation", "bound"]
    head = ["cohort", "agents", "mean loss", *regrets, *bounds, "exploitability"]
    rows = [
        f"<tr>{cell(name, left=True)}{''.join(map(cell, _numbers(members)))}</tr>"
        for name, members in agents.groupby("cohort", sort=False)
    ]
    note = (
        "Regret per round with losses in [0, 1]: mean over agents / worst agent; a dash where it "
        "was not measured. Bounds are for the worst agent. From bias: what follows from the biases "
        "that were measured. Bound: the theorem's, with probability 0.99 in all rounds at once; "
        "from variation: the same with what is known of how much the biases moved."
    )
    return f'{table(head, rows)}\n<p class="note">{escape(note)}</p>'


def _numbers(members: pd.DataFrame) -> list[str]:
    return [
        f"{agents_in(members):,}",
        f"{mean_of(members, 'mean_loss'):.4f}",
        *(mean_and_worst(members, column) for column in REGRETS.values()),
        figure(members["bound_from_bias"].max(), "none"),
        promise(members["bound_from_variation"].max()),
        promise(members["bound"].max()),
        figure(members["exploitability"].max(), "-"),
    ]


def _figures(config: dict[str, Any], tables: Tables) -> str:
    told = captions(tables)
    return "\n".join(card(made, name, told[name]) for name, made in drawn(config, tables).items())


def captions(tables: Tables) -> dict[str, str]:
    """Return what is said below each figure of a run."""
    told = run_figures.CAPTIONS | market_figures.CAPTIONS | course.CAPTIONS
    return told | {"surplus": market_figures.surplus_caption(tables["agents"])}


def drawn(
    config: dict[str, Any],
    tables: Tables,
    names: Collection[str] | None = None,
    *,
    dates: Collection[str] | None = None,
) -> dict[str, go.Figure]:
    """Draw the figures of a run by name, those that its tables have something for.

    Parameters
    ----------
    names : collection of str, optional
        Which of ``FIGURES``; all by default.
    dates : collection of str, optional
        Which of them have the data's dates where there are any; ``DATED`` by default.
    """
    wanted = FIGURES if names is None else [name for name in FIGURES if name in names]
    made = {name: FIGURES[name](config, tables) for name in wanted}
    kept = {name: figure for name, figure in made.items() if figure is not None}
    index = (config.get("data") or {}).get("index")
    if index is not None and index in tables.get("rounds", ()):
        days = tables["rounds"].set_index("round")[index]
        for name in (DATED if dates is None else dates) & kept.keys():
            dated(kept[name], days, index)
    return kept


def action_names(config: dict[str, Any]) -> dict[str, list[str]]:
    """Return what the actions of each cohort are called, where they have names."""
    cohorts = config.get("cohort", [])
    return {c["name"]: c["action_names"] for c in cohorts if c.get("action_names")}


def _outcomes(tables: Tables) -> int:
    return sum(str(column).startswith("y_") for column in tables.get("rounds", ()))


FIGURES: dict[str, Callable[[dict[str, Any], Tables], go.Figure | None]] = {
    "loss": lambda _, tables: (course if "course" in tables else run_figures).loss(tables),
    "regret": lambda _, tables: run_figures.regret(tables),
    "bounds": lambda _, tables: run_figures.bounds(tables),
    "windows": lambda _, tables: run_figures.windows(tables),
    "surplus": lambda _, tables: market_figures.surplus(tables),
    "spread": lambda _, tables: run_figures.spread(tables),
    "agents": lambda _, tables: run_figures.agents(tables),
    "exploitability": lambda _, tables: run_figures.exploitability(tables),
    "actions": lambda config, tables: course.actions(tables, action_names(config)),
    "network": lambda _, tables: market_figures.network(tables),
    "distances": lambda _, tables: market_figures.distances(tables),
    "demand": lambda config, tables: market_figures.demand(
        tables, goods(config, _outcomes(tables))
    ),
    "market": lambda config, tables: course.market(
        tables, goods(config, _outcomes(tables)), (config.get("market") or {}).get("kind", "")
    ),
    "owned": lambda config, tables: course.owned(tables, goods(config, _outcomes(tables))),
    "forecast": lambda config, tables: run_figures.forecast(
        tables, outcome_ends(config, _outcomes(tables))
    ),
    "certificates": lambda _, tables: run_figures.certificates(tables),
}
DATED = frozenset({"loss", "regret", "windows", "surplus", "demand", "market", "forecast"})
DATED |= {"actions", "certificates"}


def goods(config: dict[str, Any], width: int) -> list[str]:
    """Name the outcomes, which in a market are what the goods yield."""
    data, adversary = config.get("data") or {}, config.get("adversary") or {}
    named = data.get("outcomes") or adversary.get("outcome_names")
    return list(named or (f"outcome {i}" for i in range(width)))


def outcome_ends(config: dict[str, Any], width: int) -> dict[str, tuple[float, float]]:
    """Say what 0 and 1 stand for, of each outcome by name and unit, in the data's own units."""
    data = config.get("data") or {}
    scale, units = data.get("scale", {}), data.get("units", {})
    return {
        ", ".join([name, units[name]] if name in units else [name]): tuple(
            scale.get(name, (0.0, 1.0))
        )
        for name in goods(config, width)
    }


def _worst(agents: pd.DataFrame, swaps: pd.DataFrame | None) -> str:
    ranked = agents.assign(regret=leading_regret(agents)).dropna(subset="regret")
    ranked = ranked.drop_duplicates(["cohort", "mean_loss", "regret"]).nlargest(WORST, "regret")
    if ranked.empty:
        return '<p class="note">Swap regret was not measured.</p>'
    head = ["agent", "cohort", "regret", "when it played", "times", "best replacement"]
    rows = [row for _, agent in ranked.iterrows() for row in _origins(agent, swaps)]
    whose = "agent" if len(ranked) == 1 else f"{len(ranked)} agents"
    note = (
        f"The {whose} with most decision swap regret (swap regret where that was not measured; of "
        "equal agents one), action by action: how often it was played, the best fixed action and, "
        "where it would have done better still, the best policy in its stead, and the regret per "
        "round that comes from it. Actions without a name are numbered from 0; those without "
        "regret are left out."
    )
    listing = table([*head, "best policy", "contribution"], rows, left=2)
    return f'<p class="note">{escape(note)}</p>\n{listing}'


def _origins(agent: pd.Series[Any], swaps: pd.DataFrame | None) -> Iterator[str]:
    who = (agent["agent"], agent["cohort"], f"{agent['regret']:.4f}")
    mine = pd.DataFrame() if swaps is None or swaps.empty else swaps[swaps["agent"] == who[0]]
    if len(mine):
        mine = mine[np.abs(mine["contribution"]) >= LEAST]
        mine = mine.sort_values("contribution", ascending=False, kind="stable")
    rest = [_origin(row) for _, row in mine.iterrows()] or [("-",) * 5]
    for i, origin in enumerate(rest):
        first = [cell(text, left=j < 2, span=len(rest)) for j, text in enumerate(who) if i == 0]
        yield f"<tr>{''.join(first)}{''.join(map(cell, origin))}</tr>"


def _origin(row: pd.Series[Any]) -> tuple[str, ...]:
    policy = row["best_policy"]
    played, better = (
        row[f"{key}_name"] if isinstance(row.get(f"{key}_name"), str) else f"action {row[key]}"
        for key in ("action", "best_replacement")
    )
    return (
        played,
        f"{row['count']:,.0f}",
        better,
        str(policy) if isinstance(policy, str) and policy else "-",
        f"{row['contribution']:.4f}",
    )


def _how_to_read(tables: Tables, ending: str) -> str:
    lines = ["import pandas as pd"]
    lines += [f'{name} = pd.read_{ending}("{name}.{ending}")' for name in ("agents", "regret_log")]
    shown = {"agents", "regret_log", "regret_curves"}
    others = ", ".join(f"{name}.{ending}" for name in tables if name not in shown)
    code = "\n".join(lines)
    return (
        f"<pre><code>{escape(code)}</code></pre>\n"
        f'<p class="note">In this page\'s folder; there are also {escape(others)}.</p>'
    )
