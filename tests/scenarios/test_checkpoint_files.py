"""Checkpoints of runs: read only as they were written, and refused in one line otherwise."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from archives import members_of, mutate, write_members

from regretless.market.core import archive, checkpoint
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.scenarios.logs.run_directory import CHECKPOINT, RunDirectory

CONFIG = {"name": "tiny", "rounds": 20}
MUTATIONS = 500


@pytest.fixture
def interrupted_run(tmp_path: Path) -> Path:
    """Return the folder of a run that wrote one chunk of its logs and a checkpoint."""
    folder = tmp_path / "logs"
    (folder / ".partial").mkdir(parents=True)
    directory = RunDirectory(folder)
    directory.add_chunk({"rounds": pd.DataFrame({"round": [0, 1, 2], "y_0": [0.1, 0.5, 0.2]})})
    state = {"played": 3, "sums": np.arange(12.0).reshape(3, 4), "rng": {"state": 2**100}}
    directory.save_checkpoint(state, CONFIG)
    return folder


def resumed_state(folder: Path) -> dict[str, Any] | None:
    return RunDirectory(folder).load_checkpoint(CONFIG)


def test_no_mutated_checkpoint_is_resumed_with_another_state(interrupted_run: Path) -> None:
    rng = stream(9, "mutations of a checkpoint")
    file = interrupted_run / ".partial" / CHECKPOINT
    original_bytes = file.read_bytes()
    members = members_of(file)
    wrong: list[str] = []
    refused = 0
    for number in range(MUTATIONS):
        file.write_bytes(original_bytes)
        kind = mutate(file, rng)
        try:
            resumed_state(interrupted_run)
        except UserError as error:
            refused += 1
            line = str(error)
            if "\n" in line or not line.startswith("--resume: the checkpoint in "):
                wrong.append(f"{number}, {kind}: {line}")
        else:
            if members_of(file) != members:
                wrong.append(f"{number}, {kind}: another state was read")
    assert wrong == []
    assert refused > 0.6 * MUTATIONS  # the rest lies in what ZIP keeps beside its members


@pytest.mark.parametrize("key", ["chunks", "parts"])
@pytest.mark.parametrize("value", [1.0, 1.5, -1, 10**30, float("nan"), True, "1", None])
def test_a_number_of_a_checkpoint_that_is_no_count_is_refused(
    key: str, value: Any, interrupted_run: Path
) -> None:
    """Even from a file whose digest is right."""
    file = interrupted_run / ".partial" / CHECKPOINT
    tree = checkpoint.load(file)
    tree[key] = value
    checkpoint.save(file, tree)
    with pytest.raises(UserError, match=r"--resume: .*; start again with --overwrite") as refusal:
        resumed_state(interrupted_run)
    assert "\n" not in str(refusal.value)


def test_a_checkpoint_of_an_older_format_says_so(interrupted_run: Path) -> None:
    file = interrupted_run / ".partial" / CHECKPOINT
    members = members_of(file)
    del members[archive.HEADER]
    write_members(file, members)
    with pytest.raises(UserError, match="cannot be read: it is of format 1, an older one"):
        resumed_state(interrupted_run)


def test_the_same_tree_has_the_same_bytes(tmp_path: Path) -> None:
    tree = {"sums": np.ones((2, 3)), "deep": {"name": "maïs", "rounds": 3}}
    checkpoint.save(tmp_path / "first", tree)
    checkpoint.save(tmp_path / "second", tree)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
