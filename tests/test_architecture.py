"""The table of docs/architecture.md, held against the source."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from dlperf_study import launchers
from dlperf_study.paths import PROJECT

PACKAGE = PROJECT / "dlperf_study"
WORDS = (
    *("errors", "paths", "writing", "lifeline", "interruption", "registry", "wording", "diagnostic", "arrays"),
    "terminal",
)
#: What each room may import of this package, besides itself and the words.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "words": (),
    "study": (),
    "columns": ("study",),
    "models": (),
    "image_sets": (),
    "data_sources": ("study", "image_sets"),
    "frameworks": ("study", "models", "data_sources"),
    "cluster": ("study", "frameworks", "data_sources", "image_sets"),
    "plan": ("study", "cluster"),
    "supervision": (),
    "guard": ("study", "cluster", "image_sets", "supervision", "evidence"),
    "check": ("study", "cluster", "frameworks", "image_sets", "guard"),
    "slurm": ("study", "cluster", "guard"),
    "kubernetes": ("study", "cluster", "guard"),
    "launchers": ("study", "cluster", "guard", "check", "slurm", "kubernetes"),
    "evidence": ("study", "cluster", "supervision"),
    "worker": ("study", "models", "data_sources", "frameworks", "cluster", "evidence"),
    "execution": (
        *("study", "cluster", "plan", "models", "data_sources", "frameworks", "image_sets", "guard", "launchers"),
        *("evidence", "supervision"),
    ),
    "logs": ("study",),
    "published": ("study", "columns"),
    "analysis": ("study", "plan", "evidence", "logs", "published"),
    "dataset": ("study", "columns", "plan", "evidence", "analysis"),
    "ingest": ("study", "columns", "plan", "logs", "analysis", "dataset"),
    "audit": ("study", "columns", "published", "analysis", "dataset"),
    "selftest": ("study", "evidence", "analysis", "dataset"),
    "history": ("study", "columns", "plan", "analysis", "dataset"),
    "report": ("study", "columns", "plan", "analysis", "dataset", "history", "audit", "selftest", "supervision"),
    "explorer": ("study", "columns", "analysis", "dataset", "history", "report"),
    "paper": ("study", "columns", "plan", "analysis", "dataset", "report"),
    "commands": ("everything",),
}
READING_ROOMS = (
    "plan",
    "logs",
    "published",
    "analysis",
    "dataset",
    "ingest",
    "history",
    "audit",
    "selftest",
    "report",
    "paper",
)
TRAINING_LIBRARIES = {"paddle", "torch", "horovod", "tensorflow", "mxnet", "nvidia", "cupy", "zmq"}
#: What every training process imports, whatever its image holds.
TRAINING_ROOMS = ("worker", "frameworks", "models", "data_sources", "image_sets")
TRAINING_MODULES = (
    "study.configuration",
    "study.job",
    "study.parameter",
    "cluster.cluster",
    "cluster.hardware",
    "cluster.compiler_support",
    "cluster.gpu_support",
    "cluster.software",
    "errors",
    "paths",
    "writing",
    "lifeline",
    "registry",
    "wording",
)
#: Who may print: the command line, programs whose output is what they are for, and who shows a queue in a notebook.
MAY_PRINT = (
    *(
        "commands.output",
        "commands.measuring",
        "__main__",
        "cluster.compiler_support",
        "cluster.gpu_support",
        "cluster.software",
        "supervision.notebook",
    ),
    *("kubernetes.coordinator_pod", "kubernetes.image_facts", "kubernetes.remote_exec", "slurm.watch"),
)
MOST_LINES_OF_A_FUNCTION, MOST_LINES_OF_A_FILE = 40, 400

FILES = sorted(PACKAGE.rglob("*.py"))


def module(file: Path) -> str:
    """Return the name of a module below the package; of the package itself, the empty text."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(name: str) -> str:
    """Return the room of a module; the command line and the package itself have none."""
    first = name.partition(".")[0]
    return "words" if first in WORDS else first if first in MAY_IMPORT else ""


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def imports(node: ast.AST) -> Iterator[str]:
    """Yield what is imported, as dotted names."""
    for part in ast.walk(node):
        if isinstance(part, ast.Import):
            yield from (alias.name for alias in part.names)
        elif isinstance(part, ast.ImportFrom):
            assert part.level == 0, "relative import"
            yield from (f"{part.module}.{alias.name}" for alias in part.names)


def at_module_level(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the import statements that run when a module is imported."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.Import | ast.ImportFrom):
            yield part
        elif not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not _for_types_only(part):
            yield from at_module_level(part)


def _for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def own(names: Iterator[str]) -> set[str]:
    return {name.removeprefix("dlperf_study.") for name in names if name.startswith("dlperf_study.")}


def library(name: str) -> str:
    return name.partition(".")[0]


def test_every_folder_is_a_room_of_the_table() -> None:
    assert {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()} <= {*MAY_IMPORT, *WORDS}


def test_the_table_is_the_one_in_the_documentation() -> None:
    text = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| `")]
    written = {row[0].strip("`/"): tuple(row[-1].split(", ")) for row in rows if row[0].endswith("/`")}
    assert {name: tuple(word for word in words if word != "words") for name, words in written.items()} == {
        name: allowed for name, allowed in MAY_IMPORT.items() if name != "words"
    }


def test_imports_go_downwards_only() -> None:
    upwards = {module(file): _upward_imports(file) for file in FILES if room(module(file))}
    assert {name: names for name, names in upwards.items() if names} == {}


def _upward_imports(file: Path) -> set[str]:
    here = room(module(file))
    allowed = {here, "words", *(MAY_IMPORT if MAY_IMPORT[here] == ("everything",) else MAY_IMPORT[here])}
    used = own(imports(tree(file))) - {"__version__"}
    return {name for name in used if room(name) not in allowed}


def test_training_libraries_are_imported_inside_functions() -> None:
    early = {module(file): libraries_at_import(file) & TRAINING_LIBRARIES for file in FILES}
    assert {name: libraries for name, libraries in early.items() if libraries} == {}


def libraries_at_import(file: Path) -> set[str]:
    return {library(name) for statement in at_module_level(tree(file)) for name in imports(statement)}


@pytest.mark.parametrize("where", [*READING_ROOMS, "study"])
def test_the_reading_arm_needs_no_training_library_at_all(where: str) -> None:
    used = {library(name) for file in (PACKAGE / where).rglob("*.py") for name in imports(tree(file))}
    assert used & TRAINING_LIBRARIES == set()


def test_what_a_training_process_imports_is_the_standard_library() -> None:
    available = {*sys.stdlib_module_names, "dlperf_study"}
    foreign = {module(file): libraries_at_import(file) - available for file in FILES if is_imported_by_training(file)}
    assert foreign
    assert {name: libraries for name, libraries in foreign.items() if libraries} == {}


def is_imported_by_training(file: Path) -> bool:
    return room(module(file)) in TRAINING_ROOMS or module(file) in TRAINING_MODULES


def test_a_training_process_imports_nothing_but_the_standard_library() -> None:
    """Without site-packages: only the interpreter and this package are there."""
    wanted = [module(file) for file in FILES if is_imported_by_training(file)]
    lines = [f"import sys; sys.path.insert(0, {str(PROJECT)!r})", *(f"import dlperf_study.{name}" for name in wanted)]
    lines.append("print(*sorted({n.partition('.')[0] for n in sys.modules} - set(sys.stdlib_module_names)))")
    command = [sys.executable, "-I", "-S", "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"__main__", "dlperf_study"} - ({"__main__"} & set(sys.stdlib_module_names))


def test_functions_are_short() -> None:
    lengths = {f"{module(file)}.{name}": lines for file in FILES for name, lines in functions_of(file)}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION} == {}


def functions_of(file: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or 0) - node.lineno + 1


def test_files_are_short() -> None:
    lengths = {module(file): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FILE} == {}


def test_only_programs_print() -> None:
    assert {module(file) for file in FILES if prints(file)} <= set(MAY_PRINT)


def prints(file: Path) -> bool:
    calls = [node.func for node in ast.walk(tree(file)) if isinstance(node, ast.Call)]
    return any(isinstance(call, ast.Name) and call.id == "print" for call in calls)


@pytest.mark.parametrize("name", launchers.names())
def test_only_a_launcher_and_its_room_contain_its_name(name: str) -> None:
    """In other rooms a command or a strategy may have the same name; ``cluster.software`` lists rooms."""
    for lower_room in ("study", "cluster", "plan", "check", "evidence", "execution"):
        for file in {*(PACKAGE / lower_room).rglob("*.py")} - {PACKAGE / "cluster" / "software.py"}:
            constants = {node.value for node in ast.walk(tree(file)) if isinstance(node, ast.Constant)}
            attributes = {node.attr for node in ast.walk(tree(file)) if isinstance(node, ast.Attribute)}
            assert name not in constants | attributes, file
