"""The page on plugins, performed: its examples go into a copy of the project, are planned, and pass its tests."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dlperf_study.core.paths import PROJECT
from tests.docs import DOCS, blocks

#: The block of each section, by the heading and the language, and the file it becomes.
FILES = {
    ("A model", "python"): "dlperf_study/training/models/softmax_regression.py",
    ("A log format", "python"): "dlperf_study/logs/formats/my_trainer.py",
    ("A log format", "text"): "tests/logs/samples/my_trainer_constructed.log",
    ("An audit check", "python"): "dlperf_study/audit/checks/enough_digits.py",
    ("A published source", "yaml"): "dlperf_study/audit/published/sources/my_report.yaml",
    ("A published source", "csv"): "dlperf_study/audit/published/sources/my_report.csv",
}
#: The examples that the page links to, and the folder of the package that each belongs to.
EXAMPLES = {
    "frameworks/paddle_bound_threads.py": "dlperf_study/training/frameworks",
    "data_loaders/black_images.py": "dlperf_study/training/data_loaders",
    "launchers/one_socket.py": "dlperf_study/machines/launchers",
}
#: Lines that a section adds to a file: heading, language and number of the block, the file, and the line before them.
INSERTIONS = (
    ("A parameter", "python", 0, "dlperf_study/study/training_parameters.py", "    seed: int"),
    ("A metric", "text", 0, "dlperf_study/metrics/step_times.py", "METRICS = ("),
)
STUDY = """\
title: With new parts
about: Made for tests.
sections: [scaling, new_page]
scaling: weak
constants: {framework: paddle_bound_threads, strategy: all_reduce, model: softmax_regression, accumulation_steps: 1}
factors: {devices_per_node: [1, 2], image_size: [32], classes: [10], batch_per_device: [4], data_loader: [black_images]}
baseline: {devices_per_node: 1}
measurement:
  {warmup_steps: 1, max_warmup_seconds: 0, measured_steps: 3, compute_only_steps: 2, communication_only_steps: 2,
   repetitions: 1}
"""
CLUSTER = """\
launcher: one_socket
nodes: 1
devices_per_node: 2
device: cpu
device_name: a CPU
interconnect: loopback
"""
#: The tests that find the parts by themselves, and in files whose other tests take long those of the new parts.
TESTS = (
    *("tests/audit/test_audit.py", "tests/audit/test_files.py", "tests/training/frameworks/test_obstacles.py"),
    *(
        "tests/machines/launchers/test_base.py",
        "tests/audit/published",
        "tests/study/test_parameters.py",
        "tests/test_columns.py",
    ),
    *("tests/test_generated.py", "tests/test_notebooks.py", "tests/core/test_registry.py"),
    "tests/logs/ingest/test_own_formats.py",
)
TESTS_OF_PARTS = (
    *(
        "tests/training/models/test_models.py",
        "tests/training/models/test_networks.py",
        "tests/training/data_loaders/test_batches.py",
    ),
    "tests/logs/test_formats.py",
)
#: Lists the files of the checkout, new ones included.
LIST = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
NEW_NAMES = ("softmax_regression", "black_images", "my_trainer")


def section(heading: str) -> str:
    """Return a section of the page."""
    text = (DOCS / "plugins.md").read_text(encoding="utf-8").split(f"## {heading}\n")[1]
    return re.split(r"\n##+ ", text)[0]


def block(heading: str, language: str, number: int = 0) -> str:
    """Return a block of code of a section, also of one in a list."""
    blocks_of_code = re.findall(rf"^( *)```{language}\n(.*?)^ *```", section(heading), re.MULTILINE | re.DOTALL)
    indentation, text = blocks_of_code[number]
    return "".join(line.removeprefix(indentation) for line in text.splitlines(keepends=True))


def insert(file: Path, after: str, lines: str) -> None:
    """Insert lines after the statement that begins with a line."""
    source = file.read_text(encoding="utf-8")
    assert source.count(f"\n{after}") == 1, (file, after)
    start = source.index(f"\n{after}") + 1
    end = source.index("\n", start) + 1
    file.write_text(source[:end] + lines + source[end:], encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with every example of the page."""
    folder = tmp_path_factory.mktemp("project")
    listed = subprocess.run(LIST, cwd=PROJECT, capture_output=True, check=True, text=True).stdout
    # A file that was deleted stays listed until the deletion is committed or staged.
    for name in filter(lambda name: name and (PROJECT / name).exists(), listed.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, folder / name)
    for (heading, language), name in FILES.items():
        (folder / name).write_text(block(heading, language), encoding="utf-8")
    for heading, language, number, name, after in INSERTIONS:
        insert(folder / name, after, block(heading, language, number))
    for example, target in EXAMPLES.items():
        shutil.copy(DOCS / "examples" / "plugins" / example, folder / target)
    add_page(folder)
    assert python(folder, "-m", "dlperf_study.generated").returncode == 0
    return folder


def add_page(folder: Path) -> None:
    """Add a page of the report: the notebook on quality, under another name and number."""
    notebook = (folder / "notebooks" / "16_quality.ipynb").read_text(encoding="utf-8")
    study = folder / "dlperf_study" / "study" / "study.py"
    sections = study.read_text(encoding="utf-8").replace('"prediction")', '"prediction", "new_page")')
    study.write_text(sections, encoding="utf-8")
    new = notebook.replace("# Quality", "# New page").replace("quality-", "new-page-")
    (folder / "notebooks" / "19_new_page.ipynb").write_text(new, encoding="utf-8")
    for file, line in (("notebooks/00_index.ipynb", "16_quality.ipynb"), ("docs/notebooks.md", "`16_quality.ipynb`")):
        lines = (folder / file).read_text(encoding="utf-8").splitlines(keepends=True)
        [position] = [index for index, text in enumerate(lines) if line in text]
        lines.insert(position, lines[position].replace("16_quality", "19_new_page"))
        (folder / file).write_text("".join(lines), encoding="utf-8")


def python(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Python on the copy."""
    outer = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**outer, "PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)


def plan(copy: Path, folder: Path, study_text: str) -> str:
    """Return what the command says of a study on the new launcher."""
    study, cluster = folder / "new.yaml", folder / "cluster.yaml"
    study.write_text(study_text)
    cluster.write_text(CLUSTER)
    command = python(copy, "-m", "dlperf_study", "plan", str(study), "--cluster", str(cluster))
    assert command.returncode == 0, command.stderr
    return command.stdout


def test_a_study_of_the_new_parts_is_planned(copy, tmp_path, snapshot):
    assert plan(copy, tmp_path, STUDY) == snapshot


def test_a_parameter_that_nothing_reads_is_unsupported(copy, tmp_path, snapshot):
    output = " ".join(plan(copy, tmp_path, STUDY.replace("accumulation_steps: 1", "accumulation_steps: 2")).split())
    assert output == snapshot


def test_the_tests_that_hold_for_all_parts_pass(copy):
    run_tests(copy, *TESTS)


def test_the_tests_find_the_new_parts(copy):
    output = run_tests(copy, *TESTS_OF_PARTS, "-vv", "-k", " or ".join((*NEW_NAMES, "every_file", "named")))
    for name in NEW_NAMES:
        assert re.search(rf"::.*\b{name}\b.* PASSED", output), name


def run_tests(copy: Path, *arguments: str) -> str:
    """Return what pytest prints of these tests of the copy, all of which pass."""
    done = python(copy, "-m", "pytest", "-x", "-p", "no:cacheprovider", *arguments)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return done.stdout


def test_every_example_is_performed():
    performed = {heading for heading, *_ in [*FILES, *INSERTIONS]}
    page = (DOCS / "plugins.md").read_text(encoding="utf-8")
    sections = re.split(r"\n##+ ", page)[1:]
    with_code = {text.partition("\n")[0] for text in sections if re.search("```(python|csv|text)", text)}
    assert with_code == performed
    assert blocks(DOCS / "plugins.md", "python")
    folder = DOCS / "examples" / "plugins"
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")}
    linked = set(re.findall(r"\(examples/plugins/([^)]+)\)", page))
    assert files == linked == set(EXAMPLES)
