"""The table of docs/architecture.md, held against the source."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from dlperf_study.core.paths import PROJECT
from dlperf_study.machines import launchers
from tests.package_files import FILES, PACKAGE, nodes, tree

#: How many files the page names on the ways from a log line to a cell and from a key to a process.
MIN_NAMED_FILES = 30
#: What each room may import of this package, besides itself.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "core": (),
    "study": ("core",),
    "records": ("core", "study"),
    "training": ("core", "study", "records"),
    "programs": ("core", "study", "records", "training"),
    "machines": ("core", "study", "records"),
    "logs": ("core", "study"),
    "metrics": ("core", "study", "records", "logs"),
    "dataset": ("core", "study", "records", "logs", "metrics"),
    "execution": ("core", "study", "records", "training", "programs", "machines", "logs"),
    "audit": ("core", "study", "metrics", "dataset"),
    "prediction": ("core", "study", "metrics", "dataset", "audit"),
    "selftest": ("core", "study", "records", "metrics", "dataset"),
    "findings": ("core", "study", "training", "metrics", "dataset", "audit", "prediction", "selftest"),
    "report": (
        "core",
        "study",
        "training",
        "metrics",
        "dataset",
        "audit",
        "prediction",
        "selftest",
        "findings",
        "machines",
    ),
    "api": ("core", "study", "logs", "metrics", "dataset", "audit", "prediction", "findings", "report", "machines"),
    "cli": ("everything",),
}
READING_ROOMS = ("logs", "metrics", "dataset", "audit", "prediction", "selftest", "findings", "report", "api")
TRAINING_LIBRARIES = {"paddle", "torch", "horovod", "tensorflow", "mxnet", "nvidia", "cupy", "zmq"}
#: What every training process imports, whatever its image holds.
TRAINING_ROOMS = ("training",)
TRAINING_MODULES = (
    *("study.configuration", "study.job", "study.parameter"),
    *("machines.cluster", "machines.cluster.hardware", "machines.cluster.software"),
    *(
        "core.errors",
        "core.paths",
        "core.writing",
        "core.signals",
        "core.registry",
        "core.wording",
        "core.code_identity",
    ),
)
#: Who may print: the command line, programs whose output is what they are for, and who shows a queue in a notebook.
MAY_PRINT = (
    *(
        "cli.output",
        "cli.measuring",
        "__main__",
        "training.questions",
        "machines.cluster.software",
        "machines.supervision.notebook_kernel",
    ),
    *(
        "machines.kubernetes.coordinator_pod",
        "machines.kubernetes.remote_exec",
        "machines.slurm.submitted_job",
    ),
)
MOST_LINES_OF_A_FUNCTION, MOST_LINES_OF_A_FILE = 40, 400
#: It is one file so that it can be copied into any repository.
COPIED_FILE = PACKAGE / "record.py"


def module(file: Path) -> str:
    """Return the name of a module below the package; of the package itself, the empty text."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(name: str) -> str:
    """Return the room of a module; the command line and the package itself have none."""
    first = name.partition(".")[0]
    return first if first in MAY_IMPORT else ""


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


def test_every_folder_is_a_room_of_the_table():
    assert {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()} <= {*MAY_IMPORT}


def test_the_table_is_the_one_in_the_documentation():
    text = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| `")]
    written = {row[0].strip("`/"): tuple(row[-1].split(", ")) for row in rows if row[0].endswith("/`")}
    assert written == {name: allowed or ("nothing",) for name, allowed in MAY_IMPORT.items()}


def test_imports_go_downwards_only():
    upwards = {module(file): _upward_imports(file) for file in FILES if room(module(file))}
    assert {name: names for name, names in upwards.items() if names} == {}


def _upward_imports(file: Path) -> set[str]:
    here = room(module(file))
    allowed = {here, *(MAY_IMPORT if MAY_IMPORT[here] == ("everything",) else MAY_IMPORT[here])}
    used = own(imports(tree(file))) - {"__version__"}
    # The recorder imports nothing, and says what is asked of it.
    return {name for name in used if room(name) not in allowed and not name.startswith("record.")}


def test_no_modules_import_each_other():
    """Whether such an import fails depends on which of them a program happens to import first."""
    modules = {module(file) for file in FILES}
    TopologicalSorter({module(file): _modules_at_import(file, modules) for file in FILES}).prepare()


def _modules_at_import(file: Path, modules: set[str]) -> set[str]:
    """Return the modules of this package whose import the import of a file begins, packages of them included."""
    here, used = module(file), set()
    for name in own(name for statement in at_module_level(tree(file)) for name in imports(statement)):
        parts = name.split(".")
        begun = {".".join(parts[:count]) for count in range(1, len(parts) + 1)} & modules
        # The packages that a module is in are imported before it.
        used |= {package for package in begun if not f"{here}.".startswith(f"{package}.")}
    return used


def test_training_libraries_are_imported_inside_functions():
    early = {module(file): libraries_at_import(file) & TRAINING_LIBRARIES for file in FILES}
    assert {name: libraries for name, libraries in early.items() if libraries} == {}


def libraries_at_import(file: Path) -> set[str]:
    return {library(name) for statement in at_module_level(tree(file)) for name in imports(statement)}


@pytest.mark.parametrize("where", [*READING_ROOMS, "study"])
def test_the_reading_arm_needs_no_training_library_at_all(where):
    used = {library(name) for file in (PACKAGE / where).rglob("*.py") for name in imports(tree(file))}
    assert used & TRAINING_LIBRARIES == set()


def test_what_a_training_process_imports_is_the_standard_library():
    available = {*sys.stdlib_module_names, "dlperf_study"}
    foreign = {module(file): libraries_at_import(file) - available for file in FILES if is_imported_by_training(file)}
    assert foreign
    assert {name: libraries for name, libraries in foreign.items() if libraries} == {}


def is_imported_by_training(file: Path) -> bool:
    return room(module(file)) in TRAINING_ROOMS or module(file) in TRAINING_MODULES


def test_a_training_process_imports_nothing_but_the_standard_library():
    """Without site-packages: only the interpreter and this package are there."""
    wanted = [module(file) for file in FILES if is_imported_by_training(file)]
    lines = [f"import sys; sys.path.insert(0, {str(PROJECT)!r})", *(f"import dlperf_study.{name}" for name in wanted)]
    lines.append("print(*sorted({n.partition('.')[0] for n in sys.modules} - set(sys.stdlib_module_names)))")
    command = [sys.executable, "-I", "-S", "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"__main__", "dlperf_study"} - ({"__main__"} & set(sys.stdlib_module_names))


def test_functions_and_files_are_short_and_only_programs_print():
    lengths = {f"{module(file)}.{name}": lines for file in FILES for name, lines in functions_of(file)}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION} == {}
    lengths = {
        module(file): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES if file != COPIED_FILE
    }
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FILE} == {}
    assert {module(file) for file in FILES if prints(file)} <= set(MAY_PRINT)


def functions_of(file: Path) -> Iterator[tuple[str, int]]:
    for node in nodes(file):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or 0) - node.lineno + 1


def prints(file: Path) -> bool:
    calls = [node.func for node in nodes(file) if isinstance(node, ast.Call)]
    return any(isinstance(call, ast.Name) and call.id == "print" for call in calls)


@pytest.mark.parametrize("name", launchers.names())
def test_only_a_launcher_and_its_room_contain_its_name(name):
    """In other rooms a command or a strategy may have the same name."""
    for lower_room in ("study", "machines/cluster", "machines/check", "records", "execution"):
        for file in (PACKAGE / lower_room).rglob("*.py"):
            constants = {node.value for node in nodes(file) if isinstance(node, ast.Constant)}
            attributes = {node.attr for node in nodes(file) if isinstance(node, ast.Attribute)}
            assert name not in constants | attributes, file


def test_the_files_of_the_page_exist():
    page = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tables = page.partition("## Rooms")[0]
    names = re.findall(r"`([\w/]+\.(?:py|ipynb))`", tables)
    assert len(names) >= MIN_NAMED_FILES
    files = [path.as_posix() for folder in (PACKAGE, PROJECT / "notebooks") for path in folder.rglob("*.*")]
    assert [name for name in names if not any(file.endswith(f"/{name}") for file in files)] == []
