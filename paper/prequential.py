"""The table `prequential`: certificates of four fits on growing parts against one held-out part.

On eight tables (``omniprediction_tasks``) an omnipredictor of all rows, whose certificate is that
of a fit without the held-out ones (0.3 of fewer than 1,000 rows, a fifth of more, at least 300), is
compared with four fits on growing parts, each certified on the next part, of which the mean
strategy acts. ``loss`` is the mean over the listed losses on fresh rows, ``certified`` that of what
the certificate covers; then the certificates of the worst listed loss on decision swap regret and
omniprediction regret, that decision swap regret on the fresh rows, and seconds of processor time.
The last lines have the difference in loss, growing fits less the full fit, with a 95 % interval
over splits.
"""

from collections.abc import Iterator
from time import process_time

import numpy as np
import pandas as pd
from scipy import stats

from paper import omniprediction_tasks as tasks
from paper.harness import Row, Table
from regretless.forecaster import OfflineOmnipredictor

TREES = 30
FULL = "full fit"
GROWING = "growing fits"
INSTANCES = (
    ("diabetes", 300),
    ("cancer", 300),
    ("wine", 120),
    ("bikes", 1000),
    ("bikes", 2000),
    ("rain", 1000),
    ("wind", 1000),
    ("friedman", 2000),
)
ENOUGH = 1000  # rows from which a part is held out by default
SHARE = 0.3  # that is held out of fewer


def mean_loss(model: OfflineOmnipredictor, task: tasks.Task) -> float:
    """Return the mean over fresh rows and listed losses."""
    losses = []
    for loss in tasks.LISTED.values():
        strategies = model.act_proba(loss, task.fresh_x)
        losses.append((strategies * tasks.losses(loss, task.fresh_y)).sum(1).mean())
    return float(np.mean(losses))


def one_split(instance: tuple[str, int], seed: int) -> Iterator[Row]:
    """Fit both to one sample."""
    name, examples = instance
    task = tasks.task(name, examples, seed)
    listed = list(tasks.LISTED.values())
    held_out = "auto" if examples >= ENOUGH else SHARE
    for method, holdout in ((FULL, held_out), (GROWING, "prequential")):
        model = OfflineOmnipredictor(
            listed, theta=tasks.THETA, trees=TREES, holdout=holdout, random_state=seed
        )
        start = process_time()
        model.fit(task.x, task.y)
        seconds = process_time() - start
        loss = mean_loss(model, task)
        regrets = [model.decision_swap_regret(one, task.fresh_x, task.fresh_y) for one in listed]
        certificates = [model.certificate(one, "omniprediction") for one in listed]
        in_use = model.fitted_
        model.fitted_ = model.certified_fit_
        loss_of_certified = loss if in_use is model.fitted_ else mean_loss(model, task)
        yield {
            "table": name,
            "rows": examples,
            "method": method,
            "seed": seed,
            "loss": loss,
            "certified": loss_of_certified,
            "decision swap": model.certified_on_holdout_,
            "omniprediction": max(one.total for one in certificates if one is not None),
            "regret": max(regrets),
            "s": seconds,
        }


def text(table: pd.DataFrame) -> str:
    """Lay out the means, and the paired differences in loss."""
    keys = ["table", "rows", "method"]
    means = table.drop(columns="seed").groupby(keys, sort=False).mean()
    lines = [means.round(4).to_string(), "", "loss, growing fits less the full fit"]
    losses = table.set_index(["method", "table", "rows", "seed"])["loss"]
    difference = losses.loc[GROWING] - losses.loc[FULL]
    for name, rows in INSTANCES:
        of_splits = difference.loc[name, rows].to_numpy()
        half = stats.t.ppf(0.975, len(of_splits) - 1) * stats.sem(of_splits)
        lines.append(f"{name} {rows}: {of_splits.mean():+.5f} +- {half:.5f}")
    return "\n".join(lines)


TABLES = {
    "prequential": Table(
        one_split,
        ["table", "rows", "method"],
        lambda: INSTANCES,
        seeds=4,
        layout=text,
    )
}
