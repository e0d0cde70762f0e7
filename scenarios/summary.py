"""What ``run`` prints at its end: numbers first, then the forecast, the data and where logs lie.

At most ``MOST`` lines, however many cohorts there are; ``verbose`` prints the tables of every
cohort in full and what each term means.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console, RenderableType
from rich.padding import Padding

from regretless.market.logs.alternatives import EVERYBODY
from regretless.market.logs.counted import agents_in, mean_of
from regretless.market.model import MarketModel
from regretless.scenarios import verdict as words
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.logs.reading import leading_regret
from regretless.scenarios.logs.run_directory import MANIFEST
from regretless.scenarios.notes import on_exploitability
from regretless.scenarios.terminal import console, plain_lines, table

MOST = 40  # lines
COHORTS = 10  # rows of a table by cohort
ALTERNATIVES = "Alternatives in hindsight"
HEADERS = ["loss", "difference", "95 % interval", "better\noff"]
SCALE = "0 is the best possible round, 1 the worst"


def print_summary(
    scenario: Scenario,
    model: MarketModel,
    out: Path,
    closed: Mapping[str, pd.DataFrame] | None = None,
    *,
    verbose: bool = False,
) -> None:
    """Print what a run comes to; ``closed``: the tables that closed it, not the model's own."""
    own = closed or {"agents": model.agents_frame(), "verdict": model.verdict_frame()}
    agents, verdict = own["agents"], own["verdict"]
    screen, spec, manifest, data = console(), scenario.spec, out / MANIFEST, scenario.table
    record = json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else {}
    seconds = f", {record['wall_seconds']:,.0f} s" if "wall_seconds" in record else ""
    tables = (full if verbose else short)(verdict, agents, width=screen.width)
    head = f"{spec.name}: {model.played:,} rounds, seed {spec.seed}{seconds}"
    parts = [head, "", *tables, "", *forecast(scenario, model)]
    parts += [f"Data: {line}" for line in data.notes] if data is not None else []
    if data is not None and model.played > len(data.outcomes):
        parts.append(f"Data: the {len(data.outcomes):,} rows were replayed in a loop.")
    notes_of = [*remarks(model, agents), *departures(spec, model, agents)]
    if verbose:
        notes_of += [line for guarantee in model.guarantees for line in guarantee.unbounded]
    said = [f"{line}." for line in notes_of]
    if verbose:
        said += ["", *(f"{term}: {meaning}" for term, meaning in words.DEFINITIONS.items())]
    else:
        said = list(_fitting(screen, said, MOST - 1 - len(plain_lines(screen, parts))))
    end = f"Logs: {out}    Report: regretless report {out}"
    for line in (*plain_lines(screen, (*parts, *said)), end):
        print(line, file=screen.file)


def _fitting(screen: Console, lines: list[str], most: int) -> Iterator[str]:
    """Yield the first lines that there is room for, and how many are left."""
    for place, line in enumerate(lines):
        most -= len(plain_lines(screen, [line]))
        last = place == len(lines) - 1
        if most < 0 or (most == 0 and not last):
            left = len(lines) - place
            yield f"{left} more remark{'s' * (left > 1)}: --verbose prints the rest."
            return
        yield line


def short(verdict: pd.DataFrame, agents: pd.DataFrame, *, width: int) -> Iterator[RenderableType]:
    """Yield what is said of the cohorts: of one in full, of several a row each."""
    cohorts = {str(name): rows for name, rows in words.apart(verdict).groupby("cohort", sort=False)}
    if len(cohorts) == 1:
        (rows,) = cohorts.values()
        yield from (words.played(rows, agents, note=SCALE), "")
        yield from _cohort([(r, rows) for r in words.best_of_each(rows)], rows, agents, width=width)
        return
    if len(cohorts) <= words.MANY:
        for name, rows in cohorts.items():
            yield words.played(rows, agents[agents["cohort"] == name])
    else:
        yield f"{len(cohorts)} cohorts with {agents_in(agents):,} agents."
    yield f"Losses are per round ({SCALE})."
    yield ""
    shown = dict(list(cohorts.items())[:COHORTS])
    cells = []
    together = verdict[verdict["cohort"] == EVERYBODY]
    for name, rows in (shown | {EVERYBODY: together} if len(together) else shown).items():
        what, *numbers = words.alternative_cells(words.best_of_each(rows)[0])
        what = what.removesuffix(" of each agent").removeprefix("best ")
        cells.append([name, f"{rows['mean_loss'].iloc[0]:.4f}", what, *numbers])
    headers = ["cohort", "loss", "best in\nhindsight", "loss", "differ-\nence", *HEADERS[2:]]
    yield table(headers, cells, width=width, words=(0, 2))
    yield from (Padding(line, (0, 0, 0, 2)) for line in words.assumed(verdict))
    yield ""
    yield table(*_regrets(agents, list(shown)), width=width)
    if len(cohorts) > len(shown):
        yield f"{len(cohorts) - len(shown)} more cohorts: --verbose prints them."


def _regrets(agents: pd.DataFrame, names: list[str]) -> tuple[list[str], list[list[str]]]:
    columns = words.REGRETS | {"exploitability": "exploitability"}
    parts = [agents[agents["cohort"] == name] for name in names]
    worst = [(leading_regret(own) * own["loss_scale"]).max() for own in parts]
    units = [words.unit_of(own) for own in parts]
    common = units[0] if len(set(units)) == 1 else ""
    rows = []
    for name, own, most in zip(names, parts, words.in_units(worst, units), strict=True):
        regrets = [*own[list(columns.values())].max(), mean_of(own, "decision_swap_regret")]
        bound = words.promise(min(words.bounds_to_print(own).values(), default=np.nan), 4)
        *cells, mean = ("" if np.isnan(value) else words.four(value) for value in regrets)
        rows.append([name, *cells, bound, mean, most.removesuffix(f" {common}")])
    headers = [word.replace(" ", "\n", 1).replace("exploit", "exploit-\n") for word in columns]
    unit = "worst,\n" + (common or "in units").replace(" ", "\n")
    return ["Worst regret per round", *headers, "bound", "mean\ndecision\nswap\nregret", unit], rows


def full(verdict: pd.DataFrame, agents: pd.DataFrame, *, width: int) -> Iterator[RenderableType]:
    """Yield what is said of every cohort, with all alternatives and measures."""
    yield f"Losses are per round ({SCALE})."
    for name, rows in verdict.groupby("cohort", sort=False):
        own = agents if name == EVERYBODY else agents[agents["cohort"] == name]
        yield from ("", words.played(rows, own), "")
        ranked = words.records(words.alternatives(rows).sort_values("mean_loss", kind="stable"))
        yield from _cohort([(row, None) for row in ranked], rows, own, width=width)


def _cohort(
    alternatives: list[tuple[words.Row, pd.DataFrame | None]],
    verdict: pd.DataFrame,
    agents: pd.DataFrame,
    *,
    width: int,
) -> Iterator[RenderableType]:
    cells = [words.alternative_cells(*pair) for pair in alternatives]
    yield table([ALTERNATIVES, *HEADERS], cells, width=width)
    yield from (Padding(line, (0, 0, 0, 2)) for line in words.assumed(verdict))
    yield ""
    unit = words.unit_of(agents)
    headers = ["Regret per round", "mean", "worst\nagent"]
    headers += [f"mean,\n{unit}", f"worst,\n{unit}", "bound"]
    rows = []
    for row in words.regret_rows(agents):
        bounds = words.bounds_in_words(agents) if row[0] == "decision swap" else []
        first, *more = bounds or [""]
        rows += [[*row, first], *([""] * 5 + [line] for line in more)]
    yield table(headers, rows, width=width, words=(0, 5))


def forecast(scenario: Scenario, model: MarketModel) -> Iterator[str]:
    """Yield what the forecast of each block was made of."""
    blocks = model.game.blocks
    size, error = sum(b.basis.size for b in blocks), max(b.basis.error for b in blocks)
    made = f"bas{'e' if len(blocks) > 1 else 'i'}s {', '.join(block.name for block in blocks)}"
    made += f"; error at most {error:.2g}" if error else ""
    yield f"Forecast: {size} number{'s' * (size > 1)} per round ({made})."
    described = {block.name: block.forecaster.described() for block in blocks}
    base = scenario.spec.forecaster.reference.kind
    yield from words.unchanged(base, {name: own for name, own in described.items() if own})


def remarks(model: MarketModel, agents: pd.DataFrame) -> Iterator[str]:
    """Yield what is to be said beside the tables, a line each."""
    if model.game.market is not None and (line := model.game.market.summary()):
        yield line
    for cohort in model.game.cohorts:
        if cohort.multiplicity is not None:
            rows = f"a row of the tables for each of {len(cohort.row_of):,} losses"
            yield f"{cohort.name}: {cohort.population:,} agents with multiplicity, {rows}"
    said: dict[str, list[str]] = {}  # of which cohorts
    for guarantee in model.guarantees:
        name, _, what = guarantee.note.partition(": ")
        said.setdefault(what, []).append(name)
    yield from (f"{', '.join(cohorts)}: {what}" for what, cohorts in said.items() if what)
    yield from coarse_bases(model, agents)
    windows = model.journal.windows
    for name, (regret, agent, first, last) in windows.worst.items() if windows is not None else ():
        where = f"agent {agent}, rounds {first} to {last}"
        yield f"{name}: worst window regret {regret:.4f} ({where})"
    yield from (*on_exploitability(model, agents), *model.notes)


def departures(spec: ScenarioSpec, model: MarketModel, agents: pd.DataFrame) -> Iterator[str]:
    """Yield for each cohort how many of its agents left by themselves, such as the ruined."""
    for cohort in spec.cohort if "left" in agents else ():
        own = agents[agents["cohort"] == cohort.name]
        gone = own[own["left"] < min(cohort.exits or spec.rounds, spec.rounds)]
        if len(gone) and cohort.exit_rate is None:
            first = f"the first in round {gone['left'].min():,}"
            accounts = None if model.game.market is None else model.game.market.accounts
            if accounts is not None:
                most = accounts.cash[gone["agent"].to_numpy() - 1].max()
                first += f", none with more than {most:.4g} in cash"
            yield f"{cohort.name}: {len(gone):,} of {len(own):,} agents left by themselves, {first}"


def coarse_bases(model: MarketModel, agents: pd.DataFrame) -> Iterator[str]:
    """Yield a line per cohort whose basis has a greater error than the regret that was measured."""
    for cohort in model.game.cohorts:
        if cohort.unguided:
            continue
        own = agents[agents["cohort"] == cohort.name]
        error, regret = model.game.blocks[cohort.block].basis.error, own["decision_swap_regret"]
        if error > regret.max():
            units = words.unit_of(own) or "in the utility's own units"
            most, worst = error * own["loss_scale"].max(), (regret * own["loss_scale"]).max()
            within = f"{cohort.name}: the basis approximates losses within {most:.2g} {units}"
            more = f"more than the worst decision swap regret of {worst:.2g}"
            yield f"{within}, {more}; a basis with a smaller error may lower the losses"
