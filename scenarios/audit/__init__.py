"""Audits of decisions that somebody else made: a seller's prices, a desk's orders, choices.

There are two kinds of logs. **Full logs** say what every alternative would have lost
(``full_logs``). **Bandit logs** have the result of the action taken, and of no other
(``bandit_audit``); of them the probability of each action is used where it was logged
(``propensities``), each round says what replacements would have gained (``pair_gains``,
``untried_actions``), regrets have limits (``regret_intervals``), the cost may be known within a
range (``regret_curve``), and there is a ``verdict``. An option of the other kind of log is refused.
"""

from collections.abc import Mapping, Sequence
from typing import Any, overload

from regretless.market.core.errors import UserError, brief
from regretless.market.core.validation import numbers
from regretless.scenarios.audit.bandit_audit import (
    ERROR,
    THRESHOLD,
    BanditAudit,
    BanditOptions,
    audit_bandit_logs,
)
from regretless.scenarios.audit.bandit_log import (
    BanditColumns,
    Cost,
    Probabilities,
    check_largest_quantity,
    check_loss_range,
)
from regretless.scenarios.audit.demand_models import Regressor
from regretless.scenarios.audit.full_logs import Audit, audit_full_logs
from regretless.scenarios.audit.pair_gains import DOUBLY_ROBUST
from regretless.scenarios.audit.propensities import Classifier
from regretless.scenarios.audit.tables import Table, form_of_tables


@overload
def audit(
    decisions: Table,
    outcomes: Table,
    *,
    utility: str | None = ...,
    parameters: Mapping[str, Any] | None = ...,
    scale: Mapping[str, tuple[float, float]] | None = ...,
    actions: Sequence[str] | None = ...,
    policies: Sequence[str] = ...,
    round: str | None = ...,
    agent: str = ...,
    action: str | None = ...,
    separator: str | None = ...,
    decimal: str | None = ...,
) -> Audit: ...


@overload
def audit(
    decisions: Table,
    outcomes: None = ...,
    *,
    actions: Sequence[str] | None = ...,
    agent: str = ...,
    group: str | None = ...,
    action: str | None = ...,
    price: str | None = ...,
    quantity: str | None = ...,
    cost: Cost | None = ...,
    loss: str | None = ...,
    propensity: Probabilities | None = ...,
    demand: str | Regressor | None = ...,
    context: str | Sequence[str] = ...,
    classifier: Classifier | None = ...,
    prices: Sequence[float] | None = ...,
    max_quantity: float | None = ...,
    loss_range: tuple[float, float] | None = ...,
    threshold: float | None = ...,
    error: float | None = ...,
    min_propensity: float | None = ...,
    intervals: str | None = ...,
    estimator: str | None = ...,
    separator: str | None = ...,
    decimal: str | None = ...,
) -> BanditAudit: ...


def audit(
    decisions: Table,
    outcomes: Table | None = None,
    *,
    utility: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    scale: Mapping[str, tuple[float, float]] | None = None,
    actions: Sequence[str] | None = None,
    policies: Sequence[str] = (),
    round: str | None = None,  # noqa: A002 - the column's name
    agent: str = "agent",
    group: str | None = None,
    action: str | None = None,
    price: str | None = None,
    quantity: str | None = None,
    cost: Cost | None = None,
    loss: str | None = None,
    propensity: Probabilities | None = None,
    demand: str | Regressor | None = None,
    context: str | Sequence[str] = (),
    classifier: Classifier | None = None,
    prices: Sequence[float] | None = None,
    max_quantity: float | None = None,
    loss_range: tuple[float, float] | None = None,
    threshold: float | None = None,
    error: float | None = None,
    min_propensity: float | None = None,
    intervals: str | None = None,
    estimator: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
) -> Audit | BanditAudit:
    """Measure the regrets of recorded decisions.

    With ``outcomes`` the log is full: they say what every alternative would have lost. Without
    them the log has the result of the action taken: ``price``, ``quantity`` and ``cost``, or
    ``action`` and ``loss``.

    Parameters
    ----------
    decisions : table of pandas, Polars or Arrow, path of a CSV or Parquet file, or bundled name
        With outcomes: columns ``round`` and ``action``, the name of what was done; ``agent`` where
        there are several decision makers; and those named as ``policies``. Without: a row for each
        round, in the order of time, with the columns that are named here.
    outcomes : table or path, optional
        A column ``round`` and numbers: the loss of each action, the columns named as the actions
        are, or with ``utility`` the outcomes that it is about.
    utility, parameters, scale, policies, round : optional
        With outcomes; as ``full_logs.audit_full_logs`` describes them.
    actions : sequence of str, optional
        All actions that there were; not with prices.
    agent, action : str, optional
        What these columns are called: by default as the arguments. A table without a column
        ``agent`` has one decision maker.
    group : str, optional
        Without outcomes, a column: decision makers with the same value, as the sellers of one
        product, have the same menu of actions and the same range of results. By default each has
        its own.
    price, quantity : str
        Columns with the price of a round and the quantity sold at it.
    cost : float, (float, float) or str, optional
        Of a unit: known, within a range, or a column; by default 0 to the highest price. Over a
        range the regret is plausible regret, the least at any cost (arXiv:2401.15794).
    loss : str
        In place of price and quantity, the column with the loss of the action taken.
    propensity : str or mapping of action to column, optional
        Column with the probability of the action taken, or a column for each action; by default
        probabilities are estimated.
    demand : str or object, optional
        Model of the doubly robust estimate: ``means``, ``linear``, ``logit``, or an object with
        ``fit`` and ``predict``; by default ``logit`` with a context, else ``means``.
    context : str or sequence of str, optional
        Columns that the action did not change, as the season or the rival's price: for models of
        demand. Where probabilities are estimated, all that the decision maker knew.
    classifier : object, optional
        For estimated probabilities, a classifier of scikit-learn's kind; frequencies by default.
    prices : sequence of float, optional
        All prices that could have been set; by default those that the decision maker, or its
        group, set. More than 20 become 12 groups of neighbouring prices (``notes`` says so).
    max_quantity : float, optional
        The largest quantity that a round can have; by default the largest of the decision maker or
        its group.
    loss_range : (float, float), optional
        The smallest and the largest loss that a round can have; by default likewise.
    threshold : float, optional
        A regret above it is too large, as a share of the largest revenue of a round (highest price
        times largest quantity), or of the range of losses; 0.02 by default.
    error : float, optional
        Probability with which each limit of an interval may be wrong; 0.025 by default.
    min_propensity : float, optional
        Below it an action counts as untried in a round; by default 30 / T, at most 1 / (4 A).
    intervals : str, optional
        ``martingale``, ``blocks`` or ``time-uniform``; by default the first where probabilities
        are logged, else the second.
    estimator : str, optional
        Of the verdict: ``doubly robust`` (by default), ``self-normalised`` or ``inverse
        propensity``.
    separator, decimal : str, optional
        What stands between the values of a CSV file, by default a comma, and before the decimals of
        numbers that are text, by default a point.

    Returns
    -------
    Audit or BanditAudit
        The second without outcomes.

    Raises
    ------
    UserError
        If a table cannot be read, a column or a round is missing, an action is unknown, a value is
        outside its range, or arguments of both kinds are given.

    Examples
    --------
    >>> import pandas as pd
    >>> done = pd.DataFrame({"round": range(4), "action": ["leave", "take", "leave", "leave"]})
    >>> costs = pd.DataFrame({"round": range(4), "leave": [1, 0, 0, 1], "take": [0.3] * 4})
    >>> audit(done, costs).agents[["mean_loss", "external_regret"]].round(3).values.tolist()
    [[0.575, 0.275]]
    >>> log = pd.DataFrame({"price": [1.0, 2.0] * 50, "sold": [1, 0] * 50, "chance": [0.5] * 100})
    >>> result = audit(log, price="price", quantity="sold", cost=0.0, propensity="chance")
    >>> result.verdicts["verdict"].tolist()
    ['fails']
    """
    text_options = {
        "agent": agent,
        "group": group,
        "action": action,
        "round": round,
        "price": price,
        "quantity": quantity,
        "loss": loss,
        "utility": utility,
    }
    for name, value in text_options.items():
        if value is not None and not isinstance(value, str):
            raise UserError(f"{name}: {brief(value)} is no name; give a text")
    full_log_options: dict[str, object] = {
        "utility": utility,
        "parameters": parameters or None,
        "scale": scale or None,
        "policies": _names_of_columns("policies", policies) or None,
        "round": round,
    }
    price_options: dict[str, object] = {
        "price": price,
        "quantity": quantity,
        "cost": cost,
        "prices": prices,
        "max_quantity": max_quantity,
    }
    loss_options: dict[str, object] = {"loss": loss, "loss_range": loss_range}
    bandit_options: dict[str, object] = {
        "group": group,
        "propensity": propensity,
        "demand": demand,
        "context": _names_of_columns("context", context) or None,
        "classifier": classifier,
        "threshold": threshold,
        "error": error,
        "min_propensity": min_propensity,
        "intervals": intervals,
        "estimator": estimator,
    }
    form = form_of_tables(separator, decimal)
    _check_mappings(parameters, scale)
    if actions is not None:
        _names_of_columns("actions", actions)
        if isinstance(actions, str):
            raise UserError(f"actions: {brief(actions)} is no list; give a list of names")
    if outcomes is not None:
        _refuse_options(price_options | loss_options | bandit_options, "a log with outcomes")
        return audit_full_logs(
            decisions,
            outcomes,
            utility=utility,
            parameters=parameters,
            scale=scale,
            actions=actions,
            policies=policies,
            round=round or "round",
            agent=agent,
            action=action or "action",
            form=form,
        )
    _refuse_options(full_log_options, "a log without outcomes")
    if loss is not None:
        _refuse_options(price_options, "a log of losses")
        taken_column = action or "action"
        result_column = loss
    elif price is not None and quantity is not None:
        _refuse_options(loss_options | {"action": action, "actions": actions}, "a log of prices")
        taken_column = price
        result_column = quantity
    else:
        cure = "give outcomes, or price and quantity, or loss"
        raise UserError(f"audit needs to know what decisions led to; {cure}")
    if propensity is not None and not isinstance(propensity, str | Mapping):
        cure = "give a column, or a mapping of action to column"
        raise UserError(f"propensity: {brief(propensity)}; {cure}")
    columns = BanditColumns(
        action=taken_column,
        result=result_column,
        is_price=price is not None,
        cost=cost,
        propensity=propensity,
        agent=agent,
        group=group,
        context=_names_of_columns("context", context),
        form=form,
    )
    options = BanditOptions(
        demand=demand,
        classifier=classifier,
        threshold=THRESHOLD if threshold is None else threshold,
        error=ERROR if error is None else error,
        min_propensity=min_propensity,
        intervals=intervals,
        estimator=DOUBLY_ROBUST if estimator is None else estimator,
    )
    result_range = None
    if max_quantity is not None:
        result_range = check_largest_quantity(max_quantity)
    elif loss_range is not None:
        result_range = check_loss_range(loss_range)
    menu = prices if columns.is_price else actions
    return audit_bandit_logs(decisions, columns, options, menu=menu, result_range=result_range)


def _names_of_columns(name: str, value: object) -> tuple[str, ...]:
    """Return names of columns, of which one may be given alone; UserError for anything else."""
    if isinstance(value, str):
        return (value,)
    is_list = isinstance(value, Sequence) and all(isinstance(entry, str) for entry in value)
    if not isinstance(value, Sequence) or not is_list:
        raise UserError(f"{name}: {brief(value)} is no list of names; give a list of texts")
    return tuple(dict.fromkeys(value))  # a name that is given twice is one column


def _check_mappings(parameters: object, scale: object) -> None:
    """Check the types of what a utility is given; UserError otherwise."""
    for name, value in (("parameters", parameters), ("scale", scale)):
        if value is not None and not isinstance(value, Mapping):
            raise UserError(f"{name}: {brief(value)} is no mapping; give names with values")
    if isinstance(scale, Mapping):
        for column, worst_and_best in scale.items():
            if numbers(f"scale.{column}", worst_and_best).shape != (2,):
                raise UserError(
                    f"scale.{column} = {brief(worst_and_best)}: give two numbers, worst and best"
                )


def _refuse_options(options: Mapping[str, object], of_what: str) -> None:
    """Refuse options that do not belong to this kind of log."""
    used = [name for name, value in options.items() if value is not None]
    if used:
        verb = "does" if len(used) == 1 else "do"
        pronoun = "it" if len(used) == 1 else "them"
        reason = f"{', '.join(used)} {verb} not belong to {of_what}"
        raise UserError(f"{reason}; leave {pronoun} out, or give what the log has")


__all__ = ["Audit", "BanditAudit", "audit"]
