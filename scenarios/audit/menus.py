"""The menu of actions of a log: prices that are the same but for rounding, and menus too large.

Prices that differ by rounding are one price. A menu of more actions than an audit can compare is
coarsened: neighbouring prices or other numbers, or seldom taken words, become one **group**.
Within a group the decision maker mixes as it did; a replacement puts one group in the place of
another. What was earned at a price that was set stays what was earned, so that the regret of these
replacements is estimated without bias. Replacements of single prices within a group are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError, brief
from regretless.scenarios.number_texts import PLAIN, NumberStyle

PRICE_ROUNDING = 1e-9  # relative difference up to which two prices are the same
MAX_ACTIONS = 20  # that are compared one by one; memory and time grow with the fourth power
MAX_GROUPS = 12  # that more actions become
MAX_TABLE_ENTRIES = 20_000_000  # rounds times actions: tables of 160 MB
OTHER = "others"  # seldom taken actions, as a group


@dataclass(frozen=True, eq=False)
class Menu:
    """The A actions of a decision maker.

    Attributes
    ----------
    names : tuple of str
        As they are printed.
    prices : ndarray or None
        The prices (A,), ascending; of a group the highest, so that no price of it earns more with
        the same quantity. None where actions are no prices.
    single_names : tuple of str
        The actions before they were grouped (F).
    group_of : ndarray
        For each of these, the action that it became (F,).
    note : str
        What was joined, in a sentence; empty if nothing was.
    """

    names: tuple[str, ...]
    prices: Array | None
    single_names: tuple[str, ...]
    group_of: Indices
    note: str = ""

    @property
    def is_grouped(self) -> bool:
        """Whether several actions became one."""
        return len(self.names) < len(self.group_of)


def join_rounded(values: Array) -> tuple[Array, Indices]:
    """Return distinct numbers in ascending order, and for each value the index of its number.

    Numbers that differ by ``PRICE_ROUNDING`` at most are one, spelled as the shortest of them.

    >>> numbers, number_index = join_rounded(np.array([0.3, 0.1 + 0.2, 1.0]))
    >>> numbers.tolist(), number_index.tolist()
    ([0.3, 1.0], [0, 0, 1])
    """
    distinct, distinct_index = np.unique(values, return_inverse=True)
    is_new = np.ones(len(distinct), dtype=bool)
    is_new[1:] = np.diff(distinct) > PRICE_ROUNDING * np.abs(distinct[1:])
    number_of = np.cumsum(is_new) - 1
    shortest: dict[int, float] = {}
    for index, value in zip(number_of.tolist(), distinct.tolist(), strict=True):
        if index not in shortest or len(repr(value)) < len(repr(shortest[index])):
            shortest[index] = value
    return np.array(list(shortest.values())), np.asarray(number_of[distinct_index.ravel()])


def largest_menu(rounds: int) -> int:
    """Return how many actions are compared in so many rounds.

    >>> largest_menu(10_000), largest_menu(5_000_000)
    (20, 4)
    """
    return max(min(MAX_ACTIONS, MAX_TABLE_ENTRIES // rounds), 2)


def number_of_groups(rounds: int) -> int:
    """Return how many groups the actions become that are too many for so many rounds."""
    return min(MAX_GROUPS, largest_menu(rounds))


def price_menu(set_prices: Array, listed: Sequence[str | float] | None) -> tuple[Menu, Indices]:
    """Return the menu of prices, and the index of each round's price before grouping (T,).

    Parameters
    ----------
    set_prices : ndarray
        The price of each round (T,).
    listed : sequence of float, optional
        All prices that could have been set; by default those that were.
    """
    if listed is None:
        prices, chosen = join_rounded(set_prices)
        n_spellings = len(np.unique(set_prices))
    else:
        values = _listed_prices(listed)
        prices, price_index = join_rounded(np.concatenate([values, set_prices]))
        chosen = price_index[len(values) :]
        is_listed = np.isin(chosen, price_index[: len(values)])
        for price in set_prices[~is_listed][:1]:
            raise UserError(f"log, --price: {price:g} is none of the prices; add it to them")
        n_spellings = len(np.unique(np.concatenate([values, set_prices])))
    if not np.isfinite(prices).all() or prices[0] < 0:
        raise UserError(f"prices: {prices[0]:g} is no price; give finite numbers of at least 0")

    notes = []
    if n_spellings > len(prices):
        joined = f"{n_spellings} different numbers are {len(prices)} prices"
        notes.append(f"{joined}: they differ by rounding (at most {PRICE_ROUNDING:g} of a price).")
    group_of = np.arange(len(prices))
    single_names = tuple(f"{price:.12g}" for price in prices)
    names: Sequence[str] = single_names
    if len(prices) > largest_menu(len(set_prices)):
        n_groups = number_of_groups(len(set_prices))
        counts = np.bincount(chosen, minlength=len(prices))
        group_of = _group_neighbours(counts, n_groups)
        spellings = [f"{price:.6g}" for price in prices]
        names = _names_of_groups(spellings, group_of)
        notes.append(
            f"{len(prices)} prices are more than an audit of {len(set_prices):,} rounds can "
            f"compare: they became {len(names)} groups of neighbouring prices, within which the "
            "seller mixes as it did."
        )
        is_highest_of_group = np.diff(group_of, append=n_groups) > 0
        prices = prices[is_highest_of_group]
    return Menu(tuple(names), prices, single_names, group_of, " ".join(notes)), chosen


def _listed_prices(listed: Sequence[str | float]) -> Array:
    if isinstance(listed, str):
        raise UserError(f"prices: {brief(listed)} is no list; give a list of numbers")
    try:
        values = np.array([float(price) for price in listed])
    except (TypeError, ValueError):
        raise UserError(f"prices: {brief(listed)} are no numbers; give a list of numbers") from None
    if not len(values) or not np.isfinite(values).all():
        raise UserError(f"prices: {brief(listed)}; give finite numbers, at least one")
    return values


def _group_neighbours(counts: Indices, n_groups: int) -> Indices:
    """Return the group (F,) of each price, of about equally many rounds; each has a price.

    A price that alone has the rounds of several groups is a group by itself.
    """
    group_of = np.zeros(len(counts), dtype=np.intp)
    group = 0
    in_group = 0
    rounds_left = int(counts.sum())
    for index, count in enumerate(counts):
        groups_left = n_groups - group
        is_full = 2 * in_group + int(count) > 2 * rounds_left / groups_left
        if in_group and is_full and groups_left > 1:
            rounds_left -= in_group
            group += 1
            in_group = 0
        group_of[index] = group
        in_group += int(count)
    return group_of


def _names_of_groups(spellings: Sequence[str], group_of: Indices) -> list[str]:
    """Return "LOWEST to HIGHEST" for each group of ascending numbers (F,), or its only number."""
    first = np.flatnonzero(np.diff(group_of, prepend=-1))
    last = np.append(first[1:], len(group_of)) - 1
    names = []
    for low, high in zip(first.tolist(), last.tolist(), strict=True):
        is_single = low == high
        names.append(spellings[low] if is_single else f"{spellings[low]} to {spellings[high]}")
    return names


def _numbers_of_names(names: Sequence[str], style: NumberStyle) -> Array | None:
    """Return the numbers (F,) that the names of actions are; None if one is a word."""
    values = np.array([style.read(name) for name in names])
    return values if len(values) and np.isfinite(values).all() else None


def named_menu(
    taken: Sequence[str], listed: Sequence[str] | None, style: NumberStyle = PLAIN
) -> tuple[tuple[str, ...], dict[str, str], str]:
    """Return the names of a menu, the name of each spelling, and a note.

    Names that are numbers, written in a ``style``, and differ by rounding are one.
    """
    spellings = list(dict.fromkeys([*(listed or sorted(set(taken))), *taken]))
    name_of = {spelling: spelling for spelling in spellings}
    values = _numbers_of_names(spellings, style)
    note = ""
    if values is not None:
        numbers, number_index = join_rounded(values)
        shortest: dict[int, str] = {}
        for spelling, index in zip(spellings, number_index.tolist(), strict=True):
            if index not in shortest or len(spelling) < len(shortest[index]):
                shortest[index] = spelling
        name_of = {
            spelling: shortest[index]
            for spelling, index in zip(spellings, number_index.tolist(), strict=True)
        }
        if len(numbers) < len(spellings):
            note = f"{len(spellings)} different numbers are {len(numbers)} actions: they differ by "
            note += f"rounding (at most {PRICE_ROUNDING:g} of each)."
    names = [name_of[spelling] for spelling in (listed or sorted(set(taken)))]
    return tuple(dict.fromkeys(names)), name_of, note


def group_named(
    names: Sequence[str], chosen: Indices, note: str, style: NumberStyle = PLAIN
) -> Menu:
    """Return a menu whose actions are joined into groups, if they are too many.

    Actions that are numbers, such as bids, are joined with their neighbours. Of words, those that
    were taken least often are one group.

    Parameters
    ----------
    names : sequence of str
        The actions (F).
    chosen : ndarray
        The index in ``names`` of each round's action (T,).
    note : str
        What was done to the names before, in a sentence; empty if nothing was.
    style : NumberStyle
        How names that are numbers are written.
    """
    if len(names) <= largest_menu(len(chosen)):
        return Menu(tuple(names), None, tuple(names), np.arange(len(names)), note)
    values = _numbers_of_names(names, style)
    if values is None:
        return _group_seldom(names, chosen, note)
    return _group_numbers(names, values, chosen, note)


def _group_numbers(names: Sequence[str], values: Array, chosen: Indices, note: str) -> Menu:
    """Return a menu of groups of neighbouring numbers; ``values`` (F,) are those of the names."""
    ascending = np.argsort(values)
    counts = np.bincount(chosen, minlength=len(names))
    group_of_ascending = _group_neighbours(counts[ascending], number_of_groups(len(chosen)))
    ascending_names = [names[index] for index in ascending.tolist()]
    menu_names = _names_of_groups(ascending_names, group_of_ascending)
    group_of = np.empty(len(names), dtype=np.intp)
    group_of[ascending] = group_of_ascending
    grouped = (
        f"{len(names)} actions are more than an audit of {len(chosen):,} rounds can compare. All "
        f"are numbers: they became {len(menu_names)} groups of neighbouring numbers, within which "
        "the decision maker mixes as it did. If they are codes, write them as words."
    )
    return Menu(tuple(menu_names), None, tuple(names), group_of, f"{note} {grouped}".strip())


def _group_seldom(names: Sequence[str], chosen: Indices, note: str) -> Menu:
    """Return a menu in which the actions that were taken least often are one group."""
    n_groups = number_of_groups(len(chosen))
    counts = np.bincount(chosen, minlength=len(names))
    most_taken = np.sort(np.argsort(-counts, kind="stable")[: n_groups - 1])
    group_of = np.full(len(names), n_groups - 1)
    group_of[most_taken] = np.arange(n_groups - 1)
    grouped_name = OTHER
    while grouped_name in names:
        grouped_name += "'"
    n_joined = len(names) - len(most_taken)
    grouped = (
        f"{len(names)} actions are more than an audit of {len(chosen):,} rounds can compare: the "
        f"{n_joined} that were taken least often are one, '{grouped_name}', within which the "
        "decision maker mixes as it did."
    )
    menu_names = (*[names[index] for index in most_taken], grouped_name)
    return Menu(menu_names, None, tuple(names), group_of, f"{note} {grouped}".strip())
