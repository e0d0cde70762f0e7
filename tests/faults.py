"""Puts faults into the code, one at a time, and counts how many the tests find.

    python tests/faults.py --out /tmp/faults --seed 1 --count 40 tests/market tests/forecaster

Each fault changes one line of a function of ``market``, ``forecaster`` or ``agents``: a comparison
is turned round or moved by one, two operations are swapped, a constant is another, a statement is
missing. Lines are drawn at random, then the change. A copy of the commit has all faults behind
switches (``fault_switches.py``). The quick tests run once with every switch off, which shows which
test executes which line; then each fault is tried with the tests that execute its line, until four
fail or a minute is over. Lines of compiled kernels cannot report: for them the functions of Python
that call the kernel do.

For each fault the first tests that fail are printed, with the message of the first, from which a
maintainer should see which behaviour broke. A trial that was stopped goes on where it was; delete
the folder to begin again. The faults of a seed are the same for a commit.
"""

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regretless.market.core.randomness import stream

PACKAGES = ("market", "forecaster", "agents")
QUICK = "not catalogue and not crashes and not pages and not browser and not slow"
PYTEST = (sys.executable, "-m", "pytest", "-n", "0", "-p", "fault_switches", "--tb=short")

TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
MOVED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
SWAPPED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
OPPOSITES = {
    "min": "max",
    "minimum": "maximum",
    "argmin": "argmax",
    "floor": "ceil",
    "any": "all",
    "zeros": "ones",
}
OPPOSITES |= {opposite: name for name, opposite in OPPOSITES.items()}


@dataclass(frozen=True)
class Fault:
    """A change of one expression or statement.

    Attributes
    ----------
    file : str
        The file, from the root of the checkout.
    line : int
        The line of the change, from 1.
    kind : str
        What is changed.
    before, after : str
        The code that is replaced, and what replaces it.
    span : tuple of four int
        First line and column, last line and column of what is replaced, as in ``ast``.
    kernel : str
        The compiled function that contains it, or nothing.
    """

    file: str
    line: int
    kind: str
    before: str
    after: str
    span: tuple[int, int, int, int]
    kernel: str

    def switched(self, number: int) -> str:
        """Return code that has the fault while the switch of this number is on."""
        switch = (
            f"FAULT_{number}" if self.kernel else f"__import__('fault_switches').is_on({number})"
        )
        if self.kind == "statement dropped":
            return f"if not {switch}: {self.before}"
        return f"({self.after} if {switch} else {self.before})"

    def overlaps(self, other: "Fault") -> bool:
        """Whether two faults change the same code."""
        if self.file != other.file:
            return False
        return self.span[:2] < other.span[2:] and other.span[:2] < self.span[2:]


def changes_of_expression(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield each kind of change of one expression, and the changed expression."""
    changed: Any = deepcopy(node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        operator = type(node.ops[0])
        changed.ops = [TURNED[operator]()]
        yield "comparison turned round", changed
        if operator in MOVED:
            changed = deepcopy(changed)
            changed.ops = [MOVED[operator]()]
            yield "comparison moved by one", changed
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
        changed.op = SWAPPED[type(node.op)]()
        yield "operation swapped", changed
    elif isinstance(node, ast.BoolOp):
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and and or swapped", changed
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "sign or negation dropped", node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "constant changed", ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield "constant off by one", ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield "constant changed", ast.Constant(2 * node.value + 0.5)
    elif (
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and node.attr in OPPOSITES
    ):
        changed.attr = OPPOSITES[node.attr]
        yield "opposite function", changed
    elif isinstance(node, ast.Name) and node.id in {"min", "max"}:
        changed.id = OPPOSITES[node.id]
        yield "opposite function", changed


def is_droppable(statement: ast.stmt) -> bool:
    """Whether the function is still valid without this statement; docstrings do not count."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call)
    if isinstance(statement, ast.Assign):
        return not isinstance(statement.targets[0], ast.Name | ast.Tuple)
    return isinstance(statement, ast.AugAssign | ast.Continue)


def own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions of a statement, without those of statements within it."""
    waiting = [
        child
        for field, child in ast.iter_fields(statement)
        if field not in {"body", "orelse", "finalbody", "handlers", "cases", "annotation"}
    ]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting.extend(part)
        elif isinstance(part, ast.AST) and not isinstance(part, ast.JoinedStr):
            yield part
            waiting.extend(value for _, value in ast.iter_fields(part))


def is_compiled(function: ast.FunctionDef) -> bool:
    """Whether Numba compiles the function."""
    return any("compiled" in ast.unparse(decorator) for decorator in function.decorator_list)


def faults_of_file(file: str, source: str) -> list[Fault]:
    """Return every fault that the functions of a file can have."""
    faults = []

    def visit(statements: list[ast.stmt], kernel: str, *, is_class: bool = False) -> None:
        for statement in statements:
            if isinstance(statement, ast.FunctionDef):
                inner = statement.name if is_compiled(statement) else kernel
                visit(statement.body, inner)
                continue
            if isinstance(statement, ast.ClassDef):
                visit(statement.body, kernel, is_class=True)
                continue
            if is_class:  # a field of a class: it is executed by no test
                continue
            if isinstance(statement, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
                continue
            nodes = []
            if is_droppable(statement):
                nodes.append(("statement dropped", statement, "pass"))
            for node in own_expressions(statement):
                for kind, changed in changes_of_expression(node):
                    nodes.append((kind, node, f"({ast.unparse(changed)})"))
            for kind, node, after in nodes:
                span = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
                faults.append(
                    Fault(
                        file,
                        node.lineno,
                        kind,
                        before=ast.unparse(node),
                        after=after,
                        span=span,
                        kernel=kernel,
                    )
                )
            for field in ("body", "orelse", "finalbody"):
                visit(getattr(statement, field, []), kernel)
            for handler in getattr(statement, "handlers", []):
                visit(handler.body, kernel)
            for case in getattr(statement, "cases", []):
                visit(case.body, kernel)

    for statement in ast.parse(source).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            visit([statement], "")
    return faults


def choose_faults(tree: Path, seed: int, count: int) -> list[Fault]:
    """Draw lines, all with the same probability, and for each one of its faults."""
    faults_of_line: dict[tuple[str, int], list[Fault]] = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((tree / package).rglob("*.py")):
            file = path.relative_to(tree).as_posix()
            for fault in faults_of_file(file, path.read_text(encoding="utf-8")):
                faults_of_line[file, fault.line].append(fault)
    lines = list(faults_of_line)
    rng = stream(seed, "faults")
    chosen: list[Fault] = []
    for position in rng.permutation(len(lines)):
        possible = faults_of_line[lines[position]]
        fault = possible[int(rng.integers(len(possible)))]
        if not any(fault.overlaps(other) for other in chosen):
            chosen.append(fault)
        if len(chosen) == count:
            break
    return chosen


class KernelCallers:
    """Where compiled functions are named: by other kernels, and by functions of Python."""

    def __init__(self, tree: Path) -> None:
        self.trees: dict[str, ast.Module] = {}
        for package in PACKAGES:
            for path in sorted((tree / package).rglob("*.py")):
                file = path.relative_to(tree).as_posix()
                self.trees[file] = ast.parse(path.read_text(encoding="utf-8"))

    def _functions_naming(self, home: str, name: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        """Yield the functions, with their files, that name what a module defines."""
        for file, module in self.trees.items():
            names_it = file == home
            aliases = set()  # of the module
            for node in ast.walk(module):
                if isinstance(node, ast.ImportFrom):
                    path = (node.module or "").removeprefix("regretless.").replace(".", "/")
                    for alias in node.names:
                        names_it |= f"{path}.py" == home and alias.name == name
                        if f"{path}/{alias.name}.py" == home:
                            aliases.add(alias.asname or alias.name)
            for node in ast.walk(module):
                if not isinstance(node, ast.FunctionDef) or (file == home and node.name == name):
                    continue
                for part in ast.walk(node):
                    is_name = names_it and isinstance(part, ast.Name) and part.id == name
                    is_attribute = isinstance(part, ast.Attribute) and part.attr == name
                    if is_name or (is_attribute and ast.unparse(part.value) in aliases):
                        yield file, node
                        break

    def reach(self, file: str, kernel: str) -> tuple[set[str], set[tuple[str, int]]]:
        """Return files of kernels that call it, and a line of each function that calls those."""
        files: set[str] = set()
        lines: set[tuple[str, int]] = set()
        waiting = [(file, kernel)]
        reached_kernels = {(file, kernel)}
        while waiting:
            for caller_file, function in self._functions_naming(*waiting.pop()):
                caller = (caller_file, function.name)
                if not is_compiled(function):
                    first = function.body[1 if ast.get_docstring(function) else 0 :]
                    if first:
                        lines.add((caller_file, first[0].lineno))
                elif caller not in reached_kernels:
                    reached_kernels.add(caller)
                    waiting.append(caller)
                    files.add(caller_file)
        return files, lines


def with_switches(source: str, faults: dict[int, Fault], probes: dict[int, list[int]]) -> str:
    """Return the source of a file with faults behind switches.

    ``probes`` has lines before which the numbers of faults of compiled functions are reported.
    """
    lines = source.encode().splitlines(keepends=True)  # columns of ast count bytes
    kernel_switches = [f"FAULT_{number} = False" for number in faults if faults[number].kernel]
    lines += [f"{line}\n".encode() for line in kernel_switches]
    changes: list[tuple[int, int, int]] = []  # line, column, number of the fault
    for number, fault in faults.items():
        changes.append((fault.span[0], fault.span[1], number))
    changes += [(line, -1, number) for line in probes for number in probes[line]]
    for line, column, number in sorted(changes, reverse=True):
        head = lines[line - 1]
        if column < 0:
            indent = head[: len(head) - len(head.lstrip())]
            call = f"__import__('fault_switches').is_on({number})\n"
            lines.insert(line - 1, indent + call.encode())
            continue
        last, last_column = faults[number].span[2:]
        tail = lines[last - 1][last_column:]
        changed = head[:column] + faults[number].switched(number).encode() + tail
        lines[line - 1 : last] = [changed]
    return b"".join(lines).decode()


def prepare(folder: Path, commit: str, *, seed: int, count: int) -> None:
    """Copy a commit into the folder, with its faults behind switches and a list of them."""
    tree = folder / "tree"
    tree.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", tree], input=archive.stdout, check=True)
    faults = choose_faults(tree, seed, count)
    callers = KernelCallers(tree)
    rows = []
    probes: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    faults_of_files: dict[str, dict[int, Fault]] = defaultdict(dict)
    for number, fault in enumerate(faults):
        row = {"number": number, **asdict(fault), "compiled_files": []}
        faults_of_files[fault.file][number] = fault
        if fault.kernel:
            files, lines = callers.reach(fault.file, fault.kernel)
            row["compiled_files"] = sorted({fault.file, *files})
            for file, line in lines:
                probes[file][line].append(number)
        rows.append(row)
    for file in {*probes, *faults_of_files}:
        path = tree / file
        source = path.read_text(encoding="utf-8")
        switched = with_switches(source, faults_of_files[file], probes[file])
        ast.parse(switched)
        path.write_text(switched, encoding="utf-8")
    (folder / "faults.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def run_trial(folder: Path, tests: list[str]) -> None:
    """Run pytest in the copy, with the plugin that tries one fault after the other."""
    plugin = Path(__file__).with_name("fault_switches.py")
    (folder / "plugin").mkdir(exist_ok=True)
    shutil.copy(plugin, folder / "plugin")  # by itself: helpers of tests are those of the commit
    places = [str(folder / "plugin"), str(folder / "tree")]
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(places),
        "NUMBA_CACHE_DIR": str(folder / "kernels"),
        "FAULTS": str(folder),
    }
    command = [*PYTEST, "-m", QUICK, *tests]
    with (folder / "pytest.txt").open("w", encoding="utf-8") as output:
        subprocess.run(
            command, cwd=folder / "tree", env=variables, stdout=output, stderr=output, check=False
        )


def results(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield each fault that was tried, with what became of it."""
    started: dict[int, list[str]] = defaultdict(list)
    failures: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for line in (folder / "events.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["event"] == "started":
            started[event["fault"]].append(event["test"])
        elif event["event"] == "reported" and event["outcome"] == "failed":
            failures[event["fault"]].append(event)
    for fault in json.loads((folder / "faults.json").read_text(encoding="utf-8")):
        number = fault["number"]
        path = folder / f"result-{number}.json"
        if not path.exists():
            continue
        result = fault | json.loads(path.read_text(encoding="utf-8"))
        result["run"] = len(started[number])
        if number in failures:
            result["outcome"] = "found"
            result["by"] = list(dict.fromkeys(event["test"] for event in failures[number]))
            result["says"] = failures[number][0]["message"]
        elif not result["tests"]:
            result["outcome"] = "not executed"
        elif not result["has_ended"]:
            result["outcome"] = "out of time"
            result["by"] = started[number][-1:]  # it may hang
        else:
            result["outcome"] = "survived"
        yield result


def main() -> None:
    """Try the faults of a seed, print each with what became of it, and count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder for copy and results")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--commit", default="HEAD", help="which commit is tried")
    parser.add_argument("tests", nargs="*", help="which tests; all quick ones unless given")
    options = parser.parse_args()
    folder = options.out.resolve()
    if not (folder / "faults.json").exists():
        prepare(folder, options.commit, seed=options.seed, count=options.count)
    run_trial(folder, options.tests)
    outcomes: dict[str, int] = defaultdict(int)
    for result in results(folder):
        outcomes[result["outcome"]] += 1
        print(f"{result['number']:3d} {result['file']}:{result['line']} {result['kind']}")
        print(f"      {result['before'][:90]}  ->  {result['after'][:90]}")
        print(f"      {result['outcome']} ({result['run']} of {result['tests']} tests)")
        for test in result.get("by", ()):
            print(f"      {test}")
        for line in result.get("says", "").splitlines()[:3]:
            print(f"        {line[:110]}")
    print(", ".join(f"{outcome}: {count}" for outcome, count in outcomes.items()))


if __name__ == "__main__":
    main()
