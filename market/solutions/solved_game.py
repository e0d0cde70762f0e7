"""A market's stage game beside the run that plays it: solutions, and where play is among them.

``MarketModel`` has one, and asks it for ``solutions()``, ``price_of_anarchy()``, ``distance()``
and ``index()``. Solutions are computed once, when they are first asked for, since no round changes
them.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.market import Market
from regretless.market.solutions import correlated
from regretless.market.solutions.play import PlayCounts, Span
from regretless.market.solutions.solution import (
    DEFAULT_NAMES,
    Solution,
    listed,
    not_found,
    ratio_of_welfare,
    solutions_table,
    solve,
)
from regretless.market.solutions.stage_game import StageGame, stage_game_of

NO_MARKET = "there is no [market], so that nobody's actions change what others lose"
ENDS = {"nash": "worst", "ce": "worst", "cce": "worst"}  # of a set, in a price of anarchy


class SolvedGame:
    """The stage game of a market, if it has one, with its solutions and the counts of play.

    Parameters
    ----------
    market : Market or None
        Whose stage game it is.
    names : sequence of str
        Of registered solutions that a scenario asks for.
    spans : sequence of (first, last)
        The windows over which play is counted by itself.

    Attributes
    ----------
    game : StageGame or None
        None where there is none; ``why_no_game`` says why.
    play : PlayCounts or None
        None where play cannot be counted by configurations; ``why_play_is_uncounted`` says why.
    """

    def __init__(
        self, market: Market | None, *, names: Sequence[str] = (), spans: Sequence[Span] = ()
    ) -> None:
        self.names = tuple(names)  # of the solutions that a scenario asks for
        self.spans = tuple(spans)  # the windows over which play is counted by itself
        self.game: StageGame | None = None
        self.play: PlayCounts | None = None
        self.why_no_game = ""  # a reason, where ``game`` is None
        self.why_play_is_uncounted = ""  # a reason, where ``play`` is None
        self._solved: dict[str, list[Solution]] = {}  # by name, once they were asked for
        if market is None:
            self.why_no_game = NO_MARKET
            return
        try:
            self.game = stage_game_of(market)
        except UserError as error:
            self.why_no_game = str(error)
            return
        if self.game.is_enumerable:
            self.play = PlayCounts(self.game, spans)
        else:
            self.why_play_is_uncounted = self.game.why_too_large

    def count_from(self, round_index: int) -> None:
        """Note that no round before this one was played in this game."""
        if self.play is not None:
            self.play.first_round = round_index

    def is_same_game(self, other: "SolvedGame") -> bool:
        """Whether both count play in games whose profiles lose the same."""
        if self.play is None or other.play is None:
            return False
        own_configurations = self.play.game.configurations
        other_configurations = other.play.game.configurations
        if own_configurations.shape != other_configurations.shape or not np.array_equal(
            own_configurations.profiles, other_configurations.profiles
        ):
            return False
        tables = zip(own_configurations.losses, other_configurations.losses, strict=True)
        return all(
            np.array_equal(own_losses, other_losses, equal_nan=True)
            for own_losses, other_losses in tables
        )

    def leave_play_uncounted(self, reason: str) -> None:
        """Count no play from now on, for a reason that is told to who asks."""
        self.play = None
        self.why_play_is_uncounted = reason

    def solutions(self, names: str | Sequence[str] = DEFAULT_NAMES) -> list[Solution]:
        """Return solutions by registered names; those that cannot be computed say why.

        UserError if a name is not registered.
        """
        solutions: list[Solution] = []
        for name in listed(names):
            register.solution[name]  # refuses what is not registered
            if name not in self._solved:
                self._solved[name] = self._solve(name)
            solutions += self._solved[name]
        return solutions

    def _solve(self, name: str) -> list[Solution]:
        if self.game is None:
            return [not_found(name, self.why_no_game)]
        try:
            return solve(self.game, [name])
        except UserError as error:
            return [not_found(name, str(error))]

    def table(self, names: str | Sequence[str]) -> pd.DataFrame:
        """Return the table ``solutions``: what was played, over the run and windows, and solutions.

        Rows of play have their distance from the correlated and coarse correlated equilibria, where
        these are among the names.
        """
        names = listed(names)
        solutions = self.solutions(names)
        if self.game is None:
            rows = [
                (unsolved.name, "", np.nan, np.nan, unsolved.method, np.nan)
                for unsolved in solutions
            ]
            table = pd.DataFrame(
                rows,
                columns=["name", "cohort", "mean_loss", "welfare", "method", "certificate"],
            )
            return table.assign(distance_ce=np.nan, distance_cce=np.nan)
        played = self._played()
        table = solutions_table(self.game, [solution for solution, _ in played] + solutions)
        for concept in correlated.CONCEPTS:
            distances = np.full(len(table), np.nan)
            if concept in names:
                for solution, weights in played:
                    is_play = (table["name"] == solution.name).to_numpy()
                    distances[is_play] = self._distance_or_nan(concept, weights)
            table[f"distance_{concept}"] = distances
        return table

    def _played(self) -> list[tuple[Solution, Array]]:
        """Return what was played in the run and in each window, with its distribution (C,)."""
        if self.play is None or self.game is None:
            return []
        played = []
        for span in (None, *self.spans):
            try:
                weights = self.play.distribution(span)
            except UserError:  # nobody has played there yet
                continue
            name = "play" if span is None else f"play, rounds {span[0]} to {span[1]}"
            losses = self.game.configurations.mean_losses(weights)
            gain = np.nan
            try:
                polytope = correlated.polytope_of(self.game, "ce")
                gain = max(polytope.greatest_gain(weights), 0.0)
            except UserError:  # it is too large
                pass
            method = "profiles as they were played, at losses of the stage game"
            if self.play.left_out and span is None:
                method += f"; without {self.play.left_out:,} rounds in which somebody was absent"
            if self.play.first_round:
                method += f"; from round {self.play.first_round:,} on"
            played.append((Solution(name, losses, method, gain), weights))
        return played

    def _distance_or_nan(self, concept: str, weights: Array) -> float:
        assert self.game is not None  # noqa: S101 - the caller has looked
        try:
            return correlated.distance(self.game, concept, weights)
        except UserError:
            return np.nan

    def distance(self, concept: str, window: Span | None = None) -> float:
        """Return how far play is from the equilibria of a concept, in total variation.

        UserError if it cannot be computed, with the reason.
        """
        play, game = self._counted()
        return correlated.distance(game, concept, play.distribution(window))

    def _counted(self) -> tuple[PlayCounts, StageGame]:
        """Return the counts of play and the game; UserError that says why there are none."""
        if self.game is None:
            raise UserError(f"there is no stage game: {self.why_no_game}")
        if self.play is None:
            hint = "play is within its own swap regret of a correlated equilibrium"
            raise UserError(f"play is not counted: {self.why_play_is_uncounted}; {hint}")
        return self.play, self.game

    def price_of_anarchy(self, concept: str = "nash") -> float:
        """Return how much worse the worst equilibrium is than the planner's optimum, as a ratio.

        Of total losses where these are positive, of welfare where that is. UserError where there
        is no such ratio.
        """
        equilibrium = self._one(f"{ENDS.get(concept, '')} {concept}".strip(), concept)
        optimum = self._one("optimum", "optimum")
        ratio = ratio_of_welfare(equilibrium.welfare, optimum.welfare)
        if ratio is None:
            losses = f"{equilibrium.total_loss:.4g} and {optimum.total_loss:.4g}"
            raise UserError(f"price of anarchy: total losses {losses} have no ratio; compare them")
        return ratio

    def index(self, first: str, second: str, window: Span | None = None) -> float:
        """Return where play is between two solutions, by total loss.

        It is 0 at the first and 1 at the second. Of Nash and joint profits it is the profit gain of
        Calvano et al. (2020). Where a name has a best and a worst end, such as "nash", the worst
        counts; "best nash" is the other one. UserError if there is no such solution, or both are
        equal.
        """
        start = self._one(first, _concept(first))
        end = self._one(second, _concept(second))
        play, game = self._counted()
        total = game.configurations.total_loss @ play.distribution(window)
        if start.total_loss == end.total_loss:
            raise UserError(f"index: {first} and {second} have equal losses; name two that differ")
        return float((total - start.total_loss) / (end.total_loss - start.total_loss))

    def _one(self, name: str, concept: str) -> Solution:
        """Return the solution of a name, or of a concept; UserError if not found.

        Where the concept has two ends, its own name means the worst.
        """
        solutions = self.solutions([concept])
        if self.game is None:
            raise UserError(f"there is no stage game: {self.why_no_game}")
        by_name = {solution.name: solution for solution in solutions if solution.is_found}
        if name in by_name:
            return by_name[name]
        if name == concept and f"worst {concept}" in by_name:
            return by_name[f"worst {concept}"]
        if concept in by_name:  # both ends are equal
            return by_name[concept]
        has = "; ".join(
            solution.name if solution.is_found else solution.method for solution in solutions
        )
        raise UserError(f"solution '{name}' is not there: {has}")


def _concept(name: str) -> str:
    """Return the registered name of a solution such as "worst nash"."""
    return name.removeprefix("best ").removeprefix("worst ")
