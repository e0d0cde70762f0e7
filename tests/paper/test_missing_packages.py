"""A table whose packages are not installed says so in one line before anything is measured."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from paper import rivals, series
from paper.__main__ import INSTALLED_AS, TABLES, main
from regretless.market.core.errors import UserError


def hide_packages(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Let packages pass for ones that are not installed."""
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.parametrize("name", ["interval-coverage", "served-distribution", "omniprediction"])
def test_a_table_names_the_packages_that_are_missing_and_how_to_install_them(
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    table = import_module(f"paper.{TABLES[name]}").TABLES[name]
    hide_packages(monkeypatch, *table.packages)

    with pytest.raises(SystemExit) as exit_error:
        main([name, "--out", str(tmp_path / "out")])

    complaint = capsys.readouterr().err
    assert exit_error.value.code == 2
    assert complaint.count("\n") == 1
    assert f"the table '{name}' needs" in complaint
    for package in table.packages:
        assert INSTALLED_AS.get(package, package) in complaint.split("pip install")[1]
    assert not (tmp_path / "out").exists()


def test_series_of_which_none_is_installed_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "tables", dict)

    with pytest.raises(UserError, match="python -m pip install bokeh_sampledata river"):
        series.TABLES["series"].cells()


@pytest.mark.parametrize("rival", rivals.INSTALLED_WITH)
def test_a_rival_names_the_package_that_it_lacks(
    rival: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, cure = rivals.INSTALLED_WITH[rival]
    hide_packages(monkeypatch, package)

    with pytest.raises(UserError) as refusal:
        rivals.check_rivals([rival])

    assert str(refusal.value) == f"--rivals: {rival} needs the package {package}; {cure}"
