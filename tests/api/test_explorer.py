"""Results in a notebook: what can be chosen, the chart of it, the code of the chart, and all of it in a browser."""

import json
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from ipywidgets import Checkbox, Dropdown, Textarea

from dlperf_study.api import plot
from dlperf_study.api.explorer import MOST_FILTERS, data_names, data_rows, explore
from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.core.resources import NOTEBOOKS, notebook
from dlperf_study.execution.planning import load_cluster
from dlperf_study.execution.repetitions import requested_runs
from dlperf_study.study.configuration import FIELD_NAMES, Configuration
from tests.evidence_factory import Planned, Recipe, configuration, write_run, write_study
from tests.jupyterlab import CELL_SECONDS, ERRORS, jupyterlab, run_all_cells

#: A cell that is out of view has no elements, and the view follows the cell that runs.
FIRST_CELL_SAYS = """words => {
    document.querySelector(".jp-NotebookPanel .jp-WindowedPanel-outer").scrollTop = 0;
    return document.querySelector(".jp-CodeCell")?.innerText.includes(words);
}"""
PUBLISHED = "published: tensorpack_multigpu"


def test_measured_and_published_results_are_offered(two_models: str) -> None:
    assert data_names()[0] == two_models
    assert PUBLISHED in data_names()
    own, published = data_rows(two_models), data_rows(PUBLISHED)
    assert {"world_size", "model"} <= set(plot.varying_columns(own))
    assert plot.independent_factor(own, "world_size") == "model"
    assert {"throughput", "speedup", "efficiency", "exposed_communication_seconds"} <= set(plot.known_metrics(own))
    assert {"throughput", "speedup"} <= set(plot.known_metrics(published))
    with pytest.raises(RecordError, match="nothing: "):
        data_rows("nothing")


def test_what_colours_leave_over_is_offered_as_panels() -> None:
    frameworks, models = ("torch_ddp", "horovod"), ("resnet50", "mobilenet_v2")
    points = list(product((1, 2), frameworks, models))
    rows = pd.DataFrame(points, columns=["world_size", "framework", "model"])
    colours = plot.independent_factor(rows, "world_size")
    panels = plot.independent_factor(rows, "world_size", colours)
    assert {colours, panels} == {"framework", "model"}
    assert plot.independent_factor(rows, "world_size", colours, panels) == ""
    assert plot.separating_factors(rows, "world_size") == (colours, panels)
    # Models that were measured on different devices are told apart.
    rows = pd.DataFrame({"world_size": [1, 2], "nodes": [1, 2], "model": ["resnet50", "mobilenet_v2"]})
    assert plot.separating_factors(rows, "world_size") == ("model", "")


def test_of_two_batches_the_one_per_device_names_a_line() -> None:
    points = list(product((1, 2), (4, 8), ("fp32", "amp_bf16"), ("files", "zmq")))
    rows = pd.DataFrame(points, columns=["world_size", "batch_per_device", "precision", "data_loader"])
    rows["global_batch"] = rows["world_size"] * rows["batch_per_device"]
    assert plot.settings_in_words(rows, "world_size")[0] == "Batch per device 4 · fp32 · files"


def test_what_two_factors_leave_over_is_a_colour_of_its_own() -> None:
    """As in the first study: two models, and a second framework with two strategies."""
    points = [
        *product((1, 2), ("paddle_collective",), ("all_reduce",), ("resnet50", "mobilenet_v2")),
        *product((1,), ("paddle_ps",), ("local", "async"), ("mobilenet_v2",)),
    ]
    rows = pd.DataFrame(points, columns=["world_size", "framework", "strategy", "model"])
    assert plot.separating_factors(rows, "world_size") == ("setting", "model")
    assert plot.separating_factors(rows, "world_size", has_panels=False) == ("setting", "")
    names = plot.settings_in_words(rows, "world_size", "model")
    alike = pd.concat([rows, names.rename("setting")], axis="columns").groupby(["world_size", "model", "setting"])
    assert (alike.size() == 1).all()
    assert names[0] == names[2] == "PaddlePaddle collective · all-reduce"


def test_every_factor_that_varies_can_be_filtered_and_few_are_in_view(monkeypatch, tmp_path) -> None:
    values = {
        **{"precision": "fp16", "seed": 2, "batch_per_device": 8, "image_size": 64, "threads_per_device": 2},
        **{"measured_steps": 60, "devices_per_node": 2, "memory_limit_mib": 640, "cpu_limit": 0.5, "model": "vgg16"},
    }
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    planned = [Planned(configuration(**{name: value})) for name, value in values.items()]
    write_study(StudyPaths.of("example"), planned)
    varying = plot.varying_columns(plot.without_determined(data_rows("example")))
    assert len(varying) > MOST_FILTERS
    _, filters, *_ = explore("example").children
    *in_view, opened = filters.children
    assert (len(in_view), len(opened.children[0].children)) == (MOST_FILTERS, len(varying) - MOST_FILTERS)
    assert opened.titles == (f"{len(varying) - MOST_FILTERS} further factors",)


def test_a_factor_that_another_one_determines_is_not_offered(monkeypatch, tmp_path) -> None:
    """Each framework has one strategy; on one node, the devices per node are the devices."""
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    frameworks, planned = {"paddle_collective": "all_reduce", "torch_ddp": "data_parallel"}, []
    for (framework, strategy), devices in product(frameworks.items(), (1, 2)):
        values = {"framework": framework, "strategy": strategy, "devices_per_node": devices}
        planned.append(Planned(configuration(**values)))
    write_study(StudyPaths.of("example"), planned)
    assert {"strategy", "devices_per_node", "global_batch"} <= set(plot.varying_columns(data_rows("example")))
    view = explore("example")
    menus = {name: {value for _, value in menu(view, Dropdown, name).options} for name in ("x", "Colour", "Panels")}
    factors = {"world_size", "framework"}
    assert menus["x"] == factors
    assert menus["Colour"] == menus["Panels"] == factors | {"", "setting"}
    assert [line.children[0].value for line in view.children[1].children] == ["Devices", "Framework"]
    points = list(product((1, 2), (4, 8)))
    rows = pd.DataFrame(points, columns=["world_size", "batch_per_device"])
    rows["global_batch"] = [world_size * batch for world_size, batch in points]
    assert "batch_per_device" in plot.without_determined(rows), "also if the global batch alone says it"


def test_a_study_without_a_completed_run_has_nothing_to_explore(tmp_path: Path) -> None:
    paths = StudyPaths(tmp_path / "failing")
    write_study(paths, [Planned(configuration(), recipe=Recipe(status="failed"), runs=1)])
    with pytest.raises(RecordError, match="no configuration has a completed run"):
        data_rows(str(paths.folder))


def menu(view: Any, kind: type, description: str) -> Any:
    """Return the widget of a description, wherever it is in a view."""
    children = [view]
    for widget in children:
        children.extend(getattr(widget, "children", ()))
    return next(each for each in children if isinstance(each, kind) and each.description == description)


def executed(code: str) -> Any:
    """Return the value of the last line of some code."""
    *statements, last = code.splitlines()
    scope: dict[str, Any] = {}
    exec("\n".join(statements), scope)
    return eval(last, scope)


def test_the_code_makes_what_is_chosen(two_models):
    view = explore(two_models)
    menu(view, Dropdown, "Metric").value = "speedup"
    menu(view, Checkbox, "MobileNetV2").value = False
    code = menu(view, Textarea, "Code").value
    assert code.endswith(
        "study = dlperf_study.open_study('quickstart').sel(model=['resnet50'])\n"
        "study.plot(x='world_size', y='speedup', hue='model')"
    )
    assert executed(code)._repr_html_() == view.children[2].value
    menu(view, Dropdown, "Data").value = PUBLISHED
    code = menu(view, Textarea, "Code").value
    assert "dlperf_study.published('tensorpack_multigpu', points=True)" in code
    assert executed(code)._repr_html_() == view.children[2].value


def test_the_code_of_a_chart_without_colours_and_panels_makes_that_chart(two_models):
    view = explore(two_models)
    for description in ("Colour", "Panels"):
        menu(view, Dropdown, description).value = ""
    code = menu(view, Textarea, "Code").value
    assert executed(code)._repr_html_() == view.children[2].value
    menu(view, Dropdown, "Panels").value = "model"
    assert "hue=" not in menu(view, Textarea, "Code").value


@pytest.mark.usefixtures("two_models")
def test_data_that_are_not_there_are_named_above_the_menu_of_those_that_are():
    view = explore("nothing")
    assert "nothing: " in view.children[2].value
    menu(view, Dropdown, "Data").value = PUBLISHED
    assert "<img" in view.children[2].value


def test_nothing_of_other_data_is_shown_under_the_name_of_refused_ones(two_models: str) -> None:
    view = explore(two_models)
    menu(view, Dropdown, "Data").value = "published: dlperf_megatron_lm"
    assert "no data to explore" in view.children[2].value
    metric = menu(view, Dropdown, "Metric")
    assert (metric.options, metric.value, menu(view, Textarea, "Code").value) == ((), None, "")
    assert not view.children[1].children
    menu(view, Dropdown, "Data").value = two_models
    assert "<img" in view.children[2].value


def test_an_empty_selection_and_one_factor_for_two_purposes_say_what_to_choose(two_models: str) -> None:
    view = explore(two_models)
    for model in ("ResNet-50", "MobileNetV2"):
        menu(view, Checkbox, model).value = False
    assert view.children[2].value == "no configuration is selected: tick a value of Model"
    menu(view, Checkbox, "ResNet-50").value = True
    for description in ("Colour", "Panels"):
        menu(view, Dropdown, description).value = "setting"
    assert "choose a factor" in view.children[2].value


@pytest.fixture(scope="module")
def lab(two_models: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A JupyterLab with copies of the notebooks of this project, which it saves."""
    with jupyterlab(shutil.copytree(NOTEBOOKS, tmp_path_factory.mktemp("lab") / "notebooks")) as address:
        yield address


def test_menus_chart_and_table_work_in_jupyterlab(lab, chromium):
    page = run_all_cells(lab, chromium, notebook("explore").stem)
    code = ".widget-textarea textarea"
    page.wait_for_selector(code, timeout=1000 * CELL_SECONDS)
    page.select_option(".widget-dropdown:has-text('Metric') select", label="Speedup (×)")
    page.wait_for_function(f"document.querySelector('{code}').value.includes(\"y='speedup'\")")
    assert page.get_attribute(".jp-OutputArea img", "alt").endswith("speedup")
    rows = "table.dataTable tbody tr"
    page.wait_for_selector(rows)
    assert page.locator(rows).count() == 4
    page.fill(".dt-search input", "mobilenet")
    assert page.locator(rows).count() == 2
    assert page.locator(ERRORS).count() == 0
    page.close()


@pytest.fixture
def measured_by_hand(two_models: str) -> Configuration:
    """The configuration in the cells of ``run_configuration``, with a run that this code need not repeat."""
    cells = json.loads(notebook("run_configuration").read_text())["cells"]
    [parameters] = ["".join(cell["source"]) for cell in cells if "parameters" in cell["metadata"].get("tags", ())]
    values: dict[str, Any] = {}
    exec(parameters, values)
    by_hand = Configuration.from_mapping({name: values[name] for name in FIELD_NAMES})
    run = write_run(StudyPaths.of(by_hand.study), by_hand, 1)
    wanted = requested_runs(by_hand, load_cluster(by_hand.cluster, [by_hand.framework]))[0].cache_key
    run.run_file.write_text(json.dumps(json.loads(run.run_file.read_text()) | {"cache_key": wanted}))
    return by_hand


def test_the_result_of_a_configuration_is_above_its_parameters_in_jupyterlab(measured_by_hand, lab, chromium):
    page = run_all_cells(lab, chromium, notebook("run_configuration").stem)
    page.wait_for_function(FIRST_CELL_SAYS, arg="completed", timeout=1000 * CELL_SECONDS)
    assert page.locator(ERRORS).count() == 0
    page.close()
