"""Files that an audit reads in the forms that people have, and files that it writes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_results import RefusalOf, RunCommand

from regretless import UserError, audit
from regretless.market.core.randomness import stream
from regretless.scenarios.audit import bandit_print

COLUMNS = ["--price", "price", "--quantity", "sold", "--cost", "0.5", "--propensity", "chance"]


@pytest.fixture
def sales() -> pd.DataFrame:
    """Return a log of 400 rounds with two prices, each set with probability 1/2."""
    rng = stream(0, "sales")
    price = rng.choice([1.5, 2.5], 400)
    sold = (rng.random(400) < 1.0 - price / 4).astype(float)
    return pd.DataFrame({"price": price, "sold": sold, "chance": 0.5, "warmth": rng.random(400)})


@pytest.fixture
def semicolon_file(sales: pd.DataFrame, tmp_path: Path) -> Path:
    """Return the path of the log as a spreadsheet writes it where decimals have a comma."""
    path = tmp_path / "sales.csv"
    sales.to_csv(path, sep=";", decimal=",", index=False)
    return path


def test_a_file_with_semicolons_and_decimal_commas_says_the_same(
    sales: pd.DataFrame, semicolon_file: Path
) -> None:
    options = {"price": "price", "quantity": "sold", "cost": 0.5, "context": "warmth"}
    expected = audit(sales, **options)  # type: ignore[call-overload]
    audit_of_file = audit(semicolon_file, separator=";", decimal=",", **options)  # type: ignore[call-overload]
    for name, table in expected.tables.items():
        pd.testing.assert_frame_equal(audit_of_file.tables[name], table)


def test_a_full_log_with_semicolons_and_decimal_commas_is_read(
    tmp_path: Path, run_command: RunCommand
) -> None:
    (tmp_path / "done.csv").write_text("round;action\n1;a\n2;b\n3;a\n", encoding="utf-8")
    (tmp_path / "costs.csv").write_text("round;a;b\n1;0,5;1\n2;1;0,25\n3;1;0\n", encoding="utf-8")
    command = ["audit", tmp_path / "done.csv", "--outcomes", tmp_path / "costs.csv"]
    done = run_command(*command, "--separator", ";", "--decimal", ",")
    assert (done.status, done.err) == (0, "")
    assert f"{(0.5 + 0.25 + 1) / 3:.4g}" in done.out


def test_the_command_names_the_option_that_a_file_needs(
    semicolon_file: Path, refusal_of: RefusalOf
) -> None:
    command = ["audit", semicolon_file, *COLUMNS]
    assert 'give it the separator ";"' in refusal_of(*command)
    assert 'give the decimal ","' in refusal_of(*command, "--separator", ";")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--separator", "ab"], "separator: 'ab' is no separator; give one character"),
        (["--decimal", "x"], "decimal: 'x' is no decimal mark; give ',' or '.'"),
        (["--threshold", "two"], "'two' must be a number"),
        (["--threshold=two"], "'two' must be a number"),
    ],
)
def test_an_option_that_cannot_be_read_is_named_with_its_value(
    options: list[str], complaint: str, semicolon_file: Path, refusal_of: RefusalOf
) -> None:
    assert complaint in refusal_of("audit", semicolon_file, *COLUMNS, *options)


def test_words_in_the_place_of_prices_are_refused_with_a_cure(sales: pd.DataFrame) -> None:
    sales_in_words = sales.assign(price=np.where(sales["price"] > 2, "dear", "cheap"))
    with pytest.raises(UserError, match="give action and loss instead"):
        audit(sales_in_words, price="price", quantity="sold", cost=0.0)


def test_yes_and_no_in_the_place_of_losses_are_refused_with_what_to_write(
    sales: pd.DataFrame,
) -> None:
    answers = sales.assign(won=np.where(sales["sold"] > 0, "yes", "no"))
    with pytest.raises(UserError, match=r"'won' holds words, .*as 1 and 0") as caught:
        audit(answers, action="price", loss="won", propensity="chance")
    assert "1 for 'yes' and 0 for 'no'" in str(caught.value)
    assert "the other way round if 'no' is the loss" in str(caught.value)
    cure = 'table["won"] = (table["won"].astype(str) == "yes").astype(int)'
    assert str(caught.value).endswith(cure)
    answers["won"] = (answers["won"].astype(str) == "yes").astype(int)
    assert audit(answers, action="price", loss="won", propensity="chance").texts


def test_groups_of_prices_are_what_a_rule_replaces() -> None:
    rng = stream(0, "many prices")
    price = rng.integers(100, 160, 600) / 100
    log = pd.DataFrame({"price": price, "sold": rng.random(600) < 1.8 - price})
    log["sold"] = log["sold"].astype(float)
    text = audit(log, price="price", quantity="sold", cost=0.0).texts["all"][2]
    assert "replaces each group of prices by another" in text


def test_files_are_complete_although_nobody_reads_what_is_printed(
    sales: pd.DataFrame, tmp_path: Path
) -> None:
    sales.to_csv(tmp_path / "sales.csv", index=False)
    program = "from regretless.scenarios.cli.commands import main; main()"
    arguments = ["audit", "sales.csv", *COLUMNS, "--out", "found"]
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
    names = {path.name for path in (tmp_path / "found").iterdir()}
    assert {"verdicts.csv", "verdict.txt", "report.html"} <= names
    assert {path.name for path in tmp_path.iterdir()} == {"sales.csv", "found"}


def test_an_audit_that_cannot_be_written_leaves_nothing(
    sales: pd.DataFrame, tmp_path: Path, run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_the_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    sales.to_csv(tmp_path / "sales.csv", index=False)
    monkeypatch.setattr(bandit_print, "replacing", fill_the_disk)
    failed = run_command("audit", tmp_path / "sales.csv", *COLUMNS, "--out", tmp_path / "found")
    assert failed.status == 2
    assert failed.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["sales.csv"]


def test_a_regret_near_the_threshold_asks_for_no_absurd_number_of_rounds() -> None:
    result = audit(
        "price-log.csv", price="price", quantity="sold", propensity="chance", cost=0, agent="seller"
    )
    assert "more than 10,000,000 rounds" in result.texts["learner"][2]
