"""The pages for people: what they tell a reader to type works, what they name exists, and nothing is left out."""

import os
import re
import shlex
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest

from dlperf_study import frameworks, launchers, models
from dlperf_study.frameworks._base import Framework, Trainer
from dlperf_study.launchers._base import Launcher
from dlperf_study.logs import formats
from dlperf_study.logs.blocks import Block
from dlperf_study.logs.format import Format
from dlperf_study.logs.recognise import read_block
from dlperf_study.models._base import Model
from dlperf_study.paths import OUTPUTS_VARIABLE, PROJECT
from dlperf_study.report.pages import ANSWERS, SUMMARY
from dlperf_study.study.cluster_file import load_cluster
from dlperf_study.study.cluster_sections import SECTIONS, ClusterFile
from dlperf_study.study.outcome import Outcome
from dlperf_study.study.parameters import MEASUREMENT, PARAMETERS
from dlperf_study.study.plan import build_plan
from dlperf_study.study.study import DEFAULTS
from dlperf_study.study.study_file import StudyFile, load_study
from tests.study.examples import anything_goes, cluster

DOCS = PROJECT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *(PROJECT / name for name in ("README.md", "CHANGELOG.md", "outputs/README.md"))])
#: Commands that take long or write into the project, and the step of CI or the test that runs what they run.
RUN_ELSEWHERE = {
    r"make test": (".ci/run", "make test"),
    r"make (torch|horovod).*": ("Makefile", "test: horovod"),
    r"python -m tools\.install_(torch|horovod)": ("Makefile", "-m tools.install_horovod"),
    r"cp params/clusters/.*": ("tests/clusters/test_check.py", '"cpu_hosts.yaml"'),
    r"make check-cluster CLUSTER=mine": ("tests/clusters/test_check.py", '"make", "check-cluster"'),
    r"make plan .* CLUSTER=mine .*": ("tests/clusters/test_check.py", '"make", "plan"'),
    r"make study.*": (".ci/run", "make study STUDY=quickstart QUICK=1"),
    r"python -m dlperf_study (study|run) .*": (".ci/run", "make study STUDY=quickstart QUICK=1"),
    r"python -m dlperf_study collect .*": ("tests/analysis/test_dataset.py", "collect("),
    r"python -m dlperf_study ingest .*": ("tests/test_cli_ingest.py", 'main(["ingest"'),
    r"python -m dlperf_study report .*": ("tests/report/test_pages.py", "pages.build("),
    r"python -m dlperf_study\.columns": ("tests/test_columns.py", "test_the_page_is_in_step_with_the_registry"),
    r"python -m dlperf_study\.study\.schema": ("tests/study/test_schema.py", "schema_text("),
}
FORBIDDEN = {
    "a path of one machine": r"/(work|root|home|tmp|opt|mnt|srv)/",
    "the host of a package registry": r"pypi\.org|pythonhosted|anaconda\.(org|com)|conda\.io|/simple\b|mirror",
    "how the project is made": r"(?i)\bsessions?\b|\bissue\b|\bpull request\b|\bhelpers?\b|\bAI\b|#\d+\b",
}
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))


def blocks(page: Path, language: str) -> list[str]:
    """Return the content of the fenced blocks of a language, also of those in lists."""
    text = page.read_text(encoding="utf-8")
    return [dedent(block) for block in re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)]


def commands_of(page: Path) -> Iterator[str]:
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            command = shlex.join(shlex.split(line, comments=True))
            if command:
                yield command


COMMANDS = sorted({command for page in PAGES for command in commands_of(page)})
MAKE = [command for command in COMMANDS if command.startswith("make ")]
#: Those about a study: the audit is about a table, and what is ingested about logs.
OF_THE_PACKAGE = [command for command in COMMANDS if re.match(r"python -m dlperf_study (?!audit|ingest)", command)]


def typed(command: str, outputs: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a reader types it, in this environment, with the outputs elsewhere."""
    binaries = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "VIRTUAL_ENV": sys.prefix,
        OUTPUTS_VARIABLE: str(outputs),
    }
    return subprocess.run(
        shlex.split(command), cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=120
    )


def run_elsewhere(command: str) -> tuple[str, str] | None:
    return next((place for pattern, place in RUN_ELSEWHERE.items() if re.fullmatch(pattern, command)), None)


def test_there_are_pages_and_commands():
    assert len(PAGES) > 10
    assert {"make study", "make test", "make lab"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_run_here_or_elsewhere(command, tmp_path):
    place = run_elsewhere(command)
    if place:
        file, text = place
        assert text in (PROJECT / file).read_text(encoding="utf-8"), f"{file} no longer runs it"
        return
    # JupyterLab as `make lab` starts it, told to say its version instead of opening a browser.
    ended = typed(f"{command} LAB=--version" if command == "make lab" else command, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()
    assert not any(tmp_path.iterdir()), "it is said to start and to write nothing"


@pytest.mark.parametrize("command", MAKE)
def test_every_make_command_has_its_target(command, tmp_path):
    ended = typed(command.replace("make ", "make -n ", 1), tmp_path)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("command", [command for command in OF_THE_PACKAGE if " check " not in command])
def test_every_command_of_the_package_names_a_study_and_options_there_are(command, tmp_path):
    assert re.search(r"\b(study|plan|run|collect|report)\b", command)
    ended = typed(re.sub(r"dlperf_study \w+", "dlperf_study plan", command), tmp_path)
    assert ended.returncode == 0, ended.stderr


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_every_link_leads_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    for link in links:
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.is_file(), f"{link} is not there"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


@every_page
@pytest.mark.parametrize("what", FORBIDDEN)
def test_pages_say_nothing_of(page, what):
    assert re.findall(FORBIDDEN[what], page.read_text(encoding="utf-8")) == []


def test_the_images_are_shown_and_are_pictures_of_a_page():
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"!\[[^\]]+\]\(docs/images/([^)]+)\)", readme))
    assert shown == {image.name for image in (DOCS / "images").iterdir()}
    for name in shown:
        head = (DOCS / "images" / name).read_bytes()[:24]
        assert head.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", head[16:])
        assert min(width, height) >= 400


def test_every_page_of_docs_is_linked_from_the_readme():
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in DOCS.glob("*.md") if f"(docs/{page.name})" not in readme] == []


@cache
def words(page: str) -> set[str]:
    """Return everything a page sets as code."""
    return set(re.findall(r"`([^`\n]+)`", (PROJECT / page).read_text(encoding="utf-8")))


def first_cells(page: str, heading: str) -> list[str]:
    """Return the words in code in the first column of the table under a heading."""
    section = (PROJECT / page).read_text(encoding="utf-8").split(f"{heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table
    rows = table.group().splitlines()[2:]
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_the_table_of_the_readme_has_the_studies_there_are():
    studies = sorted(path.stem for path in (PROJECT / "params" / "studies").glob("*.yaml"))
    assert sorted(first_cells("README.md", "## Studies")) == studies


def test_every_published_study_has_a_section():
    studies = {path.stem for path in (PROJECT / "params" / "studies").glob("*.yaml")} - {"quickstart", "frameworks"}
    assert set(re.findall(r"^## `(\w+)`$", (DOCS / "seeds.md").read_text(encoding="utf-8"), re.MULTILINE)) == studies


@pytest.mark.parametrize(
    ("heading", "keys"),
    [
        ("## Keys", list(StudyFile.model_fields)),
        ("### Parameters", list(PARAMETERS)),
        ("### Measurement", list(MEASUREMENT)),
    ],
)
def test_the_page_on_study_files_has_every_key_in_order(heading, keys):
    assert first_cells("docs/study-files.md", heading) == keys


def test_the_page_on_study_files_has_every_key_of_a_cluster_file():
    assert {key for section in (ClusterFile, *SECTIONS.values()) for key in section.model_fields} <= words(
        "docs/study-files.md"
    )


@pytest.mark.parametrize("name", SECTIONS)
def test_the_page_on_study_files_gives_the_defaults_of_a_section(name):
    page = (DOCS / "study-files.md").read_text(encoding="utf-8")
    for key, field in SECTIONS[name].model_fields.items():
        if isinstance(field.default, int | float):
            assert re.search(rf"^\| [^|]*\| `{key}` \| {field.default} \|", page, re.MULTILINE), key


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_page_on_study_files_gives_the_default(name):
    page = (DOCS / "study-files.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{name}` \| `?([^`|]+)`? \|", page, re.MULTILINE)
    assert row
    assert row.group(1).strip() == str(DEFAULTS[name])


EXAMPLES = [block for block in blocks(DOCS / "study-files.md", "yaml") if not block.startswith("#")]


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.splitlines()[0])
def test_the_examples_are_complete_files(text, tmp_path):
    file = tmp_path / "example.yaml"
    file.write_text(text, encoding="utf-8")
    if text.startswith("launcher:"):
        assert load_cluster(file).devices_per_node == 2
        return
    for quick in (False, True):
        plan = build_plan(load_study(file, quick), cluster(nodes=1, devices_per_node=4), anything_goes)
        assert any(not entry.is_baseline for entry in plan.runnable)


def test_the_studies_say_the_first_line_that_editors_read():
    (line,) = (block.strip() for block in blocks(DOCS / "study-files.md", "yaml") if block.startswith("#"))
    for study in (PROJECT / "params" / "studies").glob("*.yaml"):
        assert study.read_text(encoding="utf-8").startswith(line)


def test_every_outcome_is_among_the_faults():
    assert set(Outcome) <= words("docs/faults.md")


def test_every_page_of_the_report_is_explained():
    page = (DOCS / "reading-the-report.md").read_text(encoding="utf-8")
    assert [one.title for one in (SUMMARY, *ANSWERS) if f"## {one.title}\n" not in page] == []


def members(kind: type) -> set[str]:
    """Return the attributes and methods a protocol or dataclass asks for."""
    return {name for name in [*vars(kind), *kind.__annotations__] if not name.startswith("_")}


@pytest.mark.parametrize("kind", [Model, Framework, Launcher, Format])
def test_every_field_of_a_part_is_explained(kind):
    assert {field.name for field in fields(kind)} <= words("docs/adding-a-part.md")


def test_every_member_of_a_trainer_is_explained():
    assert members(Trainer) <= words("docs/adding-a-part.md")


def example(name: str) -> object:
    """Return the part of that name among the examples of the page."""
    spaces: list[dict[str, object]] = [{} for _ in blocks(DOCS / "adding-a-part.md", "python")]
    for space, text in zip(spaces, blocks(DOCS / "adding-a-part.md", "python"), strict=True):
        exec(compile(text, "adding-a-part.md", "exec"), space)
    (part,) = (space[name] for space in spaces if name in space)
    return part


def test_the_example_of_a_format_of_log_reads_a_line():
    made = example("FORMAT")
    assert isinstance(made, Format)
    (found,) = read_block(made, Block(b"step=10 loss 6.9, speed: 4.0 samples/s\n", 1))
    assert {name: list(column) for name, column in found.rows.values.items()} == {"loss": [6.9], "throughput": [4.0]}
    assert list(found.rows.step) == [10]
    assert made.name not in formats.names()


def test_the_example_of_a_model_is_one():
    model = example("MODEL")
    assert isinstance(model, Model)
    assert model.forward_macs is not None
    assert model.parameters[model.classes] == model.forward_macs(model.image_size, model.classes) + model.classes
    assert model.name not in models.names()


def test_the_parts_named_as_built_are_those_there_are():
    page = (DOCS / "study-files.md").read_text(encoding="utf-8")
    row = re.search(r"^\| `framework` .*$", page, re.MULTILINE)
    assert row
    assert set(frameworks.names()) == set(re.findall(r"`(\w+)`", row.group())) - {"framework"}
    row = re.search(r"^\| `launcher` .*$", page, re.MULTILINE)
    assert row
    assert set(launchers.names()) == set(re.findall(r"`(\w+)`", row.group())) - {"launcher"}
