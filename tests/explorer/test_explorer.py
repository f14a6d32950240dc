"""Results in a notebook: what can be chosen, the chart of it, the code of the chart, and all of it in a browser."""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ipywidgets import Dropdown, SelectMultiple, Textarea

from dlperf_study.errors import DlperfStudyError, EvidenceError
from dlperf_study.explorer import chart, data_names, explore, results_of
from dlperf_study.paths import NOTEBOOKS, OUTPUTS_VARIABLE, StudyPaths
from tests.evidence_factory import Planned, configuration, write_study

START_SECONDS, CELL_SECONDS = 90, 60
#: Cells that are run before the kernel is ready are never run.
RUN_ALL_CELLS = """async () => {
    const notebook = window.jupyterapp.shell.currentWidget;
    await notebook.context.ready;
    await notebook.sessionContext.ready;
    await notebook.sessionContext.session.kernel.info;
    await window.jupyterapp.commands.execute("notebook:run-all-cells");
}"""
PUBLISHED = "published: tensorpack_multigpu"


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two models on one and two devices; of one of them too few runs for an interval."""
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    planned = []
    for model, runs in (("resnet50", 3), ("mobilenet_v2", 2)):
        for devices in (1, 2):
            planned.append(Planned(configuration(model=model, devices_per_node=devices), runs=runs))
    write_study(StudyPaths.of("quickstart"), planned)
    return "quickstart"


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


@pytest.fixture
def lab(study: str) -> Iterator[str]:
    """A JupyterLab with the notebooks of this project; its address."""
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
        yield f"http://127.0.0.1:{port}/lab/tree/explore.ipynb?token={token}"
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.browser
@pytest.mark.slow
def test_menus_chart_and_table_work_in_jupyterlab(lab: str, chromium: Any) -> None:
    page = chromium.new_page(viewport={"width": 1400, "height": 1400})
    page.goto(lab, timeout=1000 * START_SECONDS)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=1000 * START_SECONDS)
    page.evaluate(RUN_ALL_CELLS)
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
    assert page.locator(".jp-RenderedText[data-mime-type='application/vnd.jupyter.error']").count() == 0
    page.close()
