"""The endings of files that hold tables, in small letters or capitals, compressed or not."""

from pathlib import Path

CSV_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
ENDINGS = ".csv, .tsv, .csv.gz, .parquet or .pq"  # as a message lists them


def ending_of(path: Path) -> str:
    """Return the ending of a file in small letters, with what is before ``.gz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def is_table(path: Path) -> bool:
    """Whether a file's name has the ending of a table."""
    return ending_of(path) in (*CSV_ENDINGS, *PARQUET_ENDINGS)
