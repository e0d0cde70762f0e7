"""The house rules, checked on the code itself: imports, docstrings, randomness."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PROJECT_FOLDER = Path(__file__).parent.parent
MAY_IMPORT = {
    "market": {"market"},
    "forecaster": {"market", "forecaster"},
    "agents": {"market", "agents"},
    "scenarios": {"market", "forecaster", "agents", "scenarios"},
}
PACKAGES_FOLDER = PROJECT_FOLDER / "regretless"
if not (PACKAGES_FOLDER / "market").is_dir():  # without links the packages lie above
    PACKAGES_FOLDER = PROJECT_FOLDER
FORBIDDEN = re.compile(
    r"np\.random\.(?!Generator|SeedSequence|default_rng)\w+\(|default_rng\(\)"
    r"|\bpickle\b.*(load|dump)|\beval\(|\bexec\("
)


def module_paths() -> dict[str, Path]:
    """Return the file of every module by its dotted name, without ``regretless``."""
    paths = {}
    for package in MAY_IMPORT:
        for path in (PACKAGES_FOLDER / package).rglob("*.py"):
            parts = path.relative_to(PACKAGES_FOLDER).with_suffix("").parts
            paths[".".join(parts).removesuffix(".__init__")] = path
    return paths


PATHS = module_paths()
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in PATHS.items()}
TREES = {name: ast.parse(text) for name, text in TEXTS.items()}
FOLDERS = {name for name, path in PATHS.items() if path.stem == "__init__"}
every_module = pytest.mark.parametrize("name", PATHS)


def imported_names(module: str) -> set[str]:
    """Return dotted names that a module imports, inside functions and for types alone included."""
    names = set()
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def imported_packages(module: str) -> set[str]:
    """Return the first parts of what a module imports."""
    return {name.partition(".")[0] for name in imported_names(module)}


def imported_modules(module: str) -> set[str]:
    """Return the modules of the project that a module imports, or imports something from."""
    modules = set()
    for full_name in imported_names(module):
        if "regretless." in full_name:
            name = full_name.removeprefix("regretless.")
            modules.add(name if name in PATHS else name.rpartition(".")[0])
    return modules - {""}


def folder_of(module: str) -> str:
    """Return the folder in which a module lies; files right in a package stand for themselves."""
    folder = module if module in FOLDERS else module.rpartition(".")[0]
    return module if folder in MAY_IMPORT else folder


@every_module
def test_a_module_imports_from_packages_below_its_own(name: str) -> None:
    allowed = MAY_IMPORT[name.partition(".")[0]]
    assert {module.partition(".")[0] for module in imported_modules(name)} <= allowed


@every_module
def test_a_module_has_a_docstring(name: str) -> None:
    assert ast.get_docstring(TREES[name])


@every_module
def test_a_module_has_no_global_randomness_no_pickle_and_runs_no_text(name: str) -> None:
    assert not FORBIDDEN.search(TEXTS[name])


def test_only_model_and_agent_view_import_mesa() -> None:
    with_mesa = {name for name in PATHS if "mesa" in imported_packages(name)}
    assert with_mesa == {"market.agent_view", "market.model"}


def test_no_module_imports_what_is_not_installed() -> None:
    """The paper's tables, the benchmarks, and matplotlib, which they draw with."""
    not_installed = {"paper", "benchmarks", "matplotlib"}
    assert [name for name in PATHS if not_installed & imported_packages(name)] == []


def assert_no_circle(arrows: dict[str, set[str]]) -> None:
    """Assert that imports run one way; the error names the circle."""
    assert len(arrows) > 10
    TopologicalSorter(arrows).prepare()


def arrows_between(place_of: Callable[[str], str]) -> dict[str, set[str]]:
    """Return who imports whom; what a package imports of its own modules does not count."""
    arrows: dict[str, set[str]] = defaultdict(set)
    for name in PATHS:
        for target in imported_modules(name):
            is_own_module = name in FOLDERS and target.startswith(name)
            is_own_package = name.startswith(f"{target}.")
            if is_own_module or is_own_package or place_of(name) == place_of(target):
                continue
            arrows[place_of(name)].add(place_of(target))
    return arrows


def test_imports_between_files_run_one_way() -> None:
    assert_no_circle(arrows_between(str))


def test_imports_between_folders_run_one_way() -> None:
    assert_no_circle(arrows_between(folder_of))


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_the_page_for_contributors_names_every_folder(package: str) -> None:
    page = (PROJECT_FOLDER / "CONTRIBUTING.md").read_text(encoding="utf-8")
    row = re.findall(rf"^\| `{package}/` \|.*?\|(.*?)\|", page, re.MULTILINE)[0]
    folders = {path.name for path in (PACKAGES_FOLDER / package).iterdir() if path.is_dir()}
    assert set(re.findall(r"`(\w+)`", row)) == folders - {"__pycache__"}


def test_the_page_for_contributors_names_every_helper_of_tests() -> None:
    page = (PROJECT_FOLDER / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for path in (PROJECT_FOLDER / "tests").rglob("*.py"):
        is_test = path.name.startswith("test_")
        if not is_test and path.parent.name != "golden":
            name = path.relative_to(PROJECT_FOLDER / "tests").as_posix()
            assert f"`{name}`" in page, name


def test_slow_tests_that_are_named_are_there() -> None:
    names = (PROJECT_FOLDER / "tests/slow.txt").read_text(encoding="utf-8").split()
    for name in names:
        file, _, function = name.partition("::")
        assert f"def {function}" in (PROJECT_FOLDER / file).read_text(encoding="utf-8"), name


def assigned_names() -> set[str]:
    """Return the names that some class assigns as attributes, declares or defines."""
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


def remembered_names(tree: ast.Module) -> list[str]:
    """Return the names that a module lists in ``REMEMBERED``, which go into a checkpoint."""
    names = []
    for node in ast.walk(tree):
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        is_list = any(isinstance(t, ast.Name) and t.id == "REMEMBERED" for t in targets)
        value = getattr(node, "value", None)
        if is_list and value is not None:
            names += [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
    return names


def test_what_a_checkpoint_remembers_is_an_attribute() -> None:
    remembered = [name for tree in TREES.values() for name in remembered_names(tree)]
    assert len(remembered) > 10
    assert set(remembered) <= assigned_names()


def is_compiled(function: ast.FunctionDef) -> bool:
    """Say whether a function is decorated with ``@compiled(...)``."""
    decorators = [node.func for node in function.decorator_list if isinstance(node, ast.Call)]
    return any(isinstance(node, ast.Name) and node.id == "compiled" for node in decorators)


def compiled_functions() -> dict[str, ast.FunctionDef]:
    """Return every compiled function of the packages by its dotted name."""
    functions = {}
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and is_compiled(node):
                functions[f"{module}.{node.name}"] = node
    return functions


def test_no_compiled_function_is_a_generator() -> None:
    """Numba keeps a generator's code, but not what a later caller needs in order to compile.

    Where a generator was found in the cache and a function that calls it was not, the caller's
    compilation ended in a KeyError: ``run insider`` did, once some code had changed.
    """
    functions = compiled_functions()
    assert len(functions) > 100
    kinds_of_generator = ast.Yield | ast.YieldFrom | ast.GeneratorExp
    for name, function in functions.items():
        assert not any(isinstance(node, kinds_of_generator) for node in ast.walk(function)), name


def test_a_compiled_function_has_a_docstring() -> None:
    for name, function in compiled_functions().items():
        assert ast.get_docstring(function), name


def names_that_tests_use() -> set[str]:
    """Return dotted names, without ``regretless``, that tests import or find in what they import.

    ``from regretless.market import records`` and ``records.one_hot`` are ``market.records`` and
    ``market.records.one_hot``.
    """
    used = set()
    for path in Path(__file__).parent.rglob("test_*.py"):
        imported = {}
        attributes = []
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                for alias in node.names:
                    full_name = f"{node.module}.{alias.name}"
                    imported[alias.asname or alias.name] = full_name.removeprefix("regretless.")
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                attributes.append((node.value.id, node.attr))
        used |= set(imported.values())
        used |= {f"{imported[name]}.{attr}" for name, attr in attributes if name in imported}
    return used


def names_within(node: ast.AST) -> set[str]:
    """Return every name in a piece of code, attributes included."""
    names = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            names.add(part.id)
        elif isinstance(part, ast.Attribute):
            names.add(part.attr)
    return names


def test_a_test_names_each_compiled_function_or_what_calls_it() -> None:
    """A kernel is compared with a plain reference in NumPy, by its own name or its caller's.

    That a test compares anything is for a reader to see; here a kernel is found that no test can
    have thought of. A caller is a class or function that tests name, or a function that is found
    by its own caller: another kernel, or a function of the same module.
    """
    used = names_that_tests_use()
    kernels = compiled_functions()
    definitions = {}
    definitions_by_name = defaultdict(list)
    for module, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                definitions[f"{module}.{node.name}"] = node
                definitions_by_name[node.name].append(f"{module}.{node.name}")
    functions = {name for name, node in definitions.items() if isinstance(node, ast.FunctionDef)}
    modules_seen = {module: imported_modules(module) | {module} for module in TREES}

    def is_used(full_name: str) -> bool:
        """Say whether tests name it in its module, or in a package that offers it."""
        module, _, name = full_name.rpartition(".")
        parts = module.split(".")
        packages = [".".join(parts[:size]) for size in range(1, len(parts) + 1)]
        return any(f"{package}.{name}" in used for package in packages)

    found = {full_name for full_name in definitions if is_used(full_name)}
    waiting = list(found)
    while waiting:
        caller = waiting.pop()
        module = caller.rpartition(".")[0]
        for name in names_within(definitions[caller]):
            for callee in definitions_by_name[name]:
                module_of_callee = callee.rpartition(".")[0]
                is_in_sight = module_of_callee in modules_seen[module]
                is_function_of_module = callee in functions and module_of_callee == module
                passes_on = callee in kernels or is_function_of_module
                if is_in_sight and passes_on and callee not in found:
                    found.add(callee)
                    waiting.append(callee)
    assert set(kernels) - found == set()
