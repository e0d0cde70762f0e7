"""The house rules, checked on the code itself: imports, docstrings, randomness."""

import ast
import re
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent
ROOMS = {  # what each may import
    "market": {"market"},
    "forecaster": {"market", "forecaster"},
    "agents": {"market", "agents"},
    "scenarios": {"market", "forecaster", "agents", "scenarios"},
}
# without links the rooms lie above
HOUSE = next(home for home in (HOME / "regretless", HOME) if (home / "market").is_dir())
PATHS = {  # by dotted name, without ``regretless``
    ".".join(path.relative_to(HOUSE).with_suffix("").parts).removesuffix(".__init__"): path
    for room in ROOMS
    for path in (HOUSE / room).rglob("*.py")
}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in PATHS.items()}
TREES = {name: ast.parse(text) for name, text in TEXTS.items()}
PACKAGES = {name for name, path in PATHS.items() if path.stem == "__init__"}
FORBIDDEN = re.compile(
    r"np\.random\.(?!Generator|SeedSequence|default_rng)\w+\(|default_rng\(\)"
    r"|\bpickle\b.*(load|dump)|\beval\(|\bexec\("
)


def imported(name: str) -> set[str]:
    """Dotted names that a module imports, inside functions and for types alone included."""
    found = set()
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def targets(name: str) -> set[str]:
    own = {full.removeprefix("regretless.") for full in imported(name) if "regretless." in full}
    return {full if full in PATHS else full.rpartition(".")[0] for full in own} - {""}


def folder_of(name: str) -> str:
    """Package in which a module lies; files right in a room stand for themselves."""
    folder = name if name in PACKAGES else name.rpartition(".")[0]
    return name if folder in ROOMS else folder


def test_modules_keep_the_house_rules() -> None:
    for name, tree in TREES.items():
        room = name.partition(".")[0]
        assert {target.partition(".")[0] for target in targets(name)} <= ROOMS[room], name
        assert ast.get_docstring(tree), name
        assert not FORBIDDEN.search(TEXTS[name]), name


def test_only_model_and_agent_view_import_mesa_and_none_what_is_not_installed() -> None:
    """The paper's tables, the benchmarks, and matplotlib, which they draw with."""
    roots = {name: {full.partition(".")[0] for full in imported(name)} for name in PATHS}
    with_mesa = {name for name in PATHS if "mesa" in roots[name]}
    assert with_mesa == {"market.agent_view", "market.model"}
    outside = {"paper", "benchmarks", "matplotlib"}
    assert [name for name in PATHS if outside & roots[name]] == []


@pytest.mark.parametrize("home", [str, folder_of], ids=["files", "folders"])
def test_imports_run_one_way(home: type[str]) -> None:
    """Between files, and between folders; of a package its own modules do not count."""
    arrows: dict[str, set[str]] = defaultdict(set)
    for name in PATHS:
        for target in targets(name):
            inside = name in PACKAGES and target.startswith(name)
            if not inside and not name.startswith(f"{target}.") and home(name) != home(target):
                arrows[home(name)].add(home(target))
    assert len(arrows) > 10
    TopologicalSorter(arrows).prepare()  # an error names the circle


def test_the_page_for_contributors_names_every_folder() -> None:
    page = (HOME / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for room in ROOMS:
        named = re.findall(rf"^\| `{room}/` \|.*?\|(.*?)\|", page, re.MULTILINE)[0]
        inside = {path.name for path in (HOUSE / room).iterdir() if path.is_dir()}
        assert set(re.findall(r"`(\w+)`", named)) == inside - {"__pycache__"}


def test_slow_tests_that_are_named_are_there() -> None:
    for name in (HOME / "tests/slow.txt").read_text(encoding="utf-8").split():
        file, _, function = name.partition("::")
        assert f"def {function}" in (HOME / file).read_text(encoding="utf-8"), name


def _assigned_names() -> set[str]:
    """Names that some class of the house assigns as attributes, declares, or defines."""
    names = set()
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
            elif isinstance(node, ast.FunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
    return names


def test_what_a_checkpoint_remembers_is_an_attribute() -> None:
    attributes = _assigned_names()
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            targets_of_node = getattr(node, "targets", [getattr(node, "target", None)])
            names = {target.id for target in targets_of_node if isinstance(target, ast.Name)}
            value = getattr(node, "value", None)
            if "REMEMBERED" not in names or value is None:
                continue
            texts = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
            for text in texts:
                assert text in attributes, f"{module} remembers {text}, which nothing assigns"
