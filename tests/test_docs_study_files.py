"""The page on study files and cluster files: every key, its default, and examples that can be read."""

import re

import pytest

from dlperf_study.core.paths import PROJECT
from dlperf_study.core.wording import value_text
from dlperf_study.execution.planning import load_cluster
from dlperf_study.machines import launchers
from dlperf_study.machines.cluster.cluster_file import launcher_sections
from dlperf_study.machines.cluster.sections import ClusterFile, IdleSection
from dlperf_study.study.plan import build_plan
from dlperf_study.study.study import StudyFile
from dlperf_study.study.study_file import load_study
from dlperf_study.training import frameworks
from tests.docs import DOCS, blocks, first_cells, words
from tests.study.examples import anything_goes, cluster

SECTIONS = {"idle": IdleSection, **launcher_sections(launchers.by_name())}


def test_the_page_on_study_files_has_every_key():
    assert sorted(first_cells("docs/study-files.md", "## Keys")) == sorted(StudyFile.model_fields)


def test_the_page_on_study_files_has_every_key_of_a_cluster_file():
    assert {key for section in (ClusterFile, *SECTIONS.values()) for key in section.model_fields} <= words(
        "docs/study-files.md"
    )


@pytest.mark.parametrize("name", SECTIONS)
def test_the_page_on_study_files_gives_the_defaults_of_a_section(name):
    page = (DOCS / "study-files.md").read_text(encoding="utf-8")
    for key, field in SECTIONS[name].model_fields.items():
        if isinstance(field.default, int | float):
            assert re.search(rf"^\| [^|]*\| `{key}` \| {value_text(field.default)} \|", page, re.MULTILINE), key


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


def test_the_parts_named_as_built_are_those_there_are():
    page = (DOCS / "study-files.md").read_text(encoding="utf-8")
    row = re.search(r"^\| `framework` .*$", page, re.MULTILINE)
    assert row
    assert set(frameworks.names()) == set(re.findall(r"`(\w+)`", row.group())) - {"framework"}
    row = re.search(r"^\| `launcher` .*$", page, re.MULTILINE)
    assert row
    assert set(launchers.names()) == set(re.findall(r"`(\w+)`", row.group())) - {"launcher"}
