"""Logs that hold the result of the action that was taken, and of no other: bandit logs.

A log of prices has the price of each round, the quantity that it sold, and a cost of a unit. Other
logs have the name of an action and its loss. ``read_bandit_logs`` reads a table into one
``BanditLog`` for each decision maker.

In round t action b has the **margin** m_t(b), by which its **result** is multiplied: the price less
the cost, where the result is a quantity; -1, where it is a loss. Gains are thus in the unit of the
data, and larger is better.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError, brief, closest
from regretless.market.core.validation import check_range, numbers
from regretless.scenarios.assembly.data import TRUTHS
from regretless.scenarios.audit.menus import Menu, group_named, named_menu, price_menu
from regretless.scenarios.audit.tables import ALL, USUAL_FORM, read_names
from regretless.scenarios.table_files import COMMA, ROW, Form, numeric, place, texts

MAX_NAMES_OF_DECISION_MAKERS = 50  # a text column with more distinct values names none
MIN_LOGGED_PROBABILITY = 1e-12  # whoever takes an action has at least this probability for it
MAX_CODED_WORDS = 3  # as yes and no, and an empty cell; more of them stand for no numbers
N_CODED_WORDS = 2  # without the empty cell
WHAT_A_WORD_MAY_BE = {"log, --loss": "the loss", "log, --quantity": "the sale"}
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
    group : str or None
        Decision makers with the same value have the same menu and the same range of results, as
        the sellers of one product; None if each has its own.
    context : sequence of str
        What was known before the action was taken.
    form : Form
        How a file's columns and numbers are written.
    """

    action: str
    result: str
    is_price: bool
    cost: Cost | None = None
    propensity: Probabilities | None = None
    agent: str = "agent"
    group: str | None = None
    context: Sequence[str] = ()
    form: Form = USUAL_FORM


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
    set_price : ndarray or None
        The price of each round (T,), of which ``prices`` has the group; None likewise.
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
    notes : tuple of str
        What was done to the log before it was audited, a sentence each.
    is_grouped : bool
        Whether some actions were joined into groups, because they were too many.
    """

    agent: str
    names: tuple[str, ...]
    prices: Array | None
    set_price: Array | None
    chosen: Indices
    result: Array
    cost: Array | tuple[float, float]
    logged: Array
    context: pd.DataFrame
    largest: float
    smallest: float
    is_range_given: bool
    notes: tuple[str, ...] = ()
    is_grouped: bool = False

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
        return np.asarray(self.prices[None, :] - np.reshape(self._cost_of_rounds(cost), (-1, 1)))

    def margins_taken(self, cost: float | None = None) -> Array:
        """Return what a unit of the result was worth in each round (T,), or (1,) for all."""
        if self.set_price is None:
            return np.array([-1.0])
        return np.asarray(self.set_price - self._cost_of_rounds(cost))

    def _cost_of_rounds(self, cost: float | None) -> Array | float:
        if cost is not None:
            return cost
        return self.cost[0] if isinstance(self.cost, tuple) else self.cost


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
        All actions that could have been taken; by default those that each decision maker, or its
        group, took.
    result_range : (float, float), optional
        The smallest and the largest result of a round; by default those of each decision maker, or
        of its group.

    Raises
    ------
    UserError
        If a column is missing or cannot be read, an action is none of the menu, or a probability
        is none.
    """
    for name in columns.context:
        if name in (columns.action, columns.result):
            reason = f"'{name}' is not known before the action is taken"
            raise UserError(f"log, --context: {reason}; leave it out")
        read_names(table, name, "log, --context")  # every value is there
    if ROW not in table.index.names:  # a message says in which row of the whole table
        table = table.set_axis(pd.RangeIndex(1, len(table) + 1, name=ROW))
    is_named = columns.agent in table or columns.agent != "agent"
    who = read_names(table, columns.agent, "log, --agent") if is_named else (ALL,) * len(table)
    groups = who if columns.group is None else read_names(table, columns.group, "log, --group")
    _check_groups(who, groups)
    agents = np.asarray(who)
    members = np.asarray(groups)
    logs: dict[str, BanditLog] = {}
    for group in dict.fromkeys(groups):
        rows = np.flatnonzero(members == group)
        whose = "" if len(rows) == len(table) else group
        logs |= _read_group(
            table.iloc[rows],
            agents[rows],
            columns,
            whose=whose,
            menu=menu,
            given_range=result_range,
        )
    if not is_named:
        logs[ALL] = replace(logs[ALL], notes=(*logs[ALL].notes, *_pooling_note(table, columns)))
    return [logs[agent] for agent in dict.fromkeys(who)]


def _pooling_note(table: pd.DataFrame, columns: BanditColumns) -> Iterator[str]:
    """Say that all rounds are taken as one decision maker's where a column may name several."""
    used = [columns.action, columns.result, columns.cost, columns.propensity, *columns.context]
    for name in table.columns:
        is_text = not pd.api.types.is_numeric_dtype(table[name])
        if name in used or not is_text:
            continue
        n_values = table[name].nunique()
        if 2 <= n_values <= MAX_NAMES_OF_DECISION_MAKERS:
            yield (
                f"All rounds are taken as those of one decision maker. If '{name}', which has "
                f"{n_values} values, says whose a round is, name it as agent."
            )
            return


def _check_groups(who: Sequence[str], groups: Sequence[str]) -> None:
    """Check that each decision maker is in one group; UserError otherwise."""
    group_of: dict[str, str] = {}
    for agent, group in zip(who, groups, strict=True):
        if group_of.setdefault(agent, group) != group:
            fault = f"'{agent}' is in the groups '{group_of[agent]}' and '{group}'"
            raise UserError(f"log, --group: {fault}; give each decision maker one group")


def _read_group(
    table: pd.DataFrame,
    who: "np.ndarray[tuple[int], np.dtype[np.str_]]",
    columns: BanditColumns,
    *,
    whose: str,
    menu: Sequence[str | float] | None,
    given_range: tuple[float, float] | None,
) -> dict[str, BanditLog]:
    """Read the logs of decision makers who share a menu, by name.

    ``whose`` is the group in messages, empty if it is the only one.
    """
    set_prices: Array | None = None
    if columns.is_price:
        set_prices = _read_numbers(table, columns.action, "log, --price", columns.form)
        own_menu, single_chosen = price_menu(set_prices, menu)
    else:
        taken = read_names(table, columns.action, "log, --action")
        listed = None if menu is None else [str(name) for name in menu]
        style = columns.form.style_of(columns.action)
        single_names, name_of, note = named_menu(taken, listed, style)
        single_chosen = _indices([name_of[name] for name in taken], single_names)
        own_menu = group_named(single_names, single_chosen, note, style)
    names = own_menu.names
    if len(names) < 2:
        option = "prices" if columns.is_price else "actions"
        of_whom = f" of '{whose}'" if whose else ""
        reason = f"log: '{names[0]}' is the only action{of_whom}, so that there is no alternative"
        cure = f"give all that could have been chosen as {option}"
        raise UserError(f"{reason}; {cure}, or name a column of those who share a menu as group")
    chosen = own_menu.group_of[single_chosen]

    result_key = "log, --quantity" if columns.is_price else "log, --loss"
    result = _read_numbers(table, columns.result, result_key, columns.form)
    if columns.is_price and result.min() < 0:
        row = int(result.argmin())
        fault = f"column '{columns.result}' holds {result[row]:g} in {place(table, row)}"
        raise UserError(f"log, --quantity: {fault}; a quantity is at least 0")
    smallest, largest = _result_range(result, given_range, is_price=columns.is_price)
    cost: Array | tuple[float, float] = (0.0, 0.0)
    if set_prices is not None and own_menu.prices is not None:
        highest_price = float(own_menu.prices[-1])
        cost_in_words = (0.0, highest_price) if columns.cost is None else columns.cost
        cost = _read_cost(table, cost_in_words, columns.form)
    logged, propensity_note = _read_propensities(table, columns, own_menu, single_chosen)
    context = _read_context(table, columns)

    logs = {}
    for agent in dict.fromkeys(who.tolist()):
        rows = np.flatnonzero(who == agent)
        logs[agent] = BanditLog(
            agent=agent,
            names=names,
            prices=own_menu.prices,
            set_price=None if set_prices is None else set_prices[rows],
            chosen=chosen[rows],
            result=result[rows],
            cost=cost if isinstance(cost, tuple) else cost[rows],
            logged=logged[rows],
            context=context.iloc[rows].reset_index(drop=True),
            largest=largest,
            smallest=smallest,
            is_range_given=given_range is not None,
            notes=tuple(note for note in (own_menu.note, propensity_note) if note),
            is_grouped=own_menu.is_grouped,
        )
    return logs


def _read_numbers(table: pd.DataFrame, column: str, key: str, form: Form) -> Array:
    """Return a column of numbers (T,); UserError, under ``key``, where it has words instead."""
    words = texts(table, column, key)
    has_digit = [any(character.isdigit() for character in word) for word in words]
    if not any(has_digit) and any(words):
        example = next(word for word in words if word)
        cure = "name a column of numbers"
        if len(set(words)) <= MAX_CODED_WORDS:
            cure = _how_to_code(column, words, key)
        if key == "log, --price":
            cure += "; where actions are no prices, give action and loss instead"
        raise UserError(f"{key}: column '{column}' holds words, as {brief(example)}; {cure}")
    return numeric(table, [column], key, form)[:, 0]


def _how_to_code(column: str, words: Sequence[str], key: str) -> str:
    """Say which numbers take the place of a column's few words, and how pandas writes them."""
    cure = "write a number in place of each, as 1 and 0"
    different = sorted(set(words) - {""}, key=lambda word: TRUTHS.get(word.casefold()) is True)
    if len(different) != N_CODED_WORDS or key not in WHAT_A_WORD_MAY_BE:
        return f"{cure}, or name a column of numbers"
    word_of_0, word_of_1 = different
    cell = f"table[{json.dumps(column, ensure_ascii=False)}]"
    in_pandas = (
        f"{cell} = ({cell}.astype(str) == {json.dumps(word_of_1, ensure_ascii=False)}).astype(int)"
    )
    if "" in words:
        in_pandas = f"after dropping rows without a word, {in_pandas}"
    meaning = WHAT_A_WORD_MAY_BE[key]
    return (
        f"{cure}: 1 for {brief(word_of_1)} and 0 for {brief(word_of_0)}, or the other way round if "
        f"{brief(word_of_0)} is {meaning}; in pandas: {in_pandas}"
    )


def _indices(taken: Sequence[str], names: Sequence[str]) -> Indices:
    """Return the index (T,) of each action that was taken."""
    chosen = pd.Index(names).get_indexer(pd.Index(taken))
    for row in np.flatnonzero(chosen < 0)[:1]:
        cure = closest(taken[row], names)
        raise UserError(f"log, --action: '{taken[row]}' is none of the actions; {cure}")
    return chosen


def _result_range(
    result: Array, given_range: tuple[float, float] | None, *, is_price: bool
) -> tuple[float, float]:
    """Return the smallest and the largest result of a round, given or from the log."""
    if given_range is None:
        smallest = 0.0 if is_price else float(result.min())
        return smallest, float(result.max())
    smallest, largest = given_range
    if result.min() < smallest or result.max() > largest:
        name = "max_quantity" if is_price else "loss_range"
        fault = f"results run from {result.min():g} to {result.max():g}"
        raise UserError(f"{name}: {fault}, beyond {smallest:g} to {largest:g}; widen it")
    return float(smallest), float(largest)


def _read_context(table: pd.DataFrame, columns: BanditColumns) -> pd.DataFrame:
    """Return the context (T rows), with decimal points in the place of a file's decimal commas."""
    context = table[list(columns.context)].copy()
    if columns.form.decimal != ",":
        return context
    for name in context:
        words = context[name].astype(str)
        has_comma = words.str.fullmatch(COMMA)
        context[name] = words.mask(has_comma, words.str.replace(",", "."))
    return context


def _read_cost(table: pd.DataFrame, cost: Cost, form: Form) -> Array | tuple[float, float]:
    """Return the cost of each round (T,), or the ends of its range, which are equal if known."""
    if isinstance(cost, str):
        return _read_numbers(table, cost, "log, --cost", form)
    cost_range = tuple(cost) if isinstance(cost, tuple | list) else (cost, cost)
    cure = "give a number, a range LOW:HIGH with LOW at most HIGH, or a column"
    try:
        values = numbers("cost", list(cost_range))
    except UserError:
        raise UserError(f"cost: {brief(cost)} is no cost; {cure}") from None
    if len(values) != 2 or values[0] > values[1]:
        raise UserError(f"cost: {brief(cost)} is no cost; {cure}")
    return float(values[0]), float(values[1])


def check_largest_quantity(value: object) -> tuple[float, float]:
    """Return the range of quantities, whose upper end was given."""
    return 0.0, check_range("max_quantity", value, 0.0, np.inf)


def check_loss_range(value: object) -> tuple[float, float]:
    """Return the range of losses that was given."""
    loss_range = numbers("loss_range", value)
    if loss_range.shape != (2,) or loss_range[0] >= loss_range[1]:
        cure = "give two numbers, the smaller first"
        raise UserError(f"loss_range: {brief(value)} is no range; {cure}")
    return float(loss_range[0]), float(loss_range[1])


def _read_propensities(
    table: pd.DataFrame,
    columns: BanditColumns,
    menu: Menu,
    single_chosen: Indices,
) -> tuple[Array, str]:
    """Return the logged probabilities (T, A), NaN where none is logged, and a note.

    ``single_chosen`` are the actions taken (T,) before they were grouped.
    """
    rows = np.arange(len(table))
    propensity = columns.propensity
    if propensity is None:
        return np.full((len(table), len(menu.names)), np.nan), ""
    if isinstance(propensity, str):
        of_chosen = _read_numbers(table, propensity, "log, --propensity", columns.form)
        _check_probabilities(of_chosen[:, None], [propensity])
        logged = np.full((len(table), len(menu.names)), np.nan)
    else:
        chance_columns = _columns_of_actions(
            propensity, menu.single_names, is_price=menu.prices is not None
        )
        of_single = numeric(table, chance_columns, "log, --propensity", columns.form)
        _check_probabilities(of_single, chance_columns)
        for row in np.flatnonzero(np.abs(of_single.sum(1) - 1) > SUM_ROUNDING)[:1]:
            fault = (
                f"the probabilities of {place(table, int(row))} sum to {of_single[row].sum():.6g}"
            )
            raise UserError(f"log, --propensity: {fault}; they must sum to 1")
        of_chosen = of_single[rows, single_chosen]
        logged = np.zeros((len(table), len(menu.names)))
        np.add.at(logged.T, menu.group_of, of_single.T)
    for row in np.flatnonzero(~(of_chosen > MIN_LOGGED_PROBABILITY))[:1]:
        name = menu.single_names[single_chosen[row]]
        chance = f"{of_chosen[row]:g}"
        fault = f"'{name}' was chosen in {place(table, int(row))} with probability {chance}"
        raise UserError(f"log, --propensity: {fault}; correct the log")
    if not isinstance(propensity, str):
        return logged, ""
    if not menu.is_grouped:
        logged[rows, single_chosen] = of_chosen
        return logged, ""
    is_certain = of_chosen == 1
    logged[rows[is_certain], menu.group_of[single_chosen[is_certain]]] = 1.0
    note = f"The column '{propensity}' has probabilities of single actions, not of groups: those "
    return logged, note + "below 1 are not used; a column for each action would be."


def _columns_of_actions(
    propensity: Mapping[str | float, str], names: Sequence[str], *, is_price: bool
) -> list[str]:
    """Return the column with the probability of each action, in the order of the menu."""
    column_of = {}
    for action, column in propensity.items():
        name = str(action)
        if is_price:
            try:
                price = float(action)
            except ValueError:
                raise UserError(f"propensity: '{action}' is no price; write a number") from None
            equal_names = [
                menu_name
                for menu_name in names
                if np.isclose(float(menu_name), price, rtol=1e-9, atol=0)
            ]
            name = equal_names[0] if equal_names else f"{price:.12g}"
        if name not in names:
            raise UserError(f"propensity: no action '{name}'; {closest(name, names)}")
        if not isinstance(column, str):
            raise UserError(f"propensity: {brief(column)} is no column; give its name")
        column_of[name] = column
    for name in names:
        if name not in column_of:
            raise UserError(f"propensity: no column for the action '{name}'; name one for each")
    return [column_of[name] for name in names]


def _check_probabilities(values: Array, columns: Sequence[str]) -> None:
    """Check that logged probabilities (T, k) are in [0, 1]; UserError otherwise."""
    for row, column in np.argwhere((values < 0) | (values > 1))[:1]:
        fault = f"column '{columns[column]}' holds {values[row, column]:g}"
        raise UserError(f"log, --propensity: {fault}; a probability is in [0, 1]")
