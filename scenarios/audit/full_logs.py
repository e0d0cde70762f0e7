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
from regretless.scenarios.audit.tables import ALL, Table, read_names, read_table
from regretless.scenarios.table_files import numeric
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

    Raises
    ------
    UserError
        If a table cannot be read, a column or a round is missing, an action is unknown, or
        somebody decides twice in a round.

    Examples
    --------
    >>> done = pd.DataFrame({"round": range(4), "action": ["leave", "take", "leave", "leave"]})
    >>> costs = pd.DataFrame({"round": range(4), "leave": [1, 0, 0, 1], "take": [0.3] * 4})
    >>> found = audit_full_logs(done, costs)
    >>> found.agents[["mean_loss", "external_regret"]].round(3).values.tolist()
    [[0.575, 0.275]]
    """
    done, what = read_table(decisions, "decisions"), read_table(outcomes, "outcomes")
    taken = read_names(done, action, "decisions, --action")
    when = read_names(done, round, "decisions, --round")
    if utility is not None:
        names = tuple(actions or _menu(taken, parameters or {}, scale or {}))
        table = _valued(what, names, utility, dict(parameters or {}), dict(scale or {}))
    elif parameters or scale:
        raise UserError("parameters and scale are a utility's; give utility, or drop them")
    else:
        names = tuple(actions or (str(column) for column in what if str(column) != round))
        for name in () if actions else taken:
            if name not in names:
                cure = f"{closest(name, names)}; or give utility"
                raise UserError(f"outcomes: no column for the action '{name}'; {cure}")
        table = numeric(what, list(names), "outcomes")
    at = _places(when, read_names(what, round, "outcomes"), "rounds of the outcomes")
    moves = [taken, *(read_names(done, name, "policies") for name in policies)]
    chosen, *advice = (_places(words, names, "actions") for words in moves)
    named = agent in done or agent != "agent"  # a name that was given has to be there
    who = read_names(done, agent, "decisions, --agent") if named else (ALL,) * len(done)
    both = pd.DataFrame({"round": when, "who": who})
    for again, name in both[both.duplicated()].to_numpy()[:1]:
        cure = "name with agent the column that says who decided, or keep one row"
        raise UserError(f"decisions: round '{again}' is there twice for '{name}'; {cure}")
    order = np.argsort(at, kind="stable")
    suggested = np.array(advice, dtype=np.intp).reshape(len(advice), len(done))
    agents, swaps = [], []
    for name in dict.fromkeys(who):
        rows = order[np.asarray(who)[order] == name]
        found = _measured(table[at[rows]], chosen[rows], suggested[:, rows], names)
        agents.append({"agent": name} | found[0])
        swaps.append(pd.DataFrame({"agent": name} | found[1]))
    return Audit(pd.DataFrame(agents), pd.concat(swaps, ignore_index=True))


def _ordered(taken: Sequence[str]) -> list[str]:
    """Return the actions that were taken, by size where all are numbers."""
    try:
        return sorted(dict.fromkeys(taken), key=float)
    except ValueError:
        return sorted(set(taken))


def _menu(
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
        return _ordered(taken)
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


def _valued(
    what: pd.DataFrame,
    actions: tuple[str, ...],
    utility: str,
    parameters: dict[str, Any],
    scale: dict[str, tuple[float, float]],
) -> Array:
    """Return the losses (T, A) that a utility gives to the actions, in its own units."""
    if utility not in register.utility:
        cure = closest(utility, register.utility.names())
        raise UserError(f"utility: unknown '{utility}'; {cure}")
    if not scale:
        cure = "give scale = {COLUMN: (worst, best)} (in a terminal --scale COLUMN=WORST:BEST)"
        raise UserError(f"utility '{utility}' needs the scale of the outcomes; {cure}")
    for column, (worst, best) in scale.items():
        _check_scale(numeric(what, [column], "outcomes"), column, worst, best)
    maker, unit = register.utility[utility], 1.0
    if "orders" in inspect.signature(maker).parameters and "orders" not in parameters:
        first_column, (low, high) = next(iter(scale.items()))
        try:
            quantities = np.array([float(name) for name in actions])
        except ValueError:
            cure = "write quantities, or give the utility's orders in [0, 1] as a parameter"
            raise UserError(f"actions: {', '.join(actions)} are no numbers; {cure}") from None
        for name, quantity in zip(actions, quantities, strict=True):
            if not min(low, high) <= quantity <= max(low, high):
                where = f"scale.{first_column} = {low}, {high}"
                raise UserError(f"{where}: the action '{name}' is beyond it; widen it")
        parameters["orders"] = [(quantities - low) / (high - low)]
        unit = abs(high - low)
    population = Population(stream(0, "audit"), 1, len(actions), len(scale))
    loss = construct(f"utility '{utility}'", maker, population, **parameters)
    parts = []
    for column, (worst, best) in scale.items():
        outcomes = numeric(what, [column], "outcomes")
        parts.append((outcomes - worst) / (best - worst))
    losses = loss.losses(np.concatenate(parts, axis=1))[:, 0]
    return np.asarray((loss.unit_offset[0] + loss.unit_scale[0] * losses) * unit)


def _check_scale(outcomes: Array, column: str, worst: float, best: float) -> None:
    """Check that the outcomes (T, 1) of a column lie within its scale; UserError otherwise."""
    where = f"scale.{column} = {worst}, {best}"
    if worst == best:
        raise UserError(f"{where}: give two different numbers")
    least, greatest = outcomes.min(), outcomes.max()
    if min(worst, best) <= least and greatest <= max(worst, best):
        return
    if least < 0 <= min(worst, best):
        cure = "correct the table, or widen the scale"
        raise UserError(f"{where}: '{column}' falls to {least:g}, below 0; {cure}")
    raise UserError(f"{where}: '{column}' runs from {least:g} to {greatest:g}; widen it")


def _places(names: Sequence[str], known: Sequence[str], what: str) -> Indices:
    """Return where each name stands among those that are known."""
    where = pd.Index(known)
    for twice in where[where.duplicated()][:1]:
        raise UserError(f"{what}: '{twice}' is there twice; keep one row of it")
    places = where.get_indexer(pd.Index(names))
    for row in np.flatnonzero(places < 0)[:1]:
        cure = closest(names[row], known)
        raise UserError(f"decisions: '{names[row]}' is none of the {what}; {cure}")
    return places


def _measured(
    table: Array, chosen: Indices, suggested: Indices, actions: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is measured of a decision maker, and the columns of its swaps."""
    rounds, (least, span) = np.arange(len(table)), (float(table.min()), float(np.ptp(table)) or 1.0)
    unit, lost = (table - least) / span, table[rounds, chosen]
    row: dict[str, Any] = {"rounds": len(table), "mean_loss": float(lost.mean())}
    row["external_regret"] = span * external_regret(unit, chosen)
    row["swap_regret"] = span * swap_regret(unit, chosen)
    if len(suggested):
        fixed = np.arange(table.shape[1])[:, None].repeat(len(table), axis=1)
        suggested = np.concatenate([fixed, suggested])
        row["decision_swap_regret"] = span * decision_swap_regret(unit, chosen, suggested)
        row["contextual_swap_regret"] = span * contextual_swap_regret(unit, chosen, suggested)
    outcomes, where = np.unique(unit, axis=0, return_inverse=True)
    joint = np.zeros((len(outcomes), unit.shape[1]))
    np.add.at(joint, (where.ravel(), chosen), 1 / len(unit))
    row["exploitability"] = exploitability(joint, outcomes)
    for measure, best in (("external", _best_action), ("swap", _best_swaps)):
        gained = _gained(table, chosen, best)
        found = mean_differences(gained[:, None])
        own = {"gain": found.mean, "low": found.low, "high": found.high}
        constant = (
            np.ptp(gained) <= RELATIVE_ROUNDING * span
        )  # all rounds say the same: one observation
        own["effective"] = (
            np.minimum(found.effective_rounds, 1.0) if constant else found.effective_rounds
        )
        row |= {f"{measure}_{what}": float(value[0]) for what, value in own.items()}
    better, taken = _best_swaps(table, chosen), np.unique(chosen)
    swaps = {
        "action": [actions[a] for a in taken],
        "count": np.bincount(chosen, minlength=len(actions))[taken],
        "best_replacement": [actions[b] for b in better[taken]],
    }
    saved = np.bincount(chosen, lost - table[rounds, better[chosen]], len(actions))
    return row, swaps | {"contribution": saved[taken] / len(table)}


def _gained(table: Array, chosen: Indices, best: Callable[[Array, Indices], Indices]) -> Array:
    """Return what each round would have saved with the other half's best replacement (T,)."""
    rounds = np.arange(len(table))
    first = rounds < len(table) // 2
    saved = np.empty(len(table))
    for half in (first, ~first):
        learned = best(table[~half], chosen[~half])[chosen[half]]
        saved[half] = (table[rounds[half], chosen[half]] - table[rounds[half], learned]).ravel()
    return saved


def _best_action(table: Array, _: Indices) -> Indices:
    return np.full(table.shape[1], table.sum(0).argmin(), dtype=np.intp)


def _best_swaps(table: Array, chosen: Indices) -> Indices:
    """Return the best replacement of each action (A,); of one that was not taken, itself."""
    sums = np.zeros((table.shape[1], table.shape[1]))
    np.add.at(sums, chosen, table)
    own = np.arange(len(sums), dtype=np.intp)
    return np.where(sums.min(1) < sums[own, own], sums.argmin(1), own)


def print_audit(found: Audit) -> None:
    """Print what each decision maker lost, and what something else would have saved."""
    screen, lost, saved = console(), [], []
    for row in found.agents.to_dict("records"):
        numbers = [f"{row['mean_loss']:.4g}", f"{row['exploitability']:.4f}"]
        lost.append([row["agent"], f"{row['rounds']:,}", *numbers])
        for key, what in MEASURES.items():
            regret, gain, low, high = (row[f"{key}_{n}"] for n in ("regret", "gain", "low", "high"))
            short = " (too short)" * (row[f"{key}_effective"] < MIN_EFFECTIVE_ROUNDS)
            ends = f"{low:+.4g} to {high:+.4g}{short}" if low <= high else "too few rounds"
            saved.append([row["agent"], what, f"{regret:.4g}", f"{gain:+.4g}", ends])
        if (regret := row.get("decision_swap_regret")) is not None:
            saved.append([row["agent"], WITH_POLICIES, f"{regret:.4g}", "", ""])
    headers = ["decision maker", "rounds", "mean loss", "exploitability"]
    print_plainly(screen, laid_out(headers, lost, width=screen.width))
    screen.print()
    headers = ["decision maker", "alternative", "regret", "gain", "95 % interval"]
    print_plainly(screen, laid_out(headers, saved, width=screen.width, words=(0, 1)))
    print_plainly(screen, NOTE)


def write_audit(found: Audit, out: Path) -> None:
    """Write both tables into a new directory, as CSV."""
    out.mkdir(parents=True)
    for name, table in (("agents", found.agents), ("swaps", found.swaps)):
        with replacing(out / f"{name}.csv") as file:
            table.to_csv(file, index=False, lineterminator="\n")
