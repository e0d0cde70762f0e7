"""The rounds of a run as they came, and the tables of rounds and forecasts made of them.

The journal keeps a ``LoggedRound`` of each round, and asks ``columns_of_rounds`` and
``columns_of_forecasts`` for the columns of many of them at once. docs/columns.md says what a row of
each table is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.game.adversary_view import mean_payoffs, per_agent
from regretless.market.game.protocols import Payoff
from regretless.market.logs.user_columns import Columns
from regretless.market.records import Context, Forecast, work_out_labels


class LoggedBlock(NamedTuple):
    """A block of the broadcast as it was; its forecaster may be replaced later."""

    name: str
    is_heard: bool  # whether somebody may hear it


@dataclass(slots=True, eq=False)
class LoggedRound:
    """What the tables of rounds and forecasts show of a round, as it came."""

    index: int
    context: Context
    outcome: Array  # (d,)
    adversary_columns: Mapping[str, Any]  # what the adversary says of the round, by name
    market_columns: dict[str, Array]  # of the last clearing, by name
    blocks: tuple[LoggedBlock, ...]
    forecasts: tuple[Forecast, ...]  # one per block, without ensembles
    # What the agents of each cohort come to (``market.game.adversary_view.summed``), where the
    # leader is paid.
    sums: Mapping[str, Array] | None


def without_ensembles(forecasts: tuple[Forecast, ...]) -> tuple[Forecast, ...]:
    """Return forecasts without their ensembles, which no table shows and which may be large."""
    for forecast in forecasts:
        if forecast.mixture.ensembles is not None:
            return tuple([_without_ensembles(forecast) for forecast in forecasts])
    return forecasts


def _without_ensembles(forecast: Forecast) -> Forecast:
    return Forecast(forecast.mixture.without_ensembles, forecast.index)


def _numbered(name: str, values: Iterable[Any]) -> dict[str, Any]:
    """Return values as columns, for the name ``y_`` as ``y_0``, ``y_1`` and so on."""
    return {f"{name}{i}": value for i, value in enumerate(values)}


def _columns_of_rows(name: str, rows: Sequence[Any]) -> Columns:
    """Return a number of each row as one column, an array (c,) of each as c numbered ones."""
    values = np.array(rows)
    if values.ndim == 1:
        return {name: values}
    return _numbered(name, values.T)


def columns_of_rounds(rounds: Sequence[LoggedRound], payoff: Payoff | None) -> Columns:
    """Return a row per round; the rounds have one game's contexts, market and leader."""
    first = rounds[0]
    columns: Columns = {"round": np.array([logged.index for logged in rounds])}
    if first.context.index is not None:
        index_name, _ = first.context.index
        columns[index_name] = np.array([_index_value(logged.context) for logged in rounds])
    columns |= _columns_of_rows("y_", [logged.outcome for logged in rounds])
    columns |= _columns_of_rows("x_", [logged.context.shown for logged in rounds])
    for name in first.adversary_columns:
        columns |= _columns_of_rows(name, [logged.adversary_columns[name] for logged in rounds])
    for name in first.market_columns:
        arrays = [logged.market_columns[name] for logged in rounds]
        columns |= _columns_of_rows(f"{name}_", arrays)
    columns["certificate"] = np.array([_greatest_certificate(logged) for logged in rounds])
    columns["atoms"] = np.array([_count_atoms(logged) for logged in rounds])
    if payoff is not None:
        columns |= _columns_of_leader(rounds)
    return columns


def _index_value(context: Context) -> str | None:
    """Return what names a round, where rounds have names."""
    if context.index is None:
        return None
    _, value = context.index
    return value


def _greatest_certificate(logged: LoggedRound) -> float:
    """Return the greatest certificate of a round's mixtures; NaN if none has one."""
    greatest = None
    for forecast in logged.forecasts:
        certificate = forecast.mixture.certificate
        if certificate is not None and (greatest is None or certificate > greatest):
            greatest = certificate
    return np.nan if greatest is None else greatest


def _count_atoms(logged: LoggedRound) -> int:
    """Return how many atoms all forecasts of a round have that somebody may hear."""
    atoms = 0
    for block, forecast in zip(logged.blocks, logged.forecasts, strict=True):
        if block.is_heard:
            atoms += len(forecast.mixture.weights)
    return atoms


def _columns_of_leader(rounds: Sequence[LoggedRound]) -> Columns:
    """Return what the agents paid the leader in each round: all, and of several cohorts each."""
    payoffs_per_agent = []
    payoffs_of_cohorts = []
    for logged in rounds:
        mean_paid, agents = mean_payoffs(logged.sums or {})
        payoffs_per_agent.append(per_agent(mean_paid, agents))
        payoffs_of_cohorts.append(mean_paid)
    columns: Columns = {"leader_payoff": np.array(payoffs_per_agent)}
    by_cohort = np.array(payoffs_of_cohorts).T  # (C, T)
    if len(by_cohort) > 1:
        columns |= _numbered("leader_payoff_", by_cohort)
    return columns


def columns_of_forecasts(rounds: Sequence[LoggedRound]) -> Columns:
    """Return a row per round, block and atom; predictions of fewer numbers end in NaN.

    There are no columns where no block is heard, and labels only where all blocks have them.
    """
    round_indices = []
    block_names = []
    mixtures = []
    drawn_atoms = []
    for logged in rounds:
        for block, forecast in zip(logged.blocks, logged.forecasts, strict=True):
            if block.is_heard:
                round_indices.append(logged.index)
                block_names.append(block.name)
                mixtures.append(forecast.mixture)
                drawn_atoms.append(forecast.index)
    if not mixtures:
        return {}
    atoms_per_forecast = np.array([len(mixture.weights) for mixture in mixtures])
    widths = [mixture.points.shape[1] for mixture in mixtures]
    if min(widths) == max(widths):
        coordinates = np.concatenate([mixture.points for mixture in mixtures]).T
    else:
        coordinates = np.full((max(widths), atoms_per_forecast.sum()), np.nan)
        first = 0
        for mixture, width in zip(mixtures, widths, strict=True):
            last = first + len(mixture.weights)
            coordinates[:width, first:last] = mixture.points.T
            first = last
    blocks = np.array(block_names, dtype=object)
    rows_before = np.cumsum(atoms_per_forecast) - atoms_per_forecast  # of each forecast
    atoms = np.arange(atoms_per_forecast.sum()) - np.repeat(rows_before, atoms_per_forecast)
    columns: Columns = {
        "round": np.repeat(round_indices, atoms_per_forecast),
        "block": np.repeat(blocks, atoms_per_forecast),
        "atom": atoms,
        "weight": np.concatenate([mixture.weights for mixture in mixtures]),
        "drawn": atoms == np.repeat(drawn_atoms, atoms_per_forecast),
    }
    columns |= _numbered("p_", coordinates)
    work_out_labels(mixtures)
    labels = [mixture.labels for mixture in mixtures if mixture.labels is not None]
    if len(labels) == len(mixtures):
        columns |= _numbered("label_", np.concatenate(labels).T)
    return columns
