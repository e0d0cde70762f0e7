"""The checks of parameters that utilities and adversaries use.

They are those of ``market.core.validation``, which has them all and says what each refuses.
"""

from regretless.market.core.validation import (
    FINITE,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    Rule,
    check_int,
    check_range,
    numbers,
    require,
    table,
)

__all__ = [
    "FINITE",
    "NOT_NEGATIVE",
    "POSITIVE",
    "SHARE",
    "Rule",
    "check_int",
    "check_range",
    "numbers",
    "require",
    "table",
]
