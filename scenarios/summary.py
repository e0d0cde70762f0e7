"""What ``run`` prints at its end: numbers first, then the forecast, the data and where logs lie.

At most ``MAX_LINES`` lines, however many cohorts there are; ``verbose`` prints the tables of every
cohort in full and what each term means.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console, RenderableType
from rich.padding import Padding

from regretless.market.game.protocols import Cohort
from regretless.market.logs.alternatives import EVERYBODY
from regretless.market.logs.counted import agents_in, mean_of
from regretless.market.model import MarketModel
from regretless.scenarios import verdict as wording
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.logs.reading import leading_regret
from regretless.scenarios.logs.run_directory import MANIFEST
from regretless.scenarios.notes import on_exploitability
from regretless.scenarios.solution_lines import lines_on_solutions
from regretless.scenarios.terminal import console, plain_lines, table
from regretless.scenarios.verdict import four_decimals

MAX_LINES = 40
MAX_COHORT_ROWS = 10  # of a table by cohort
# At which the error of a basis is measured, and for how many losses: milliseconds.
MAX_AUDITED_OUTCOMES = 500
MAX_AUDITED_ROWS = 20
DIFFERENCE_HEADERS = ["loss", "difference", "95 % interval", "better\noff"]
SCALE = "0 is the best possible round, 1 the worst"


def print_summary(
    scenario: Scenario,
    model: MarketModel,
    out: Path,
    closing_tables: Mapping[str, pd.DataFrame] | None = None,
    *,
    verbose: bool = False,
) -> None:
    """Print what a run comes to.

    Parameters
    ----------
    out : Path
        The run's directory.
    closing_tables : mapping, optional
        The tables that closed the run, by name; by default the model's own.
    verbose : bool
        Whether all is printed in full, however many lines that takes.
    """
    if closing_tables:
        agents = closing_tables["agents"]
        verdict = closing_tables["verdict"]
    else:
        agents = model.agents_frame()
        verdict = model.verdict_frame()
    screen = console()
    lay_out_tables = full_tables if verbose else short_tables
    parts = [
        _headline(scenario, model, out),
        "",
        *lay_out_tables(verdict, agents, width=screen.width),
        "",
        *lines_on_solutions(model, closing_tables, width=screen.width),
        *lines_on_forecast(scenario, model),
        *_lines_on_data(scenario, model),
    ]
    notes = [*remarks(model, agents), *departures(scenario.spec, model, agents)]
    if verbose:
        for guarantee in model.guarantees:
            notes += guarantee.unbounded
    closing_lines = [f"{note}." for note in notes]
    if verbose:
        closing_lines.append("")
        terms = wording.definitions(verdict, agents)
        closing_lines += [f"{term}: {meaning}" for term, meaning in terms.items()]
    else:
        n_lines_left = MAX_LINES - 1 - len(plain_lines(screen, parts))
        closing_lines = list(_as_many_as_fit(screen, closing_lines, n_lines_left))
    last_line = f"Logs: {out}    Report: regretless report {out}"
    for line in (*plain_lines(screen, (*parts, *closing_lines)), last_line):
        print(line, file=screen.file)


def _headline(scenario: Scenario, model: MarketModel, out: Path) -> str:
    """Say which scenario was played, for how many rounds and, where it is known, how long."""
    spec = scenario.spec
    headline = f"{spec.name}: {model.played:,} rounds, seed {spec.seed}"
    path = out / MANIFEST
    manifest = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if "wall_seconds" in manifest:
        headline += f", {manifest['wall_seconds']:,.0f} s"
    return headline


def _lines_on_data(scenario: Scenario, model: MarketModel) -> Iterator[str]:
    """Yield what is to be said of the data; nothing where there are none."""
    data = scenario.table
    if data is None:
        return
    for note in data.notes:
        yield f"Data: {note}"
    n_rows = len(data.outcomes)
    if model.played > n_rows:
        yield f"Data: the {n_rows:,} rows were replayed in a loop."


def _as_many_as_fit(screen: Console, lines: list[str], max_lines: int) -> Iterator[str]:
    """Yield the first lines that there is room for, and how many are left."""
    n_free = max_lines
    for index, line in enumerate(lines):
        n_free -= len(plain_lines(screen, [line]))
        is_last = index == len(lines) - 1
        if n_free < 0 or (n_free == 0 and not is_last):
            n_left = len(lines) - index
            plural = "s" if n_left > 1 else ""
            yield f"{n_left} more remark{plural}: --verbose prints the rest."
            return
        yield line


def short_tables(
    verdict: pd.DataFrame, agents: pd.DataFrame, *, width: int
) -> Iterator[RenderableType]:
    """Yield what is said of the cohorts: of one in full, of several a row each."""
    rows_of_cohort: dict[str, pd.DataFrame] = {}
    # The verdict ends with the rows of all agents together, as a cohort ``EVERYBODY``.
    for name, rows in wording.without_everybody(verdict).groupby("cohort", sort=False):
        rows_of_cohort[str(name)] = rows
    if len(rows_of_cohort) == 1:
        (rows,) = rows_of_cohort.values()
        yield wording.describe_play(rows, agents, note=SCALE)
        yield ""
        best_rows = wording.best_of_each_kind(rows)
        cells = [wording.alternative_cells(row, rows) for row in best_rows]
        yield from _tables_of_cohort(cells, rows, agents, width=width)
        return
    if len(rows_of_cohort) <= wording.MAX_PARAGRAPHS:
        for name, rows in rows_of_cohort.items():
            yield wording.describe_play(rows, agents[agents["cohort"] == name])
    else:
        yield f"{len(rows_of_cohort)} cohorts with {agents_in(agents):,} agents."
    yield f"Losses are per round ({SCALE})."
    yield ""
    listed_cohorts = list(rows_of_cohort)[:MAX_COHORT_ROWS]
    listed_rows = {name: rows_of_cohort[name] for name in listed_cohorts}
    rows_of_everybody = verdict[verdict["cohort"] == EVERYBODY]
    if len(rows_of_everybody):
        listed_rows[EVERYBODY] = rows_of_everybody
    yield _table_of_alternatives(listed_rows, width=width)
    for line in wording.describe_intervals(verdict):
        yield _indented(line)
    yield ""
    yield _table_of_worst_regrets(agents, listed_cohorts, width=width)
    yield from map(_indented, _lines_on_unproved_bounds(agents, listed_cohorts))
    n_unlisted = len(rows_of_cohort) - len(listed_cohorts)
    if n_unlisted:
        yield f"{n_unlisted} more cohorts: --verbose prints them."


def _indented(line: str) -> Padding:
    return Padding(line, (0, 0, 0, 2))


def _table_of_alternatives(
    rows_of_cohort: Mapping[str, pd.DataFrame], *, width: int
) -> RenderableType:
    """Lay out the best alternative of each cohort, a row each."""
    cells = []
    for cohort, rows in rows_of_cohort.items():
        name, *numbers = wording.alternative_cells(wording.best_of_each_kind(rows)[0])
        short_name = name.removesuffix(" of each agent").removeprefix("best ")
        cells.append([cohort, f"{rows['mean_loss'].iloc[0]:.4f}", short_name, *numbers])
    headers = ["cohort", "loss", "best in\nhindsight", "loss", "differ-\nence"]
    headers += DIFFERENCE_HEADERS[2:]
    return table(headers, cells, width=width, words=(0, 2))


def _table_of_worst_regrets(
    agents: pd.DataFrame, cohorts: list[str], *, width: int
) -> RenderableType:
    """Lay out the worst regrets of each cohort, a row each, with their bound."""
    columns = wording.REGRETS | {"exploitability": "exploitability"}
    agents_of = [agents[agents["cohort"] == cohort] for cohort in cohorts]
    units = [wording.unit_of(members) for members in agents_of]
    common_unit = units[0] if len(set(units)) == 1 else ""
    worst_regrets = [_worst_regret_in_units(members) for members in agents_of]
    worst_in_units = wording.in_units(worst_regrets, units)
    cells = []
    for cohort, members, in_units in zip(cohorts, agents_of, worst_in_units, strict=True):
        regrets = list(members[list(columns.values())].max())
        regrets.append(mean_of(members, "decision_swap_regret"))
        *worst_cells, mean_cell = ["" if np.isnan(x) else four_decimals(x) for x in regrets]
        least_bound = min(wording.bounds_to_print(members).values(), default=np.nan)
        bound = wording.bound_text(least_bound, 4)
        value_in_units = in_units.removesuffix(f" {common_unit}")
        cells.append([cohort, *worst_cells, bound, mean_cell, value_in_units])
    folded_measures = [measure.replace(" ", "\n", 1) for measure in columns]
    headers = [
        "Worst regret per round",
        *(measure.replace("exploit", "exploit-\n") for measure in folded_measures),
        "bound",
        "mean\ndecision\nswap\nregret",
        "worst,\n" + (common_unit or "in units").replace(" ", "\n"),
    ]
    return table(headers, cells, width=width)


def _lines_on_unproved_bounds(agents: pd.DataFrame, cohorts: list[str]) -> Iterator[str]:
    """Yield of which cohorts the bound is computed from the run, since no theorem covers them."""
    unproved_cohorts = []
    for cohort in cohorts:
        members = agents[agents["cohort"] == cohort]
        if (members["guarantee"] == "none").all() and wording.bounds_to_print(members):
            unproved_cohorts.append(cohort)
    if unproved_cohorts:
        names = ", ".join(unproved_cohorts)
        yield f"bound of {names}: from the biases of this run; no theorem promises it"


def _worst_regret_in_units(members: pd.DataFrame) -> float:
    """Return the greatest regret of a cohort's agents, in units of its losses."""
    return float((leading_regret(members) * members["loss_scale"]).max())


def full_tables(
    verdict: pd.DataFrame, agents: pd.DataFrame, *, width: int
) -> Iterator[RenderableType]:
    """Yield what is said of every cohort, with all alternatives and measures."""
    yield f"Losses are per round ({SCALE})."
    for cohort, rows in verdict.groupby("cohort", sort=False):
        members = agents if cohort == EVERYBODY else agents[agents["cohort"] == cohort]
        yield ""
        yield wording.describe_play(rows, members)
        yield ""
        ranked = wording.alternatives(rows).sort_values("mean_loss", kind="stable")
        cells = [wording.alternative_cells(row) for row in wording.records(ranked)]
        yield from _tables_of_cohort(cells, rows, members, width=width)


def _tables_of_cohort(
    alternatives: list[list[str]],
    verdict: pd.DataFrame,
    agents: pd.DataFrame,
    *,
    width: int,
) -> Iterator[RenderableType]:
    """Yield the table of alternatives of a cohort, whose cells are given, and that of regrets."""
    headers = ["Alternatives in hindsight", *DIFFERENCE_HEADERS]
    yield table(headers, alternatives, width=width)
    for line in wording.describe_intervals(verdict):
        yield _indented(line)
    yield ""
    unit = wording.unit_of(agents)
    regret_headers = ["Regret per round", "mean", "worst\nagent"]
    regret_headers += [f"mean,\n{unit}", f"worst,\n{unit}", "bound"]
    cells = []
    for row in wording.regret_rows(agents):
        bounds = wording.describe_bounds(agents) if row[0] == "decision swap" else []
        first_bound, *other_bounds = bounds or [""]
        empty_cells = [""] * len(row)
        cells.append([*row, first_bound])
        cells += [[*empty_cells, bound] for bound in other_bounds]
    yield table(regret_headers, cells, width=width, words=(0, 5))


def lines_on_forecast(scenario: Scenario, model: MarketModel) -> Iterator[str]:
    """Yield what the forecast of each block was made of."""
    blocks = model.game.blocks
    if all(block.forecaster.is_silent for block in blocks):
        yield "Forecast: none."
        return
    n_statistics = sum(block.basis.size for block in blocks)
    error = max(block.basis.error for block in blocks)
    names = ", ".join(block.name for block in blocks)
    basis = f"bases {names}" if len(blocks) > 1 else f"basis {names}"
    if error:
        basis += f"; error at most {error:.2g}"
    plural = "s" if n_statistics > 1 else ""
    yield f"Forecast: {n_statistics} number{plural} per round ({basis})."
    described_blocks = {}
    for block in blocks:
        description = block.forecaster.described()
        if description:
            described_blocks[block.name] = description
    reference = scenario.spec.forecaster.reference.kind
    labels = [guarantee.label for guarantee in model.guarantees]
    yield from wording.describe_corrections(reference, described_blocks, labels=labels)


def lines_on_coverage(coverage: pd.DataFrame) -> Iterator[str]:
    """Yield, for each outcome, how many outcomes were at most the announced quantiles."""
    if coverage.empty:
        return
    for outcome, rows in coverage.groupby("outcome", sort=False):
        shares = []
        for row in rows.to_dict("records"):
            share = f"{row['quantile']:g}: {row['coverage']:.3f}"
            if not np.isnan(row["bound"]):
                share += f" (at least {max(row['quantile'] - row['bound'], 0.0):.3f} proved)"
            shares.append(share)
        yield f"Share of {outcome} at most its announced quantiles: {', '.join(shares)}"


def remarks(model: MarketModel, agents: pd.DataFrame) -> Iterator[str]:
    """Yield what is to be said beside the tables, a line each."""
    if model.game.market is not None:
        market_summary = model.game.market.summary()
        if market_summary:
            yield market_summary
    for cohort in model.game.cohorts:
        if cohort.multiplicity is not None:
            yield (
                f"{cohort.name}: {cohort.population:,} agents with multiplicity, "
                f"a row of the tables for each of {len(cohort.row_of):,} losses"
            )
    yield from lines_on_coverage(model.coverage_frame())
    yield from _remarks_on_guarantees(model)
    yield from coarse_bases(model, agents)
    if model.journal.windows is not None:
        for measure, window in model.journal.windows.worst.items():
            regret, agent, first_round, last_round = window
            where = f"agent {agent}, rounds {first_round:,} to {last_round:,}"
            yield f"{measure}: worst window regret {regret:.4f} ({where})"
    yield from on_exploitability(model, agents)
    yield from model.notes


def _remarks_on_guarantees(model: MarketModel) -> Iterator[str]:
    """Yield what is to be said of guarantees, once for all cohorts of which it is the same."""
    cohorts_of_remark: dict[str, list[str]] = {}
    for guarantee in model.guarantees:
        cohort, _, remark = guarantee.note.partition(": ")
        cohorts_of_remark.setdefault(remark, []).append(cohort)
    for remark, cohorts in cohorts_of_remark.items():
        if remark:
            yield f"{', '.join(cohorts)}: {remark}"


def departures(spec: ScenarioSpec, model: MarketModel, agents: pd.DataFrame) -> Iterator[str]:
    """Yield for each cohort how many of its agents left by themselves, such as the ruined."""
    if "left" not in agents:
        return
    market = model.game.market
    accounts = None if market is None else market.accounts
    for cohort in spec.cohort:
        members = agents[agents["cohort"] == cohort.name]
        planned_exit = min(cohort.exits or spec.rounds, spec.rounds)
        leavers = members[members["left"] < planned_exit]
        if leavers.empty or cohort.exit_rate is not None:
            continue
        remark = f"the first in round {leavers['left'].min():,}"
        if accounts is not None:
            most_cash = accounts.cash[leavers["agent"].to_numpy() - 1].max()
            remark += f", none with more than {most_cash:.4g} in cash"
        yield (
            f"{cohort.name}: {len(leavers):,} of {len(members):,} agents left by themselves, "
            f"{remark}"
        )


def coarse_bases(model: MarketModel, agents: pd.DataFrame) -> Iterator[str]:
    """Yield a line per cohort whose basis has a greater error than the regret that was measured.

    Nothing is said where it has none at the outcomes that were seen: there no basis is better.
    """
    for cohort in model.game.cohorts:
        if cohort.unguided:
            continue
        members = agents[agents["cohort"] == cohort.name]
        error = model.game.blocks[cohort.block].basis.error
        regrets = members["decision_swap_regret"]
        if error > regrets.max() and _error_at_outcomes(model, cohort) > regrets.max():
            units = wording.unit_of(members) or "in the utility's own units"
            greatest_error = error * members["loss_scale"].max()
            worst_regret = (regrets * members["loss_scale"]).max()
            yield (
                f"{cohort.name}: the basis approximates losses within {greatest_error:.2g} "
                f"{units}, more than the worst decision swap regret of {worst_regret:.2g}; "
                "a basis with a smaller error may lower the losses, as "
                f'cohort.{cohort.name}.basis = {{ kind = "reduced", error = {error / 5:.1g} }}'
            )


def _error_at_outcomes(model: MarketModel, cohort: Cohort) -> float:
    """Return the greatest error of a cohort's basis at the last outcomes, for some of its rows.

    Infinite where the basis does not span them: who reports other losses may have any.
    """
    outcomes = np.unique(model.game.history.last(MAX_AUDITED_OUTCOMES), axis=0)
    n_rows = len(cohort.loss)
    some_rows = np.unique(np.linspace(0, n_rows - 1, MAX_AUDITED_ROWS).astype(np.intp))
    try:
        return model.game.blocks[cohort.block].basis.audit(cohort.loss[some_rows], outcomes)
    except ValueError:
        return math.inf
