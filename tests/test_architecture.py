"""The house rules, checked on the code itself: imports, sizes, style, types, randomness."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent
ROOMS = {
    "market": {"market"},
    "forecaster": {"market", "forecaster"},
    "agents": {"market", "agents"},
    "scenarios": {"market", "forecaster", "agents", "scenarios"},
}
MODULES = sorted(path for room in ROOMS for path in (HOME / room).rglob("*.py"))
LONGEST_MODULE, LONGEST_FUNCTION = 300, 50


def imported(tree: ast.AST) -> set[str]:
    """Top-level names that a module imports, deferred imports included."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found.add((node.module or "").split(".")[0])
    return found


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        lines -= (first.end_lineno or 0) - first.lineno + 1
    return lines


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HOME)))
def test_module_keeps_the_house_rules(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    room = path.relative_to(HOME).parts[0]
    assert imported(tree) & set(ROOMS) <= ROOMS[room]
    assert ast.get_docstring(tree)
    assert text.count("\n") <= LONGEST_MODULE
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert [f.name for f in functions if length(f) > LONGEST_FUNCTION] == []
    assert not re.search(r"np\.random\.(?!Generator|SeedSequence|default_rng)\w+\(", text)
    assert not re.search(r"default_rng\(\)|\bpickle\b.*(load|dump)|\beval\(|\bexec\(", text)


def test_only_the_model_imports_mesa() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
    users = {str(p.relative_to(HOME)) for p, tree in trees.items() if "mesa" in imported(tree)}
    assert users == {"market/model.py"}


def test_no_import_cycles() -> None:
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        name = ".".join(path.relative_to(HOME).with_suffix("").parts).removesuffix(".__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        graph[name] = {
            target
            for node in tree.body  # what runs on import; type-only and deferred imports do not
            if isinstance(node, ast.ImportFrom) and node.module
            for target in (node.module, *(f"{node.module}.{a.name}" for a in node.names))
            if target.split(".")[0] in ROOMS
        }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, f"import cycle: {' -> '.join((*trail, name))}"
        if name in done:
            return
        for target in graph.get(name, set()):
            if name != target and not name.startswith(f"{target}."):  # a module in its own package
                visit(target, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]],
    ids=["ruff", "format", "mypy"],
)
def test_tools_are_satisfied(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=HOME, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
