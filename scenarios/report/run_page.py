"""The page of a run: what ``run`` prints, in the same order, with figures and all alternatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.errors import UserError
from regretless.market.logs.counted import agents_in
from regretless.scenarios import verdict as words
from regretless.scenarios.logs.reading import log_parts, regret_curves
from regretless.scenarios.logs.run_directory import MANIFEST, read_run
from regretless.scenarios.report import market_figures  # noqa: F401 - and run_figures: registered
from regretless.scenarios.report.figures import Run, drawn
from regretless.scenarios.report.page import Part, charts, legible, notes, page, written_by

NEEDED = {"scenario", "config", "seed", "rounds", "status", "guarantee"}  # of a manifest
WORST = 5  # agents whose regret is taken apart
LEAST = 5e-5  # a smaller contribution would be printed as zero
CODE = """import pandas as pd
agents = pd.read_{ending}("agents.{ending}")
regret_log = pd.read_{ending}("regret_log.{ending}")"""
ALONE = (
    'No models were compared. Under kind = "decision-swap", models = ["panel"] in [forecaster] '
    "compares seven, and bounds the regret to each where its guarantee applies."
)
REPLACED = "Actions whose replacement would have avoided most loss"
UNMEASURED = "Swap regret was not measured."
HOW = (
    "The agents with the greatest regret, action by action: how often it was played, its best "
    "replacement in hindsight, and the regret per round that comes from it. Actions without a name "
    "are numbered from 0."
)
ALTERNATIVES = ["cohort", "alternative", "loss", "difference", "95 % interval", "better off"]
IN_UNITS = ["mean, in units", "worst agent, in units"]
BOUNDS = [f"bound, {word}" for word in words.BOUNDS]
REGRETS = ["cohort", "measure", "agents", "mean", "worst agent", *IN_UNITS, *BOUNDS]
ORIGINS = ["cohort", "agent", "action", "best replacement", "best policy"]
ORIGINS += ["regret", "rounds played", "regret from it"]
OPTIONAL = [*IN_UNITS, *BOUNDS, "best policy"]


def text(directory: Path) -> str:
    """Return the page of a run's directory; UserError if its logs cannot be read."""
    manifest, tables = _logs(directory)
    run, config = Run(manifest["config"], tables, manifest.get("actions", {})), manifest["config"]
    figures, verdict = drawn("run", run), run.table("verdict")
    ending = "csv" if (directory / "agents.csv").is_file() else "parquet"
    others = ", ".join(f"{n}.{ending}" for n in tables if n not in {"agents", "regret_curves"})
    worst, alternatives = list(_worst(run)), []
    for name, rows in verdict.groupby("cohort", sort=False) if len(verdict) else ():
        ranked = words.records(rows.sort_values("mean_loss", kind="stable"))
        alternatives += [[str(name), *words.alternative_cells(row)] for row in ranked]
    remarks = [f"{line[0].upper()}{line[1:]}." for line in words.assumed(verdict)]
    if not len(verdict) or not (verdict["kind"] == "model").any():
        remarks = [ALONE, *remarks]
    parts: dict[str, list[Part]] = {
        "Alternatives in hindsight": [*notes(remarks), _table(ALTERNATIVES, alternatives)],
        "Regret": [_table(REGRETS, list(_regrets(run.agents)))],
        "Forecast": notes(_forecast(manifest), "line"),
        "Agents": [],
        "Market": [],
        "Network": [],
        "Definitions": [("terms", words.DEFINITIONS)],
        "Files": [
            ("code", CODE.format(ending=ending)),
            ("note", f"In the folder of this page. Other tables: {others}."),
        ],
    }
    parts = {name: own + charts(figures, name) for name, own in parts.items()}
    if worst:
        parts["Regret"] += [("head", REPLACED), _table(ORIGINS, worst, text=5), ("note", HOW)]
    elif run.regret.isna().all():
        parts["Regret"] += notes([UNMEASURED])
    description, source = config.get("description"), config.get("source")
    return page(
        "report.html",
        name=manifest["scenario"],
        sections={name: own for name, own in parts.items() if own},
        facts=_facts(manifest, tables),
        sentences=words.sentences(verdict, run.agents) if len(verdict) else (),
        beside=notes([f"Description of the scenario: {description}" if description else ""]),
        footer=(f"Source: {source}. " if source else "") + written_by(manifest),
    )


def _table(headers: list[str], rows: list[list[str]], *, text: int = 2) -> Part:
    """Return a table, without the cohort where there is one alone and what no row has.

    ``text`` is how many columns are words, which stand first; the first two name the row.
    """
    first = int(len({row[0] for row in rows}) == 1)
    empty = [head in OPTIONAL and not any(row[i] for row in rows) for i, head in enumerate(headers)]
    places = [place for place in range(first, len(headers)) if not empty[place]]
    shown = [[row[place] for place in places] for row in (headers, *rows)]
    left, bare = (sum(place < most for place in places) for most in (text, 2))
    return "table", shown[0], shown[1:], left, False, bare


def _logs(directory: Path) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
    with legible(directory, what="its logs", cure="run it again"):
        manifest, tables = read_run(directory, without={"regret_log"})  # which may exceed memory
        if "agents" in tables:
            tables["regret_curves"] = regret_curves(log_parts(directory), tables["agents"])
    if not isinstance(manifest, dict) or not manifest.keys() >= NEEDED:
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
    planned, played = manifest["rounds"], len(tables.get("rounds", ()))
    rounds = f"{played:,}" if played == planned else f"{played:,} of {planned:,}"
    rounds += f" round{'s' * (planned != 1)}, seed {manifest['seed']}, {manifest['status']}."
    labels, of = manifest["guarantee"], ""
    promised = ", ".join(f"{name} {label}" for name, label in labels.items())
    if len(set(labels.values())) == 1:
        promised, of = next(iter(labels.values())), " of every cohort" * (len(labels) > 1)
    promised = f"Guaranteed regret{of}: {promised}."
    remarks = (f"{note}." for note in manifest.get("notes", []))
    return " ".join([rounds, promised, *manifest.get("data", []), *remarks])


def _regrets(agents: pd.DataFrame) -> Iterator[list[str]]:
    """Yield the cells of each measure of a cohort, with the bounds beside decision swap regret."""
    for name, own in agents.groupby("cohort", sort=False):
        unit = words.unit_of(own)
        for measure, mean, worst, *units in words.regret_rows(own):
            cells = [""] * len(words.BOUNDS)
            if measure == "decision swap":
                known = words.bounds_to_print(own)
                cells = [words.promise(known.get(word, np.nan), 4) for word in words.BOUNDS]
                if words.GIVEN_VARIATION not in known and words.is_trusted(own).any():
                    cells[list(words.BOUNDS).index(words.GIVEN_VARIATION)] = words.TRUSTED
                uncorrected = known.get(words.UNCORRECTED)
                if uncorrected is not None:
                    cells[-1] = f"{words.promise(uncorrected, 4)} {words.UNCORRECTED}"
            in_units = [f"{value} {unit}".strip() if value else "" for value in units]
            yield [str(name), measure, f"{agents_in(own):,}", mean, worst, *in_units, *cells]


def _forecast(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the forecaster, and which reference each block broadcasts."""
    forecaster, blocks = manifest["config"].get("forecaster", {}), manifest.get("blocks", [])
    yield f"Forecaster: {forecaster.get('kind', 'unknown')}."
    base = (forecaster.get("reference") or {}).get("kind", "a reference model")
    # no block of a run before it was noted has it
    known = {own["name"]: own for own in blocks if "first_correction" in own}
    yield from words.unchanged(base, known)


def _worst(run: Run) -> Iterator[list[str]]:
    """Yield what the regret of the worst agents is made of, action by action."""
    ranked = run.agents.assign(regret=run.regret).dropna(subset="regret")
    ranked = ranked.drop_duplicates(["cohort", "mean_loss", "regret"]).nlargest(WORST, "regret")
    swaps = run.table("swaps")
    for agent in words.records(ranked) if len(swaps) else ():
        mine = swaps[(swaps["agent"] == agent["agent"]) & (swaps["contribution"].abs() >= LEAST)]
        mine = mine.sort_values("contribution", ascending=False, kind="stable")
        who, regret = [str(agent["cohort"]), str(agent["agent"])], f"{agent['regret']:.4f}"
        for swap in words.records(mine):
            *named, played, gain = origin(swap)
            yield [*who, *named, regret, played, gain]


def origin(row: Mapping[str, Any]) -> list[str]:
    """Write an action, its best replacements, how often it was played, and their contribution."""
    known = {key: word for key, word in row.items() if isinstance(word, str)}
    played, better = (
        known.get(f"{key}_name", f"action {row[key]}") for key in ("action", "best_replacement")
    )
    policy, gain = known.get("best_policy", ""), f"{row['contribution']:.4f}"
    return [played, better, policy, f"{row['count']:,.0f}", gain]
