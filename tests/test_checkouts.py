"""A checkout works without symbolic links, and where neither it nor home can be written."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from small_scenarios import NATURE_SCENARIO
from wheel_files import PACKAGES, PROJECT_FOLDER

pytestmark = pytest.mark.slow
WHICH = "import regretless.market as m; print(m.__file__)"


def python(folder: Path, *arguments: str, **variables: str) -> str:
    """Run Python in a checkout, whose package comes first; return what it prints."""
    subprocess_options = {"cwd": folder, "env": os.environ | variables, "capture_output": True}
    done = subprocess.run(
        [sys.executable, *arguments], text=True, check=False, **subprocess_options
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def play_and_check(folder: Path, **variables: str) -> None:
    """Run a small scenario in a checkout, and see that it wrote its manifest."""
    (folder / "nature.toml").write_text(NATURE_SCENARIO, encoding="utf-8")
    arguments = ["-m", "regretless", "run", "nature.toml", "--out", "logs", "--quiet"]
    python(folder, *arguments, **variables)
    assert (folder / "logs" / "manifest.json").is_file()


def test_a_clone_without_symbolic_links_lists_runs_and_packs_the_rooms(tmp_path: Path) -> None:
    """It packs without pyproject.toml, whose other keys the setuptools here may not know."""
    if not (PROJECT_FOLDER / ".git").exists():
        pytest.skip("no checkout to clone")
    plain = tmp_path / "plain"
    clone = [
        "git",
        "-c",
        "core.symlinks=false",
        "clone",
        "--quiet",
        "--no-hardlinks",
        str(PROJECT_FOLDER),
    ]
    subprocess.run([*clone, plain], check=True, capture_output=True)
    assert (plain / "regretless" / "market").is_file()
    assert Path(python(plain, "-c", WHICH).strip()).is_relative_to(plain)
    assert "crop-choice" in python(plain, "-m", "regretless", "list")
    play_and_check(plain)
    pytest.importorskip("setuptools")
    (plain / "pyproject.toml").unlink()
    arguments = ["-W", "ignore", "setup.py", "--quiet", "build", "--build-base", "packed"]
    subprocess.run([sys.executable, *arguments], cwd=plain, check=True, capture_output=True)
    packed = plain / "packed/lib"
    rooms = [file for room in PACKAGES for file in PROJECT_FOLDER.glob(f"{room}/**/*.py")]
    assert {str(file.relative_to(packed)) for file in packed.glob("**/*.py")} == {
        *(str("regretless" / file.relative_to(PROJECT_FOLDER)) for file in rooms),
        *(f"regretless/{file.name}" for file in (PROJECT_FOLDER / "regretless").glob("*.py")),
    }


@pytest.mark.skipif(os.name != "posix", reason="elsewhere home is found otherwise")
@pytest.mark.parametrize("temporary", ["private", "of-others", "none"])
def test_commands_work_where_home_and_package_are_read_only(tmp_path: Path, temporary: str) -> None:
    """A file in place of each cache folder stops root, too, whom permissions do not stop."""
    package = tmp_path / "package"
    without = shutil.ignore_patterns("__pycache__")
    for room in PACKAGES:  # as an installation has them: folders
        shutil.copytree(
            PROJECT_FOLDER / "regretless" / room, package / "regretless" / room, ignore=without
        )
    for file in (PROJECT_FOLDER / "regretless").glob("*.py"):
        shutil.copy(file, package / "regretless")
    for folder in {file.parent for file in package.rglob("*.py")}:
        (folder / "__pycache__").touch()
    cache = tmp_path / "temporary" / f"regretless-numba-{os.getuid()}"
    cache.parent.mkdir()
    if temporary == "of-others":
        cache.mkdir(mode=0o700)
        cache.chmod(0o777)
    elif temporary == "none":
        cache.touch()
    places = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache", "TMPDIR": str(cache.parent)}
    assert Path(python(package, "-c", WHICH, **places).strip()).is_relative_to(package)
    assert "hedge" in python(package, "-m", "regretless", "list", "learners", **places)
    if temporary == "none":
        play_and_check(package, **places)
    else:  # the cache is used only where it is one's own
        assert any(cache.iterdir()) == (temporary == "private")
        assert stat.S_IMODE(cache.stat().st_mode) == (0o700 if temporary == "private" else 0o777)
