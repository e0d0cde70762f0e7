"""A checkout works without symbolic links, and where neither it nor home can be written."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from worlds import NATURE

pytestmark = pytest.mark.slow

HOME = Path(__file__).parent.parent
ROOMS = ("market", "forecaster", "agents", "scenarios")
WHICH = "import regretless.market as m; print(m.__file__)"


def python(folder: Path, *words: str, **variables: str) -> str:
    """Run Python in a checkout, whose package comes first; return what it prints."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def copied(folder: Path) -> Path:
    """Copy the package as an installation has it, its rooms as folders."""
    without = shutil.ignore_patterns("__pycache__")
    for room in ROOMS:
        shutil.copytree(HOME / "regretless" / room, folder / "regretless" / room, ignore=without)
    for file in (HOME / "regretless").glob("*.py"):
        shutil.copy(file, folder / "regretless")
    return folder


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Clone the checkout without symbolic links."""
    if not (HOME / ".git").exists():
        pytest.skip("no checkout to clone")
    clone = ["git", "-c", "core.symlinks=false", "clone", "--quiet", "--no-hardlinks", str(HOME)]
    subprocess.run([*clone, tmp_path / "plain"], check=True, capture_output=True)
    return tmp_path / "plain"


def test_a_clone_without_symbolic_links_lists_and_runs(plain: Path) -> None:
    assert (plain / "regretless" / "market").is_file()
    assert Path(python(plain, "-c", WHICH).strip()).is_relative_to(plain)
    assert "crop-choice" in python(plain, "-m", "regretless", "list")
    (plain / "nature.toml").write_text(NATURE, encoding="utf-8")
    python(plain, "-m", "regretless", "run", "nature.toml", "--out", "logs", "--quiet")
    assert (plain / "logs" / "manifest.json").is_file()


def test_a_clone_without_symbolic_links_packs_the_rooms(plain: Path) -> None:
    """Without pyproject.toml, whose other keys the setuptools that is here may not know."""
    pytest.importorskip("setuptools")
    (plain / "pyproject.toml").unlink()
    words = ["-W", "ignore", "setup.py", "--quiet", "build", "--build-base", "packed"]
    subprocess.run([sys.executable, *words], cwd=plain, check=True, capture_output=True)
    packed = {
        str(file.relative_to(plain / "packed/lib")) for file in plain.glob("packed/lib/**/*.py")
    }
    assert packed == {
        str(Path("regretless", room, file.relative_to(HOME / room)))
        for room in ROOMS
        for file in (HOME / room).rglob("*.py")
    } | {f"regretless/{file.name}" for file in (HOME / "regretless").glob("*.py")}


@pytest.mark.skipif(os.name != "posix", reason="elsewhere home is found otherwise")
@pytest.mark.parametrize("temporary", ["private", "of-others", "none"])
def test_commands_work_where_neither_home_nor_the_package_can_be_written(
    tmp_path: Path, temporary: str
) -> None:
    """A file in place of each cache folder stops root, too, whom permissions do not stop."""
    package = copied(tmp_path / "package")
    for folder in {file.parent for file in package.rglob("*.py")}:
        (folder / "__pycache__").touch()
    (tmp_path / "temporary").mkdir()
    cache = tmp_path / "temporary" / f"regretless-numba-{os.getuid()}"
    if temporary == "of-others":
        cache.mkdir(mode=0o700)
        cache.chmod(0o777)
    places = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache"}
    places["TMPDIR"] = str(tmp_path / "temporary")
    if temporary == "none":
        cache.touch()
    assert Path(python(package, "-c", WHICH, **places).strip()).is_relative_to(package)
    assert "hedge" in python(package, "-m", "regretless", "list", "learners", **places)
    if temporary == "none":
        (package / "nature.toml").write_text(NATURE, encoding="utf-8")
        words = ["run", "nature.toml", "--out", "logs", "--quiet"]
        python(package, "-m", "regretless", *words, **places)
        assert (package / "logs" / "manifest.json").is_file()
    elif temporary == "private":
        assert stat.S_IMODE(cache.stat().st_mode) == 0o700
        assert any(cache.iterdir())
    else:
        assert not any(cache.iterdir())
