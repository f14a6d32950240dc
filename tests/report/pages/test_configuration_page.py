"""What the notebook of one configuration shows, from constructed runs."""

import subprocess
import sys

import pytest

from dlperf_study.core.paths import ConfigurationPaths, StudyPaths
from dlperf_study.dataset.dataset import runs_and_steps
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.report import configuration_page
from dlperf_study.report.formatting import MISSING
from dlperf_study.study.configuration import PARAMETERS, Configuration
from tests.evidence_factory import Recipe, configuration, write_run

CONFIGURATION = configuration(devices_per_node=2)
FAILED = Recipe(status="failed", reason="exit 1")


@pytest.fixture
def home(paths: StudyPaths) -> ConfigurationPaths:
    """One run that completed, and one that failed."""
    for repetition, recipe in enumerate((Recipe(), FAILED), 1):
        write_run(paths, CONFIGURATION, repetition, recipe)
    return paths.configuration(CONFIGURATION.configuration_id)


def test_each_parameter_is_shown_that_has_no_default_or_another_value():
    rows = configuration_page.configuration_table(CONFIGURATION).rows
    defaults = {name: parameter.default for name, parameter in PARAMETERS.items()}
    different = {name: str(value) for name, value in CONFIGURATION.as_dict().items() if value != defaults[name]}
    assert {name.text: value.text for name, value, _ in rows} == different


def test_nothing_is_said_of_parameters_that_only_this_package_trains_by():
    given = {"study": "example", "cluster": "local", "devices_per_node": 2}
    of_program = configuration_page.configuration_table(Configuration.for_program("toy", given))
    assert "defaults" in configuration_page.configuration_table(CONFIGURATION).caption
    assert "defaults" not in of_program.caption


def test_a_run_is_a_row_and_a_dash_has_its_reason(home):
    table = configuration_page.run_table(runs_and_steps(home)[0])
    assert table.column(COLUMNS["status"].label) == ["completed", "failed"]
    assert table.column(COLUMNS["throughput"].label)[1] == MISSING
    assert [cell for row in table.rows for cell in row if cell.text == MISSING and not cell.footnote] == []
    units = {heading.label: heading.unit for heading in table.headings}
    assert not units.keys() & {COLUMNS[name].label for name in configuration_page.OF_SOME_RUNS}
    parts = {COLUMNS[name].label for name in ("step_seconds", *configuration_page.PARTS_OF_STEP)}
    assert len({units[label] for label in parts & units.keys()}) == 1, "one unit for all parts of a step"


def test_every_step_of_every_rank_is_drawn(home):
    [panel] = configuration_page.step_time_figure(runs_and_steps(home)[1]).drawing.axes
    steps = CONFIGURATION.warmup_steps + CONFIGURATION.measured_steps
    assert [len(line.get_ydata()) for line in panel.get_lines()] == [steps, steps]


def test_steps_are_drawn_with_the_last_of_the_runs(home):
    tables = runs_and_steps(home)
    for is_last in (True, False):
        *_, figure = configuration_page.result(*tables, is_last).parts
        assert figure.is_empty != is_last


def test_without_a_completed_run_the_figure_says_that_there_are_no_steps(paths):
    write_run(paths, CONFIGURATION, 1, FAILED)
    figure = configuration_page.step_time_figure(runs_and_steps(paths.configuration(CONFIGURATION.configuration_id))[1])
    assert (figure.drawing, bool(figure.empty)) == (None, True)


def test_the_tail_of_a_log_is_its_last_lines_and_no_markup(home):
    (home.run(2).folder / "node-0.log").write_text("".join(f"<line {number}>\n" for number in range(50)))
    html = configuration_page.log_tails(home)._repr_html_()
    assert "run 2, node-0" in html
    assert "&lt;line 49&gt;" in html
    assert "line 41&gt;" not in html


def test_the_notebook_imports_no_library_that_it_does_not_use():
    """Every run pays for these imports: statistics of all distributions and their drawings take as long as the rest."""
    code = (
        "import sys; from dlperf_study.report import configuration_page; "
        "from dlperf_study.execution.repetitions import ConfigurationRuns; "
        "print(sorted({'scipy', 'papermill'} & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
