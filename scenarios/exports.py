"""Tables of a run or a study as CSV and LaTeX, for papers and spreadsheets."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError


def export(tables: Mapping[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Write ``NAME.csv`` and ``NAME.tex`` of each table; return the files.

    The LaTeX is a ``longtable`` with the rules of ``booktabs`` and the label ``tab:NAME``, numbers
    with four digits. UserError if the folder holds anything, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UserError(f"{folder} is not empty; give the tables a folder of their own")
        files = []
        for name, table in tables.items():
            latex = table.to_latex(
                index=False, escape=True, longtable=True, na_rep="", float_format="%.4g",
                label=f"tab:{name}",
            )  # fmt: skip
            for ending, text in ((".csv", table.to_csv(index=False)), (".tex", latex)):
                files.append(folder / f"{name}{ending}")
                with replacing(files[-1]) as draft:
                    draft.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = f"{folder} cannot be written: {error.strerror}"
        raise UserError(f"{reason}; give another folder") from error
    return files
