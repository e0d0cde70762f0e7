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
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.validation import validated
from regretless.scenarios.logs.run_directory import RunDirectory

TYPES = 1000  # of agents in a crowd, and representatives of a cover
BILLION = 10**9
ROUNDS = 50  # of a crowd, in one call
ETA = 20.0  # of quantal responses
ROWS_AT_ONCE = 200_000  # of a log, in one write
AGENTS = 1000  # of a log
SHARED_LOSSES = 500  # that the agents of a log have
ONE_AGENT = 7  # whose rows are read
QUICK_DIVISOR = 16  # of the sizes of a quick run
NO_ANSWER = np.zeros(1)  # of works whose two ways have no common answer


def counted_crowd(response: str, *, with_prices: bool) -> Duel:
    """Compare rounds of a billion agents with those of a thousand, in one market."""
    counted = _crowd(response, with_prices=with_prices, agents=BILLION)
    listed = _crowd(response, with_prices=with_prices, agents=TYPES)
    market = "prices" if with_prices else "no market"
    return Duel(
        "counted crowd",
        f"1e9 agents, {response}, {market}, {ROUNDS} rounds",
        f"{TYPES} listed",
        ours=partial(_play_rounds, counted),
        theirs=partial(_play_rounds, listed),
    )


def _crowd(response: str, *, with_prices: bool, agents: int) -> MarketModel:
    """Build a market of agents of a thousand types; its logs are thrown away."""
    cohort: dict[str, Any] = {
        "name": "crowd",
        "utility": "linear",
        "response": response,
        "actions": 8,
        "count": agents,
        "types": TYPES,
        "measures": ["external", "swap", "decision_swap"],
    }
    if response == "quantal":
        cohort["eta"] = ETA
    scenario: dict[str, Any] = {
        "name": "crowd",
        "rounds": 100_000,
        "adversary": {"kind": "iid", "outcomes": 3},
        "forecaster": {"kind": "running-mean"},
        "cohort": [cohort],
    }
    if with_prices:
        scenario["market"] = {"feedback": "lagged"}
    model = Scenario(validated(scenario, origin=Path())).build(seed=0)
    model.stream_logs_to(lambda _: None)
    return model


def _play_rounds(model: MarketModel) -> Array:
    for _ in range(ROUNDS):
        model.step()
    return NO_ANSWER


def cover(losses: int) -> Duel:
    """Compare representatives of linear losses with the centres of scikit-learn's k-means."""
    k_means = peer("sklearn.cluster").MiniBatchKMeans
    table = stream(0, "bench", "cover").random((losses, 8, 4), dtype=np.float64) / 4

    def ours() -> Array:
        clustered(table[..., 0], table[..., 1:], count=TYPES)
        return NO_ANSWER

    def theirs() -> Array:
        k_means(TYPES, random_state=0, n_init=1).fit(table.reshape(losses, -1))
        return NO_ANSWER

    return Duel("cover", f"{losses} losses by {TYPES}", "scikit-learn", ours, theirs)


def log(rows: int) -> Duel:
    """Compare a run's directory with PyArrow; the answer is the sum of what is read back."""
    frame = make_log(rows)

    def sum_of_actions(write: Callable[[pd.DataFrame, Path], Path]) -> Array:
        with tempfile.TemporaryDirectory() as folder:
            file = write(frame, Path(folder))
            actions = pq.read_table(file, columns=["action"])["action"].to_numpy()
            return np.array([actions.sum()])

    return Duel(
        "log",
        f"{rows} rows",
        "pyarrow",
        ours=partial(sum_of_actions, write_as_run),
        theirs=partial(sum_of_actions, write_plainly),
    )


def path(rows: int) -> Duel:
    """Compare how long one agent's rows are read, from a run's directory and as PyArrow wrote."""
    frame = make_log(rows)
    with tempfile.TemporaryDirectory() as folder:
        run_bytes = write_as_run(frame, Path(folder)).read_bytes()
        plain_bytes = write_plainly(frame, Path(folder)).read_bytes()

    def read_one_agent(file: bytes) -> Array:
        rows_of_agent = pd.read_parquet(io.BytesIO(file), filters=[("agent", "==", ONE_AGENT)])
        return rows_of_agent["action"].to_numpy(np.float64)

    return Duel(
        "path",
        f"one agent of {rows} rows",
        "pyarrow",
        ours=partial(read_one_agent, run_bytes),
        theirs=partial(read_one_agent, plain_bytes),
    )


def make_log(rows: int) -> pd.DataFrame:
    """Make a regret log of a thousand agents who share 500 losses, in the order of rounds."""
    rng = stream(0, "bench", "log")
    round_index, agent = np.divmod(np.arange(rows), AGENTS)
    loss = agent % SHARED_LOSSES
    shape = (round_index[-1] + 1, SHARED_LOSSES)
    columns = {
        "round": round_index,
        "agent": agent,
        "action": rng.integers(8, size=shape)[round_index, loss],
    }
    for name in ("loss", "external_regret", "swap_regret", "decision_swap_regret"):
        columns[name] = rng.random(shape)[round_index, loss]
    return pd.DataFrame(columns)


def chunks_of(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Cut a log into what is written at once."""
    return (frame.iloc[i : i + ROWS_AT_ONCE] for i in range(0, len(frame), ROWS_AT_ONCE))


def write_as_run(frame: pd.DataFrame, folder: Path) -> Path:
    """Write a log as a run does, chunk by chunk and then as a whole; return the file."""
    directory = RunDirectory(folder / "ours")
    manifest = {"config": {}, "status": "complete", "scenario": "bench"}
    with directory.claimed(resume=False, overwrite=True):
        directory.start(manifest)
        for chunk in chunks_of(frame):
            directory.add_chunk({"regret_log": chunk})
        directory.finish({}, manifest)
    return folder / "ours" / "regret_log.parquet"


def write_plainly(frame: pd.DataFrame, folder: Path) -> Path:
    """Write a log by PyArrow, and wait until it is on the disk; return the file."""
    file = folder / "plain.parquet"
    tables = [pa.Table.from_pandas(chunk, preserve_index=False) for chunk in chunks_of(frame)]
    with pq.ParquetWriter(file, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    handle = os.open(file, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
    return file


def works(*, quick: bool) -> tuple[Callable[[], Duel], ...]:
    """List the works of this file; ``quick`` makes all but the counted crowds small."""
    divisor = QUICK_DIVISOR if quick else 1
    log_rows = 10_000_000 // divisor
    return (
        partial(counted_crowd, "best-response", with_prices=False),
        partial(counted_crowd, "quantal", with_prices=False),
        partial(counted_crowd, "best-response", with_prices=True),
        partial(counted_crowd, "quantal", with_prices=True),
        partial(round_numpy, losses=1000 // divisor, functions=34),
        partial(round_numpy, losses=4000 // divisor, functions=34),
        partial(cover, 1_000_000 // divisor),
        partial(log, log_rows),
        partial(path, log_rows),
    )
