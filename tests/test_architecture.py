"""The house rules, checked on the code itself: imports, sizes, randomness."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent
ROOMS = {
    "market": {"market"},
    "forecaster": {"market", "forecaster"},
    "agents": {"market", "agents"},
    "scenarios": {"market", "forecaster", "agents", "scenarios"},
}
HOUSE = next(home for home in (HOME / "regretless", HOME) if (home / "market").is_dir())
MODULES = sorted(path for room in ROOMS for path in (HOUSE / room).rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
LONGEST_FUNCTION = 50
MOST_FILES = 15  # of a folder, beside its __init__


def name_of(path: Path) -> str:
    """Dotted name of a module, without ``regretless``; without links the rooms lie above."""
    parts = path.relative_to(HOUSE).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


NAMES = {name_of(path) for path in MODULES}
PACKAGES = {name_of(path) for path in MODULES if path.stem == "__init__"}


def targets(tree: ast.AST) -> set[str]:
    """Own modules that a module imports, inside functions and for types alone included."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = (node.module or "").removeprefix("regretless").removeprefix(".")
            if (node.module or "").partition(".")[0] == "regretless":
                full = {alias.name: f"{module}.{alias.name}" for alias in node.names}
                found |= {full[n] if full[n] in NAMES else module for n in full}
    return found - {""}


def imported(tree: ast.AST) -> set[str]:
    """Top-level names that a module imports, deferred imports included."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        lines -= (first.end_lineno or 0) - first.lineno + 1
    return lines


@pytest.mark.parametrize("room", ROOMS)
def test_modules_keep_the_house_rules(room: str) -> None:
    for path in (path for path in MODULES if path.is_relative_to(HOUSE / room)):
        text, tree = path.read_text(encoding="utf-8"), TREES[path]
        assert {target.split(".")[0] for target in targets(tree)} <= ROOMS[room], path
        assert ast.get_docstring(tree), path
        nodes = ast.walk(tree)
        functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        assert [f.name for f in functions if length(f) > LONGEST_FUNCTION] == [], path
        assert not re.search(r"np\.random\.(?!Generator|SeedSequence|default_rng)\w+\(", text), path
        assert not re.search(r"default_rng\(\)|\bpickle\b.*(load|dump)|\beval\(|\bexec\(", text), (
            path
        )


def test_only_the_model_and_its_views_import_mesa() -> None:
    users = {name_of(p) for p, tree in TREES.items() if "mesa" in imported(tree)}
    assert users == {"market.model"}


def test_no_room_imports_what_is_not_installed() -> None:
    """The paper's tables, the benchmarks, and matplotlib, which they draw with."""
    outside = {"paper", "benchmarks", "matplotlib"}
    assert [name_of(p) for p, tree in TREES.items() if outside & imported(tree)] == []


def graph() -> dict[str, set[str]]:
    """Every module and what it imports; of a package its own modules do not count."""
    return {
        name_of(path): {
            target
            for target in targets(TREES[path])
            if not (name_of(path) in PACKAGES and target.startswith(name_of(path)))
            and not name_of(path).startswith(f"{target}.")
        }
        for path in MODULES
    }


def folder_of(name: str) -> str:
    """Package in which a module lies."""
    return name if name in PACKAGES else name.rpartition(".")[0]


def circle(arrows: dict[str, set[str]]) -> str | None:
    """Find a circle; None if there is none."""
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> str | None:
        if name in trail:
            return " -> ".join((*trail[trail.index(name) :], name))
        if name in done:
            return None
        for target in sorted(arrows.get(name, ())):
            if found := visit(target, (*trail, name)):
                return found
        done.add(name)
        return None

    return next(filter(None, (visit(name, ()) for name in sorted(arrows))), None)


def test_no_file_is_in_an_import_circle() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == "b -> c -> b"
    assert circle(graph()) is None


def test_no_folder_is_in_an_import_circle() -> None:
    """Between the folders, too, imports run one way; files right in a room stand for themselves."""
    arrows: dict[str, set[str]] = {}
    for name, into in graph().items():
        home = folder_of(name) if folder_of(name) not in ROOMS else name
        ends = {folder_of(t) if folder_of(t) not in ROOMS else t for t in into}
        arrows.setdefault(home, set()).update(ends - {home})
    assert circle(arrows) is None


def test_no_folder_is_a_pile() -> None:
    inside = Counter(folder_of(name) for name in NAMES - PACKAGES)
    assert [folder for folder, files in inside.items() if files > MOST_FILES] == []


def test_the_page_for_contributors_names_every_folder() -> None:
    page = (HOME / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for room in ROOMS:
        named = re.findall(rf"^\| `{room}/` \|.*?\|(.*?)\|", page, re.MULTILINE)[0]
        inside = {path for path in (HOUSE / room).iterdir() if path.is_dir()}
        assert set(re.findall(r"`(\w+)`", named)) == {p.name for p in inside} - {"__pycache__"}


def test_slow_tests_that_are_named_are_there() -> None:
    for name in (HOME / "tests/slow.txt").read_text(encoding="utf-8").split():
        file, _, function = name.partition("::")
        assert f"def {function}" in (HOME / file).read_text(encoding="utf-8"), name
