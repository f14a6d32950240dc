"""Measure how the package reads: `python -m tools.measure_code [--json] [--trace STUDY]`.

It counts what makes a reader turn pages or guess: files too short or too long, modules that exist for one importer,
private functions that are called once, variables that do not say what they hold, nested comprehensions. It judges
nothing; the goals are in CONTRIBUTING.md.
"""

import argparse
import ast
import contextlib
import io
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

PROJECT = Path.cwd()
PACKAGE = "dlperf_study"
#: Names of locals that say nothing of what they hold.
VAGUE_LOCALS = frozenset(
    (
        *("another", "asked", "beside", "brought", "found", "known", "lacking", "number", "numbers", "one", "other"),
        *("others", "own", "place", "places", "said", "seen", "some", "stated", "text", "texts", "told", "whole"),
        *("word", "words"),
    )
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class Measurement:
    """The counts of some modules, which add up."""

    file_lengths: list[int] = field(default_factory=list)
    function_lengths: list[int] = field(default_factory=list)
    one_importer: list[str] = field(default_factory=list)
    private_functions: int = 0
    called_once: int = 0
    vague_locals: Counter[str] = field(default_factory=Counter)
    comprehensions: int = 0
    nested_comprehensions: int = 0

    def add(self, other: "Measurement") -> None:
        """Add the counts of other modules."""
        self.file_lengths += other.file_lengths
        self.function_lengths += other.function_lengths
        self.one_importer += other.one_importer
        self.private_functions += other.private_functions
        self.called_once += other.called_once
        self.vague_locals += other.vague_locals
        self.comprehensions += other.comprehensions
        self.nested_comprehensions += other.nested_comprehensions

    @property
    def lines(self) -> int:
        """Return the lines of all modules."""
        return sum(self.file_lengths)

    def per_thousand(self, count: int) -> float:
        """Return a count per 1,000 lines."""
        return round(1000 * count / max(self.lines, 1), 2)

    def summary(self) -> dict[str, Any]:
        """Return what is printed, by column."""
        return {
            "files": len(self.file_lengths),
            "lines": self.lines,
            "file_median": statistics.median(self.file_lengths),
            "file_p90": percentile_90(self.file_lengths),
            "function_median": statistics.median(self.function_lengths or [0]),
            "function_p90": percentile_90(self.function_lengths or [0]),
            "one_importer": len(self.one_importer),
            "private": self.private_functions,
            "once_percent": round(100 * self.called_once / max(self.private_functions, 1)),
            "vague_per_1000": self.per_thousand(self.vague_locals.total()),
            "compr_per_1000": self.per_thousand(self.comprehensions),
            "nested_per_1000": self.per_thousand(self.nested_comprehensions),
        }


def percentile_90(lengths: list[int]) -> int:
    """Return the length that nine of ten do not exceed."""
    return sorted(lengths)[(9 * len(lengths) - 1) // 10]


def measure(path: Path, importers: set[str]) -> Measurement:
    """Measure one module."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    calls = private_calls(tree, functions)
    measurement = Measurement(
        file_lengths=[len(source.splitlines())],
        function_lengths=[(function.end_lineno or 0) - function.lineno + 1 for function in functions],
        one_importer=[module_name(path)] if len(importers) == 1 else [],
        private_functions=len(calls),
        called_once=sum(count == 1 for count in calls.values()),
    )
    for function in outermost(functions):
        measurement.vague_locals.update(VAGUE_LOCALS & set(locals_of(function)))
    for node in ast.walk(tree):
        if isinstance(node, COMPREHENSIONS):
            measurement.comprehensions += 1
            measurement.nested_comprehensions += is_nested(node)
    return measurement


def private_calls(tree: ast.Module, functions: list[Any]) -> Counter[str]:
    """Return how often the private functions of a module are named outside of their definitions."""
    names = {function.name for function in functions if is_private(function.name)}
    calls = Counter(dict.fromkeys(names, 0))
    for node in ast.walk(tree):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name in names:
            calls[name] += 1
    return calls


def is_private(name: str) -> bool:
    """Return whether a name begins with one underscore."""
    return name.startswith("_") and not name.startswith("__")


def outermost(functions: list[Any]) -> list[Any]:
    """Return the functions that are not inside another one."""
    inner = {id(node) for function in functions for node in ast.walk(function) if node is not function}
    return [function for function in functions if id(function) not in inner]


def locals_of(function: ast.AST) -> Iterator[str]:
    """Yield the variables of a function, without its parameters."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def is_nested(comprehension: ast.AST) -> bool:
    """Return whether a comprehension holds another one."""
    return any(isinstance(node, COMPREHENSIONS) for node in ast.walk(comprehension) if node is not comprehension)


def module_name(path: Path) -> str:
    """Return the dotted name of a module."""
    return ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")


def importers(paths: Iterable[Path]) -> dict[str, set[str]]:
    """Return the modules of the package that import each module."""
    names = {module_name(path): path for path in paths}
    result: dict[str, set[str]] = {name: set() for name in names}
    for name, path in names.items():
        for imported in imports(ast.parse(path.read_text(encoding="utf-8"))):
            module = imported if imported in names else imported.rpartition(".")[0]
            if module in names and module != name:
                result[module].add(name)
    return result


def imports(tree: ast.Module) -> Iterator[str]:
    """Yield what a module imports, as dotted names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def measure_rooms() -> dict[str, Measurement]:
    """Measure the package by room, the modules that are in no room under 'words'."""
    paths = sorted((PROJECT / PACKAGE).rglob("*.py"))
    importers_of = importers(paths)
    rooms: dict[str, Measurement] = {}
    for path in paths:
        folders = path.relative_to(PROJECT / PACKAGE).parts[:-1]
        room = rooms.setdefault(folders[0] if folders else "words", Measurement())
        room.add(measure(path, importers_of[module_name(path)]))
    return rooms


def trace(study: str, outputs: Path) -> dict[str, int]:
    """Return how much of the package one study passes from its file to a table, in all and in each of the stages.

    A file counts if any of its functions is called: also those that only check, or read what no value depends on. The
    evidence must be in `outputs` already: `make study STUDY=... QUICK=1`. A copy of it is used.
    """
    executed: set[tuple[str, str]] = set()
    stages: dict[str, set[str]] = {}
    package = str(PROJECT / PACKAGE) + os.sep

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(package) and not is_import(frame):
            executed.add((frame.f_code.co_filename, frame.f_code.co_qualname))
            stages[next(reversed(stages))].add(frame.f_code.co_filename)

    with tempfile.TemporaryDirectory() as copy:
        name = f"{Path(study).stem}-quick"
        shutil.copytree(outputs / name, Path(copy) / name)
        os.environ["DLPERF_STUDY_OUTPUTS"] = copy
        sys.path.insert(0, str(PROJECT))
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                for stage, function in read_study(study, name):
                    stages[stage] = set()
                    function()
        finally:
            sys.setprofile(None)
    counts = {stage: len(files) for stage, files in stages.items()}
    return {"functions": len(executed), "files": len({file for file, _ in executed}), **counts}


def is_import(frame: FrameType | None) -> bool:
    """Return whether a frame is the body of a module or a class, or is called by one: no configuration passes there."""
    while frame:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__", "").startswith(PACKAGE):
            return True
        frame = frame.f_back
    return False


def read_study(study: str, name: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the stages of a study: plan it, collect it, write the first table of the page on scaling."""
    import importlib

    command_line = importlib.import_module(f"{PACKAGE}.__main__")

    def run(command: str) -> None:
        if command_line.main([command, study, "--quick"]):
            raise SystemExit(f"{command} {study} failed")

    def write_table() -> None:
        notebook = json.loads((PROJECT / "notebooks" / "scaling.ipynb").read_text(encoding="utf-8"))
        # The second cell reads the dataset.
        sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
        exec("\n".join((f"study = {name!r}", sources[1], "tables.scaling(dataset).save(paths)")), {})

    yield "plan", partial(run, "plan")
    yield "collect", partial(run, "collect")
    yield "table", write_table


def print_table(summaries: dict[str, dict[str, Any]]) -> None:
    """Print one line a room and one in total."""
    columns = list(next(iter(summaries.values())))
    print(" ".join(["room".ljust(12), *columns]))
    for room, summary in summaries.items():
        print(" ".join([room.ljust(12), *(str(summary[column]).rjust(len(column)) for column in columns)]))


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure_code", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON, with the modules and the names counted")
    parser.add_argument("--trace", metavar="STUDY", help="count what a measured study passes (params/studies/...)")
    parser.add_argument("--outputs", type=Path, default=Path("outputs"), help="the evidence for --trace")
    options = parser.parse_args()
    rooms = measure_rooms()
    total = Measurement()
    for measurement in rooms.values():
        total.add(measurement)
    summaries = {**{room: measurement.summary() for room, measurement in rooms.items()}, "total": total.summary()}
    passed = trace(options.trace, options.outputs.resolve()) if options.trace else None
    if options.json:
        names = {"one_importer": total.one_importer, "vague_locals": dict(total.vague_locals.most_common())}
        print(json.dumps({"rooms": summaries, "names": names, "trace": passed}, indent=2))
        return
    print_table(summaries)
    if passed:
        stages = ", ".join(f"{passed[stage]} for {stage}" for stage in ("plan", "collect", "table"))
        print(f"YAML to table cell: {passed['functions']} functions in {passed['files']} files ({stages})")


if __name__ == "__main__":
    main()
