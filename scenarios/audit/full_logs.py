r"""The regrets of decisions that somebody else made: a desk's, a clinic's, a panel's.

The **decisions** have a row for each round and decision maker, the **outcomes** a row for each
round. What an action costs is a column of the outcomes, one for each action, or a utility of the
register at the outcomes' columns. The measures are those of a run (``market.regret``), per round
and in the utility's own units. Each compares with the alternative that is best in hindsight, so
that even a decision maker who chose as well as anybody could regrets something. Beside it stands
its **gain**: what the alternative that was best on one half of the rounds would have saved on the
other half, with an interval (``market.regret.inference``). Exploitability is that of the joint
distribution of outcome and action (``market.exploitability``).
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from regretless.agents.utilities.populations import Population
from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError, closest
from regretless.market.core.randomness import stream
from regretless.market.exploitability import exploitability
from regretless.market.regret import (
    contextual_swap_regret,
    decision_swap_regret,
    external_regret,
    swap_regret,
)
from regretless.market.regret.inference import (
    MIN_EFFECTIVE_ROUNDS,
    RELATIVE_ROUNDING,
    mean_differences,
)
from regretless.scenarios.assembly.construct import construct
from regretless.scenarios.audit.tables import ALL, USUAL_FORM, Table, read_names, read_table
from regretless.scenarios.table_files import Form, numeric
from regretless.scenarios.terminal import console, print_plainly
from regretless.scenarios.terminal import table as laid_out

MEASURES = {"external": "one fixed action", "swap": "another for each action"}
WITH_POLICIES = "another or a policy for each"
NOTE = (
    "\nLosses are per round, in the unit of the data. Regret: the loss that the best alternative "
    "in hindsight would have avoided. Gain: the loss that the best alternative of one half of the "
    "rounds avoids in the other half, with a 95 % interval; if that contains 0, no gain was found. "
    "Exploitability: the maximum surplus per round, over commitment, that a leader with payoffs in "
    "[0, 1] could have extracted from an agent."
)


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found.

    Parameters
    ----------
    agents : DataFrame
        A row for each decision maker: ``agent``, ``rounds``, ``mean_loss``; the regrets
        ``external_regret``, ``swap_regret`` and, with policies, ``decision_swap_regret`` and
        ``contextual_swap_regret``; ``exploitability``, in [0, 1]; and for external and swap regret
        ``_gain``, ``_low``, ``_high`` (95 %) and ``_effective``, the rounds that would say as much
        if they were independent. Losses are per round in the utility's own units.
    swaps : DataFrame
        A row for each decision maker and action that was taken: ``agent``, ``action``, ``count``,
        ``best_replacement``, ``contribution`` to the swap regret.
    """

    agents: pd.DataFrame
    swaps: pd.DataFrame


def audit_full_logs(
    decisions: Table,
    outcomes: Table,
    *,
    utility: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    scale: Mapping[str, tuple[float, float]] | None = None,
    actions: Sequence[str] | None = None,
    policies: Sequence[str] = (),
    round: str = "round",  # noqa: A002 - the column's name
    agent: str = "agent",
    action: str = "action",
    form: Form = USUAL_FORM,
) -> Audit:
    """Measure the regrets of recorded decisions.

    Parameters
    ----------
    decisions : table of pandas, Polars or Arrow, or path of a CSV or Parquet file, or bundled name
        Columns ``round`` and ``action``, the name of what was done; ``agent`` where there are
        several decision makers; and those named as ``policies``.
    outcomes : table or path
        A column ``round`` and numbers: the loss of each action, the columns named as the actions
        are, or with ``utility`` the outcomes that it is about.
    utility : str, optional
        A registered name, as ``regretless list utilities`` prints them.
    parameters : mapping, optional
        Of the utility. Where it takes ``orders`` and the actions are numbers, those are the orders.
    scale : mapping of str to (float, float), optional
        With a utility, for each of the columns that are outcomes the values that become 0 and 1.
    actions : sequence of str, optional
        All actions that there were, in the order of the utility's parameters; by default the
        utility's ``orders`` where these are given, else those that the columns, or the decisions,
        name.
    policies : sequence of str, optional
        Columns of the decisions that say what a rule would have done.
    round, agent, action : str, optional
        What the columns are called.
    form : Form, optional
        How the files' columns and numbers are written.

    Raises
    ------
    UserError
        If a table cannot be read, a column or a round is missing, an action is unknown, or
        somebody decides twice in a round.

    Examples
    --------
    >>> done = pd.DataFrame({"round": range(4), "action": ["leave", "take", "leave", "leave"]})
    >>> costs = pd.DataFrame({"round": range(4), "leave": [1, 0, 0, 1], "take": [0.3] * 4})
    >>> result = audit_full_logs(done, costs)
    >>> result.agents[["mean_loss", "external_regret"]].round(3).values.tolist()
    [[0.575, 0.275]]
    """
    decision_table = read_table(decisions, "decisions", form)
    outcome_table = read_table(outcomes, "outcomes", form)
    actions_taken = read_names(decision_table, action, "decisions, --action")
    decision_rounds = read_names(decision_table, round, "decisions, --round")
    if utility is not None:
        names = tuple(actions or _list_actions(actions_taken, parameters or {}, scale or {}))
        losses = _losses_of_utility(
            outcome_table, names, utility, dict(parameters or {}), dict(scale or {}), form
        )
    elif parameters or scale:
        raise UserError("parameters and scale are a utility's; give utility, or drop them")
    else:
        names = tuple(actions or (str(column) for column in outcome_table if str(column) != round))
        for name in () if actions else actions_taken:
            if name not in names:
                cure = f"{closest(name, names)}; or give utility"
                raise UserError(f"outcomes: no column for the action '{name}'; {cure}")
        losses = numeric(outcome_table, list(names), "outcomes", form)
    outcome_rounds = read_names(outcome_table, round, "outcomes")
    outcome_rows = _find_indices(decision_rounds, outcome_rounds, "rounds of the outcomes")
    actions_of_policies = [read_names(decision_table, policy, "policies") for policy in policies]
    chosen = _find_indices(actions_taken, names, "actions")
    suggested = np.empty((len(policies), len(decision_table)), dtype=np.intp)
    for policy_index, policy_actions in enumerate(actions_of_policies):
        suggested[policy_index] = _find_indices(policy_actions, names, "actions")
    if agent in decision_table or agent != "agent":  # a name that was given has to be there
        decision_makers = read_names(decision_table, agent, "decisions, --agent")
    else:
        decision_makers = (ALL,) * len(decision_table)
    keys = pd.DataFrame({"round": decision_rounds, "who": decision_makers})
    for round_name, name in keys[keys.duplicated()].to_numpy()[:1]:
        cure = "name with agent the column that says who decided, or keep one row"
        raise UserError(f"decisions: round '{round_name}' is there twice for '{name}'; {cure}")
    order = np.argsort(outcome_rows, kind="stable")
    agents = []
    swaps = []
    for name in dict.fromkeys(decision_makers):
        rows = order[np.asarray(decision_makers)[order] == name]
        measures, swap_columns = _measure_decision_maker(
            losses[outcome_rows[rows]], chosen[rows], suggested[:, rows], names
        )
        agents.append({"agent": name} | measures)
        swaps.append(pd.DataFrame({"agent": name} | swap_columns))
    return Audit(pd.DataFrame(agents), pd.concat(swaps, ignore_index=True))


def _sort_actions(taken: Sequence[str]) -> list[str]:
    """Return the actions that were taken, by size where all are numbers."""
    try:
        return sorted(dict.fromkeys(taken), key=float)
    except ValueError:
        return sorted(set(taken))


def _list_actions(
    taken: Sequence[str],
    parameters: Mapping[str, Any],
    scale: Mapping[str, tuple[float, float]],
) -> list[str]:
    """Return all actions that a utility lets choose: its orders, else those that were taken.

    Orders are in [0, 1] of the first outcome's scale. One that was taken is spelled as it was.
    """
    orders = np.ravel(np.asarray(parameters.get("orders", ()), dtype=object))
    numeric_orders = [order for order in orders if isinstance(order, int | float)]
    if not numeric_orders or len(numeric_orders) < len(orders) or not scale:
        return _sort_actions(taken)
    low, high = next(iter(scale.values()))
    spelled = {}
    for name in taken:
        with suppress(ValueError):  # it is no number, which is said where it is looked for
            spelled[float(name)] = name
    names = []
    for order in numeric_orders:
        quantity = low + order * (high - low)
        same = [name for value, name in spelled.items() if np.isclose(value, quantity)]
        names.append(same[0] if same else f"{quantity:.10g}")
    return names


def _losses_of_utility(
    outcome_table: pd.DataFrame,
    actions: tuple[str, ...],
    utility: str,
    parameters: dict[str, Any],
    scale: dict[str, tuple[float, float]],
    form: Form,
) -> Array:
    """Return the losses (T, A) that a utility gives to the actions, in its own units."""
    if utility not in register.utility:
        hint = closest(utility, register.utility.names())
        raise UserError(f"utility: unknown '{utility}'; {hint}")
    if not scale:
        hint = "give scale = {COLUMN: (worst, best)} (in a terminal --scale COLUMN=WORST:BEST)"
        raise UserError(f"utility '{utility}' needs the scale of the outcomes; {hint}")
    for column, (worst, best) in scale.items():
        _check_scale(numeric(outcome_table, [column], "outcomes", form), column, worst, best)
    make_loss = register.utility[utility]
    unit = 1.0
    if "orders" in inspect.signature(make_loss).parameters and "orders" not in parameters:
        first_column, (low, high) = next(iter(scale.items()))
        try:
            quantities = np.array([float(name) for name in actions])
        except ValueError:
            hint = "write quantities, or give the utility's orders in [0, 1] as a parameter"
            raise UserError(f"actions: {', '.join(actions)} are no numbers; {hint}") from None
        for name, quantity in zip(actions, quantities, strict=True):
            if not min(low, high) <= quantity <= max(low, high):
                where = f"scale.{first_column} = {low}, {high}"
                raise UserError(f"{where}: the action '{name}' is beyond it; widen it")
        parameters["orders"] = [(quantities - low) / (high - low)]
        unit = abs(high - low)
    population = Population(stream(0, "audit"), 1, len(actions), len(scale))
    loss = construct(f"utility '{utility}'", make_loss, population, **parameters)
    parts = []
    for column, (worst, best) in scale.items():
        outcomes = numeric(outcome_table, [column], "outcomes", form)
        parts.append((outcomes - worst) / (best - worst))
    losses = loss.losses(np.concatenate(parts, axis=1))[:, 0]
    return np.asarray((loss.unit_offset[0] + loss.unit_scale[0] * losses) * unit)


def _check_scale(outcomes: Array, column: str, worst: float, best: float) -> None:
    """Check that the outcomes (T, 1) of a column lie within its scale; UserError otherwise."""
    where = f"scale.{column} = {worst}, {best}"
    if worst == best:
        raise UserError(f"{where}: give two different numbers")
    smallest = outcomes.min()
    largest = outcomes.max()
    if min(worst, best) <= smallest and largest <= max(worst, best):
        return
    if smallest < 0 <= min(worst, best):
        cure = "correct the table, or widen the scale"
        raise UserError(f"{where}: '{column}' falls to {smallest:g}, below 0; {cure}")
    raise UserError(f"{where}: '{column}' runs from {smallest:g} to {largest:g}; widen it")


def _find_indices(names: Sequence[str], known_names: Sequence[str], kind: str) -> Indices:
    """Return where each name stands among those that are known."""
    known_index = pd.Index(known_names)
    for twice in known_index[known_index.duplicated()][:1]:
        raise UserError(f"{kind}: '{twice}' is there twice; keep one row of it")
    indices = known_index.get_indexer(pd.Index(names))
    for row in np.flatnonzero(indices < 0)[:1]:
        cure = closest(names[row], known_names)
        raise UserError(f"decisions: '{names[row]}' is none of the {kind}; {cure}")
    return indices


def _measure_decision_maker(
    losses: Array, chosen: Indices, suggested: Indices, actions: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is measured of a decision maker, and the columns of its swaps."""
    rounds = np.arange(len(losses))
    span = float(np.ptp(losses)) or 1.0
    unit_losses = (losses - float(losses.min())) / span
    realised_losses = losses[rounds, chosen]
    row: dict[str, Any] = {"rounds": len(losses), "mean_loss": float(realised_losses.mean())}
    row["external_regret"] = span * external_regret(unit_losses, chosen)
    row["swap_regret"] = span * swap_regret(unit_losses, chosen)
    if len(suggested):
        fixed = np.arange(losses.shape[1])[:, None].repeat(len(losses), axis=1)
        suggested = np.concatenate([fixed, suggested])
        row["decision_swap_regret"] = span * decision_swap_regret(unit_losses, chosen, suggested)
        row["contextual_swap_regret"] = span * contextual_swap_regret(
            unit_losses, chosen, suggested
        )
    outcomes, outcome_index = np.unique(unit_losses, axis=0, return_inverse=True)
    joint = np.zeros((len(outcomes), unit_losses.shape[1]))
    np.add.at(joint, (outcome_index.ravel(), chosen), 1 / len(unit_losses))
    row["exploitability"] = exploitability(joint, outcomes)
    for measure, find_replacement in (("external", _best_action), ("swap", _best_swaps)):
        gains = _gains_of_halves(losses, chosen, find_replacement)
        difference = mean_differences(gains[:, None])
        effective_rounds = float(difference.effective_rounds[0])
        if np.ptp(gains) <= RELATIVE_ROUNDING * span:  # all rounds say the same: one observation
            effective_rounds = min(effective_rounds, 1.0)
        row[f"{measure}_gain"] = float(difference.mean[0])
        row[f"{measure}_low"] = float(difference.low[0])
        row[f"{measure}_high"] = float(difference.high[0])
        row[f"{measure}_effective"] = effective_rounds
    best_replacement = _best_swaps(losses, chosen)
    saved_losses = realised_losses - losses[rounds, best_replacement[chosen]]
    saved_by_action = np.bincount(chosen, saved_losses, len(actions))
    taken = np.unique(chosen)
    swaps = {
        "action": [actions[action] for action in taken],
        "count": np.bincount(chosen, minlength=len(actions))[taken],
        "best_replacement": [actions[action] for action in best_replacement[taken]],
        "contribution": saved_by_action[taken] / len(losses),
    }
    return row, swaps


def _gains_of_halves(
    losses: Array, chosen: Indices, find_replacement: Callable[[Array, Indices], Indices]
) -> Array:
    """Return what each round would have saved with the other half's best replacement (T,).

    Parameters
    ----------
    losses : ndarray
        Loss of each action in each round (T, A).
    chosen : ndarray
        Index of the action of each round (T,).
    find_replacement : callable
        Of losses and actions of some rounds: the best replacement of each action (A,).
    """
    rounds = np.arange(len(losses))
    is_first_half = rounds < len(losses) // 2
    gains = np.empty(len(losses))
    for is_tested in (is_first_half, ~is_first_half):
        replacement_of = find_replacement(losses[~is_tested], chosen[~is_tested])
        tested_rounds = rounds[is_tested]
        tested_actions = chosen[is_tested]
        realised_losses = losses[tested_rounds, tested_actions]
        gains[is_tested] = realised_losses - losses[tested_rounds, replacement_of[tested_actions]]
    return gains


def _best_action(losses: Array, _: Indices) -> Indices:
    """Return the action with the least loss (T, A) in sum, as the replacement of each (A,)."""
    return np.full(losses.shape[1], losses.sum(0).argmin(), dtype=np.intp)


def _best_swaps(losses: Array, chosen: Indices) -> Indices:
    """Return the best replacement of each action (A,); of one that was not taken, itself.

    Of losses (T, A) and the actions taken (T,).
    """
    # loss_of_swap[a, b]: the loss of b in sum over the rounds in which a was taken
    loss_of_swap = np.zeros((losses.shape[1], losses.shape[1]))
    np.add.at(loss_of_swap, chosen, losses)
    is_better = loss_of_swap.min(1) < loss_of_swap.diagonal()
    return np.where(is_better, loss_of_swap.argmin(1), np.arange(len(loss_of_swap), dtype=np.intp))


def print_audit(audit: Audit) -> None:
    """Print what each decision maker lost, and what something else would have saved."""
    screen = console()
    loss_cells = []
    regret_cells = []
    for row in audit.agents.to_dict("records"):
        numbers = [f"{row['mean_loss']:.4g}", f"{row['exploitability']:.4f}"]
        loss_cells.append([row["agent"], f"{row['rounds']:,}", *numbers])
        for key, alternative in MEASURES.items():
            low = row[f"{key}_low"]
            high = row[f"{key}_high"]
            interval = f"{low:+.4g} to {high:+.4g}"
            if not low <= high:  # NaN: there are no limits
                interval = "too few rounds"
            elif row[f"{key}_effective"] < MIN_EFFECTIVE_ROUNDS:
                interval += " (too short)"
            regret = f"{row[f'{key}_regret']:.4g}"
            gain = f"{row[f'{key}_gain']:+.4g}"
            regret_cells.append([row["agent"], alternative, regret, gain, interval])
        if "decision_swap_regret" in row:
            regret = f"{row['decision_swap_regret']:.4g}"
            regret_cells.append([row["agent"], WITH_POLICIES, regret, "", ""])
    headers = ["decision maker", "rounds", "mean loss", "exploitability"]
    print_plainly(screen, laid_out(headers, loss_cells, width=screen.width))
    screen.print()
    headers = ["decision maker", "alternative", "regret", "gain", "95 % interval"]
    print_plainly(screen, laid_out(headers, regret_cells, width=screen.width, words=(0, 1)))
    print_plainly(screen, NOTE)


def write_audit(audit: Audit, out: Path) -> None:
    """Write both tables into a directory, as CSV."""
    for name, table in (("agents", audit.agents), ("swaps", audit.swaps)):
        with replacing(out / f"{name}.csv") as file:
            table.to_csv(file, index=False, lineterminator="\n")
