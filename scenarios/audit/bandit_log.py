"""Logs that hold the result of the action that was taken, and of no other: bandit logs.

A log of prices has the price of each round, the quantity that it sold, and a cost of a unit. Other
logs have the name of an action and its loss. ``read_bandit_logs`` reads a table into one
``BanditLog`` for each decision maker.

In round t action b has the **margin** m_t(b), by which its **result** is multiplied: the price less
the cost, where the result is a quantity; -1, where it is a loss. Gains are thus in the unit of the
data, and larger is better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError, brief, closest
from regretless.scenarios.audit.tables import ALL, read_names
from regretless.scenarios.table_files import numeric, place

SUM_ROUNDING = 1e-6  # by which logged probabilities of a round may miss 1
Cost = float | tuple[float, float] | str  # of a unit: known, within a range, or a column
Probabilities = str | Mapping[str | float, str]  # of the action taken, or a column for each action


@dataclass(frozen=True, eq=False)
class BanditColumns:
    """Which columns of a log hold what.

    Attributes
    ----------
    action : str
        The price of a round, or the name of the action.
    result : str
        The quantity that was sold at the price, or the loss of the action.
    is_price : bool
        Whether actions are prices and results are quantities.
    cost : float, (float, float), str or None
        Of a unit; of prices only. None is the range from 0 to the highest price.
    propensity : str, mapping of action to column, or None
        The probability of the action taken; or of each action; None where none is logged.
    agent : str
        Who decided; it may be missing where it is the default.
    context : sequence of str
        What was known before the action was taken.
    """

    action: str
    result: str
    is_price: bool
    cost: Cost | None = None
    propensity: Probabilities | None = None
    agent: str = "agent"
    context: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class BanditLog:
    """The T rounds of a decision maker, with A actions.

    Attributes
    ----------
    agent : str
        Who decided.
    names : tuple of str
        The actions as they are spelled; prices in ascending order.
    prices : ndarray or None
        The prices (A,), ascending; None where actions are no prices.
    chosen : ndarray
        Index of the action of each round (T,).
    result : ndarray
        Quantity sold at that price, or loss of that action (T,).
    cost : ndarray or (float, float)
        Of a unit: of each round (T,), or its range; (0, 0) where actions are no prices.
    logged : ndarray
        Logged probability of each action (T, A); NaN where it is not logged.
    context : DataFrame
        What was known before each action (T rows), texts or numbers as they are written.
    largest, smallest : float
        The largest and the smallest result that a round can have.
    is_range_given : bool
        Whether these two were given, rather than taken from the log.
    """

    agent: str
    names: tuple[str, ...]
    prices: Array | None
    chosen: Indices
    result: Array
    cost: Array | tuple[float, float]
    logged: Array
    context: pd.DataFrame
    largest: float
    smallest: float
    is_range_given: bool

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return len(self.chosen)

    @property
    def scale(self) -> float:
        """The unit of shares: highest price times largest quantity, or the range of losses."""
        if self.prices is None:
            return (self.largest - self.smallest) or 1.0
        return float(self.prices[-1] * self.largest) or 1.0

    @property
    def has_cost_range(self) -> bool:
        """Whether the cost is known to lie within a range only."""
        return isinstance(self.cost, tuple) and self.cost[0] < self.cost[1]

    def margins(self, cost: float | None = None) -> Array:
        """Return what a unit of the result is worth with each action (T, A), or (1, A) for all.

        ``cost`` takes the place of the log's own, whose lower end is the default.
        """
        if self.prices is None:
            return np.full((1, len(self.names)), -1.0)
        if cost is not None:
            return self.prices[None, :] - cost
        if isinstance(self.cost, tuple):
            return self.prices[None, :] - self.cost[0]
        return self.prices[None, :] - self.cost[:, None]


def read_bandit_logs(
    table: pd.DataFrame,
    columns: BanditColumns,
    *,
    menu: Sequence[str | float] | None = None,
    result_range: tuple[float, float] | None = None,
) -> list[BanditLog]:
    """Read a log, with one ``BanditLog`` for each decision maker in the order of the rows.

    Parameters
    ----------
    table : DataFrame
        A row for each round, in the order of time.
    columns : BanditColumns
    menu : sequence, optional
        All actions that could have been taken; by default those that were.
    result_range : (float, float), optional
        The smallest and the largest result of a round; by default those of the log.

    Raises
    ------
    UserError
        If a column is missing or cannot be read, an action is none of the menu, or a probability
        is none.
    """
    if columns.is_price:
        set_prices = numeric(table, [columns.action], "log, --price")[:, 0]
        names, prices = _price_menu(set_prices, menu)
        chosen = np.searchsorted(prices, set_prices)
    else:
        taken = read_names(table, columns.action, "log, --action")
        names = tuple(str(name) for name in menu) if menu else tuple(sorted(set(taken)))
        prices = None
        chosen = _indices(taken, names)
    if len(names) < 2:
        option = "prices" if columns.is_price else "actions"
        reason = f"log: '{names[0]}' is the only action, so that there is no alternative to it"
        raise UserError(f"{reason}; name with {option} all that could have been chosen")
    result = numeric(table, [columns.result], "log, --quantity or --loss")[:, 0]
    if columns.is_price and result.min() < 0:
        row = int(result.argmin())
        found = f"column '{columns.result}' holds {result[row]:g} in {place(table, row)}"
        raise UserError(f"log, --quantity: {found}; a quantity is at least 0")
    smallest, largest = _result_range(result, result_range, is_price=columns.is_price)
    cost: Array | tuple[float, float] = (0.0, 0.0)
    if prices is not None:
        highest_price = float(prices[-1])
        cost = _read_cost(table, (0.0, highest_price) if columns.cost is None else columns.cost)
    logged = _read_propensities(table, columns.propensity, names, chosen, prices)
    for name in columns.context:
        read_names(table, name, "log, --context")  # every value is there
    context = table[list(columns.context)].reset_index(drop=True)

    is_named = columns.agent in table or columns.agent != "agent"
    who = read_names(table, columns.agent, "log, --agent") if is_named else (ALL,) * len(table)
    logs = []
    for agent in dict.fromkeys(who):
        rows = np.flatnonzero(np.asarray(who) == agent)
        log = BanditLog(
            agent=agent,
            names=names,
            prices=prices,
            chosen=chosen[rows],
            result=result[rows],
            cost=cost if isinstance(cost, tuple) else cost[rows],
            logged=logged[rows],
            context=context.iloc[rows].reset_index(drop=True),
            largest=largest,
            smallest=smallest,
            is_range_given=result_range is not None,
        )
        logs.append(log)
    return logs


def _price_menu(
    set_prices: Array, menu: Sequence[str | float] | None
) -> tuple[tuple[str, ...], Array]:
    """Return the menu of prices as it is spelled, and its values (A,) in ascending order."""
    if menu is None:
        prices = np.unique(set_prices)
    else:
        try:
            prices = np.unique(np.array([float(price) for price in menu]))
        except (TypeError, ValueError):
            raise UserError(f"prices: {brief(list(menu))} are no numbers; give numbers") from None
        for price in set_prices[~np.isin(set_prices, prices)][:1]:
            raise UserError(f"log, --price: {price:g} is none of the prices; add it to them")
    if not np.isfinite(prices).all() or prices[0] < 0:
        raise UserError(f"prices: {prices[0]:g} is no price; give finite numbers of at least 0")
    return tuple(f"{price:.10g}" for price in prices), prices


def _indices(taken: Sequence[str], names: Sequence[str]) -> Indices:
    """Return the index (T,) of each action that was taken."""
    chosen = pd.Index(names).get_indexer(pd.Index(taken))
    for row in np.flatnonzero(chosen < 0)[:1]:
        cure = closest(taken[row], names)
        raise UserError(f"log, --action: '{taken[row]}' is none of the actions; {cure}")
    return chosen


def _result_range(
    result: Array, given: tuple[float, float] | None, *, is_price: bool
) -> tuple[float, float]:
    """Return the smallest and the largest result of a round, given or from the log."""
    if given is None:
        smallest = 0.0 if is_price else float(result.min())
        return smallest, float(result.max())
    smallest, largest = given
    if result.min() < smallest or result.max() > largest:
        name = "max_quantity" if is_price else "loss_range"
        found = f"results run from {result.min():g} to {result.max():g}"
        raise UserError(f"{name}: {found}, beyond {smallest:g} to {largest:g}; widen it")
    return float(smallest), float(largest)


def _read_cost(table: pd.DataFrame, cost: Cost) -> Array | tuple[float, float]:
    """Return the cost of each round (T,), or the ends of its range, which are equal if known."""
    if isinstance(cost, str):
        return numeric(table, [cost], "log, --cost")[:, 0]
    ends = tuple(cost) if isinstance(cost, tuple | list) else (cost, cost)
    if len(ends) != 2 or not all(np.isfinite(end) for end in ends) or ends[0] > ends[1]:
        cure = "give a number, a range LOW:HIGH with LOW at most HIGH, or a column"
        raise UserError(f"cost: {brief(cost)} is no cost; {cure}")
    return float(ends[0]), float(ends[1])


def _read_propensities(
    table: pd.DataFrame,
    propensity: Probabilities | None,
    names: Sequence[str],
    chosen: Indices,
    prices: Array | None,
) -> Array:
    """Return the logged probabilities (T, A), NaN where none is logged."""
    logged = np.full((len(table), len(names)), np.nan)
    if propensity is None:
        return logged
    if isinstance(propensity, str):
        of_chosen = numeric(table, [propensity], "log, --propensity")[:, 0]
        _check_probabilities(of_chosen[:, None], [propensity])
        logged[np.arange(len(table)), chosen] = of_chosen
    else:
        columns = _columns_of_actions(propensity, names, prices)
        logged = numeric(table, columns, "log, --propensity")
        _check_probabilities(logged, columns)
        for row in np.flatnonzero(np.abs(logged.sum(1) - 1) > SUM_ROUNDING)[:1]:
            found = f"the probabilities of {place(table, int(row))} sum to {logged[row].sum():.6g}"
            raise UserError(f"log, --propensity: {found}; they must sum to 1")
    for row in np.flatnonzero(~(logged[np.arange(len(table)), chosen] > 0))[:1]:
        found = f"'{names[chosen[row]]}' was chosen in {place(table, int(row))} with probability 0"
        raise UserError(f"log, --propensity: {found}; correct the log")
    return logged


def _columns_of_actions(
    propensity: Mapping[str | float, str], names: Sequence[str], prices: Array | None
) -> list[str]:
    """Return the column with the probability of each action, in the order of the menu."""
    column_of = {}
    for action, column in propensity.items():
        name = str(action)
        if prices is not None:
            try:
                name = f"{float(action):.10g}"
            except ValueError:
                raise UserError(f"propensity: '{action}' is no price; write a number") from None
        if name not in names:
            raise UserError(f"propensity: no action '{name}'; {closest(name, names)}")
        column_of[name] = column
    for name in names:
        if name not in column_of:
            raise UserError(f"propensity: no column for the action '{name}'; name one for each")
    return [column_of[name] for name in names]


def _check_probabilities(values: Array, columns: Sequence[str]) -> None:
    """Check that logged probabilities (T, k) are in [0, 1]; UserError otherwise."""
    for row, column in np.argwhere((values < 0) | (values > 1))[:1]:
        found = f"column '{columns[column]}' holds {values[row, column]:g}"
        raise UserError(f"log, --propensity: {found}; a probability is in [0, 1]")
