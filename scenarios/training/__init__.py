"""Attackers that are trained, and where what they learned is kept: a table, a curve, plans."""

import re

TABLE, CURVE = "attackers.csv", "curve.csv"


def file_of(cohort: str) -> str:
    """Return the name of the file with the best plan against a cohort."""
    plain = re.sub(r"[^\w-]+", "-", cohort)
    return f"attack-{plain}.toml"
