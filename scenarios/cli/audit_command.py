"""The command that audits recorded decisions. Heavy libraries are imported by it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regretless.market.core.errors import UserError
from regretless.scenarios.cli.options import Imports
from regretless.scenarios.imports import import_modules

if TYPE_CHECKING:
    from regretless.scenarios.audit import Audit

Pairs = list[str] | None
TRUSTED = 30  # effective rounds, below which an interval is too short
MEASURES = {"external": "one fixed action", "swap": "another for each action"}
NOTE = (
    "\nLosses are per round, in the unit of the data. Regret: the loss that the best alternative "
    "in hindsight would have avoided. Gain: the loss that the best alternative of one half of the "
    "rounds avoids in the other half, with a 95 % interval; if that contains 0, no gain was found. "
    "Exploitability: the least share of the rounds that would have to differ so that no "
    "replacement avoids any loss."
)


def audit(  # noqa: PLR0913 - one parameter per option
    decisions: Annotated[Path, typer.Argument(help="A row for each round: what was done.")],
    *,
    outcomes: Annotated[Path, typer.Option(help="A row for each round: what happened.")],
    utility: Annotated[
        str | None, typer.Option(help="By name; without it columns are the actions' losses.")
    ] = None,
    parameter: Annotated[
        Pairs, typer.Option(metavar="KEY=VALUE", help="Of the utility; repeatable.")
    ] = None,
    scale: Annotated[
        Pairs, typer.Option(metavar="COLUMN=WORST:BEST", help="What becomes 0 and 1; repeatable.")
    ] = None,
    policy: Annotated[
        Pairs, typer.Option(metavar="COLUMN", help="What a rule would have done; repeatable.")
    ] = None,
    round_: Annotated[str, typer.Option("--round", help="Column that names a round.")] = "round",
    agent: Annotated[str, typer.Option(help="Column that says who decided.")] = "agent",
    action: Annotated[str, typer.Option(help="Column that says what was done.")] = "action",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write agents.csv and swaps.csv there.")
    ] = None,
    imports: Imports = None,
) -> None:
    """Measure the regrets of decisions that somebody else made."""
    if out is not None and out.exists():
        raise UserError(f"--out {out} is there already; give a new directory")
    import_modules(imports or [])
    from regretless.scenarios.audit import audit as measure

    found = measure(
        decisions,
        outcomes,
        utility=utility,
        parameters=_numbers(parameter or []),
        scale=dict(_ends(pair) for pair in scale or []),
        policies=policy or (),
        round=round_,
        agent=agent,
        action=action,
    )
    _show(found)
    if out is not None:
        _write(found, out)


def _numbers(pairs: list[str]) -> dict[str, Any]:
    """Read KEY=VALUE as scenario files do."""
    from regretless.scenarios.config.files import override

    found: dict[str, Any] = override({}, pairs)
    return found


def _ends(pair: str) -> tuple[str, tuple[float, float]]:
    """Read COLUMN=WORST:BEST."""
    column, _, ends = pair.rpartition("=")
    try:
        worst, best = (float(end) for end in ends.split(":"))
    except ValueError:
        raise UserError(f"--scale {pair}: write COLUMN=WORST:BEST, as demand=0:600") from None
    return column, (worst, best)


def _show(found: Audit) -> None:
    """Print what each decision maker lost, and what something else would have saved."""
    from regretless.scenarios.terminal import console, print_plainly, table

    screen, rows = console(), found.agents.to_dict("records")
    lost = [
        [str(r["agent"]), f"{r['rounds']:,}", f"{r['mean_loss']:.4g}", f"{r['exploitability']:.4f}"]
        for r in rows
    ]
    saved = [_saving(row, *kind) for row in rows for kind in MEASURES.items()]
    headers = ["decision maker", "rounds", "mean loss", "exploitability"]
    print_plainly(screen, table(headers, lost, width=screen.width))
    screen.print()
    headers = ["decision maker", "alternative", "regret", "gain", "95 % interval"]
    print_plainly(screen, table(headers, saved, width=screen.width, words=(0, 1)))
    screen.print(NOTE)


def _saving(row: dict[Any, Any], measure: str, what: str) -> list[str]:
    regret, gain, low, high = (row[f"{measure}_{n}"] for n in ("regret", "gain", "low", "high"))
    short = " (too short)" * (row[f"{measure}_effective"] < TRUSTED)
    ends = f"{low:+.4g} to {high:+.4g}{short}" if low <= high else "too few rounds"
    return [str(row["agent"]), what, f"{regret:.4g}", f"{gain:+.4g}", ends]


def _write(found: Audit, out: Path) -> None:
    """Write both tables into a new directory."""
    from regretless.market.core.checkpoint import replacing

    out.mkdir(parents=True)
    for name, table in (("agents", found.agents), ("swaps", found.swaps)):
        with replacing(out / f"{name}.csv") as file:
            table.to_csv(file, index=False, lineterminator="\n")
    typer.echo(f"Tables: {out}")
