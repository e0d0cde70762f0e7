"""What a run says at its end: a row per cohort, and where the logs lie."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from regretless.agents.cohorts.responding import RespondingCohort
from regretless.forecaster.anchored import AnchoredPrediction
from regretless.market.exploitability.tracker import TOLERANCE
from regretless.market.logs.welfare import agents_in, mean_of
from regretless.market.model import MarketModel
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.logs.exploitability import notes
from regretless.scenarios.spec.scenario import ScenarioSpec
from regretless.scenarios.verdict import sentences, stood, verdict_table

WIDTH = 80  # of a line where there is no screen
NAMES = 14  # characters of a cohort's name before it is folded

REGRETS = {
    "external": "external_regret",
    "swap": "swap_regret",
    "decision swap": "decision_swap_regret",
}


HEADINGS = (
    "A round's loss is in [0, 1], 0 for the best that can happen; regret is what another rule "
    "would have saved per round. External: the best fixed action. Swap: in place of each action "
    "the best other one. Decision swap: that, or a policy. Mean and worst are over agents. Bounds "
    "are on the worst decision swap regret: from bias as the forecast's errors turned out; from "
    "variation and bound by theorem, with probability 0.99 in all rounds. Exploitability: what a "
    "leader could have gained from the worst agent's play, once "
    f"{TOLERANCE} of swap regret counts as none."
)
NOTHING = ">= 1"  # a bound on what is at most 1 anyway
BREAK = "decision\nswap\nmean"  # begins the second table
UNINFORMATIVE = {"from\nvariation"}  # columns that are left out where they tell nothing of anybody


def print_summary(
    scenario: Scenario,
    model: MarketModel,
    out: Path,
    closed: Mapping[str, pd.DataFrame] | None = None,
) -> None:
    """Print what a run comes to: the verdict in words, then tables, remarks, and where logs lie.

    Parameters
    ----------
    closed : dict, optional
        The tables that closed the run, in place of the model's own.
    """
    own = closed or {"agents": model.agents_frame(), "verdict": model.verdict_frame()}
    agents, verdict = own["agents"], own["verdict"]
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=WIDTH)
    console.print(f"{scenario.spec.name}, {model.played:,} rounds, seed {scenario.spec.seed}\n")
    for line in sentences(verdict, agents):
        console.print(line)
    console.print()
    for table in (
        verdict_table(verdict),
        *closing_tables(agents, title="Regret", room=console.width),
    ):
        console.print(table)
    console.print(HEADINGS, style="dim")
    for line in data_facts(scenario, model.played):
        console.print(line)
    for line in (f"The forecast: {broadcast(model)}", *bases(scenario, model)):
        console.print(f"{line}.")
    for line in (*remarks(model, agents), *departures(scenario.spec, model, agents)):
        console.print(f"{line}.")
    console.print(f"Logs: {out}", soft_wrap=True)


def data_facts(scenario: Scenario, rounds: int) -> Iterator[str]:
    """Yield what was done to the data, a line each."""
    if scenario.table is not None:
        yield from scenario.table.told
        if rounds > len(scenario.table.outcomes):
            yield f"The {len(scenario.table.outcomes)} data rows were replayed in a loop."


def bases(scenario: Scenario, model: MarketModel) -> Iterator[str]:
    """Yield how long each block's base was broadcast as it was."""
    for block in model.game.blocks:
        if isinstance(block.forecaster, AnchoredPrediction):
            base, own = scenario.spec.forecaster.base.kind, block.forecaster
            yield stood(block.name, base, own.kept / max(own.time, 1), own.lost)


def remarks(model: MarketModel, agents: pd.DataFrame) -> Iterator[str]:
    """Yield what is to be said beside the tables, a line each."""
    if model.game.market is not None and (told := model.game.market.told()):
        yield told
    for cohort in model.game.cohorts:
        if cohort.heads is not None:
            rows = f"a row of the tables for each of {len(cohort.row_of):,} losses"
            yield f"{cohort.name}: {cohort.population:,} agents are counted, {rows}"
    yield from (guarantee.note for guarantee in model.guarantees if guarantee.note)
    yield from coarse_bases(model, agents)
    yield from (*worst_windows(model), *notes(model, agents), *model.notes)


def departures(spec: ScenarioSpec, model: MarketModel, agents: pd.DataFrame) -> Iterator[str]:
    """Yield for each cohort how many of its agents left by themselves, such as the ruined."""
    for cohort in spec.cohort if "left" in agents else ():
        own = agents[agents["cohort"] == cohort.name]
        gone = own[own["left"] < min(cohort.leaves or spec.rounds, spec.rounds)]
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
        if not isinstance(cohort, RespondingCohort):
            continue
        own = agents[agents["cohort"] == cohort.name]
        error, scale = model.game.blocks[cohort.block].basis.error, own["loss_scale"].max()
        worst = own["decision_swap_regret"].max()
        if error > worst:
            beside = f"more than the worst decision swap regret of {worst * scale:.2g}"
            yield (
                f"{cohort.name}: the basis approximates losses within {error * scale:.2g}, "
                f"{beside} (in the utility's own units); "
                "a basis with a smaller error may lower the losses"
            )


def broadcast(model: MarketModel) -> str:
    """Describe the blocks of the forecast: basis, size, and error where there is one."""
    several = len(model.game.blocks) > 1
    blocks = [
        (f"{block.basis.size} " if several else "")
        + f"of the basis {block.name}"
        + (f" (error at most {block.basis.error:.2g})" if block.basis.error else "")
        for block in model.game.blocks
    ]
    total = sum(block.basis.size for block in model.game.blocks)
    return f"{total} numbers a round, {', '.join(blocks)}"


def closing_tables(agents: pd.DataFrame, *, title: str, room: int | None = None) -> list[Table]:
    """Lay out one row per cohort of an ``agents`` table, in several tables where room is short.

    Parameters
    ----------
    room : int, optional
        Characters in a line; without it all columns stand side by side in one table.
    """
    cohorts = agents.groupby("cohort", sort=False)
    cells = [_cells(rows) for _, rows in cohorts]
    for head in UNINFORMATIVE & set(cells[0]):
        if all(row[head] in {"none", NOTHING} for row in cells):
            cells = [{name: told for name, told in row.items() if name != head} for row in cells]
    names = [escape(str(name)) for name, _ in cohorts]
    first = min(max(map(len, ["cohort", *names])), NAMES) if room else None
    parts = _parts(cells, room - (first or 0) - 3 if room else None)
    tables = []
    for i, heads in enumerate(parts):
        table = Table(title=None if i else title, title_justify="left", expand=False)
        table.box, table.padding = box.SIMPLE_HEAD, (0, 1, 0, 0)
        table.add_column("cohort", no_wrap=room is None, max_width=first, overflow="fold")
        for head in heads:
            table.add_column(head, justify="right", no_wrap=True)
        for name, row in zip(names, cells, strict=True):
            table.add_row(name, *(row[head] for head in heads))
        tables.append(table)
    return tables


def _parts(cells: list[dict[str, str]], room: int | None) -> list[list[str]]:
    """Share columns out among tables: one where they fit, else a break before ``BREAK``, too."""
    widths = {
        head: 2 + max(map(len, [*head.split("\n"), *(row[head] for row in cells)]))
        for head in cells[0]
    }
    if room is None or sum(widths.values()) <= room:
        return [list(widths)]
    parts, left = list[list[str]](), 0
    for head, width in widths.items():
        if not parts or head == BREAK or width > left:
            parts.append([])
            left = room
        parts[-1].append(head)
        left -= width
    return parts


def _cells(rows: pd.DataFrame) -> dict[str, str]:
    """Write what is said of a cohort, by the head of its column."""
    cells = {"agents": f"{agents_in(rows):,}", "mean\nloss": f"{mean_of(rows, 'mean_loss'):.4f}"}
    for name, column in REGRETS.items():
        head = name.replace(" ", "\n")
        cells[f"{head}\nmean"] = figure(mean_of(rows, column), "-")
        cells[f"{head}\nworst"] = figure(rows[column].max(), "-")
    return cells | {
        "bound\nfrom bias": figure(rows["bound_from_bias"].max(), "none"),
        "from\nvariation": promise(rows["bound_from_variation"].max()),
        "bound": promise(rows["bound"].max()),
        "exploit-\nability": figure(rows["exploitability"].max(), "-"),
    }


def worst_windows(model: MarketModel) -> Iterator[str]:
    """Yield a line per cohort on its worst window, where regret was taken over windows."""
    windows = model.journal.windows
    for name, worst in windows.worst.items() if windows is not None else ():
        yield (
            f"{name}: worst window regret {worst.regret:.4f} "
            f"(agent {worst.agent}, rounds {worst.first} to {worst.last})"
        )


def mean_and_worst(rows: pd.DataFrame, column: str) -> str:
    """Write mean and maximum over the agents; a dash where the measure was not kept."""
    if rows[column].isna().all():
        return "-"
    return f"{mean_of(rows, column):.4f} / {rows[column].max():.4f}"


def promise(value: float) -> str:
    """Write a bound on regrets of at most 1, or that there is none, or none that says anything."""
    return NOTHING if value >= 1 else figure(value, "none", 2)


def figure(value: float, absent: str, digits: int = 4) -> str:
    """Write a number, or what stands for its absence."""
    return absent if np.isnan(value) else f"{value:.{digits}f}"
