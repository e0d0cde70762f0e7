"""Audits of decisions that somebody else made: a seller's prices, a desk's orders, choices.

There are two kinds of logs. **Full logs** say what every alternative would have lost
(``full_logs``). **Bandit logs** have the result of the action taken, and of no other
(``bandit_audit``); of them the probability of each action is used where it was logged
(``propensities``), each round says what replacements would have gained (``pair_gains``,
``untried_actions``), regrets have limits (``regret_intervals``), the cost may be known within a
range (``regret_curve``), and there is a ``verdict``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, overload

from regretless.market.core.errors import UserError
from regretless.scenarios.audit.bandit_audit import (
    ERROR,
    THRESHOLD,
    BanditAudit,
    BanditOptions,
    audit_bandit_logs,
)
from regretless.scenarios.audit.bandit_log import BanditColumns, Cost, Probabilities
from regretless.scenarios.audit.demand_models import Regressor
from regretless.scenarios.audit.full_logs import Audit, audit_full_logs
from regretless.scenarios.audit.pair_gains import DOUBLY_ROBUST
from regretless.scenarios.audit.propensities import Classifier
from regretless.scenarios.audit.tables import Table


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
    round: str = ...,
    agent: str = ...,
    action: str = ...,
) -> Audit: ...


@overload
def audit(
    decisions: Table,
    outcomes: None = ...,
    *,
    actions: Sequence[str] | None = ...,
    agent: str = ...,
    action: str = ...,
    price: str | None = ...,
    quantity: str | None = ...,
    cost: Cost | None = ...,
    loss: str | None = ...,
    propensity: Probabilities | None = ...,
    demand: str | Regressor = ...,
    context: Sequence[str] = ...,
    classifier: Classifier | None = ...,
    prices: Sequence[float] | None = ...,
    max_quantity: float | None = ...,
    loss_range: tuple[float, float] | None = ...,
    threshold: float = ...,
    error: float = ...,
    min_propensity: float | None = ...,
    intervals: str | None = ...,
    estimator: str = ...,
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
    round: str = "round",  # noqa: A002 - the column's name
    agent: str = "agent",
    action: str = "action",
    price: str | None = None,
    quantity: str | None = None,
    cost: Cost | None = None,
    loss: str | None = None,
    propensity: Probabilities | None = None,
    demand: str | Regressor = "means",
    context: Sequence[str] = (),
    classifier: Classifier | None = None,
    prices: Sequence[float] | None = None,
    max_quantity: float | None = None,
    loss_range: tuple[float, float] | None = None,
    threshold: float = THRESHOLD,
    error: float = ERROR,
    min_propensity: float | None = None,
    intervals: str | None = None,
    estimator: str = DOUBLY_ROBUST,
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
        All actions that there were.
    agent, action : str, optional
        What these columns are called.
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
        ``fit`` and ``predict``.
    context : sequence of str, optional
        Columns that were known before the action was taken: for models of demand and for estimated
        probabilities.
    classifier : object, optional
        For estimated probabilities, a classifier of scikit-learn's kind; frequencies by default.
    prices : sequence of float, optional
        All prices that could have been set; by default those that were.
    max_quantity : float, optional
        The largest quantity that a round can have; by default the largest of the log.
    loss_range : (float, float), optional
        The smallest and the largest loss that a round can have; by default those of the log.
    threshold : float, optional
        A regret above it is too large, as a share of the largest revenue of a round (highest price
        times largest quantity), or of the range of losses.
    error : float, optional
        Probability with which each limit of an interval may be wrong.
    min_propensity : float, optional
        Below it an action counts as untried in a round; by default 30 / T, at most 1 / (4 A).
    intervals : str, optional
        ``martingale``, ``blocks`` or ``time-uniform``; by default the first where probabilities
        are logged, else the second.
    estimator : str, optional
        Of the verdict: ``doubly robust``, ``self-normalised`` or ``inverse propensity``.

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
    >>> found = audit(log, price="price", quantity="sold", cost=0.0, propensity="chance")
    >>> found.verdicts["verdict"].tolist()
    ['fails']
    """
    is_bandit = price is not None or quantity is not None or loss is not None
    if outcomes is not None:
        if is_bandit or cost is not None or propensity is not None:
            cure = "drop them, or drop the outcomes"
            raise UserError(f"price, quantity, cost, loss and propensity exclude outcomes; {cure}")
        return audit_full_logs(
            decisions,
            outcomes,
            utility=utility,
            parameters=parameters,
            scale=scale,
            actions=actions,
            policies=policies,
            round=round,
            agent=agent,
            action=action,
        )
    if utility is not None or parameters or scale or policies:
        raise UserError("utility, parameters, scale and policies need outcomes; give the outcomes")
    columns, result_range = _bandit_columns(
        price=price,
        quantity=quantity,
        cost=cost,
        loss=loss,
        action=action,
        propensity=propensity,
        agent=agent,
        context=context,
        max_quantity=max_quantity,
        loss_range=loss_range,
    )
    options = BanditOptions(
        demand=demand,
        classifier=classifier,
        threshold=threshold,
        error=error,
        min_propensity=min_propensity,
        intervals=intervals,
        estimator=estimator,
    )
    menu = prices if columns.is_price else actions
    return audit_bandit_logs(decisions, columns, options, menu=menu, result_range=result_range)


def _bandit_columns(
    *,
    price: str | None,
    quantity: str | None,
    cost: Cost | None,
    loss: str | None,
    action: str,
    propensity: Probabilities | None,
    agent: str,
    context: Sequence[str],
    max_quantity: float | None,
    loss_range: tuple[float, float] | None,
) -> tuple[BanditColumns, tuple[float, float] | None]:
    """Return which columns are used, and the range of results where one is given."""
    if loss is not None:
        if price is not None or quantity is not None or cost is not None:
            raise UserError("loss excludes price, quantity and cost; give loss and action alone")
        columns = BanditColumns(
            action=action,
            result=loss,
            is_price=False,
            propensity=propensity,
            agent=agent,
            context=context,
        )
        return columns, loss_range
    if price is None or quantity is None:
        cure = "give outcomes, or price and quantity, or loss"
        raise UserError(f"audit needs to know what decisions led to; {cure}")
    columns = BanditColumns(
        action=price,
        result=quantity,
        is_price=True,
        cost=cost,
        propensity=propensity,
        agent=agent,
        context=context,
    )
    return columns, None if max_quantity is None else (0.0, max_quantity)


__all__ = ["Audit", "BanditAudit", "audit"]
