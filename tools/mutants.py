"""Change a module in one place after another, and list the changes that its tests do not notice.

`python -m tools.mutants dlperf_study/metrics/scaling.py ...`, with `cosmic-ray` installed. It works in a copy of the
project. Each change is tested in a process that is forked after everything else is imported: first by the tests that
import the module, then, if these pass, by all quick tests of its room. Changes that make no difference are listed with
the reason in `tests/equivalent_mutants.yaml` and are not tested.
"""

import argparse
import ast
import gc
import importlib
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from importlib.metadata import entry_points
from pathlib import Path

import yaml

try:
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.operators.operator import Operator
    from cosmic_ray.plugins import get_operator
except ImportError as error:
    sys.exit(f"{error.name} is missing: pip install --target FOLDER cosmic-ray, and put FOLDER into PYTHONPATH")

PROJECT = Path(__file__).resolve().parent.parent
#: Of the file that lists changes that make no difference: those of any module.
EVERYWHERE = "everywhere"
EQUIVALENT = Path("tests/equivalent_mutants.yaml")
COMPARISONS = (
    *("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "LtE_Gt", "Gt_LtE", "GtE_Lt"),
    *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),
)
ARITHMETIC = ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "Pow_Mul", "FloorDiv_Mul", "Mod_Mul")
OPERATORS = (
    *(f"ReplaceComparisonOperator_{name}" for name in COMPARISONS),
    *(f"ReplaceBinaryOperator_{name}" for name in ARITHMETIC),
    *("ReplaceUnaryOperator_USub_UAdd", "AddNot", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "NumberReplacer", "ZeroIterationForLoop"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer", "RemoveDecorator"),
)
#: Functions, each replaced by its opposite: the slowest rank is not the fastest.
OPPOSITES = {"max": "min", "min": "max", "any": "all", "all": "any", "argmax": "argmin", "argmin": "argmax"}
QUICK_TESTS = "not slow and not cluster and not browser and not alone"


class ReplaceName(Operator):
    """Replaces a function by its opposite."""

    def mutation_positions(self, node):
        """Return where a node is such a name: there, or nowhere."""
        is_opposite = node.type == "name" and node.value in OPPOSITES
        return [(node.start_pos, node.end_pos)] if is_opposite else []

    def mutate(self, node, index):
        """Replace the name."""
        node.value = OPPOSITES[node.value]
        return node

    @classmethod
    def examples(cls):
        """Return no examples."""
        return ()


@dataclass(frozen=True)
class Mutant:
    """A module with one change: its code, and the lines before and after."""

    code: str
    line: int
    before: str
    after: str


def mutants(source: str) -> Iterator[Mutant]:
    """Return each change of a module that can be compiled, once."""
    codes, nodes = {source}, list(ast_nodes(get_ast(source)))
    for operator in (ReplaceName(), *(get_operator(f"core/{name}")() for name in OPERATORS)):
        positions = sum(len(list(operator.mutation_positions(node))) for node in nodes)
        for occurrence in range(positions):
            code = mutate_code(source, operator, occurrence)
            if code and code not in codes and _can_be_compiled(code):
                codes.add(code)
                yield _mutant(source, code)


def _can_be_compiled(code: str) -> bool:
    try:
        compile(code, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def _mutant(source: str, code: str) -> Mutant:
    lines = list(unified_diff(source.splitlines(), code.splitlines(), lineterm="", n=0))[2:]
    line_number = int(lines[0].split()[1].removeprefix("-").partition(",")[0])
    return Mutant(code, line_number, _changed_code(lines, "-"), _changed_code(lines, "+"))


def _changed_code(lines: Sequence[str], sign: str) -> str:
    """Return the lines of a diff with this sign, without blank ones and comments, as one."""
    code = [line[1:].strip() for line in lines if line.startswith(sign)]
    return " ".join(line for line in code if line and not line.startswith("#"))


def tests_of(module: Path) -> list[list[str]]:
    """Return the tests to run one after another: the files that import the module, then all of its room."""
    tests = Path("tests", *module.parent.parts[1:])
    while not tests.is_dir():
        tests = tests.parent
    name = ".".join(module.with_suffix("").parts)
    importing = [str(file) for file in tests.rglob("test_*.py") if name in imported_modules(file)]
    importing.sort(key=lambda file: (module.stem not in file, file))
    return [importing, [str(tests)]] if importing else [[str(tests)]]


def preload(tests: Path) -> None:
    """Import pytest, its plugins and what tests import, so that each fork imports only what a change affects."""
    plugins = {entry.module for entry in entry_points(group="pytest11")}
    files = [*Path("tests").glob("*.py"), *tests.rglob("*.py")]
    for name in plugins.union(*map(imported_modules, files)):
        if name.partition(".")[0] not in ("tests", "tools", "benchmarks"):
            with suppress(ImportError):
                importlib.import_module(name)


def imported_modules(file: Path) -> set[str]:
    """Return the names that a file imports from: of modules, and of what may be modules."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
    return names


def forget(module: Path) -> None:
    """Remove a module, and all that import it, from the imported ones."""
    files: dict[str, Path] = {}
    for name, imported_module in sys.modules.items():
        if name.startswith("dlperf_study."):
            files[name] = Path(str(vars(imported_module).get("__file__")))
    imports = {name: imported_modules(file) for name, file in files.items() if file.suffix == ".py"}
    forgotten, newly = set(), {".".join(module.with_suffix("").parts)}
    while newly:
        forgotten |= newly
        newly = {name for name, imported in imports.items() if imported & newly} - forgotten
    for name in forgotten:
        sys.modules.pop(name, None)
        parent, _, child = name.rpartition(".")
        if parent in sys.modules:
            vars(sys.modules[parent]).pop(child, None)


def is_noticed(module: Path, code: str, tests: Sequence[Sequence[str]], seconds: float | None = None) -> bool:
    """Return whether the tests fail with that code in the copy of the project, or take longer than ``seconds``."""
    module.write_text(code, encoding="utf-8")
    for files in tests:
        process = multiprocessing.get_context("fork").Process(target=_run_tests, args=(files,))
        process.start()
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join()
        if process.exitcode != 0:
            return True
    return False


def _run_tests(files: Sequence[str]) -> None:
    import pytest

    output = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(output, stream.fileno())
    # Plugins that are imported already can't be rewritten, which is a warning, and warnings are errors.
    options = ("-x", "-q", "-p", "no:cacheprovider", "--tb=no", "-W", "ignore::pytest.PytestAssertRewriteWarning")
    os._exit(int(pytest.main([*files, "-m", QUICK_TESTS, *options])))


def print_orphans(module: Path, direct: bool, every: int) -> int:
    """Print what the tests of a module do not notice; return how many changes that is."""
    source, tests = module.read_text(encoding="utf-8"), tests_of(module)[: 1 if direct else None]
    forget(module)
    # The collector of a fork need not look at what its parent imported.
    gc.freeze()
    start = time.monotonic()
    if is_noticed(module, source, tests):
        sys.exit(f"{module}: its tests fail without any change: {tests}")
    seconds = 10 + 3 * (time.monotonic() - start)
    # Nothing may be imported from what was compiled before a change.
    sys.dont_write_bytecode, os.environ["PYTHONDONTWRITEBYTECODE"] = True, "1"
    changes = list(mutants(source))
    different = without_equivalent(changes, module)
    orphans, tested = 0, different[::every]
    for mutant in tested:
        if not is_noticed(module, mutant.code, tests, seconds):
            orphans += 1
            print(f"{module}:{mutant.line}\n  - {mutant.before}\n  + {mutant.after}", flush=True)
    module.write_text(source, encoding="utf-8")
    counts = f"{len(changes)} mutants, {len(changes) - len(different)} equivalent, {len(tested)} tested"
    print(f"{module}: {counts}, {orphans} survive", flush=True)
    return orphans


def without_equivalent(changes: Sequence[Mutant], module: Path) -> list[Mutant]:
    """Return the changes of a module that are not listed as making no difference."""
    everywhere, equivalent = listed_changes(EVERYWHERE), listed_changes(str(module))
    different = []
    for mutant in changes:
        is_usual = any(mutant.before.replace(*change) == mutant.after for change in everywhere)
        if not is_usual and (mutant.before, mutant.after) not in equivalent:
            different.append(mutant)
    return different


def listed_changes(section: str) -> set[tuple[str, str]]:
    """Return what is before and after the changes of a section of the list: lines, or parts of lines of any module."""
    listed = yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8"))
    return {(item["before"], item["after"]) for item in listed.get(section, ())}


def copy_project(folder: Path) -> None:
    """Copy what git tracks, and new files."""
    command = ["git", "-C", str(PROJECT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    for path in filter(Path.is_file, (PROJECT / name for name in names)):
        copy = folder / path.relative_to(PROJECT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def main() -> int:
    """Test the modules that are given."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("modules", nargs="+", type=Path, metavar="MODULE", help="a file of dlperf_study/")
    parser.add_argument("--direct", action="store_true", help="only the tests that import the module, if any do")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth change (1)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy_project(Path(folder))
        os.chdir(folder)
        # Nothing may be imported from the checkout.
        sys.path[0] = os.environ["PYTHONPATH"] = folder
        orphans = 0
        for module in options.modules:
            preload(Path(tests_of(module)[-1][0]))
            orphans += print_orphans(module, options.direct, options.every)
    return 1 if orphans else 0


if __name__ == "__main__":
    sys.exit(main())
