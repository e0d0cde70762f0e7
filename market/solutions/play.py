"""How often each configuration of a stage game was played, in a run and in its windows.

A model whose market has a stage game of few agents counts (``MarketModel``); the distribution of
play that comes of it is what correlated equilibria are compared with. Rounds in which somebody was
absent are no profiles, and are left out and counted.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError
from regretless.market.game.market import Decisions
from regretless.market.game.profiles import count_numbers, profile_strides
from regretless.market.game.seats import taken_actions
from regretless.market.solutions.stage_game import StageGame

Span = tuple[int, int]  # first and last round


@compiled(nogil=True)
def _count_entries(first_entries: Indices, actions: Indices, counts: Integers) -> bool:
    """Count what agents played in the entries of their types (compiled).

    Parameters
    ----------
    first_entries, actions : int array (n,)
        The entry of each agent's type for the action 0, and its action, -1 where it is absent.
    counts : int array (entries,)
        1 is added for every agent at the entry of its type for its action.

    Returns
    -------
    bool
        Whether all agents were there; else some are not counted.

    Raises
    ------
    IndexError
        If there is not one action for each agent, or one has no entry.
    """
    if len(actions) != len(first_entries):
        raise IndexError("a cohort did not say one action for each of its agents")
    for agent in range(len(actions)):
        if actions[agent] < 0:
            return False
        entry = first_entries[agent] + actions[agent]
        if entry >= len(counts):
            raise IndexError("an agent's action is none of its cohort's")
        counts[entry] += 1
    return True


class PlayCounts:
    """Counts configurations of a game that is enumerable, over the run and over ``spans``."""

    def __init__(self, game: StageGame, spans: Sequence[Span] = ()) -> None:
        self.game = game
        self.spans = tuple(spans)
        self.left_out = 0  # rounds in which somebody was absent
        self.first_round = 0  # from which on play is counted
        # Keys of ``_counts`` by the numbers of profiles: each is computed once.
        self._key_of_number: dict[int, tuple[int, ...]] = {}
        self._counts: list[dict[tuple[int, ...], int]] = [{} for _ in range(1 + len(self.spans))]
        ends_of_types = np.cumsum(game.size_of_type)
        starts_of_types = ends_of_types - game.size_of_type
        self._n_entries = int(ends_of_types[-1])  # of a key
        # Of each agent's type in a key (N,).
        self._first_entry: Indices = starts_of_types[game.type_of].astype(np.intp)
        cohorts = () if game.market is None else game.market.cohorts
        self._has_multiplicity = any(cohort.multiplicity is not None for cohort in cohorts)

    def add(self, round_index: int, decisions: Decisions) -> None:
        """Count the configuration that was played in a round."""
        key = self._key(decisions)
        if key is None:
            self.left_out += 1
            return
        self._counts[0][key] = self._counts[0].get(key, 0) + 1
        for number, (first, last) in enumerate(self.spans, start=1):
            if first <= round_index <= last:
                self._counts[number][key] = self._counts[number].get(key, 0) + 1

    def add_profiles(self, first_round: int, profiles: Integers) -> None:
        """Count the profiles that all agents played in consecutive rounds.

        ``profiles`` (T,) are their numbers (``market.game.profiles``).
        """
        action_counts = np.asarray(self.game.size_of_type)[self.game.type_of]
        strides = profile_strides(action_counts)
        round_indices = first_round + np.arange(len(profiles))
        for number, span in enumerate((None, *self.spans)):
            profiles_inside = profiles
            if span is not None:
                is_inside = (round_indices >= span[0]) & (round_indices <= span[1])
                profiles_inside = profiles[is_inside]
            distinct, times = count_numbers(profiles_inside, int(np.prod(action_counts)))
            counts = self._counts[number]
            for profile, n_times in zip(distinct.tolist(), times.tolist(), strict=True):
                key = self._key_of_number.get(profile)
                if key is None:
                    key = self._key_of_profile(profile // strides % action_counts)
                    self._key_of_number[profile] = key
                counts[key] = counts.get(key, 0) + n_times

    def _key_of_profile(self, profile: Indices) -> tuple[int, ...]:
        """Return how many agents of each type take each action at a profile (N,)."""
        entries = self._first_entry + profile
        return tuple(np.bincount(entries, minlength=self._n_entries).tolist())

    def _key(self, decisions: Decisions) -> tuple[int, ...] | None:
        """Return how many agents of each type took each action, one after another.

        None if somebody was absent.
        """
        if self._has_multiplicity:
            return self._key_with_multiplicity(decisions)
        counts = np.zeros(self._n_entries, dtype=np.int64)
        first_agent = 0
        for decision in decisions:
            if decision is None:
                return None
            actions = decision.actions
            end_agent = first_agent + len(actions)
            first_entries = self._first_entry[first_agent:end_agent]
            if not _count_entries(first_entries, actions, counts):
                return None
            first_agent = end_agent
        return tuple(counts.tolist())

    def _key_with_multiplicity(self, decisions: Decisions) -> tuple[int, ...] | None:
        """Return the same as ``_key`` where entries of cohorts may stand for several agents."""
        market = self.game.market
        assert market is not None  # noqa: S101 - who plays has a market
        counts = [np.zeros(size, dtype=np.int64) for size in self.game.size_of_type]
        n_seen = 0
        for cohort, decision, (columns, _) in zip(
            market.cohorts, decisions, market.agent_columns(), strict=True
        ):
            if decision is None:
                return None
            type_of_agent = self.game.type_of[columns]
            if cohort.multiplicity is None:
                if (decision.actions < 0).any():
                    return None
                for kind in np.unique(type_of_agent):
                    actions = decision.actions[type_of_agent == kind]
                    counts[kind] += np.bincount(actions, minlength=len(counts[kind]))
                n_seen += len(decision.actions)
                continue
            taken = taken_actions(cohort, decision.actions, decision.counts)
            type_of_row = np.zeros(cohort.ledger.shape[0], dtype=np.intp)
            type_of_row[np.repeat(cohort.row_of, cohort.multiplicity)] = type_of_agent
            multiplicity = taken.multiplicity
            if multiplicity is None:
                multiplicity = np.ones(len(taken.rows))
            for row, action, number in zip(taken.rows, taken.actions, multiplicity, strict=True):
                counts[type_of_row[row]][action] += int(number)
            n_seen += int(taken.agents)
        if n_seen < self.game.agents:
            return None
        return tuple(np.concatenate(counts).tolist())

    def distribution(self, span: Span | None = None) -> Array:
        """Return how often each configuration was played (C,), as shares.

        UserError if the window was not declared, or no round of it was played by all.
        """
        if span is None:
            number = 0
        elif span in self.spans:
            number = 1 + self.spans.index(span)
        else:
            declared = ", ".join(str(known) for known in self.spans) or "none"
            hint = f"add it to the scenario's windows; declared: {declared}"
            raise UserError(f"window {span}: {hint}")
        counted = self._counts[number]
        if not counted:
            raise UserError("no round has been played by all agents; play some")
        weights = np.zeros(len(self.game.configurations))
        for key, count in counted.items():
            weights[self.game.configurations.index_of(self._split(key))] += count
        return np.asarray(weights / weights.sum())

    def _split(self, key: tuple[int, ...]) -> list[Indices]:
        """Return the counts of each type out of a key."""
        ends = np.cumsum(self.game.size_of_type)[:-1]
        return list(np.split(np.array(key, dtype=np.intp), ends))

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""
        tables = {}
        for number, counted in enumerate(self._counts):
            width = sum(self.game.size_of_type)
            keys = np.array(list(counted), dtype=np.int64).reshape(len(counted), width)
            counts = np.array(list(counted.values()), dtype=np.int64)
            tables[str(number)] = {"keys": keys, "counts": counts}
        return {"left_out": self.left_out, "first_round": self.first_round, "tables": tables}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.left_out = int(state["left_out"])
        self.first_round = int(state["first_round"])
        for number, table in state["tables"].items():
            keys = [tuple(key) for key in np.asarray(table["keys"]).tolist()]
            counts = np.asarray(table["counts"]).tolist()
            self._counts[int(number)] = dict(zip(keys, counts, strict=True))
