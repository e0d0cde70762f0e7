"""A task in a process of its own, forked from one that has imported the packages already."""

import os
import sys
import warnings
from collections.abc import Callable
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

IMPORTED_BEFORE = [
    "matplotlib",
    "regretless.scenarios.report.write",
    "regretless.scenarios.studies",
]


def perform(
    folder: Path, output_folder: Path, task: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    """Do a task in a folder, as a script there; warnings are errors.

    What it prints goes to the files ``out`` and ``err`` of the output folder.
    """
    for stream, name in enumerate(("out", "err"), start=1):
        os.dup2(os.open(output_folder / name, os.O_CREAT | os.O_WRONLY), stream)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    warnings.simplefilter("error")
    task(*arguments)


def run_in_separate_process(
    folder: Path, task: Callable[..., Any], *arguments: Any
) -> tuple[str, str]:
    """Do a task in a folder; return what it printed, and what it wrote to standard error."""
    has_forkserver = "forkserver" in get_all_start_methods()
    context: Any = get_context("forkserver" if has_forkserver else "spawn")
    if has_forkserver:
        context.set_forkserver_preload(IMPORTED_BEFORE)
    with TemporaryDirectory() as output_folder:
        process = context.Process(
            target=perform, args=(folder, Path(output_folder), task, arguments)
        )
        process.start()
        process.join()
        printed = Path(output_folder, "out").read_text(encoding="utf-8")
        complaint = Path(output_folder, "err").read_text(encoding="utf-8")
    assert process.exitcode == 0, complaint
    return printed, complaint
