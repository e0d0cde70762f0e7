"""Tables on the terminal: what folds where they are wider than the screen."""

from regretless.scenarios.terminal import console, plain_lines, table

HEADERS = ["Worst regret per round", "external", "swap", "bound", "worst,\nshare of\nwealth"]


def lines_of_table(name: str, *, width: int) -> list[str]:
    """Return the lines of a table with one row of this name."""
    row = [name, "0.1234", "0.1234", "0.1234 before the run", "1.234"]
    return plain_lines(console(), [table(HEADERS, [row], width=width)])


def test_a_long_name_folds_after_hyphens_and_between_words_alone() -> None:
    lines = lines_of_table("follow-the-leader of all rounds", width=62)
    names = [line.split("  ")[0].strip() for line in lines[-3:]]
    assert "".join(names).replace(" ", "") == "follow-the-leaderofallrounds"
    assert all(name.endswith(("-", "leader", "of", "all", "rounds")) for name in names)
    assert all(len(line) <= 62 for line in lines)


def test_a_name_that_fits_does_not_fold() -> None:
    *_, last_line = lines_of_table("follow-the-leader", width=80)
    assert last_line.startswith("follow-the-leader ")
