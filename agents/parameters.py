"""The checks of parameters, as agents use them; ``market/core/validation.py`` has them all."""

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
