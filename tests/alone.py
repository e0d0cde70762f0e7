"""A process of one's own that starts quickly: forked from one that has imported the packages."""

import os
import sys
import warnings
from collections.abc import Callable
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

IMPORTED = ["matplotlib", "regretless.scenarios.report.write", "regretless.scenarios.studies"]


def begin(folder: Path, said: Path, task: Callable[..., Any], given: tuple[Any, ...]) -> None:
    """Do a task in a folder, as a script there; warnings are errors."""
    for stream, name in enumerate(("out", "err"), start=1):
        os.dup2(os.open(said / name, os.O_CREAT | os.O_WRONLY), stream)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    warnings.simplefilter("error")
    task(*given)


def alone(folder: Path, task: Callable[..., Any], *given: Any) -> tuple[str, str]:
    context: Any = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(IMPORTED)
    with TemporaryDirectory() as said:
        process = context.Process(target=begin, args=(folder, Path(said), task, given))
        process.start()
        process.join()
        out, err = (Path(said, name).read_text(encoding="utf-8") for name in ("out", "err"))
    assert process.exitcode == 0, err
    return out, err
