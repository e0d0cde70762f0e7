"""The checks of parameters that utilities and adversaries use.

They are those of ``market.core.validation``, which has them all and says what each refuses.
"""

from regretless.market.core.validation import (
    FINITE,
    IN_UNIT_INTERVAL,
    NOT_NEGATIVE,
    POSITIVE,
    Rule,
    check_int,
    check_range,
    numbers,
    require,
    table,
)

__all__ = [
    "FINITE",
    "IN_UNIT_INTERVAL",
    "NOT_NEGATIVE",
    "POSITIVE",
    "Rule",
    "check_int",
    "check_range",
    "numbers",
    "require",
    "table",
]
