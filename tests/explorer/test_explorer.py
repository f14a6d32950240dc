"""Results in a notebook: what can be chosen, the chart of it, the code of the chart, and all of it in a browser."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ipywidgets import Dropdown, SelectMultiple, Textarea

from dlperf_study.errors import DlperfStudyError, EvidenceError
from dlperf_study.execution.repetitions import fingerprint
from dlperf_study.execution.support import load_cluster
from dlperf_study.explorer import chart, data_names, explore, results_of
from dlperf_study.paths import NOTEBOOKS, OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.study.configuration import FIELD_NAMES, Configuration
from tests.evidence_factory import Planned, Recipe, configuration, write_run, write_study

START_SECONDS, CELL_SECONDS = 90, 60
#: Cells that are run before the kernel is ready are never run.
RUN_ALL_CELLS = """async () => {
    const notebook = window.jupyterapp.shell.currentWidget;
    await notebook.context.ready;
    await notebook.sessionContext.ready;
    await notebook.sessionContext.session.kernel.info;
    await window.jupyterapp.commands.execute("notebook:run-all-cells");
}"""
#: A cell that is out of view has no elements, and the view follows the cell that runs.
FIRST_CELL_SAYS = """words => {
    document.querySelector(".jp-NotebookPanel .jp-WindowedPanel-outer").scrollTop = 0;
    return document.querySelector(".jp-CodeCell")?.innerText.includes(words);
}"""
ERRORS = ".jp-RenderedText[data-mime-type='application/vnd.jupyter.error']"
PUBLISHED = "published: tensorpack_multigpu"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two models on one and two devices; of one of them too few runs for an interval."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path_factory.mktemp("outputs")))
        planned = []
        for model, runs in (("resnet50", 3), ("mobilenet_v2", 2)):
            for devices in (1, 2):
                planned.append(Planned(configuration(model=model, devices_per_node=devices), runs=runs))
        write_study(StudyPaths.of("quickstart"), planned)
        yield "quickstart"


def test_measured_and_published_results_are_offered(study: str) -> None:
    assert data_names()[0] == study
    assert PUBLISHED in data_names()
    own, published = results_of(study), results_of(PUBLISHED)
    assert {"world_size", "model"} <= set(own.factors)
    assert own.independent_factor("world_size") == "model"
    assert {"throughput", "speedup", "efficiency", "exposed_seconds"} <= set(own.metrics)
    assert {"throughput", "speedup"} <= set(published.metrics)
    with pytest.raises(EvidenceError, match="nothing: no measurement has this name"):
        results_of("nothing")


def test_a_study_without_a_completed_run_has_nothing_to_explore(tmp_path: Path) -> None:
    paths = StudyPaths(tmp_path / "failing")
    write_study(paths, [Planned(configuration(), recipe=Recipe(outcome="failed"), runs=1)])
    with pytest.raises(EvidenceError, match="no configuration has a completed run with a rate"):
        results_of(str(paths.folder))


def marks(figure: Any) -> list[int]:
    return [len(line.get_xdata()) for axes in figure.drawing.axes for line in axes.lines]


def test_a_chart_has_a_mark_for_each_row_and_a_bar_for_each_interval(study: str) -> None:
    results = results_of(study)
    figure = chart(results, "throughput", x="world_size", colour_by="model")
    # Of one model two open marks, of the other two filled ones.
    assert sorted(marks(figure)) == [0, 0, 2, 2]
    assert "95 % interval" in figure.caption
    assert len(chart(results, "speedup", x="model", panel_by="world_size").drawing.axes) == 2
    assert sum(marks(chart(results.where({"model": ["resnet50"]}), "throughput", x="world_size"))) == 2
    quick = replace(results, rows=results.rows.assign(quick=True))
    assert chart(quick, "throughput", x="world_size").drawing.get_suptitle() == "quick: not for publication"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "speed", "x": "model"}, r"metric is 'speed'; did you mean speedup\? the metrics are throughput, "),
        ({"metric": "throughput", "x": "modell"}, r"factor is 'modell'; did you mean model\? the factors are "),
    ],
)
def test_a_misspelt_name_lists_the_choices(study: str, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(DlperfStudyError, match=message):
        chart(results_of(study), **arguments)


def menu(view: Any, kind: type, description: str) -> Any:
    """Return the widget of a description, wherever it is in a view."""
    children = [view]
    for widget in children:
        children.extend(getattr(widget, "children", ()))
    return next(each for each in children if isinstance(each, kind) and each.description == description)


def test_the_code_makes_what_is_chosen(study: str) -> None:
    view = explore(study)
    menu(view, Dropdown, "Metric").value = "speedup"
    menu(view, SelectMultiple, "Model").value = ("resnet50",)
    code = menu(view, Textarea, "Code").value
    assert code.endswith(
        "results = results_of('quickstart').where({'model': ['resnet50']})\n"
        "chart(results, metric='speedup', x='world_size', colour_by='model')"
    )
    scope: dict[str, Any] = {}
    exec(code.replace("\nchart(", "\nfigure = chart("), scope)
    assert scope["figure"]._repr_html_() == view.children[2].value
    menu(view, Dropdown, "Data").value = PUBLISHED
    assert "published: tensorpack_multigpu" in menu(view, Textarea, "Code").value


@pytest.fixture(scope="module")
def lab(study: str) -> Iterator[Callable[[str], str]]:
    """A JupyterLab with the notebooks of this project; the address of a notebook in it."""
    token = secrets.token_hex(16)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    options = ["--no-browser", "--allow-root", f"--port={port}", f"--notebook-dir={NOTEBOOKS}"]
    options.append("--LabApp.expose_app_in_browser=True")
    command = [sys.executable, "-m", "jupyter", "lab", *options]
    environment = {**os.environ, "JUPYTER_TOKEN": token}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + START_SECONDS
    try:
        while time.monotonic() < deadline and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/lab/tree/{{}}.ipynb?reset&token={token}".format
    finally:
        process.terminate()
        process.wait(30)


def run_all_cells(lab: Callable[[str], str], chromium: Any, notebook: str) -> Any:
    """Open a notebook in JupyterLab, run its cells, and return the page at once."""
    page = chromium.new_page(viewport={"width": 1400, "height": 1400})
    page.goto(lab(notebook), timeout=1000 * START_SECONDS)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=1000 * START_SECONDS)
    page.evaluate(RUN_ALL_CELLS)
    return page


@pytest.mark.browser
@pytest.mark.slow
def test_menus_chart_and_table_work_in_jupyterlab(lab: Callable[[str], str], chromium: Any) -> None:
    page = run_all_cells(lab, chromium, "explore")
    code = ".widget-textarea textarea"
    page.wait_for_selector(code, timeout=1000 * CELL_SECONDS)
    page.select_option(".widget-dropdown:has-text('Metric') select", label="Speedup (×)")
    page.wait_for_function(f"document.querySelector('{code}').value.includes(\"metric='speedup'\")")
    assert page.get_attribute(".jp-OutputArea img", "alt").endswith("speedup")
    rows = "table.dataTable tbody tr"
    page.wait_for_selector(rows)
    assert page.locator(rows).count() == 4
    page.fill(".dt-search input", "mobilenet")
    assert page.locator(rows).count() == 2
    assert page.locator(ERRORS).count() == 0
    page.close()


@pytest.fixture
def measured_by_hand(study: str) -> Configuration:
    """The configuration in the cells of ``run_configuration``, with a run that this code need not repeat."""
    cells = json.loads((NOTEBOOKS / "run_configuration.ipynb").read_text())["cells"]
    [parameters] = ["".join(cell["source"]) for cell in cells if "parameters" in cell["metadata"].get("tags", ())]
    values: dict[str, Any] = {}
    exec(parameters, values)
    by_hand = Configuration.from_mapping({name: values[name] for name in FIELD_NAMES})
    run = write_run(StudyPaths.of(by_hand.study), by_hand, 1)
    wanted = fingerprint(by_hand, load_cluster(by_hand.cluster, [by_hand.framework]))
    run.run_file.write_text(json.dumps(json.loads(run.run_file.read_text()) | {"fingerprint": wanted}))
    return by_hand


@pytest.mark.browser
@pytest.mark.slow
def test_the_result_of_a_configuration_is_above_its_parameters_in_jupyterlab(
    measured_by_hand: Configuration, lab: Callable[[str], str], chromium: Any
) -> None:
    page = run_all_cells(lab, chromium, "run_configuration")
    page.wait_for_function(FIRST_CELL_SAYS, arg="completed", timeout=1000 * CELL_SECONDS)
    assert page.locator(ERRORS).count() == 0
    page.close()
