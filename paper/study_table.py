"""A table that is a bundled study: conducted in a folder, read back, printed, written, drawn.

What is particular to a table is described in ``tables``: the study, what is measured from each of
its run directories, which rows and cells are printed, and the figure. The folder is a study
directory, so that what was interrupted goes on where it was, and every run has its logs.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from paper.figures import write_files
from regretless.market.core.errors import UserError
from regretless.market.markets.price_impact import MEASURES, concentration, crowding, exposure
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.cohorts import covered
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.validation import validated
from regretless.scenarios.studies.conduct import Options, conduct
from regretless.scenarios.studies.design import Design, read_study
from regretless.scenarios.studies.directory import StudyDirectory

Row = dict[str, Any]
Cell = Callable[[pd.DataFrame], str]  # the text of a cell, from the rows that it stands for
TO_MODELS = ["regret_to_models", "regret_to_models_bound"]


@dataclass(frozen=True)
class Run:
    """A run of a study, as its directory tells it."""

    key: Row  # `run`, `seed` and what varies
    home: Path  # the run directory

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What ``manifest.json`` holds."""
        text = (self.home / "manifest.json").read_text("utf-8")
        manifest: dict[str, Any] = json.loads(text)
        return manifest

    def table(self, name: str) -> pd.DataFrame:
        """Return one of the run's tables."""
        return pd.read_parquet(self.home / f"{name}.parquet", partitioning=None)

    @cached_property
    def agents(self) -> pd.DataFrame:
        """The agents table."""
        return self.table("agents")

    @cached_property
    def first_block(self) -> dict[str, Any]:
        """What the manifest says of the first block of agents who hear one forecaster."""
        block: dict[str, Any] = self.manifest["blocks"][0]
        return block

    @property
    def share_kept(self) -> float:
        """How often the reference was broadcast as it is; NaN without one."""
        share: float = self.first_block.get("kept", np.nan)
        return share

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario that was played."""
        config = dict(self.manifest["config"])
        config.pop("log_every", None)
        return Scenario(validated(config, origin=self.home))

    @cached_property
    def unplayed(self) -> MarketModel:
        """The market before round 1, built anew: bases, losses and what the forecaster keeps."""
        return self.scenario.build()


def worst(run: Run) -> Row:
    """Measure the mean loss, and the agent with most swap regret, with its bounds."""
    agents = run.agents
    worst_agent = agents.iloc[int(agents["swap_regret"].to_numpy().argmax())]
    return {
        "swap_regret": worst_agent["swap_regret"],
        "bound": worst_agent["bound"],
        "bound_from_bias": worst_agent["bound_from_bias"],
        "mean_loss": agents["mean_loss"].mean(),
    }


def utility(run: Run) -> Row:
    """Measure the mean utility per round, in the agents' own units, and the first correction.

    In its own units an agent's loss is ``loss_offset`` plus ``loss_scale`` times the logged one,
    and its utility is minus that. The first correction is NaN in a run without any.
    """
    agents = run.agents
    losses = agents["loss_offset"] + agents["loss_scale"] * agents["mean_loss"]
    return {
        "utility": -losses.mean(),
        "mean_loss": agents["mean_loss"].mean(),
        "first_correction": agents["first_correction"].min(),
    }


def certificate(run: Run) -> Row:
    """Measure the mean positive certificate; NaN where nothing is certified."""
    return {"certificate": run.table("rounds")["certificate"].clip(lower=0).mean()}


def pace(run: Run) -> Row:
    """Measure milliseconds per round, with the logs."""
    return {"milliseconds": 1e3 * run.manifest["wall_seconds"] / run.manifest["rounds"]}


def numbers(run: Run) -> Row:
    """Count the accumulators that the forecaster keeps."""
    forecaster = run.unplayed.game.blocks[0].forecaster
    inner = getattr(
        forecaster, "inner", forecaster
    )  # calibration wraps the forecaster of its cells
    (instance,) = inner.instances
    return {"numbers": _count_numbers([instance.events.state(), instance.draws.state()])}


def _count_numbers(state: Any) -> int:
    """Count the numbers of a tree of arrays."""
    if isinstance(state, dict):
        return sum(_count_numbers(part) for part in state.values())
    if isinstance(state, list):
        return sum(_count_numbers(part) for part in state)
    if isinstance(state, np.ndarray):
        return int(np.size(state))
    return 0


def anchor(run: Run) -> Row:
    """Say which base was anchored at and with which tolerance band, and how often it was kept."""
    forecaster = run.scenario.spec.forecaster
    base = forecaster.reference.kind
    if base == "none" and forecaster.kind != "decision-swap":
        base = forecaster.kind  # the base alone
    return {"base": base, "zone": forecaster.band, "kept": run.share_kept}


def played(run: Run) -> Row:
    """Measure mean loss, the worst decision swap and models' regret, how often the base is kept."""
    return {
        "mean_loss": run.agents["mean_loss"].mean(),
        "regret": run.agents["decision_swap_regret"].max(),
        "kept": run.share_kept,
        **run.agents.reindex(columns=TO_MODELS).max(),
    }


def served(run: Run) -> Row:
    """Count the losses that the forecaster protects, and how far the agents' are from them."""
    (cohort,) = run.scenario.spec.cohort
    game = run.unplayed.game
    loss = game.cohorts[0].loss
    if cohort.cover is None:
        row: Row = {"cover": "none", "play": "own", "representatives": len(loss), "radius": 0.0}
    else:
        coefficients = game.blocks[0].basis.coefficients(loss)
        cover = covered(cohort.cover, coefficients, run.manifest["rounds"])
        row = {
            "cover": cohort.cover.kind,
            "play": cohort.cover.play,
            "representatives": len(cover.offset),
            "radius": float(cover.radius.max()),
        }
    row["swap_regret"] = run.agents["swap_regret"].max()
    row["bound"] = run.agents["bound"].max()
    row["mean_swap_regret"] = run.agents["swap_regret"].mean()
    return row


def crowd(run: Run) -> Row:
    """Average ``crowding.MEASURES`` over the rounds, with loss, regret and bounds."""
    measures = crowding(run.table("rounds"), run.table("forecasts"))
    (cohort,) = run.unplayed.game.cohorts
    agents = run.agents
    demand_of_actions = exposure(cohort.loss)[cohort.row_of].mean(0)  # if all choose it
    row: Row = {"guarantee": agents["guarantee"].iloc[0]}
    for measure in MEASURES:
        row[measure] = measures[measure].mean()
    row["even"] = 1 / demand_of_actions.shape[-1]
    row["ceiling"] = float(concentration(demand_of_actions).max())
    row["mean_loss"] = agents["mean_loss"].mean()
    for column in ("swap_regret", "bound", "bound_from_bias"):
        row[column] = agents[column].max()
    row["clipped"] = run.manifest["market"]["clipped_share"]
    return row


def groups_of(run: Run) -> list[Row]:
    """Measure each group: how many agents, worst and mean swap regret, the greatest bound."""
    has_guarantee = run.agents["guarantee"] != "none"
    is_named = run.agents["cohort"] == "named"
    agents_of_group = {
        "named": run.agents[is_named],
        "covered": run.agents[~is_named & has_guarantee],
        "unseen": run.agents[~is_named & ~has_guarantee],
    }
    rows = []
    for group, agents in agents_of_group.items():
        row = {
            "group": group,
            "size": run.first_block["size"],
            "lipschitz": run.first_block["lipschitz"],
            "agents": len(agents),
            "bound": agents["bound"].max() if group != "unseen" else np.nan,
            "worst": agents["swap_regret"].max(),
            "mean": agents["swap_regret"].mean(),
        }
        rows.append(row)
    return rows


def combined(*measures: Callable[[Run], Row]) -> Callable[[Run], list[Row]]:
    """Return the function from a run to one row with all these measures."""

    def measure_run(run: Run) -> list[Row]:
        row: Row = {}
        for measure in measures:
            row.update(measure(run))
        return [row]

    return measure_run


def mean(column: str, number_format: str = ".4f", empty: str = "none") -> Cell:
    """Return the cell that holds a column's mean; ``empty`` where there is none."""

    def cell(rows: pd.DataFrame) -> str:
        value = rows[column].mean()
        return empty if pd.isna(value) else format(value, number_format)

    return cell


def means(columns: str) -> dict[str, Cell]:
    """Return a cell of a mean for each of these columns, named with a space between."""
    return {column: mean(column) for column in columns.split()}


def errors(columns: str) -> dict[str, Cell]:
    """Return a cell of a mean (standard error) for each of these columns."""
    return {column: _mean_with_error(column) for column in columns.split()}


def _mean_with_error(column: str) -> Cell:
    mean_cell = mean(column)

    def cell(rows: pd.DataFrame) -> str:
        error = rows[column].std() / len(rows) ** 0.5  # NaN of one run
        if pd.isna(error):
            return mean_cell(rows)
        return f"{mean_cell(rows)} ({error:.4f})"

    return cell


def median(column: str) -> Cell:
    """Return the cell that holds a column's median: of times, which have a long tail."""
    return lambda rows: f"{rows[column].median():.2f}"


def first(column: str) -> Cell:
    """Return the cell that holds what is the same in all its rows."""
    return lambda rows: str(rows[column].iloc[0])


def spread(column: str) -> Cell:
    """Return the cell that holds a column's mean (least-greatest)."""
    return lambda rows: "{:.4f} ({:.4f}-{:.4f})".format(*rows[column].agg(["mean", "min", "max"]))


@dataclass(frozen=True)
class Layout:
    """Lines and cells of one printed table.

    Parameters
    ----------
    lines : sequence of str
        Columns by which lines are told apart.
    cells : mapping from a cell's head to the cell
    across : (str, Cell), optional
        A column, and the cell that each of its values has, in front of ``cells``.
    counts : function from the table to a truth value for each row, optional
        Which rows are shown; all by default.
    head : str
        A line above.
    """

    lines: Sequence[str]
    cells: Mapping[str, Cell]
    across: tuple[str, Cell] | None = None
    counts: Callable[[pd.DataFrame], "pd.Series[bool]"] | None = None
    head: str = ""

    def text(self, table: pd.DataFrame) -> str:
        """Lay a table out."""
        if self.counts is not None:
            table = table[self.counts(table)]
        printed_lines = []
        for keys, rows in table.groupby(list(self.lines), sort=False, dropna=False):
            words = [f"{key:g}" if isinstance(key, float) else str(key) for key in keys]
            printed_line = dict(zip(self.lines, words, strict=True))
            if self.across is not None:
                column, cell = self.across
                for value, rows_of_value in rows.groupby(column, sort=False):
                    printed_line[str(value)] = cell(rows_of_value)
            for head, cell in self.cells.items():
                printed_line[head] = cell(rows)
            printed_lines.append(printed_line)
        text = pd.DataFrame(printed_lines).to_string(index=False)
        return f"{self.head}\n{text}" if self.head else text


@dataclass(frozen=True)
class StudyTable:
    """A table that is a bundled study.

    Parameters
    ----------
    study : str
        Its name, and that of the files that are written.
    title : str
        Printed above, with the rounds and seeds.
    rows : function from a run to its rows
        One row, or a few that tell parts of the run apart.
    layouts : sequence of Layout
        Printed one below the other.
    figure : function from the measured table to a figure, optional
        Where a page shows one.
    shown : function from the measured table to what the layouts show
        The table itself by default.
    """

    packages: ClassVar[Sequence[str]] = ()  # that it needs beside the project's own

    study: str
    title: str
    rows: Callable[[Run], list[Row]]
    layouts: Sequence[Layout]
    figure: Callable[[pd.DataFrame], Figure] | None = None
    shown: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table

    def design(self, rounds: int | None = None, seeds: int | None = None) -> Design:
        """Return the study, with other rounds or seeds where they are given."""
        return read_study(self.study).sized(rounds=rounds, seeds=seeds)

    @property
    def options(self) -> dict[str, int | None]:
        """The options of the command that it takes; their values are what its file says."""
        return {"rounds": None, "seeds": None}

    def check_rounds(self, rounds: int | None) -> None:
        """Take any number of rounds; what a scenario cannot play, its own checks refuse."""

    def cells(self, seeds: int | None = None) -> int:
        """Count the runs of the whole table."""
        return len(self.design(seeds=seeds))

    def measure(
        self,
        *,
        out: Path,
        rounds: int | None = None,
        seeds: int | None = None,
        jobs: int | None = None,
        progress: Callable[[int], Any] = lambda _: None,
    ) -> pd.DataFrame:
        """Conduct the study in ``out``, or what is missing of it there, and measure its runs.

        Returns DataFrame: ``rows`` of every run, in the study's order, with what varies, ``seed``,
        ``rounds``. UserError if the directory holds something else, or a run failed.
        """
        design = self.design(rounds, seeds)
        record = StudyDirectory.record_in(out)
        if record is not None and record["study"] != design.identity():
            reason = f"--out: {out} holds this table with other --rounds or --seeds"
            raise UserError(f"{reason}; give another folder")
        options = Options(out, jobs=jobs, resume=True)
        study = conduct(design, options, progress=progress)
        failed = study.record["failed"]
        if failed:
            failures = out / "failures.parquet"
            raise UserError(f"{failed} of {len(design)} runs failed, see {failures}; start again")
        keys: list[Row] = study.parameters().to_dict("records")  # type: ignore[assignment]
        rows: list[Row] = []
        for run_index, home in study.folders().items():
            run = Run(keys[run_index], home)
            key = {**run.key, "rounds": run.manifest["rounds"]}
            rows += [{**key, **row} for row in self.rows(run)]
        return pd.DataFrame(rows)

    def text(self, table: pd.DataFrame) -> str:
        """Lay the table out."""
        rounds = table["rounds"].iloc[0]
        seeds = table["seed"].nunique()
        shown = self.shown(table)
        parts = "\n\n".join(layout.text(shown) for layout in self.layouts)
        return f"{self.title}, T = {rounds}: mean over {seeds} seeds\n{parts}"

    def write(self, table: pd.DataFrame, out: Path) -> list[Path]:
        """Write the rows as CSV, and the figure; return the paths."""
        contents: dict[str, pd.DataFrame | Figure] = {f"{self.study}.csv": table}
        if self.figure is not None:
            contents[f"{self.study}.png"] = self.figure(table)
        return write_files(out, contents)
