"""``regretless report``: the page of a run, a study or a training, by what its directory holds."""

from pathlib import Path

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.logs.ownership import REPORT, exists, is_own_page
from regretless.scenarios.logs.reading import read_run
from regretless.scenarios.logs.run_directory import MANIFEST
from regretless.scenarios.report import run_page, study_page, training_page
from regretless.scenarios.studies.directory import RECORD
from regretless.scenarios.studies.results import load_study
from regretless.scenarios.table_files import export
from regretless.scenarios.training.results import TABLE

PAGES = {RECORD: study_page, TABLE: training_page, MANIFEST: run_page}  # by the file that tells


def write_report(directory: Path) -> Path:
    """Write ``report.html`` into the directory of a run, a study or a training, in one step."""
    pages = [page for name, page in PAGES.items() if (directory / name).is_file()]
    if not pages:
        expected = "the folder of a run, a study or a training"
        if not directory.exists():
            raise UserError(f"{directory} does not exist; give {expected}")
        missing = f"it has no {MANIFEST}, {RECORD} or {TABLE}"
        raise UserError(f"{directory} is not {expected}: {missing}; give one")
    text = pages[0].text(directory)
    path = directory / REPORT
    if exists(path) and not is_own_page(path):
        reason = f"{path} is there and regretless has not written it"
        raise UserError(f"{reason}; move it away or give it another name")
    try:
        with replacing(path) as draft:
            draft.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        reason = f"{path} cannot be written: {error.strerror}"
        raise UserError(f"{reason}; make room or give it another folder") from error
    return path


def write_tables(directory: Path, folder: Path) -> list[Path]:
    """Write the tables of a run or a study into a folder, as CSV and LaTeX; return the files."""
    if (directory / RECORD).is_file():
        return load_study(directory).export(folder)
    run = read_run(directory)
    return export({name: run.table(name) for name in run.tables if name != MANIFEST}, folder)
