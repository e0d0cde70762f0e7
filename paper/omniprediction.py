r"""The table `omniprediction`: one model for many losses against what one would do instead.

On each of seven tables (``omniprediction_tasks``) models learn from some of the rows and are tested
on others, for listed losses, for losses that come later, and on test rows that are no fair sample.
``loss`` is the mean over the losses of a setting. ``subgroup`` is the worst regret in a subgroup:
rows are grouped by what a rival suggests for a listed loss and by what the method itself does for
it; in each group of at least a twentieth of the test rows, and 20, the loss is compared with that
of the best single action there, and the greatest difference over groups and listed losses counts.
It is above 0 by noise alone, as the best action is chosen after the fact: so for all.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paper import omniprediction_tasks as tasks
from paper.harness import Row, Table
from regretless.forecaster import OfflineOmnipredictor
from regretless.forecaster.offline import ContinuousLoss
from regretless.market.core.arrays import Array

Actions = NDArray[np.intp]

OURS = "omnipredictor"
PER_LOSS = "a model per loss"
SMALLEST, SHARE = 20, 0.05  # test rows in a group
ROUNDING = 1e-9  # thousandths: where nobody regrets anything, sums leave as much
SETTINGS = ("listed", "later", "shifted")


def one_run(instance: tuple[str, int], seed: int) -> Iterator[Row]:
    """Fit everything to one sample; a row per method and setting."""
    (name, examples), given = instance, tasks.task(*instance, seed)
    model = OfflineOmnipredictor(list(tasks.LISTED.values()), theta=tasks.THETA, random_state=seed)
    model.fit(given.x, given.y)

    def ours(_: str, loss: ContinuousLoss) -> Actions:
        return np.asarray(model.act_proba(loss, given.fresh_x).argmax(1))

    methods: dict[str, tasks.Chooses] = {OURS: ours} | tasks.rivals(given)
    played = {
        method: {n: choose(n, loss) for n, loss in (tasks.LISTED | tasks.LATER).items()}
        for method, choose in methods.items()
    }
    tables = {
        n: tasks.losses(loss, given.fresh_y) for n, loss in (tasks.LISTED | tasks.LATER).items()
    }
    cell = {"table": name, "examples": examples, "seed": seed}
    for method, acts in played.items():
        worst = subgroup(acts, played, tables)
        bound = model.certified_on_holdout_ if method == OURS else None
        for setting, mean in means(acts, tables, given).items():
            values = {"loss": mean, "subgroup": worst if setting == "listed" else np.nan}
            yield cell | {"method": method, "setting": setting, "bound": bound} | values


def means(
    acts: dict[str, Actions | None], tables: dict[str, Array], given: tasks.Task
) -> dict[str, float]:
    """Mean loss in each setting; NaN where a method has nothing to say."""
    lost = {
        n: np.full(len(given.fresh_y), np.nan) if own is None else _lost(tables[n], own)
        for n, own in acts.items()
    }
    listed = np.mean([lost[n] for n in tasks.LISTED], axis=0)
    later = np.mean([lost[n] for n in tasks.LATER], axis=0)
    found = (listed.mean(), later.mean(), listed[given.shifted].mean())
    return dict(zip(SETTINGS, map(float, found), strict=True))


def _lost(table: Array, actions: Actions) -> Array:
    return np.asarray(table[np.arange(len(table)), actions])


def subgroup(
    acts: dict[str, Any], played: dict[str, dict[str, Any]], tables: dict[str, Array]
) -> float:
    """Return the worst regret of a method in a subgroup, over listed losses."""
    worst = 0.0
    for name in tasks.LISTED:
        table, own = tables[name], acts[name]
        least = max(SMALLEST, SHARE * len(table))
        for group in _groups(own, [other[name] for m, other in played.items() if m != OURS]):
            if group.sum() >= least:
                regret = _lost(table, own)[group].mean() - table[group].mean(0).min()
                worst = max(worst, float(regret))
    return worst


def _groups(own: Actions, suggested: list[Actions]) -> Iterator[NDArray[np.bool_]]:
    """Yield the rows where a suggestion and an own action come together."""
    for others in suggested:
        for a, b in product(range(len(tasks.net())), repeat=2):
            yield (own == a) & (others == b)


def against(table: pd.DataFrame, setting: str, value: str) -> pd.DataFrame:
    """Compare by table and number of examples, in thousandths.

    Ours, then the mean over splits of each rival less ours (positive: we are better), and the
    standard error of the difference from the best rival that is one model for all.
    """
    part = table[table["setting"] == setting].drop(columns="setting")
    keys = ["table", "examples", "seed"]
    wide = 1000 * part.pivot_table(values=value, index=keys, columns="method", sort=False)
    rest = wide.drop(columns=OURS).sub(wide[OURS], axis=0)
    groups = rest.groupby(level=[0, 1], sort=False)
    found = groups.mean()
    best = found.drop(columns=PER_LOSS, errors="ignore").idxmin(axis=1)
    errors = groups.sem().to_numpy()
    found["s.e."] = errors[np.arange(len(best)), rest.columns.get_indexer(pd.Index(best))]
    found.insert(0, OURS, wide[OURS].groupby(level=[0, 1], sort=False).mean())
    return found


def text(table: pd.DataFrame) -> str:
    """Lay the table out: mean loss by setting, subgroup regret, certificates."""
    shape, parts = "{:.1f}".format, []
    for setting in SETTINGS:
        splits = f"thousandths, {table['seed'].nunique()} splits"
        parts += [
            f"\n{setting}: mean loss of ours, and what others lose more ({splits})",
            against(table, setting, "loss").to_string(float_format=shape),
        ]
    parts += [
        "\nworst subgroup regret, likewise",
        against(table, "listed", "subgroup").to_string(float_format=shape),
        *verdict(table),
    ]
    certified = table[table["method"] == OURS].groupby(["table", "examples"], sort=False)["bound"]
    told = certified.max().dropna().to_string(float_format="{:.4f}".format)
    return "\n".join([*parts, "\ncertified on holdout, decision swap regret, worst split", told])


def verdict(table: pd.DataFrame) -> list[str]:
    """Hold ours to the goals: near the best one model for all, half the rivals' regret."""
    listed = against(table, "listed", "loss")
    rivals_of = listed.drop(columns=[OURS, PER_LOSS, "s.e."]).min(axis=1)
    near = int((rivals_of >= -listed["s.e."]).sum())
    groups = against(table, "listed", "subgroup")
    mean = groups[OURS] + groups.drop(columns=[OURS, "s.e."]).mean(axis=1)
    half = int((groups[OURS] <= mean / 2 + ROUNDING).sum())
    return [
        f"\nwithin one standard error of the best one model for all: {near} of {len(listed)}",
        f"subgroup regret at most half of the rivals' mean: {half} of {len(listed)}",
    ]


TABLES = {
    "omniprediction": Table(
        one_run,
        ["table", "examples", "method", "setting"],
        lambda: [(name, count) for name, counts in tasks.SIZES.items() for count in counts],
        seeds=5,
        layout=text,
    )
}
