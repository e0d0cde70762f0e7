"""What training leaves behind: a table, a curve, and each best plan as a scenario."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tomli_w

from regretless.market.core.arrays import Array, Integers
from regretless.market.core.checkpoint import replacing
from regretless.scenarios.studies.analysis.measures import interval
from regretless.scenarios.training import CURVE, TABLE, file_of
from regretless.scenarios.training.attack import Attack
from regretless.scenarios.training.rehearsals import Score

ROUNDING = 1e-9  # of means, and of numbers in files
COLUMNS = {  # of the table, and what each is called where it is printed
    "cohort": "cohort",
    "value": "value",
    "surplus": "surplus",
    "low": "low",
    "high": "high",
    "cap": "cap, tried",
    "certified": "cap, any",
    "gap": "gap",
    "most": "most",
}

NOTE = (
    "value: the most that the leader gets by commitment\n"
    "surplus: payoff of the leader per round and agent minus that value, in runs\n"
    "  with new seeds, with a 95 % interval from low to high\n"
    "cap, tried: upper bound on the surplus in these runs, from their swap regret\n"
    "cap, any: upper bound for every attacker, by the theorem before the run\n"
    "gap: cap, any minus surplus; most: the largest surplus that payoffs allow"
)
SAYS_NOTHING = "cap, any is above the largest surplus that payoffs allow, {:.3f}"


@dataclass(frozen=True, eq=False)
class Judged:
    """The best ``plan`` (P, S, m) against a cohort, and what was tried before.

    ``scores`` are of runs at seeds that were not trained on; ``seeds`` (n,) and ``paid`` (n, G) of
    n generations of G plans.
    """

    attack: Attack
    plan: Array
    scores: Sequence[Score]
    seeds: Integers
    paid: Array

    @property
    def row(self) -> dict[str, str | float]:
        """What the table says: means, and 95 % of Student's interval of the surplus."""
        found = pd.DataFrame(self.scores)
        mean, low, high = interval(found["surplus"].to_numpy())
        names = "value", "cap", "certified", "most"
        value, cap, certified, most = (float(found[name].mean()) for name in names)
        numbers = value, mean, low, high, cap, certified, certified - mean, most
        return dict(zip(COLUMNS, (self.attack.cohort, *numbers), strict=True))

    @property
    def curve(self) -> pd.DataFrame:
        """A row per run: cohort, generation, run, seed, and what the leader was paid per round."""
        count, size = self.paid.shape
        return pd.DataFrame(
            {
                "cohort": self.attack.cohort,
                "generation": np.repeat(np.arange(count), size),
                "run": np.arange(self.paid.size),
                "seed": np.repeat(self.seeds, size),
                "paid": self.paid.ravel(),
            }
        )


def files(attacks: Iterable[Attack]) -> set[str]:
    """Return the names of the files that are written."""
    return {TABLE, CURVE, *(file_of(attack.cohort) for attack in attacks)}


def write(out: Path, judged: Sequence[Judged]) -> pd.DataFrame:
    """Write plans, curve and, last, the table, which is returned."""
    table = pd.DataFrame([one.row for one in judged])
    curve = pd.concat([one.curve for one in judged], ignore_index=True)
    for one in judged:
        with replacing(out / file_of(one.attack.cohort)) as draft:
            draft.write_text(tomli_w.dumps(one.attack.file(one.plan)), encoding="utf-8")
    for name, content in ((CURVE, curve), (TABLE, table)):
        with replacing(out / name) as draft:
            content.to_csv(draft, index=False)
    return table


def text(table: pd.DataFrame) -> str:
    """Write the table out; a cap without a theorem is ``none``, one that says nothing is named."""
    shown = table.rename(columns=COLUMNS).round(3)
    lines = shown.to_string(index=False, na_rep="none", float_format="{:.3f}".format)
    empty = [
        f"{row['cohort']}: {SAYS_NOTHING.format(row['most'])}."
        for row in table.to_dict("records")
        if says_nothing(row)
    ]
    return "\n".join([lines, NOTE, *empty])


def says_nothing(row: Mapping[Any, Any]) -> bool:
    """Whether a certified cap is above what payoffs allow; False without a theorem."""
    return bool(row["certified"] >= row["most"] - ROUNDING)
