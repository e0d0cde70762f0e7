"""What a verdict means and what it does not, in four sentences; and what would have to be known."""

import math

import pandas as pd

from regretless.scenarios.audit.bandit_log import BanditLog
from regretless.scenarios.audit.propensities import Propensities
from regretless.scenarios.audit.regret_curve import RegretCurve
from regretless.scenarios.audit.tables import ALL
from regretless.scenarios.audit.verdict import FAILS, PASSES, POWER, UNDECIDED, Verdict

MIN_TRIED = 0.99  # share of the rounds, below which an action is named as untried
MAX_NAMED = 4  # actions in a sentence
MOST_ROUNDS = 10_000_000  # that a sentence names
SUSPICIOUS = 4.0  # standard deviations between logged propensities and what was done


def explain(
    log: BanditLog,
    propensities: Propensities,
    curve: RegretCurve,
    verdict: Verdict,
    overlap: pd.DataFrame,
    min_propensity: float,
) -> tuple[str, ...]:
    """Return four sentences: the verdict, what it rests on, what it means, what it does not."""
    return (
        _say_verdict(log, verdict),
        _say_grounds(log, propensities, verdict, overlap, min_propensity),
        _say_meaning(log, propensities, verdict),
        _say_limits(log, curve, verdict),
    )


def _say_verdict(log: BanditLog, verdict: Verdict) -> str:
    actions = _action_word(log, plural=True)
    interval = f"interval {verdict.low:.4f} to {verdict.high:.4f}"
    level = f"{100 * (1 - 2 * verdict.error_bound):g} %"
    relation = {
        PASSES: "the interval ends below the threshold",
        FAILS: "the interval begins above the threshold",
        UNDECIDED: "the interval contains the threshold",
    }[verdict.verdict]
    return (
        f"{_who(log)} {_verb(verdict)}: the greatest regret of its {actions} that the "
        f"{log.rounds:,} rounds of the log allow is {verdict.regret:.4f} of {_scale_words(log)} "
        f"(mean of the rounds; {level} {interval}), and {relation} of {verdict.threshold:g}."
    )


def _who(log: BanditLog) -> str:
    if log.agent != ALL:
        return log.agent
    return "The seller" if log.prices is not None else "The decision maker"


def _verb(verdict: Verdict) -> str:
    if verdict.verdict == UNDECIDED:
        return "is neither passed nor failed"
    return verdict.verdict


def _say_grounds(
    log: BanditLog,
    propensities: Propensities,
    verdict: Verdict,
    overlap: pd.DataFrame,
    min_propensity: float,
) -> str:
    grounds = [f"probabilities of {_action_word(log, plural=True)} that were {propensities.source}"]
    if log.prices is not None:
        if log.has_cost_range and isinstance(log.cost, tuple):
            cost_range = f"between {log.cost[0]:g} and {log.cost[1]:g}"
            grounds.append(f"the cost {cost_range} that makes the regret least, {verdict.cost:.4g}")
        elif isinstance(log.cost, tuple):
            grounds.append(f"a cost of {log.cost[0]:g} a unit")
        else:
            grounds.append("the cost of each round")
    untried = _untried_names(overlap)
    if untried:
        rounds_words = f"rounds in which their probability was below {min_propensity:.2g}"
        if log.prices is not None:
            rule = "the greatest profit that demand which falls with the price allows"
        else:
            rule = "the smallest loss that a round can have"
        actions = _action_word(log, plural=True)
        grounds.append(f"for the {actions} {untried}, in {rounds_words}, {rule}")
    return f"This rests on {_join(grounds)}."


def _say_meaning(log: BanditLog, propensities: Propensities, verdict: Verdict) -> str:
    noun = f"group of {_action_word(log, plural=True)}" if log.is_grouped else _action_word(log)
    better = "raised its profit" if log.prices is not None else "lowered its loss"
    limit = f"{verdict.threshold:g} of {_scale_words(log)}, on average"
    error = f"{100 * verdict.error_bound:g} %"
    if not propensities.is_logged:
        error += ", if the estimated probabilities are right"
    if verdict.verdict == PASSES:
        return (
            f"It means that no rule that replaces each {noun} by another would have {better} by "
            f"more than {limit}; whoever has a larger regret passes with a probability of at most "
            f"{error}."
        )
    if verdict.verdict == UNDECIDED:
        return (
            f"It means that the log does not tell whether a rule that replaces each {noun} by "
            f"another would have {better} by more than {limit}; {_say_rounds(verdict)}."
        )
    if verdict.is_decided_by_untried:
        return (
            f"It means that the log leaves room for a rule that replaces each {noun} by another "
            f"and would have {better} by more than {limit}: this rests on what was hardly tried, "
            "and more probability of trying it could refute it."
        )
    return (
        f"It means that a rule that replaces each {noun} by another would have {better} by more "
        f"than {limit}; whoever has a regret of at most that fails with a probability of at most "
        f"{error}."
    )


def _say_rounds(verdict: Verdict) -> str:
    if math.isinf(verdict.rounds_needed):
        return "no number of rounds like these would tell"
    if verdict.rounds_needed > MOST_ROUNDS:
        return f"more than {MOST_ROUNDS:,} rounds like these would be needed for a verdict"
    needed = f"{verdict.rounds_needed:,.0f} rounds like these"
    return f"{needed} would lead to a verdict with a probability of {POWER:g}"


def _say_limits(log: BanditLog, curve: RegretCurve, verdict: Verdict) -> str:
    if log.prices is None:
        return (
            "It does not say why these actions were taken, and nothing about losses that the log "
            "leaves out."
        )
    if verdict.verdict == PASSES:
        pretends = ""
        if len(curve.points) > 1:
            pretends = ", its cost may be lower than the one that makes it look best"
        return (
            "It does not mean that prices were low or that nobody agreed on them: the best answer "
            f"to rivals with high prices is a high price{pretends}, and whoever sets several "
            "products or thinks of later rounds is not covered."
        )
    if verdict.verdict == UNDECIDED:
        return (
            "It is no sign of an agreement, nor of its absence: the log is too short, or "
            "alternatives were tried too seldom."
        )
    return (
        "It does not prove an agreement: a seller that prices badly, experiments too little, has "
        "a cost outside the range or another aim than profit in each round fails as well."
    )


def what_would_help(
    log: BanditLog,
    propensities: Propensities,
    curve: RegretCurve,
    verdict: Verdict,
    overlap: pd.DataFrame,
    min_propensity: float,
) -> list[str]:
    """Return what would have to be known for a firmer verdict, a sentence each."""
    sentences = []
    untried = overlap[overlap["tried"] < MIN_TRIED]
    result = "quantity" if log.prices is not None else "loss"
    independent_of = "demand" if log.prices is not None else "what each would have lost"
    for row in untried.to_dict("records"):
        share = f"{100 * (1 - row['tried']):.0f} % of the rounds"
        sentences.append(
            f"The {result} of {_action_word(log)} {row['action']}: in {share} its probability was "
            f"below {min_propensity:.2g}."
        )
    if not propensities.is_logged:
        sentences.append(
            f"The probability of each {_action_word(log)} in each round: they are "
            f"{propensities.source}, which assumes that, among rounds of the same context and "
            f"time, it was drawn independently of {independent_of}."
        )
    for row in overlap[overlap["discrepancy"].abs() > SUSPICIOUS].to_dict("records"):
        deviation = f"{row['discrepancy']:+.1f} standard deviations from what they say"
        sentences.append(
            f"Whether the logged probabilities are true: {row['action']} was taken "
            f"{row['taken']:,} times, {deviation}."
        )
    if len(curve.points) > 1:
        regrets = [point.pessimistic.regret for point in curve.points]
        if min(regrets) <= verdict.threshold < max(regrets):
            sentences.append(
                "The cost: at some costs of the range the regret is above the threshold, at "
                "others it is not."
            )
    if not log.is_range_given:
        if log.prices is not None:
            sentences.append(
                f"The largest quantity that a round can have: {log.largest:g}, the largest of its "
                "own rounds or of its group's, was used."
            )
        else:
            loss_range = f"{log.smallest:g} to {log.largest:g}"
            sentences.append(
                f"The range of losses: that of its own rounds or of its group's, {loss_range}, "
                "was used."
            )
    if verdict.verdict == UNDECIDED:
        sentences.append(f"More rounds: {_say_rounds(verdict)}.")
    return sentences


def _untried_names(overlap: pd.DataFrame) -> str:
    """Return the actions that were not tried in all rounds, in words; empty if there are none."""
    names = list(overlap.loc[overlap["tried"] < MIN_TRIED, "action"])
    if len(names) > MAX_NAMED:
        return f"{', '.join(names[:MAX_NAMED])} and {len(names) - MAX_NAMED} more"
    return _join(names)


def _join(parts: list[str]) -> str:
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _action_word(log: BanditLog, *, plural: bool = False) -> str:
    noun = "action" if log.prices is None else "price"
    return f"{noun}s" if plural else noun


def _scale_words(log: BanditLog) -> str:
    """Say what regrets are shares of."""
    if log.prices is None:
        return "the range of losses"
    return "the largest revenue of a round"
