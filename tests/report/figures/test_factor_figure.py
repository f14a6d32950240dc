"""The throughput over each factor that a study varies, of what differs in nothing else."""

from pathlib import Path

from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.paths import StudyPaths
from dlperf_study.report.figures import factors
from dlperf_study.report.figures.style import WIDTHS
from tests.evidence_factory import Planned, configuration, write_study


def study(folder: Path, *changes: dict[str, object]) -> Dataset:
    paths = StudyPaths(folder / "example")
    write_study(paths, [Planned(configuration(**change)) for change in changes])
    return collect(paths)


def test_a_factor_is_drawn_where_nothing_else_differs(tmp_path: Path) -> None:
    batches = [{"batch_per_device": batch, "devices_per_node": devices} for batch in (4, 8) for devices in (1, 2)]
    [figure] = factors(study(tmp_path, *batches))
    assert figure.name == "factor-batch-per-device"
    [axes] = figure.drawing.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["4", "8"]
    # Of each number of devices no open mark, and a filled one at both batches.
    assert [len(line.get_xdata()) for line in axes.lines] == [0, 2, 0, 2]
    for width in WIDTHS:
        [panel] = figure.drawn(width).axes
        assert {text.get_text() for text in panel.texts} == {"1 device", "2 devices"}
    assert figure.alt.startswith("Throughput by batch per device. ResNet-50 · 1 device, Batch per device 4: ")


def test_a_factor_that_changes_with_another_is_not_drawn(tmp_path: Path) -> None:
    together = [{"batch_per_device": 4, "precision": "fp32"}, {"batch_per_device": 8, "precision": "bf16"}]
    assert list(factors(study(tmp_path, *together))) == []


def test_more_devices_are_no_factor_of_this_figure(tmp_path: Path) -> None:
    assert list(factors(study(tmp_path, {"devices_per_node": 1}, {"devices_per_node": 2}))) == []
