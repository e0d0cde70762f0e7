"""What a term means is said in one sentence, wherever it is said."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXPLOITABILITY = (
    "the maximum surplus per round, over commitment, that a leader with payoffs in [0, 1] could "
    "have extracted from an agent"
)
DEFINED = (
    *("README.md", "docs/glossary.md", "docs/measures.md", "docs/columns.md", "docs/theory.md"),
    *("docs/tutorial.ipynb", "market/exploitability/__init__.py"),
    *("market/exploitability/of_joint.py", "market/exploitability/outcome_bins.py"),
    *("market/exploitability/tracker.py", "scenarios/audit/full_logs.py", "scenarios/verdict.py"),
    "scenarios/report/figures.toml",
)
OTHER_WORDS = re.compile(
    r"exploitab\w+`?\W+(is|:)\W+(?!(the )?(maximum surplus|least total variation))"
    r"(the )?(most|largest|greatest|least share)|(largest|greatest) surplus of (a|any) leader",
    re.IGNORECASE,
)


def plain_text(path: Path) -> str:
    """Return a file's text in one line, without marks of strings that go on in the next line."""
    text = path.read_text(encoding="utf-8")
    return " ".join(re.sub(r'"\n\s*f?"|\\\n', "", text).split())


@pytest.mark.parametrize("file", DEFINED)
def test_exploitability_is_defined_in_one_sentence(file: str) -> None:
    assert EXPLOITABILITY in plain_text(ROOT / file).replace("The maximum", "the maximum")


def test_no_page_and_no_module_words_exploitability_in_another_way() -> None:
    folders = ("market", "forecaster", "agents", "scenarios", "paper", "examples", "docs")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    read = [path for path in files if path.suffix in (".py", ".md", ".toml", ".ipynb")]
    files_with_other_words = [path for path in read if OTHER_WORDS.search(plain_text(path))]
    assert files_with_other_words == []
