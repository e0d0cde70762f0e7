"""One writer per directory: also where the file system cannot lock, and after a crash."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regretless.market.core.errors import UserError
from regretless.scenarios.logs.directory_lock import hold_directory

fcntl = pytest.importorskip("fcntl", reason="Windows locks files by other means")

CRASHES_WHILE_IT_HOLDS_A_DIRECTORY = """
import fcntl, os, sys
from pathlib import Path
from regretless.scenarios.logs.directory_lock import hold_directory

def unsupported(*_):
    raise OSError(38, "Function not implemented")

fcntl.flock = unsupported
with hold_directory(Path(sys.argv[1])):
    os._exit(7)
"""


def fail_to_lock(monkeypatch: pytest.MonkeyPatch, reason: int) -> None:
    """Let every lock of a file fail for a reason, as on some network folders."""

    def fail(*_: object) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(fcntl, "flock", fail)


def test_a_second_writer_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    with hold_directory(folder):
        (folder / "rounds.parquet").touch()
        with pytest.raises(UserError, match="another process is writing there; wait for it"):
            hold_directory(folder).__enter__()
    with hold_directory(folder):
        pass
    assert [file.name for file in folder.iterdir()] == ["rounds.parquet"]


def test_a_file_system_without_locks_has_one_writer_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_to_lock(monkeypatch, errno.ENOSYS)
    folder = tmp_path / "logs"
    with hold_directory(folder):
        with pytest.raises(UserError, match="another process is writing there; wait for it"):
            hold_directory(folder).__enter__()
        assert (folder / ".lock").is_file()
    assert not folder.exists()


def test_a_directory_that_a_crash_left_held_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "logs"
    words = [sys.executable, "-c", CRASHES_WHILE_IT_HOLDS_A_DIRECTORY, folder]
    assert subprocess.run(words, check=False).returncode == 7
    assert (folder / ".lock").read_bytes()
    fail_to_lock(monkeypatch, errno.ENOSYS)
    with hold_directory(folder):
        pass
    assert not folder.exists()


def test_a_directory_that_another_machine_holds_is_left_to_it(tmp_path: Path) -> None:
    marker = tmp_path / ".lock"
    marker.write_text("12\nanother-machine\n", encoding="utf-8")
    with pytest.raises(UserError, match="another process is writing there"):
        hold_directory(tmp_path).__enter__()
    assert marker.read_text(encoding="utf-8") == "12\nanother-machine\n"


def test_a_file_of_the_users_with_the_name_of_the_lock_is_kept(tmp_path: Path) -> None:
    own_file = tmp_path / ".lock"
    own_file.write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match=r"holds \.lock, which regretless has not written"):
        hold_directory(tmp_path).__enter__()
    assert own_file.read_text(encoding="utf-8") == "mine"


def test_a_server_that_refuses_locks_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_to_lock(monkeypatch, errno.ENOLCK)
    with pytest.raises(UserError, match="cannot be written: No locks available; give another"):
        hold_directory(tmp_path / "logs").__enter__()
    assert not list((tmp_path / "logs").glob("*.parquet"))
