"""The figures of every bundled scenario and of one small file per key, compared with those on file.

    .venv/bin/python tests/golden/figures.py                 compare all with figures.json
    .venv/bin/python tests/golden/figures.py NAME ...        compare some
    .venv/bin/python tests/golden/figures.py --out FILE      write them, to compare two commits
    .venv/bin/python tests/golden/figures.py --against FILE

A change of form changes no figure by more than 1e-7 on one machine. Another kind of processor adds
up in another order, and what a market answers or a solver picks then differs: mean losses by up to
.03. So two commits are compared on one machine, and ``test_golden.py`` compares with the file
loosely. The figures of a run are, per cohort, the mean and the greatest of each column of
``agents``; ``offline`` is a table for the offline estimator, ``workers`` a run on two workers.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import regretless.scenarios
from regretless import OfflineOmnipredictor, load, register
from regretless.agents import ScriptedAgent
from regretless.agents.utilities.forms import CES

HERE = Path(__file__).parent
KEYS = HERE / "keys"
CATALOGUE = Path(regretless.scenarios.__file__).parent / "catalogue"
ROUNDS = 120
COLUMNS = [
    "mean_loss", "external_regret", "swap_regret", "omniprediction_regret", "decision_swap_regret",
    "exploitability", "bound", "bound_from_bias", "bound_from_variation",
]  # fmt: skip
Figures = dict[str, dict[str, Any]]


if "golden-signal" not in register.agent:

    @register.agent("golden-signal")
    class Informed(ScriptedAgent):
        """Takes the first action where its signal is high; it has no memory."""

        def act(self, forecast: Any, context: Any) -> int:
            return int(context["signal"] < 0.5)

        def state(self) -> dict[str, Any]:
            return {}


def of_agents(frame: pd.DataFrame) -> Figures:
    """Return the mean and the greatest of every column that is kept, by cohort."""
    rows: Figures = {}
    for cohort, part in frame.groupby("cohort", sort=True):
        row: dict[str, Any] = {"agents": len(part)}
        for column in [column for column in COLUMNS if column in part]:
            values = part[column].astype(float).dropna()
            if len(values):
                row[column] = [float(values.mean()), float(values.max())]
        rows[str(cohort)] = row
    return rows


def played(name: str) -> Figures:
    """Play a scenario of the catalogue, or a key's file, with seed 3."""
    keyed = name.startswith("keys/")
    scenario = load(str(KEYS / f"{name[5:]}.toml")) if keyed else load(name, rounds=ROUNDS)
    model = scenario.build(seed=3)
    model.run()
    return of_agents(model.agents_frame())


def offline() -> Figures:
    """Fit the offline estimator to a table, and act for people whom it knows and does not know."""
    rng = np.random.default_rng(0)
    x = rng.random((300, 2))
    y = 0.3 + 0.4 * (x > 0.5) + 0.1 * rng.standard_normal((300, 2))
    people = CES(rng.dirichlet(np.ones(2), (5, 4)), 0.5)
    model = OfflineOmnipredictor([people], trees=30).fit(x[:200], y[:200])
    low = y.min(0)
    high = y.max(0)
    losses = people.losses((y[200:] - low) / (high - low))  # (100, 5, 4)
    acted = np.stack([model.act(people[k], x[200:]) for k in range(5)], axis=1)
    lost = np.take_along_axis(losses, acted[:, :, None], axis=2)
    return {"people": {"agents": 5, "mean_loss": [float(lost.mean()), float(lost.mean(0).max())]}}


def workers() -> Figures:
    """Play a run on two workers, from the command line."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        arguments = [
            "run",
            str(KEYS / "losses.toml"),
            "--workers",
            "2",
            "--quiet",
            "--out",
            str(out),
        ]
        subprocess.run([sys.executable, "-m", "regretless", *arguments], check=True, timeout=300)
        return of_agents(pd.read_parquet(out / "agents.parquet"))


def figures(name: str) -> Figures:
    """Return the figures of a scenario or of a special case by its name."""
    return {"offline": offline, "workers": workers}.get(name, lambda: played(name))()


def known() -> list[str]:
    """Return the names of all that has figures."""
    bundled = [path.stem for path in CATALOGUE.glob("*.toml")]
    keyed = [f"keys/{path.stem}" for path in KEYS.glob("*.toml")]
    return sorted([*bundled, *keyed, "offline", "workers"])


def differences(old: Figures, new: Figures, tolerance: float) -> Iterator[str]:
    """Yield a line for every figure that differs by more than a tolerance."""
    for cohort in sorted({*old, *new}):
        if cohort not in old or cohort not in new:
            yield f"{cohort}: {'missing' if cohort in old else 'new'}"
            continue
        for column in sorted({*old[cohort], *new[cohort]}):
            before, now = (
                np.atleast_1d(figures[cohort].get(column, np.nan)) for figures in (old, new)
            )
            for x, y in zip(before, now, strict=False):
                if not math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance):
                    yield f"{cohort}.{column}: {x:.9g} -> {y:.9g}"


def compared(name: str, against: dict[str, Figures], tolerance: float) -> tuple[Figures, bool]:
    """Compute figures again, print what differs, and say whether nothing does."""
    began = time.perf_counter()
    seen = figures(name)
    rows = list(differences(against.get(name, {}), seen, tolerance))
    verdict = f"{len(rows)} differ" if rows else "same"
    print(f"{name}: {verdict} ({time.perf_counter() - began:.1f} s)", *rows[:6], sep="\n    ")
    return seen, not rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--against", type=Path, default=HERE / "figures.json")
    parser.add_argument("--tolerance", type=float, default=1e-7)
    options = parser.parse_args()
    against = json.loads(options.against.read_text()) if options.against.exists() else {}
    comparisons = {
        name: compared(name, against, options.tolerance) for name in options.names or known()
    }
    if options.out is not None:
        figures_now = {name: seen for name, (seen, _) in comparisons.items()}
        options.out.write_text(f"{json.dumps(figures_now, indent=1, sort_keys=True)}\n")
    same = sum(fine for _, fine in comparisons.values())
    print(f"{same} of {len(comparisons)} give the same figures")
    return int(same < len(comparisons))


if __name__ == "__main__":
    sys.exit(main())
