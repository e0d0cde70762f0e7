"""A table that is a bundled study: conducted in a folder, read back, printed, written, drawn.

What is particular to a table is described in ``tables``: the study, what is measured from each of
its run directories, which rows and cells are printed, and the figure. The folder is a study
directory, so that what was interrupted goes on where it was, and every run has its logs.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from paper.figures import written
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
Cell = Callable[[pd.DataFrame], str]
TO_MODELS = ["regret_to_models", "regret_to_models_bound"]


@dataclass(frozen=True)
class Run:
    """A run of a study, as its directory tells it."""

    key: Row  # `run`, `seed` and what varies
    home: Path  # the run directory

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What ``manifest.json`` holds."""
        read: dict[str, Any] = json.loads((self.home / "manifest.json").read_text("utf-8"))
        return read

    def table(self, name: str) -> pd.DataFrame:
        """Return one of the run's tables."""
        return pd.read_parquet(self.home / f"{name}.parquet", partitioning=None)

    @cached_property
    def agents(self) -> pd.DataFrame:
        """The agents table."""
        return self.table("agents")

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario that was played."""
        config = {k: v for k, v in self.manifest["config"].items() if k != "log_every"}
        return Scenario(validated(config, origin=self.home))

    @cached_property
    def unplayed(self) -> MarketModel:
        """The market before round 1, built anew: bases, losses and what the forecaster keeps."""
        return self.scenario.build()


def worst(run: Run) -> Row:
    """Measure the mean loss, and the agent with most swap regret, with its bounds."""
    agent = run.agents.iloc[int(run.agents["swap_regret"].to_numpy().argmax())]
    own = {name: agent[name] for name in ("swap_regret", "bound", "bound_from_bias")}
    return own | {"mean_loss": run.agents["mean_loss"].mean()}


def certificate(run: Run) -> Row:
    """Measure the mean positive certificate; NaN where nothing is certified."""
    return {"certificate": run.table("rounds")["certificate"].clip(lower=0).mean()}


def pace(run: Run) -> Row:
    """Measure milliseconds per round, with the logs."""
    return {"milliseconds": 1e3 * run.manifest["wall_seconds"] / run.manifest["rounds"]}


def numbers(run: Run) -> Row:
    """Count the accumulators that the forecaster keeps."""
    (player,) = run.unplayed.game.blocks[0].forecaster.instances
    return {"numbers": _size([player.events.state(), player.draws.state()])}


def _size(state: Any) -> int:
    """Count the numbers of a tree of arrays."""
    if isinstance(state, dict | list):
        return sum(map(_size, state.values() if isinstance(state, dict) else state))
    return int(np.size(state)) if isinstance(state, np.ndarray) else 0


def anchor(run: Run) -> Row:
    """Say which base was anchored at and with which tolerance band, and how often it was kept."""
    asked, kept = run.scenario.spec.forecaster, run.manifest["blocks"][0].get("kept", np.nan)
    alone = "none" if asked.kind == "decision-swap" else asked.kind
    base = alone if asked.reference.kind == "none" else asked.reference.kind
    return {"base": base, "zone": asked.band, "kept": kept}


def played(run: Run) -> Row:
    """Measure mean loss, the worst decision swap and models' regret, how often the base is kept."""
    return {
        "mean_loss": run.agents["mean_loss"].mean(),
        "regret": run.agents["decision_swap_regret"].max(),
        "kept": run.manifest["blocks"][0].get("kept", np.nan),
        **run.agents.reindex(columns=TO_MODELS).max(),
    }


def served(run: Run) -> Row:
    """Count the losses that the forecaster protects, and how far the agents' are from them."""
    (cohort,), game = run.scenario.spec.cohort, run.unplayed.game
    own = game.cohorts[0].loss
    if cohort.cover is None:
        told: Row = {"cover": "none", "play": "own", "representatives": len(own), "radius": 0.0}
    else:
        coefficients = game.blocks[0].basis.coefficients(own)
        cover = covered(cohort.cover, coefficients, run.manifest["rounds"])
        told = {"cover": cohort.cover.kind, "play": cohort.cover.play}
        told |= {"representatives": len(cover.offset), "radius": float(cover.radius.max())}
    agents = run.agents
    told |= {"swap_regret": agents["swap_regret"].max(), "bound": agents["bound"].max()}
    return told | {"mean_swap_regret": agents["swap_regret"].mean()}


def crowd(run: Run) -> Row:
    """Average ``crowding.MEASURES`` over the rounds, with loss, regret and bounds."""
    found = crowding(run.table("rounds"), run.table("forecasts"))
    (cohort,), agents = run.unplayed.game.cohorts, run.agents
    together = exposure(cohort.loss)[cohort.row_of].mean(0)
    return {
        "guarantee": agents["guarantee"].iloc[0],
        **{name: found[name].mean() for name in MEASURES},
        "even": 1 / together.shape[-1],
        "ceiling": float(concentration(together).max()),
        "mean_loss": agents["mean_loss"].mean(),
        **{name: agents[name].max() for name in ("swap_regret", "bound", "bound_from_bias")},
        "clipped": run.manifest["market"]["clipped_share"],
    }


def groups_of(run: Run) -> list[Row]:
    """Measure each group: how many agents, worst and mean swap regret, the greatest bound."""
    block, agents = run.manifest["blocks"][0], run.agents
    promised = agents["guarantee"] != "none"
    group = agents["cohort"].where(agents["cohort"] == "named", "unseen")
    group = group.mask((group == "unseen") & promised, "covered")
    rows = []
    for name in ("named", "covered", "unseen"):
        own = agents[group == name]
        row = {"group": name, "size": block["size"], "lipschitz": block["lipschitz"]}
        row |= {"agents": len(own), "bound": own["bound"].max() if name != "unseen" else np.nan}
        rows.append(row | {"worst": own["swap_regret"].max(), "mean": own["swap_regret"].mean()})
    return rows


def combined(*measures: Callable[[Run], Row]) -> Callable[[Run], list[Row]]:
    """Return the function from a run to one row with all these measures."""
    return lambda run: [{k: v for measure in measures for k, v in measure(run).items()}]


def mean(column: str, form: str = ".4f", empty: str = "none") -> Cell:
    """Return the cell that holds a column's mean; ``empty`` where there is none."""
    return lambda rows: empty if pd.isna(m := rows[column].mean()) else f"{m:{form}}"


def means(columns: str) -> dict[str, Cell]:
    """Return a cell of a mean for each of these columns."""
    return {column: mean(column) for column in columns.split()}


def errors(columns: str) -> dict[str, Cell]:
    """Return a cell of a mean (standard error) for each of these columns."""

    def cell(column: str, rows: pd.DataFrame) -> str:
        error = rows[column].std() / len(rows) ** 0.5  # NaN of one run
        return mean(column)(rows) + ("" if pd.isna(error) else f" ({error:.4f})")

    return {column: partial(cell, column) for column in columns.split()}


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
    """Lines and cells of one printed table."""

    lines: Sequence[str]  # columns by which lines are told apart
    cells: Mapping[str, Cell]  # by their heads
    across: tuple[str, Cell] | None = None  # a column, and what each of its values has, in front
    only: Callable[[pd.DataFrame], "pd.Series[bool]"] | None = None  # which rows count
    head: str = ""  # a line above

    def text(self, table: pd.DataFrame) -> str:
        """Lay a table out."""
        shown = table if self.only is None else table[self.only(table)]
        found = []
        for key, rows in shown.groupby(list(self.lines), sort=False, dropna=False):
            words = [f"{k:g}" if isinstance(k, float) else str(k) for k in key]
            line = dict(zip(self.lines, words, strict=True))
            if self.across is not None:
                column, cell = self.across
                line |= {str(k): cell(part) for k, part in rows.groupby(column, sort=False)}
            found.append(line | {head: cell(rows) for head, cell in self.cells.items()})
        return "\n".join([*filter(None, [self.head]), pd.DataFrame(found).to_string(index=False)])


@dataclass(frozen=True)
class StudyTable:
    """A table that is a bundled study."""

    study: str  # its name, and that of the files that are written
    title: str
    rows: Callable[[Run], list[Row]]  # of a run: one row, or a few that tell parts of it apart
    layouts: Sequence[Layout]
    figure: Callable[[pd.DataFrame], Figure] | None = None  # where a page shows one
    told: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table  # what the layouts show

    def design(self, rounds: int | None = None, seeds: int | None = None) -> Design:
        """Return the study, with other rounds or seeds where they are given."""
        return read_study(self.study).sized(rounds=rounds, seeds=seeds)

    @property
    def options(self) -> dict[str, int | None]:
        """What its file says how much it plays of."""
        return {"rounds": None, "seeds": None}

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
        known = StudyDirectory.record_in(out)
        if known is not None and known["study"] != design.identity():
            reason = f"--out: {out} holds this table with other --rounds or --seeds"
            raise UserError(f"{reason}; give another folder")
        options = Options(out, jobs=jobs, resume=True)
        study = conduct(design, options, progress=progress)
        if failed := study.record["failed"]:
            where = out / "failures.parquet"
            raise UserError(f"{failed} of {len(design)} runs failed, see {where}; start again")
        keys: list[Row] = study.parameters().to_dict("records")  # type: ignore[assignment]
        runs = [Run(keys[run], home) for run, home in study.homes().items()]
        return pd.DataFrame(
            run.key | {"rounds": run.manifest["rounds"]} | row
            for run in runs
            for row in self.rows(run)
        )

    def text(self, table: pd.DataFrame) -> str:
        """Lay the table out."""
        seeds, told = table["seed"].nunique(), self.told(table)
        title = f"{self.title}, T = {table['rounds'].iloc[0]}: mean over {seeds} seeds"
        parts = "\n\n".join(layout.text(told) for layout in self.layouts)
        return f"{title}\n{parts}"

    def write(self, table: pd.DataFrame, out: Path) -> list[Path]:
        """Write the rows as CSV, and the figure; return the paths."""
        contents: dict[str, pd.DataFrame | Figure] = {f"{self.study}.csv": table}
        if self.figure is not None:
            contents[f"{self.study}.png"] = self.figure(table)
        return written(out, contents)
