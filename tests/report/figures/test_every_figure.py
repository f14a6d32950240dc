"""What holds for every figure of a study: its texts, its lines, and its files."""

from itertools import combinations

import pytest
from matplotlib.text import Text

from dlperf_study.core.paths import StudyPaths
from dlperf_study.report import figures
from dlperf_study.report.figures import style
from dlperf_study.report.figures.style import WIDTHS
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import TOGETHER, study
from tests.report.figures.drawn import axes_of, only

EVERY = (
    figures.overview,
    figures.scaling,
    figures.communication,
    figures.steps,
    figures.stragglers,
    figures.comparison,
)


@pytest.mark.parametrize("build", EVERY)
def test_a_study_without_completed_runs_has_no_drawing_but_a_reason(build):
    dataset = study(Planned(configuration(), Recipe(status="failed", reason="exit 1"), runs=1))
    figure = only(build(dataset))
    assert (figure.drawing, bool(figure.empty)) == (None, True)


@pytest.mark.parametrize("build", EVERY)
def test_a_quick_study_is_labelled_in_the_drawing_itself(build):
    configurations = [configuration(devices_per_node=count, quick=True) for count in (1, 2)]
    planned = [Planned(one, TOGETHER, reference=one) for one in configurations]
    figure = only(build(study(*planned, quick=True)))
    assert figure.drawing is not None
    assert figure.drawing.get_suptitle() == "quick: not for publication"
    assert "not for publication" in figure.caption


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("build", EVERY)
def test_texts_are_of_one_size_and_none_is_cut_off_or_on_another(mixed, build, width):
    drawing = only(build(mixed)).drawn(width)
    assert drawing is not None
    assert drawing.get_figwidth() == width.inches
    with style.publication_style():
        drawing.draw_without_rendering()
        box = drawing.get_tightbbox()
    assert min(box.x0, box.y0) > -0.02
    assert box.x1 < width.inches + 0.02
    assert box.y1 < drawing.get_figheight() + 0.02
    texts = [text for text in drawing.findobj(Text) if text.get_visible() and text.get_text().strip()]
    shown = [text for text in texts if not is_left_out(text)]
    assert {text.get_fontsize() for text in shown} == {7.0}
    boxes = [(text.get_text(), text.get_window_extent().shrunk(0.9, 0.8)) for text in shown]
    overlapping = []
    for (first, box), (second, other) in combinations(boxes, 2):
        if box.overlaps(other):
            overlapping.append((first, second))
    assert overlapping == []


def is_left_out(text: Text) -> bool:
    """Whether it is in a hidden panel, or the label of a tick that is outside of its panel."""
    axes = text.axes
    if axes is None:
        return False
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            if text in (tick.label1, tick.label2):
                return not low <= tick.get_loc() <= high
    return not axes.get_visible()


def test_saved_twice_the_files_are_the_same(mixed, tmp_path):
    for folder in ("first", "second"):
        only(figures.scaling(mixed)).save(StudyPaths(tmp_path / folder))
    first, second = (sorted((tmp_path / folder / "figures").iterdir()) for folder in ("first", "second"))
    stems = ("scaling-resnet50-column", "scaling-resnet50")
    assert [path.name for path in first] == [f"{stem}.{kind}" for stem in stems for kind in ("pdf", "svg")]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_no_line_is_drawn_longer_than_its_interval(mixed):
    drawn = [line for build in EVERY for figure in build(mixed) for axes in axes_of(figure) for line in axes.lines]
    assert {line.get_solid_capstyle() for line in drawn if line.get_linestyle() == "-"} == {"butt"}
    bars = [bar for build in EVERY for figure in build(mixed) for axes in axes_of(figure) for bar in axes.collections]
    assert {bar.get_capstyle() for bar in bars} <= {None, "butt"}
