"""The pages on frameworks and clusters have what there is, and their examples can be read."""

import re

import pytest

from dlperf_study.core.paths import PROJECT
from dlperf_study.execution.planning import load_cluster
from dlperf_study.machines import launchers
from dlperf_study.study.parallel_parameters import SCHEDULES
from dlperf_study.study.plan import build_plan
from dlperf_study.study.precision import COMPUTED_IN
from dlperf_study.study.study_file import load_study
from dlperf_study.training import data_loaders, frameworks, models
from tests.docs import DOCS, blocks, first_cells
from tests.study.examples import anything_goes, cluster

PAGE = "docs/frameworks.md"
LIBRARIES = ("torch", "paddle", "tensorflow")


def rows(heading: str) -> dict[tuple[str, ...], list[str]]:
    """Return the other cells of each row of the table under a heading, by the words in code of the first cell."""
    section = (PROJECT / PAGE).read_text(encoding="utf-8").split(f"{heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table
    cells = [line.strip("|").split("|") for line in table.group().splitlines()[2:]]
    return {tuple(re.findall("`([^`]+)`", first)): [cell.strip() for cell in others] for first, *others in cells}


def test_every_framework_has_its_strategies():
    table = rows("## Frameworks and strategies")
    stated = {name: tuple(re.findall("`([^`]+)`", cells[0])) for (name,), cells in table.items()}
    assert stated == {name: frameworks.load(name).strategies for name in frameworks.names()}


def test_every_model_has_its_libraries():
    stated = {
        model: {library for library, cell in zip(LIBRARIES, cells, strict=True) if cell == "yes"}
        for names, cells in rows("## Models").items()
        for model in names
    }
    assert stated == {name: set(models.load(name).builders) for name in models.names()}


def test_every_data_loader_has_its_settings():
    loaders = {name: data_loaders.load(name) for name in data_loaders.names()}
    assert {names[0]: set() for names in rows("## Data loaders")}.keys() == loaders.keys()
    for (name, *_), cells in rows("## Data loaders").items():
        settings = loaders[name].settings
        defaults = dict(re.findall(r"`(\w+)` (\d+)", cells[1]))
        assert defaults == {key: str(value) for key, value in settings.items() if type(value) is int}, name
        named = set(re.findall(r"`(\w+)", cells[1]))
        assert named == set(settings) - {"image_dataset"}, name


def test_every_precision_and_schedule_is_there():
    assert set(first_cells(PAGE, "## Precision")) == {*COMPUTED_IN}
    page = (PROJECT / PAGE).read_text(encoding="utf-8")
    assert [name for name in SCHEDULES if f"\n| `{name}` |" not in page] == []


EXAMPLES = [block for page in ("frameworks.md", "clusters.md") for block in blocks(DOCS / page, "yaml")]


@pytest.mark.parametrize("text", [text for text in EXAMPLES if text.startswith("title:")])
def test_the_studies_can_be_planned(text, tmp_path):
    file = tmp_path / "example.yaml"
    file.write_text(text, encoding="utf-8")
    plan = build_plan(load_study(file, quick=False), cluster(nodes=2, devices_per_node=2), anything_goes)
    assert any(not entry.is_baseline for entry in plan.runnable)


def test_there_is_a_cluster_file_for_each_launcher_of_several_nodes(tmp_path):
    files = [text for text in EXAMPLES if text.startswith("launcher:")]
    read = set()
    for text in files:
        file = tmp_path / "example.yaml"
        file.write_text(text, encoding="utf-8")
        read.add(load_cluster(file).launcher)
    assert read == set(launchers.names()) - {"local"}
