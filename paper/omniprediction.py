r"""The table `omniprediction`: one model for many losses against what one would do instead.

On each of seven tables (``omniprediction_tasks``) models learn from some of the rows and are tested
on others, for listed losses, for losses that come later, and on test rows that are no fair sample.
``loss`` is the mean over the losses of a setting. ``subgroup`` is the worst regret in a subgroup:
rows are grouped by what a rival suggests for a listed loss and by what the method itself does for
it; in each group of at least a twentieth of the test rows, and 20, the loss is compared with that
of the best single action there, and the greatest difference over groups and listed losses counts.
It is above 0 by noise alone, as the best action is chosen after the fact: so for all.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paper import omniprediction_tasks as tasks
from paper.harness import Row, Table
from paper.omniprediction_tasks import Actions
from regretless.forecaster import OfflineOmnipredictor
from regretless.forecaster.offline import ContinuousLoss
from regretless.market.core.arrays import Array

OURS = "omnipredictor"
PER_LOSS = "a model per loss"
MIN_GROUP = 20  # test rows
MIN_SHARE = 0.05  # of the test rows, in a group
ROUNDING = 1e-9  # thousandths: where nobody regrets anything, sums leave as much
SETTINGS = ("listed", "later", "shifted")


Played = Mapping[str, Actions | None]  # a method's actions (m,), by the name of the loss


def one_run(instance: tuple[str, int], seed: int) -> Iterator[Row]:
    """Fit everything to one sample; a row per method and setting."""
    name, examples = instance
    task = tasks.task(name, examples, seed)
    model = OfflineOmnipredictor(list(tasks.LISTED.values()), theta=tasks.THETA, random_state=seed)
    model.fit(task.x, task.y)

    def by_omnipredictor(_: str, loss: ContinuousLoss) -> Actions:
        return np.asarray(model.act_proba(loss, task.fresh_x).argmax(1))

    methods: dict[str, tasks.Chooses] = {OURS: by_omnipredictor, **tasks.rivals(task)}
    losses = {**tasks.LISTED, **tasks.LATER}
    tables = {loss: tasks.losses(form, task.fresh_y) for loss, form in losses.items()}
    played: dict[str, Played] = {}
    for method, choose in methods.items():
        played[method] = {loss: choose(loss, form) for loss, form in losses.items()}
    for method, actions in played.items():
        worst_regret = subgroup(actions, played, tables)
        for setting, mean_loss in mean_losses(actions, tables, task).items():
            yield {
                "table": name,
                "examples": examples,
                "seed": seed,
                "method": method,
                "setting": setting,
                "bound": model.certified_on_holdout_ if method == OURS else None,
                "loss": mean_loss,
                "subgroup": worst_regret if setting == "listed" else np.nan,
            }


def mean_losses(actions: Played, tables: dict[str, Array], task: tasks.Task) -> dict[str, float]:
    """Return the mean loss in each setting; NaN where a method has nothing to say.

    ``tables`` (m, 10) have what each action loses on each test row, by the name of the loss.
    """
    losses = {}
    for loss, actions_for_loss in actions.items():
        if actions_for_loss is None:
            losses[loss] = np.full(len(task.fresh_y), np.nan)
        else:
            losses[loss] = _losses_of(tables[loss], actions_for_loss)
    listed = np.mean([losses[loss] for loss in tasks.LISTED], axis=0)
    later = np.mean([losses[loss] for loss in tasks.LATER], axis=0)
    return {
        "listed": float(listed.mean()),
        "later": float(later.mean()),
        "shifted": float(listed[task.shifted].mean()),
    }


def _losses_of(table: Array, actions: Actions) -> Array:
    return np.asarray(table[np.arange(len(table)), actions])


def subgroup(
    actions: Mapping[str, Any], played: Mapping[str, Mapping[str, Any]], tables: dict[str, Array]
) -> float:
    """Return the worst regret of a method in a subgroup, over listed losses.

    Parameters
    ----------
    actions : dict of int arrays (m,)
        What the method does, by the name of the loss.
    played : dict of such dicts
        What all methods do, by the name of the method.
    tables : dict of arrays (m, 10)
        What each action loses on each test row, by the name of the loss.
    """
    worst = 0.0
    for loss in tasks.LISTED:
        table = tables[loss]
        losses = _losses_of(table, actions[loss])
        suggested = [other[loss] for method, other in played.items() if method != OURS]
        min_rows = max(MIN_GROUP, MIN_SHARE * len(table))
        for group in _groups(actions[loss], suggested):
            if group.sum() >= min_rows:
                regret = losses[group].mean() - table[group].mean(0).min()
                worst = max(worst, float(regret))
    return worst


def _groups(actions: Actions, suggested: list[Actions]) -> Iterator[NDArray[np.bool_]]:
    """Yield the rows (m,) where a suggestion and an own action come together."""
    n_actions = len(tasks.net())
    for suggested_actions in suggested:
        for action, suggestion in product(range(n_actions), repeat=2):
            yield (actions == action) & (suggested_actions == suggestion)


def against(table: pd.DataFrame, setting: str, value: str) -> pd.DataFrame:
    """Compare by table and number of examples, in thousandths.

    Ours, then the mean over splits of each rival less ours (positive: we are better), and the
    standard error of the difference from the best rival that is one model for all.
    """
    rows = table[table["setting"] == setting].drop(columns="setting")
    keys = ["table", "examples", "seed"]
    by_method = 1000 * rows.pivot_table(values=value, index=keys, columns="method", sort=False)
    excess = by_method.drop(columns=OURS).sub(by_method[OURS], axis=0)
    groups = excess.groupby(level=[0, 1], sort=False)
    means = groups.mean()
    best = means.drop(columns=PER_LOSS, errors="ignore").idxmin(axis=1)
    errors = groups.sem().to_numpy()
    column_of_best = excess.columns.get_indexer(pd.Index(best))
    means["s.e."] = errors[np.arange(len(best)), column_of_best]
    means.insert(0, OURS, by_method[OURS].groupby(level=[0, 1], sort=False).mean())
    return means


def text(table: pd.DataFrame) -> str:
    """Lay the table out: mean loss by setting, subgroup regret, certificates."""
    one_decimal = "{:.1f}".format
    unit = f"thousandths, {table['seed'].nunique()} splits"
    parts = []
    for setting in SETTINGS:
        parts.append(f"\n{setting}: mean loss of ours, and what others lose more ({unit})")
        parts.append(against(table, setting, "loss").to_string(float_format=one_decimal))
    parts.append("\nworst subgroup regret, likewise")
    parts.append(against(table, "listed", "subgroup").to_string(float_format=one_decimal))
    parts += verdict(table)
    ours = table[table["method"] == OURS]
    worst_bound = ours.groupby(["table", "examples"], sort=False)["bound"].max().dropna()
    parts.append("\ncertified on holdout, decision swap regret, worst split")
    parts.append(worst_bound.to_string(float_format="{:.4f}".format))
    return "\n".join(parts)


def verdict(table: pd.DataFrame) -> list[str]:
    """Hold ours to the goals: near the best one model for all, half the rivals' regret."""
    listed = against(table, "listed", "loss")
    excess_of_best = listed.drop(columns=[OURS, PER_LOSS, "s.e."]).min(axis=1)
    n_near = int((excess_of_best >= -listed["s.e."]).sum())
    regret = against(table, "listed", "subgroup")
    mean_of_rivals = regret[OURS] + regret.drop(columns=[OURS, "s.e."]).mean(axis=1)
    n_half = int((regret[OURS] <= mean_of_rivals / 2 + ROUNDING).sum())
    return [
        f"\nwithin one standard error of the best one model for all: {n_near} of {len(listed)}",
        f"subgroup regret at most half of the rivals' mean: {n_half} of {len(listed)}",
    ]


def instances() -> list[tuple[str, int]]:
    """List every table with each number of examples to learn from."""
    pairs = []
    for name, sizes in tasks.SIZES.items():
        pairs += [(name, examples) for examples in sizes]
    return pairs


TABLES = {
    "omniprediction": Table(
        one_run,
        ["table", "examples", "method", "setting"],
        instances,
        seeds=5,
        layout=text,
        packages=("sklearn",),
    )
}
