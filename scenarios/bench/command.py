"""What ``regretless bench`` does: measure, show, and return what its file says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import typer

from regretless.scenarios.bench import growth, results, steps, works

Bar = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


def side_by_side(bar: Bar, *, quick: bool) -> dict[str, Any]:
    """Run the duels, and a large crowd in a process of its own for its memory.

    Parameters
    ----------
    bar : callable
        Makes a progress bar from a title and a total.
    quick : bool
        Small crowds, few repeats.
    """
    memory = steps.peak_memory(quick=quick)
    prepared, repeats = works.works(quick=quick), results.QUICK if quick else results.REPEATS
    with bar("bench", len(prepared)) as advance:
        measured = results.measure(repeats, works=prepared, progress=advance)
    for line in results.skipped(measured):
        typer.echo(line, err=True)
    results.show(results.as_table(measured))
    typer.echo(f"peak memory: {memory['bytes'] / 1e9:.2f} GB, {memory['size']}")
    return {"rows": results.as_rows(measured.rows), "memory": memory}


def exponents(bar: Bar, *, quick: bool) -> dict[str, Any]:
    """Fit how time grows with each size.

    Parameters
    ----------
    bar : callable
        As above.
    quick : bool
        Small crowds, few rounds.
    """
    with bar("growth", growth.cells()) as advance:
        found = growth.measure(quick=quick, progress=advance)
    results.show(growth.table(found))
    return {"growth": results.as_rows(found)}
