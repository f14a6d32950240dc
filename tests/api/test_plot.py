"""Figures in Python: what is drawn, read from their artists, against the numbers of the study."""

from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
import pytest
from matplotlib.figure import Figure as Drawing

import dlperf_study
from dlperf_study.api.plot import plot_metric, varying_columns
from dlperf_study.api.study_results import StudyResults
from dlperf_study.core.errors import DlperfStudyError, RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.report import figures
from dlperf_study.report.figures.factor_figure import GUIDE
from tests.evidence_factory import Planned, Recipe, configuration, write_study
from tests.message_snapshots import Refused


@pytest.fixture(scope="module")
def study(two_models: str) -> StudyResults:
    return dlperf_study.open_study(two_models)


def test_factors_of_a_program_are_its_settings_by_name() -> None:
    rows = pd.DataFrame({"width": ["1", "2"], "depth": ["3", "3"], "world_size": [1, 2], "settings": ["a", "b"]})
    assert varying_columns(rows) == ["world_size", "width"]


def marks(axes: Any) -> list[tuple[float, float]]:
    """Return the place and height of each mark of a panel."""
    drawn = [line for line in axes.lines if line.get_gid() != GUIDE]
    return [mark for line in drawn for mark in zip(line.get_xdata(), line.get_ydata(), strict=True)]


def test_numbers_of_devices_are_at_their_places_on_logarithmic_axes() -> None:
    """A mark that is moved aside may be above the ideal line while its efficiency is below 1."""
    rows = pd.DataFrame([(n, model, n * 0.9, 0.9) for model in ("a", "b") for n in (1, 2, 16)])
    rows = rows.set_axis(["world_size", "model", "speedup", "efficiency"], axis="columns")
    for metric in ("speedup", "efficiency"):
        rows = rows.assign(**{f"{metric}_low": rows[metric] - 0.01, f"{metric}_high": rows[metric] + 0.01})
    figure = plot_metric(rows, x="world_size", y="speedup", hue="model")
    [axes] = figure.drawing.axes
    assert sorted(marks(axes)) == [(n, n * 0.9) for n in (1, 1, 2, 2, 16, 16)]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "16"]
    assert "equal distances" not in figure.caption
    [axes] = plot_metric(rows, x="world_size", y="efficiency", hue="model").drawing.axes
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_ylim()[0]) == ("log", "linear", 0)
    figure = plot_metric(rows, x="model", y="speedup", hue="world_size")
    assert figure.drawing.axes[0].get_xscale() == "linear"
    assert "equal distances" in figure.caption


def test_lines_connect_devices_and_a_dotted_one_is_ideal() -> None:
    speedups = {"world_size": [1, 2, 1, 2], "model": ["a", "a", "b", "b"], "speedup": [1, 1.8, 1, 1.6]}
    rows = pd.DataFrame(speedups | {"efficiency": [1, 0.9, 1, 0.8]})
    rows = rows.assign(speedup_low=rows["speedup"], speedup_high=rows["speedup"])
    [axes] = plot_metric(rows, x="world_size", y="speedup", hue="model").drawing.axes
    *connecting, ideal = [line for line in axes.lines if line.get_gid() == GUIDE]
    assert [list(line.get_ydata()) for line in connecting] == [[1, 1.8], [1, 1.6]]
    assert list(ideal.get_ydata()) == [1, 2]
    assert ideal.get_linewidth() > 0
    [axes] = plot_metric(rows, x="model", y="speedup", hue="world_size").drawing.axes
    assert [line for line in axes.lines if line.get_gid() == GUIDE] == []


def bars(axes: Any) -> list[tuple[float, float]]:
    """Return the ends of each bar of a panel."""
    segments = [path.vertices for collection in axes.collections for path in collection.get_paths()]
    return [(ends[0][1], ends[1][1]) for ends in segments if len(ends) == 2]


def test_a_mark_is_a_mean_and_a_bar_its_interval(study: StudyResults) -> None:
    figure = study.sel(model="resnet50").plot(x="world_size", y="speedup")
    summary = study.sel(model="resnet50").summary("speedup")["speedup"]
    [axes] = figure.drawing.axes
    assert [height for _, height in marks(axes)] == summary["mean"].tolist()
    assert bars(axes) == list(zip(summary["low"], summary["high"], strict=True))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2"]


def test_hue_has_a_colour_and_col_a_panel_for_each_level(study: StudyResults) -> None:
    [axes] = study.plot(y="throughput", hue="model").drawing.axes
    drawn = [line for line in axes.lines if line.get_gid() != GUIDE]
    filled = [line for line in drawn if len(line.get_xdata()) and line.get_fillstyle() == "full"]
    opened = [line for line in drawn if len(line.get_xdata()) and line.get_fillstyle() == "none"]
    # Two runs have no interval.
    assert len(filled) == len(opened) == 1
    assert filled[0].get_color() != opened[0].get_color()
    panels = study.plot(y="throughput", col="model").drawing.axes
    assert {axes.get_title(loc="left") for axes in panels} == {"ResNet-50", "MobileNetV2"}


def test_axes_of_somebody_else_are_drawn_on(study: StudyResults) -> None:
    before = dict(matplotlib.rcParams)
    axes = Drawing().add_subplot()
    assert study.plot(x="world_size", y="throughput", hue="model", ax=axes) is axes
    assert sorted(height for _, height in marks(axes)) == sorted(study.configurations["throughput"])
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"ResNet-50", "MobileNetV2"}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Devices", "Throughput (samples/s)")
    assert matplotlib.rcParams == before


@pytest.mark.parametrize(
    "arguments",
    [{"y": "speed"}, {"y": "throughput", "x": "modell"}, {"col": "model", "ax": Drawing().add_subplot()}],
    ids=["metric", "factor", "panels on axes"],
)
def test_what_can_not_be_drawn_is_refused(study: StudyResults, arguments: dict[str, Any], snapshot: Any) -> None:
    with pytest.raises(DlperfStudyError) as caught:
        study.plot(**arguments)
    # The rest lists all columns.
    assert str(caught.value).partition("the factors are")[0] == snapshot


def test_a_quick_study_says_so_and_rows_without_a_level_are_counted(study: StudyResults) -> None:
    rows = study.configurations.assign(quick=True)
    assert plot_metric(rows, "world_size", "throughput").drawing.get_suptitle()
    partly = rows.assign(image_dataset=["made", None, "made", "made"])
    figure = plot_metric(partly, "image_dataset", "throughput")
    assert sum(len(line.get_xdata()) for line in figure.drawing.axes[0].lines) == 3
    assert "1 row " in figure.caption


def test_the_figures_of_the_report_are_those_of_the_report(study: StudyResults) -> None:
    for name in ("overview", "scaling", "factors", "communication", "comparison", "steps", "stragglers", "drift"):
        made = getattr(study.plot, name)()
        assert [figure.name for figure in made] == [figure.name for figure in getattr(figures, name)(study.dataset)]
    assert len(study.plot.steps()) == 2


def test_a_figure_is_saved_in_any_format(study: StudyResults, tmp_path: Path, refused: Refused) -> None:
    study.plot(y="throughput", hue="model").savefig(tmp_path / "a.png", dpi=50)
    study.sel(model="resnet50").plot.scaling().savefig(tmp_path / "b.pdf")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "b.pdf").read_bytes()[:4] == b"%PDF"
    with refused(DlperfStudyError):
        study.plot.scaling().savefig(tmp_path / "c.pdf")


def test_of_nothing_measured_nothing_is_drawn(tmp_path: Path) -> None:
    paths = StudyPaths(tmp_path / "failing")
    write_study(paths, [Planned(configuration(), recipe=Recipe(status="failed"), runs=1)])
    with pytest.raises(RecordError):
        dlperf_study.open_study(paths.folder).plot()
    with pytest.raises(RecordError):
        dlperf_study.open_study(paths.folder).plot.scaling()[0].savefig(tmp_path / "a.png")
