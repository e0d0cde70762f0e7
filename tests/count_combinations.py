"""Counts which features, alone and in pairs, play, are refused, and fail: ``docs/combinations.md``.

The features and the scenario of two utilities are those of ``test_combinations``, which plays the
pairs a few at once. Here each is played by itself:

    python tests/count_combinations.py
"""

import sys
from collections import Counter
from itertools import combinations

from test_combinations import FEATURES, keys_of, play_keys, reasons

from regretless.market.core.errors import UserError

PLAYS = "play"
PLAYS_WITH_REFERENCE = "play once a reference is named"
REFUSED = "refused"
OTHER_KEYS = "keys of another kind"
FAILS = "fail"
MODEL_ALONE = "model alone"


def outcome_of(names: tuple[str, ...]) -> tuple[str, str]:
    """Play features together; return what became of them, and the line or error that says why."""
    keys = keys_of(*names)
    if keys is None:
        return OTHER_KEYS, "one key with two values"
    try:
        play_keys(keys)
    except UserError as error:
        if MODEL_ALONE in names:
            return OTHER_KEYS, str(error)
        if "needs a reference" in str(error) and outcome_of((*names, "reference"))[0] == PLAYS:
            return PLAYS_WITH_REFERENCE, ""
        return REFUSED, str(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
        return FAILS, repr(error)
    return PLAYS, ""


def main() -> int:
    """Print the counts and every refusal and failure; return 1 if one has no row on the page."""
    counts = Counter[str]()
    is_complete = True
    singles = [(name,) for name in FEATURES]
    for names in [*singles, *combinations(FEATURES, 2)]:
        result, reason = outcome_of(names)
        counts[result] += 1
        if result in (REFUSED, FAILS):
            is_listed = len(names) == 2 and any(listed in reason for listed in reasons(names))
            is_complete = is_complete and is_listed
            sys.stdout.write(f"{result}: {' and '.join(names)}: {reason}\n")
            sys.stdout.flush()
    total = f"{len(FEATURES)} features, {counts.total()} of them and of pairs"
    sys.stdout.write(f"{total}: {dict(counts)}\n")
    return 0 if is_complete else 1


if __name__ == "__main__":
    sys.exit(main())
