"""An audit of bandit logs: regrets, overlap, the curve over costs and a verdict, as tables.

``audit_bandit_logs`` puts the parts of this package together, for each decision maker by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.validation import check_name, check_probability, check_range
from regretless.scenarios.audit.bandit_log import BanditColumns, BanditLog, read_bandit_logs
from regretless.scenarios.audit.demand_models import Regressor, check_model, predict_results
from regretless.scenarios.audit.explanation import explain, what_would_help
from regretless.scenarios.audit.overlap import overlap_table
from regretless.scenarios.audit.pair_gains import (
    DOUBLY_ROBUST,
    ESTIMATORS,
    SELF_NORMALISED,
    pair_gains,
)
from regretless.scenarios.audit.propensities import (
    Classifier,
    Propensities,
    check_classifier,
    find_propensities,
)
from regretless.scenarios.audit.regret_curve import RegretCurve, regret_curve
from regretless.scenarios.audit.regret_intervals import (
    KINDS,
    RegretEstimate,
    estimate_external_regret,
)
from regretless.scenarios.audit.tables import Table, read_table
from regretless.scenarios.audit.untried_actions import default_min_propensity, own_results
from regretless.scenarios.audit.verdict import find_verdict

THRESHOLD = 0.02  # of the log's scale
ERROR = 0.025  # of each limit: intervals hold with 95 %


@dataclass(frozen=True, eq=False)
class BanditOptions:
    """How bandit logs are audited.

    Attributes
    ----------
    demand : str, Regressor or None
        The model of the doubly robust estimate: ``means``, ``linear``, ``logit`` or one's own; by
        default ``logit`` where there is a context, else ``means``.
    classifier : Classifier, optional
        For propensities that were not logged; frequencies by default.
    threshold : float
        A regret above it is too large; a share of the log's scale.
    error : float
        Probability with which each limit of an interval may be wrong.
    min_propensity : float, optional
        Below it an action counts as untried; by default 30 / T, at most 1 / (4 A).
    intervals : str, optional
        ``martingale``, ``blocks`` or ``time-uniform``; by default the first where propensities are
        logged, else the second.
    estimator : str
        Of the verdict.
    """

    demand: str | Regressor | None = None
    classifier: Classifier | None = None
    threshold: float = THRESHOLD
    error: float = ERROR
    min_propensity: float | None = None
    intervals: str | None = None
    estimator: str = DOUBLY_ROBUST


@dataclass(frozen=True, eq=False)
class BanditAudit:
    """What an audit of bandit logs found. Regrets are shares of ``scale``, per round.

    Parameters
    ----------
    verdicts : DataFrame
        A row for each decision maker: ``agent``, ``rounds``, ``verdict`` (``passes``, ``fails`` or
        ``undecided``), ``threshold``, ``regret``, ``low``, ``high`` of the pessimistic plausible
        swap regret, ``error_bound`` and ``p_value`` of the verdict, ``rounds_needed``, ``cost`` at
        which the regret is least, ``mean_value`` (profit, or loss with a minus), ``scale`` in the
        unit of the data, ``propensities`` (where they come from), ``min_propensity``,
        ``intervals`` and ``estimator``.
    estimates : DataFrame
        A row for each decision maker, ``measure`` (``external``, ``swap``, ``pessimistic``) and
        ``estimator``: ``regret``, ``low``, ``high``, ``standard_error`` and ``cost``.
    overlap : DataFrame
        A row for each decision maker and action (``overlap.overlap_table``).
    costs : DataFrame
        A row for each decision maker and cost: ``swap_regret``, ``swap_low``, ``swap_high``,
        ``pessimistic_regret``, ``pessimistic_low``, ``pessimistic_high`` and ``mean_value``.
    swaps : DataFrame
        A row for each decision maker and action that was taken: ``best_replacement`` and
        ``contribution`` to the swap regret, ``pessimistic_replacement`` and
        ``pessimistic_contribution``.
    texts : dict
        For each decision maker four sentences: what the verdict is, what it rests on, what it
        means, and what it does not mean.
    unknowns : dict
        For each decision maker what would have to be known for a firmer verdict.
    notes : dict
        For each decision maker what was done to the log before the audit, a sentence each: prices
        that were joined, numbers that were divided into bins.
    is_price : bool
        Whether actions are prices.
    """

    verdicts: pd.DataFrame
    estimates: pd.DataFrame
    overlap: pd.DataFrame
    costs: pd.DataFrame
    swaps: pd.DataFrame
    texts: dict[str, tuple[str, ...]]
    unknowns: dict[str, list[str]]
    notes: dict[str, list[str]]
    is_price: bool

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by name."""
        names = ("verdicts", "estimates", "overlap", "costs", "swaps")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class _AgentAudit:
    """What was found about one decision maker, by table."""

    rows: dict[str, pd.DataFrame]
    text: tuple[str, ...]
    unknowns: list[str]
    notes: list[str]


def audit_bandit_logs(
    table: Table,
    columns: BanditColumns,
    options: BanditOptions,
    *,
    menu: Sequence[str | float] | None = None,
    result_range: tuple[float, float] | None = None,
) -> BanditAudit:
    """Audit each decision maker of a log.

    Parameters
    ----------
    table : table of pandas, Polars or Arrow, or a path
        A row for each round, in the order of time.
    columns : BanditColumns
    options : BanditOptions
    menu, result_range : optional
        As in ``read_bandit_logs``.
    """
    _check_options(options)
    rows = read_table(table, "log", columns.form)
    logs = read_bandit_logs(rows, columns, menu=menu, result_range=result_range)
    audits = {log.agent: _audit_agent(log, options) for log in logs}
    joined = {}
    for name in ("verdicts", "estimates", "overlap", "costs", "swaps"):
        parts = [agent_audit.rows[name] for agent_audit in audits.values()]
        joined[name] = pd.concat(parts, ignore_index=True)
    return BanditAudit(
        **joined,
        texts={agent: agent_audit.text for agent, agent_audit in audits.items()},
        unknowns={agent: agent_audit.unknowns for agent, agent_audit in audits.items()},
        notes={agent: agent_audit.notes for agent, agent_audit in audits.items()},
        is_price=columns.is_price,
    )


def _check_options(options: BanditOptions) -> None:
    """Check what can be checked without a log; UserError otherwise."""
    check_range("threshold", options.threshold, 0.0, 1.0)
    check_probability("error", options.error)
    if options.error >= 0.5:
        raise UserError(f"error = {options.error:g}: give a number between 0 and 0.5")
    check_name("estimator", options.estimator, ESTIMATORS)
    if options.intervals is not None:
        check_name("intervals", options.intervals, KINDS)
    if options.min_propensity is not None:
        check_probability("min_propensity", options.min_propensity)
    check_model(options.demand)
    if options.classifier is not None:
        check_classifier(options.classifier)


def _audit_agent(log: BanditLog, options: BanditOptions) -> _AgentAudit:
    """Audit one decision maker."""
    if log.rounds < 2:
        reason = f"log: '{log.agent}' has {log.rounds} round"
        raise UserError(f"{reason}; give at least 2 rounds of each decision maker")
    propensities = find_propensities(log, options.classifier)
    kind = options.intervals or ("martingale" if propensities.is_logged else "blocks")
    min_propensity = options.min_propensity
    if min_propensity is None:
        min_propensity = default_min_propensity(log.rounds, len(log.names))

    curves = {}
    for estimator in ESTIMATORS:
        predicted = (
            predict_results(log, _demand(log, options)) if estimator == DOUBLY_ROBUST else None
        )
        curves[estimator] = regret_curve(
            log,
            propensities,
            predicted,
            kind=kind,
            min_propensity=min_propensity,
            self_normalised=estimator == SELF_NORMALISED,
        )
    curve = curves[options.estimator]
    verdict = find_verdict(curve, options.threshold, options.error)
    overlap = overlap_table(log, propensities, min_propensity)
    verdict_row = {
        "agent": log.agent,
        "rounds": log.rounds,
        "verdict": verdict.verdict,
        "threshold": verdict.threshold,
        "regret": verdict.regret,
        "low": verdict.low,
        "high": verdict.high,
        "error_bound": verdict.error_bound,
        "p_value": verdict.p_value,
        "rounds_needed": verdict.rounds_needed,
        "cost": verdict.cost,
        "mean_value": curve.plausible("pessimistic").mean_value,
        "scale": log.scale,
        "propensities": propensities.source,
        "min_propensity": min_propensity,
        "intervals": kind,
        "estimator": options.estimator,
    }
    rows = {
        "verdicts": pd.DataFrame([verdict_row]),
        "estimates": _estimates_table(log, propensities, curves, options, kind),
        "overlap": overlap,
        "costs": _costs_table(log, curve, options.error),
        "swaps": _swaps_table(log, curve),
    }
    return _AgentAudit(
        rows,
        text=explain(log, propensities, curve, verdict, overlap, min_propensity),
        unknowns=what_would_help(log, propensities, curve, verdict, overlap, min_propensity),
        notes=[note for note in (*log.notes, propensities.note) if note],
    )


def _demand(log: BanditLog, options: BanditOptions) -> str | Regressor:
    """Return the model of demand; by default one that uses the context where there is one."""
    if options.demand is not None:
        return options.demand
    return "logit" if len(log.context.columns) else "means"


def _estimates_table(
    log: BanditLog,
    propensities: Propensities,
    curves: dict[str, RegretCurve],
    options: BanditOptions,
    kind: str,
) -> pd.DataFrame:
    """Return the plausible regrets by each estimator, with limits.

    External regret is that at the cost at which the swap regret is least.
    """
    rows = []
    for estimator in ESTIMATORS:
        curve = curves[estimator]
        swap_point = curve.plausible("swap")
        external = _external_regret(log, propensities, swap_point.cost, options, estimator, kind)
        rows.append(
            {
                "agent": log.agent,
                "measure": "external",
                "estimator": estimator,
                "regret": external.regret,
                "low": external.lower_limit(options.error),
                "high": external.upper_limit(options.error),
                "standard_error": external.standard_error,
                "cost": swap_point.cost,
            }
        )
        for measure in ("swap", "pessimistic"):
            point = curve.plausible(measure)
            estimate: RegretEstimate = getattr(point, measure)
            rows.append(
                {
                    "agent": log.agent,
                    "measure": measure,
                    "estimator": estimator,
                    "regret": estimate.regret,
                    "low": max(curve.lower_limit(measure, options.error), 0.0),
                    "high": curve.upper_limit(measure, options.error),
                    "standard_error": estimate.standard_error,
                    "cost": point.cost,
                }
            )
    return pd.DataFrame(rows)


def _external_regret(
    log: BanditLog,
    propensities: Propensities,
    cost: float,
    options: BanditOptions,
    estimator: str,
    kind: str,
) -> RegretEstimate:
    """Return the regret to the best fixed action among those that were taken."""
    predicted: Array | None = None
    if estimator == DOUBLY_ROBUST:
        predicted = predict_results(log, _demand(log, options))
    probability = propensities.probability
    gains = pair_gains(
        log,
        probability,
        cost if log.has_cost_range else None,
        own_results(probability),
        predicted,
        self_normalised=estimator == SELF_NORMALISED,
    )
    was_taken = np.bincount(log.chosen, minlength=len(log.names)) > 0
    return estimate_external_regret(gains, kind=kind, considered=was_taken)


def _costs_table(log: BanditLog, curve: RegretCurve, error: float) -> pd.DataFrame:
    """Return the regrets at each cost; the limits are those of each cost by itself."""
    rows = []
    for point in curve.points:
        row: dict[str, object] = {"agent": log.agent, "cost": point.cost}
        for measure in ("swap", "pessimistic"):
            estimate: RegretEstimate = getattr(point, measure)
            row[f"{measure}_regret"] = estimate.regret
            row[f"{measure}_low"] = max(estimate.lower_limit(error), 0.0)
            row[f"{measure}_high"] = estimate.upper_limit(error)
        row["mean_value"] = point.mean_value
        rows.append(row)
    return pd.DataFrame(rows)


def _swaps_table(log: BanditLog, curve: RegretCurve) -> pd.DataFrame:
    """Return the best replacement of each action that was taken."""
    swap = curve.plausible("swap").swap
    pessimistic = curve.plausible("pessimistic").pessimistic
    rows = []
    for index, name in enumerate(log.names):
        count = int((log.chosen == index).sum())
        if count:
            rows.append(
                {
                    "agent": log.agent,
                    "action": name,
                    "count": count,
                    "best_replacement": log.names[swap.replacement[index]],
                    "contribution": float(swap.mean_gain[index].max()),
                    "pessimistic_replacement": log.names[pessimistic.replacement[index]],
                    "pessimistic_contribution": float(pessimistic.mean_gain[index].max()),
                }
            )
    return pd.DataFrame(rows)
