"""The page on your own script: every key, placeholder and example, and which numbers it gets."""

import re
from typing import get_args

import pandas as pd
import pytest

from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.wording import value_text
from dlperf_study.dataset.dataset import collect
from dlperf_study.study.program import DERIVED_PLACEHOLDERS, Program
from dlperf_study.study.program_section import ProgramSection
from dlperf_study.study.study_file import load_study
from tests.docs import DOCS, first_cells
from tests.programs.examples import STUDIES
from tests.programs.measured_ways import BUILT_IN, LOG, NO_SYNC, RECORDER, WAYS, write_way

PAGE = "docs/own-programs.md"
#: The placeholders that a study gives, and those that one row explains with the first of its kind.
GIVEN = ["nodes", "devices_per_node", "batch_per_device"]
#: The cells of the table of what a program gets, from the second one on.
ROWS = [row.split(" | ") for row in re.findall(r"^\| (.+) \|$", (DOCS / "own-programs.md").read_text(), re.MULTILINE)]
NUMBERS = {column: row[1:] for row in ROWS if len(row) == 5 for column in re.findall(r"`([a-z_0-9]+)`", row[0])}


def test_the_page_has_every_way_to_launch_and_every_key_with_its_default():
    launch = ProgramSection.model_fields["launch"].annotation
    assert first_cells(PAGE, "## Launchers") == list(get_args(launch))
    assert first_cells(PAGE, "## Study file keys") == list(ProgramSection.model_fields)
    page = (DOCS / "own-programs.md").read_text(encoding="utf-8")
    for name, field in ProgramSection.model_fields.items():
        if isinstance(field.default, str):
            assert f"| `{name}` | `{value_text(field.default)}` |" in page


def test_the_page_has_every_placeholder_and_no_other():
    names = first_cells(PAGE, "## Placeholders")
    program = Program("", "", " ".join(f"{{{name}}}" for name in names))
    assert list(program.settings) == GIVEN
    derived = set(program.placeholders) - set(program.settings)
    assert derived == set(DERIVED_PLACEHOLDERS)


def test_the_page_shows_the_command_of_every_example():
    page = (DOCS / "own-programs.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| `(\w+)\.yaml` \| `(.+) …` \|$", page, re.MULTILINE))
    commands = {path.stem: load_study(path).program.command for path in STUDIES.glob("*.yaml")}
    assert shown == {name: re.split(r"(?<=\.py) ", command)[0] for name, command in commands.items()}


@pytest.mark.parametrize("way", WAYS)
def test_a_program_gets_what_the_page_says(way, tmp_path):
    assert (LOG, RECORDER, NO_SYNC, BUILT_IN) == WAYS
    assert len(NUMBERS) > 15
    paths = StudyPaths(tmp_path / "example")
    write_way(paths, way)
    configurations = collect(paths).configurations
    assert list(configurations["runs_completed"]) == [3, 3]
    two_devices = configurations.iloc[-1]
    has = {name: bool(pd.notna(two_devices[name])) for name in NUMBERS}
    assert has == {name: not cells[WAYS.index(way)].startswith("–") for name, cells in NUMBERS.items()}
