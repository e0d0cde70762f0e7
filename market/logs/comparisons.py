"""Alternatives in hindsight, and what a branch did to whom.

**Alternatives in hindsight** are every model, policy and fixed action (docs/measures.md). All
losses are averages per round, in [0, 1], of the agents' own records. The **difference** of an
alternative is its mean loss minus the mean loss of what the agents did.

**A branch** gives losses with and without a change, from the round at which it was made:

    gain_i = loss of agent i in the trunk - in the branch, per round since the branch began.

All that differs between the two is the change and everybody's answers to it; the random numbers are
the same. The gain of an agent from a deviation of its own is what policy regret compares
(docs/counterfactuals.md): regret holds outcomes fixed, this does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import Cohort, numbered
from regretless.market.game.round import Game
from regretless.market.logs.counted import COUNT
from regretless.market.numerics import exact_sum
from regretless.market.records import policy_name
from regretless.market.regret.inference import mean_differences
from regretless.market.regret.model_comparison import Series

ROUNDING = 1e-12  # what is closer than this is as good
BROADCAST, MODEL, POLICY, ACTION = "broadcast", "model", "policy", "action"
EVERYBODY = "everybody"  # all cohorts together
MEANS = ("cohort", "kind", "name", "agents", "mean_loss", "difference")


def models_table(game: Game) -> pd.DataFrame:
    """One row per agent that came and model: the loss of following it, and the regret to it."""
    parts = []
    for seat, (first, cohort) in zip(game.seats, numbered(game.cohorts), strict=True):
        if not (names := seat.comparison.names):
            continue
        ledger = cohort.ledger
        agents = np.flatnonzero(ledger.played[cohort.row_of])
        rows, lost = cohort.row_of[agents], seat.comparison.mean_loss(ledger.rounds)
        columns = {
            "agent": np.repeat(agents + first, len(names)),
            "cohort": cohort.name,
            "model": np.tile(np.array(names, dtype=object), len(agents)),
            "mean_loss": lost[rows].ravel(),
            "regret_to_model": (ledger.mean_loss()[:, None] - lost)[rows].ravel(),
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


@dataclass(frozen=True, eq=False)
class Compared:
    """What agents of a cohort lost per round, and would have lost with each alternative."""

    cohort: str
    alternatives: list[tuple[str, str]]  # the kind and the name of each, the broadcast first
    losses: Array  # (J, n), with each of them, of the agents that came
    series: Series | None  # the differences (J - 1) over time, if they were kept
    multiplicity: Indices  # how many agents each stands for (n,)
    # Over all agents how often each action was taken, what they lost by it and what they expected
    # to lose (2, 3 A), as two numbers each that add up to it; None for who expects nothing.
    decisions: Array | None = None


def comparisons(game: Game) -> list[Compared]:
    """Compare the agents of each cohort of which somebody has played."""
    compared = []
    for seat in game.seats:
        cohort, followed, ledger = seat.cohort, seat.comparison, seat.cohort.ledger
        if not np.any(ledger.rounds):
            continue
        found = [((BROADCAST, ""), ledger.mean_loss())]
        lost = followed.mean_loss(ledger.rounds)
        found += [((MODEL, name), lost[:, m]) for m, name in enumerate(followed.names)]
        for j, policy in enumerate(cohort.policies):
            followed_it = ledger.followed[:, :, j].sum(1) / ledger.each_rounds
            found.append(((POLICY, policy_name(policy, f"policy {j}")), followed_it))
        found.append(((ACTION, "best of each"), ledger.fixed.sum(1).min(1) / ledger.each_rounds))
        decisions = None
        if ledger.expects:
            surprise = np.einsum("kaa->ka", ledger.surprise_fixed)
            table = np.concatenate([ledger.count, ledger.own, ledger.own + surprise], axis=1)
            decisions = exact_sum.total(table, cohort.counts)
        who = ledger.played[cohort.row_of]
        names, losses = zip(*found, strict=True)
        each = np.stack([own[cohort.row_of[who]] for own in losses])
        many = cohort.multiplicity_of(who)
        many = np.ones(int(who.sum()), np.intp) if many is None else many
        series = followed.series()
        compared.append(Compared(cohort.name, list(names), each, series, many, decisions))
    return compared


def verdict_table(compared: Sequence[Compared]) -> pd.DataFrame:
    """One row per cohort and alternative, what they did first, then models, policies, actions.

    The columns are those of docs/columns.md. Of several cohorts the last block, ``EVERYBODY``, has
    all agents together: a cohort that an alternative is not open to does as it did.
    """
    if not compared:
        return pd.DataFrame()
    kept = [own.series for own in compared if own.series is not None]  # in the same batches
    length = max((own.length for own in kept), default=1)
    batches = max((len(own.at(length).sums) for own in kept), default=0)
    members = [
        own if own.series is None else replace(own, series=own.series.at(length, batches))
        for own in compared
    ]
    if len(members) > 1 and EVERYBODY not in {own.cohort for own in members}:
        members.append(_everybody(members))
    parts, series = [_rows(own) for own in members], [own.series for own in members]
    table = pd.concat(parts, ignore_index=True)
    pairs = zip(parts, series, strict=True)
    known = np.concatenate([(rows["kind"] != BROADCAST) & (own is not None) for rows, own in pairs])
    means = [own.means() for own in series if own is not None]
    found = mean_differences(np.column_stack(means) if means else np.zeros((0, 0)))
    centre = table["difference"].to_numpy()[known] - found.mean  # each agent over its own rounds
    told = {"low": centre + found.low, "high": centre + found.high, "p_adjusted": found.p_adjusted}
    for name, values in (told | {"effective": found.effective}).items():
        table[name] = np.nan
        table.loc[known, name] = values
    return table[[*MEANS, *told, "better_off", "effective"]]


def _rows(compared: Compared) -> pd.DataFrame:
    """Say what the alternatives were for a cohort."""
    kinds, names = zip(*compared.alternatives, strict=True)
    each, many = compared.losses, compared.multiplicity
    columns = {
        "cohort": compared.cohort,
        "kind": kinds,
        "name": names,
        "agents": int(many.sum()),
        "mean_loss": np.average(each, axis=1, weights=many),
        "difference": np.average(each - each[0], axis=1, weights=many),
        "better_off": (each[0] - each > ROUNDING) @ many,
    }
    return pd.DataFrame(columns)


def _everybody(compared: Sequence[Compared]) -> Compared:
    """Put all agents together; a cohort that an alternative is not open to does as it did."""
    order = (BROADCAST, MODEL, POLICY, ACTION)
    known = dict.fromkeys(one for own in compared for one in own.alternatives)
    found = sorted(known, key=lambda one: order.index(one[0]))
    losses, series = list[Array](), list[Series]()
    for own in compared:
        places = {one: place for place, one in enumerate(own.alternatives)}
        at = np.array([places.get(one, 0) for one in found])
        losses.append(own.losses[at])
        series += [] if own.series is None else [own.series.chosen(at[1:] - 1)]
    told = None
    if len(series) == len(compared):
        sums, there = (sum(getattr(one, part) for one in series) for part in ("sums", "there"))
        told = Series(series[0].length, np.asarray(sums), np.asarray(there))
    many = np.concatenate([own.multiplicity for own in compared])
    return Compared(EVERYBODY, found, np.concatenate(losses, axis=1), told, many)


@dataclass(frozen=True, eq=False)
class Fork:
    """Where a branch left its trunk, and what each agent (N,) of each cohort had lost by then."""

    at: int  # rounds that both share
    trunk: Sequence[Array]  # as the trunk counts it
    branch: Sequence[Array]  # as the branch does


def suffered(cohorts: Sequence[Cohort]) -> list[Array]:
    """Return what each agent of each cohort has lost so far (N,), in all."""
    return [np.asarray(cohort.ledger.own.sum(1)[cohort.row_of]) for cohort in cohorts]


def gains(trunk: Any, branch: Any) -> pd.DataFrame:
    """Compare agents in a branch with themselves in its trunk, both played to the same round.

    UserError if the second is no branch, or the two are not at the same round.

    Returns
    -------
    frame
        A row per agent: ``agent``, ``cohort``, ``loss`` and ``branch_loss`` per round since the
        branch began, in [0, 1]; ``gain`` in the utility's own units and ``loss_gain`` in [0, 1],
        above 0 for who is better off in the branch.
    """
    fork = branch.fork
    if fork is None:
        raise UserError("gains(trunk, branch): the second is no branch; make it by trunk.branch()")
    if branch.played != trunk.played or branch.played <= fork.at:
        rounds = f"{trunk.played} and {branch.played} rounds, and parted after {fork.at}"
        raise UserError(f"gains(trunk, branch): they have played {rounds}; run both equally far")
    parts, span = [], branch.played - fork.at
    ends = suffered(trunk.game.cohorts), suffered(branch.game.cohorts)
    for place, (first, cohort) in enumerate(numbered(trunk.game.cohorts)):
        loss = (ends[0][place] - fork.trunk[place]) / span
        other = (ends[1][place] - fork.branch[place]) / span
        columns = {
            "agent": np.arange(first, first + len(loss)),
            "cohort": cohort.name,
            "loss": loss,
            "branch_loss": other,
            "gain": (loss - other) * cohort.loss.unit_scale[cohort.row_of],
            "loss_gain": loss - other,
        }
        columns |= {} if cohort.multiplicity is None else {COUNT: cohort.multiplicity}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def policy_regret(trunk: Any, agent: int) -> pd.DataFrame:
    """Find what each action alone would earn an agent from here on, with everybody's answers.

    The trunk is not played on, its branches are; the agent is given by its number in the tables.
    Returns a row per ``action``, with the agent's ``gain`` per round, in the utility's own units.
    The greatest is the agent's policy regret against the fixed actions.
    """
    twin, rows = trunk.branch(), []
    twin.run()
    for first, cohort in numbered(trunk.game.cohorts):
        if first <= agent < first + len(cohort.row_of):
            for action in range(cohort.loss.actions):
                other = trunk.branch({f"agent.{agent}": action})
                other.run()
                rows.append((action, float(gains(twin, other)["gain"].iloc[agent - 1])))
    if not rows:
        there = sum(len(cohort.row_of) for cohort in trunk.game.cohorts)
        raise UserError(f"agent {agent}: there are {there} agents; give one of them")
    return pd.DataFrame(rows, columns=["action", "gain"])
