"""Attackers that are trained, and where what they learned is kept: a table, a curve, plans."""

import re
from hashlib import blake2b

TABLE, CURVE = "attackers.csv", "curve.csv"


def file_of(cohort: str) -> str:
    """Return the name of the file with the best plan against a cohort, different for each."""
    plain = re.sub(r"[^\w-]+", "-", cohort)
    if plain != cohort:
        plain += "-" + blake2b(cohort.encode(), digest_size=3).hexdigest()
    return f"attack-{plain}.toml"
