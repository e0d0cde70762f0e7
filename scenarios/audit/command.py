"""``regretless audit``: words of the command line become arguments of ``audit``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regretless.market.core.errors import UserError
from regretless.scenarios.audit import Audit, BanditAudit, audit
from regretless.scenarios.audit.bandit_log import Cost, Probabilities
from regretless.scenarios.audit.bandit_print import print_bandit_audit, write_bandit_audit
from regretless.scenarios.audit.full_logs import print_audit, write_audit
from regretless.scenarios.audit.tables import new_directory


def audit_and_print(
    decisions: Path,
    outcomes: Path | None,
    *,
    columns: Mapping[str, str | None],
    full_log_options: Mapping[str, Any],
    bandit_options: Mapping[str, Any],
    separator: str | None,
    decimal: str | None,
    out: Path | None,
) -> None:
    """Audit a log, write what was found into a new directory if one is given, and print it.

    Files come first: whoever reads the first lines only has them all the same.

    Parameters
    ----------
    decisions, outcomes : Path
        The tables; outcomes None for a bandit log.
    columns : mapping
        ``agent``; of those that were named, ``group`` and ``action``.
    full_log_options, bandit_options : mapping
        As the command line has them.
    separator, decimal : str or None
        How the files are written.
    out : Path or None
    """
    options = {**columns, **full_log_options, **bandit_options}
    options["cost"] = read_cost(options["cost"])
    options["propensity"] = read_propensity(options["propensity"])
    options["loss_range"] = read_range("--loss-range", options["loss_range"])
    for name in ("actions", "prices"):
        if options[name] is not None:
            options[name] = [entry.strip() for entry in options[name].split(",")]
    result = audit(decisions, outcomes, separator=separator, decimal=decimal, **options)
    if out is not None:
        with new_directory(out) as folder:
            _write(result, folder, decisions.name)
    if isinstance(result, Audit):
        print_audit(result)
    else:
        print_bandit_audit(result)


def _write(result: Audit | BanditAudit, folder: Path, name: str) -> None:
    """Write what was found in the log with this name."""
    if isinstance(result, Audit):
        write_audit(result, folder)
        return
    from regretless.scenarios.audit.bandit_page import (  # noqa: PLC0415 - Plotly is slow
        PAGE,
        write_page,
    )

    write_bandit_audit(result, folder)
    write_page(result, name, folder / PAGE)


def read_cost(text: str | None) -> Cost | None:
    """Read a number, a range or the name of a column.

    >>> read_cost("0.2"), read_cost("0.1:0.4"), read_cost("unit_cost")
    (0.2, (0.1, 0.4), 'unit_cost')
    """
    if text is None:
        return None
    try:
        limits = [float(limit) for limit in text.split(":")]
    except ValueError:
        return text
    if len(limits) == 1:
        return limits[0]
    if len(limits) == 2:
        return limits[0], limits[1]
    raise UserError(f"--cost {text}: write a number, LOW:HIGH or a column")


def read_range(option: str, text: str | None) -> tuple[float, float] | None:
    """Read LOW:HIGH.

    >>> read_range("--loss-range", "0:2.5")
    (0.0, 2.5)
    """
    if text is None:
        return None
    try:
        low, high = (float(end) for end in text.split(":"))
    except ValueError:
        raise UserError(f"{option} {text}: write LOW:HIGH, as 0:1") from None
    return low, high


def read_propensity(texts: Sequence[str] | None) -> Probabilities | None:
    """Read a column, or ``ACTION=COLUMN`` for each action.

    >>> read_propensity(["chance"]), read_propensity(["1.5=chance_a", "2=chance_b"])
    ('chance', {'1.5': 'chance_a', '2': 'chance_b'})
    """
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    column_of: dict[str | float, str] = {}
    for text in texts:
        action, equals, column = text.partition("=")
        if not equals:
            reason = f"--propensity {text}: of several columns each belongs to an action"
            raise UserError(f"{reason}; write ACTION=COLUMN, as 1.5=chance_a")
        column_of[action] = column
    return column_of
