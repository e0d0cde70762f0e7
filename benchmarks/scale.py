"""Large runs: what is kept small, beside what it replaces.

    counted crowd     rounds of a billion agents who are counted, beside those of as many as there
                      are types, who are listed
    forecaster-round  as in ``works``, for many more losses
    cover             representatives of losses that are all different, the farthest next, beside
                      k-means, which asks for no distance of the worst
    log               rows of a regret log in a run's directory, which a killed run goes on from,
                      beside the same table written by PyArrow alone
    path              the rows of one agent, read from either

Answers are compared where both ways have the same one.
"""

import io
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.duels import Array, Duel, peer
from benchmarks.works import round_numpy
from regretless.forecaster.events.cover import clustered
from regretless.market.core.randomness import stream
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.validation import validated
from regretless.scenarios.logs.run_directory import RunDirectory

TYPES, BILLION, ROUNDS = 1000, 10**9, 50
ETA = 20.0  # of quantal responses
PART = 200_000  # rows of a log that are written at once
SHARED = 500  # losses that the agents of a log have
SMALLER = 16  # what a quick run has less of
DONE = np.zeros(1)


def counted_crowd(response: str, market: str) -> Duel:
    """Compare rounds of a billion agents with those of a thousand, in one world."""
    worlds = [_crowd(response, market, agents) for agents in (BILLION, TYPES)]
    size = f"1e9 agents, {response}, {market or 'no market'}, {ROUNDS} rounds"
    ours, theirs = (partial(_stepped, world) for world in worlds)
    return Duel("counted crowd", size, f"{TYPES} listed", ours, theirs)


def _crowd(response: str, market: str, agents: int) -> Any:
    smooth = {"eta": ETA} if response == "quantal" else {}
    raw: dict[str, Any] = {
        "name": "crowd",
        "rounds": 100_000,
        "adversary": {"kind": "iid", "outcomes": 3},
        "forecaster": {"kind": "running-mean"},
        "cohort": [
            {
                "name": "crowd",
                "utility": "linear",
                "response": response,
                "actions": 8,
                "count": agents,
                "types": TYPES,
                "measures": ["external", "swap", "decision_swap"],
            }
            | smooth
        ],
    }
    if market:
        raw["market"] = {"feedback": "lagged"}
    model = Scenario(validated(raw, origin=Path())).build(seed=0)
    model.stream_logs_to(lambda _: None)
    return model


def _stepped(model: Any) -> Array:
    for _ in range(ROUNDS):
        model.step()
    return DONE


def cover(losses: int) -> Duel:
    """Compare representatives of linear losses with the centres of scikit-learn's k-means."""
    means = peer("sklearn.cluster").MiniBatchKMeans
    table = stream(0, "bench", "cover").random((losses, 8, 4), dtype=np.float64) / 4

    def ours() -> Array:
        clustered(table[..., 0], table[..., 1:], count=TYPES)
        return DONE

    def theirs() -> Array:
        means(TYPES, random_state=0, n_init=1).fit(table.reshape(losses, -1))
        return DONE

    return Duel("cover", f"{losses} losses by {TYPES}", "scikit-learn", ours, theirs)


def log(rows: int) -> Duel:
    """Compare a run's directory with PyArrow; the answer is the sum of what is read back."""
    frame = logged(rows)

    def total(write: Callable[[pd.DataFrame, Path], Path]) -> Array:
        with tempfile.TemporaryDirectory() as folder:
            file = write(frame, Path(folder))
            return np.array([pq.read_table(file, columns=["action"])["action"].to_numpy().sum()])

    size = f"{rows} rows"
    return Duel("log", size, "pyarrow", partial(total, written), partial(total, written_plainly))


def path(rows: int) -> Duel:
    """Compare how long one agent's rows are read, from a run's directory and as PyArrow wrote."""
    frame = logged(rows)
    with tempfile.TemporaryDirectory() as name:
        files = [write(frame, Path(name)).read_bytes() for write in (written, written_plainly)]

    def read(file: bytes) -> Array:
        own = pd.read_parquet(io.BytesIO(file), filters=[("agent", "==", 7)])
        return own["action"].to_numpy(np.float64)

    return Duel("path", f"one agent of {rows} rows", "pyarrow", *(partial(read, f) for f in files))


def logged(rows: int, agents: int = 1000) -> pd.DataFrame:
    """Make a regret log of agents who share 500 losses, in the order of rounds."""
    rng = stream(0, "bench", "log")
    number, agent = np.divmod(np.arange(rows), agents)
    shape, place = (number[-1] + 1, SHARED), (number, agent % SHARED)
    action = rng.integers(8, size=shape)[place]
    names = ("loss", "external_regret", "swap_regret", "decision_swap_regret")
    columns = {name: rng.random(shape)[place] for name in names}
    return pd.DataFrame({"round": number, "agent": agent, "action": action} | columns)


def parts(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Cut a log into what is written at once."""
    return (frame.iloc[i : i + PART] for i in range(0, len(frame), PART))


def written(frame: pd.DataFrame, folder: Path) -> Path:
    """Write a log as a run does, part by part and then as a whole; return the file."""
    directory = RunDirectory(folder / "ours")
    manifest = {"config": {}, "status": "complete", "scenario": "bench"}
    with directory.claimed(resume=False, overwrite=True):
        directory.start(manifest)
        for part in parts(frame):
            directory.add_chunk({"regret_log": part})
        directory.finish({}, manifest)
    return folder / "ours" / "regret_log.parquet"


def written_plainly(frame: pd.DataFrame, folder: Path) -> Path:
    """Write a log by PyArrow, and wait until it is on the disk; return the file."""
    file = folder / "plain.parquet"
    tables = [pa.Table.from_pandas(part, preserve_index=False) for part in parts(frame)]
    with pq.ParquetWriter(file, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    handle = os.open(file, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
    return file


def works(*, quick: bool) -> tuple[Callable[[], Duel], ...]:
    """List the works of this file; ``quick`` makes all but the counted crowds small."""
    less = SMALLER if quick else 1
    crowds = [(r, m) for m in ("", "prices") for r in ("best-response", "quantal")]
    return (
        *(partial(counted_crowd, *own) for own in crowds),
        *(partial(round_numpy, losses=k // less, functions=34) for k in (1000, 4000)),
        partial(cover, 1_000_000 // less),
        *(partial(work, 10_000_000 // less) for work in (log, path)),
    )
