from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.tables import write
from dlperf_study.metrics.columns import TableName
from dlperf_study.metrics.drift import round_effects
from dlperf_study.report import figures, tables
from dlperf_study.report.figures import factors, style
from dlperf_study.report.figures.drawings import STEP_PIECES, _ticks_with_one
from dlperf_study.report.figures.line_charts import BOUND, IDEAL
from dlperf_study.report.figures.style import PAGE, WIDTHS
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, on_devices, study
from tests.report.figures.drawn import axes_of, curve, lines, only


def test_scaling_has_a_curve_of_means_an_ideal_line_and_the_bound_of_the_longest_part(mixed):
    """A step of 104 ms with 80 ms of computation and 48 ms of communication can be no faster than 80 ms."""
    panels = axes_of(only(figures.scaling(mixed)))
    drawn = curve(panels[0], "collective")
    rows = mixed.configurations.query("framework == 'paddle_collective'").dropna(subset=["throughput"])
    assert drawn.get_xdata().tolist() == [1, 2, 4]
    np.testing.assert_allclose(drawn.get_ydata(), rows["throughput"])
    baseline = mixed.configurations["baseline_throughput"].iloc[0]
    ideals = baseline * np.array([1, 2, 4]), np.array([1, 2, 4]), np.ones(3)
    for panel, values in zip(panels, ideals, strict=True):
        np.testing.assert_allclose(lines(panel, IDEAL)[0].get_ydata(), values)
    longest = rows[["compute_seconds", "communication_seconds"]].max(axis=1)
    np.testing.assert_allclose(lines(panels[0], BOUND)[0].get_ydata(), rows["global_batch"] / longest, rtol=1e-3)
    assert open_marks(panels[0]) == [4.0], "what has no interval"


def open_marks(axes: Axes) -> list[float]:
    opened = [line for line in axes.get_lines() if to_rgba(line.get_markerfacecolor()) == to_rgba("white")]
    return [float(x) for line in opened for x in line.get_xdata()]


def test_the_ideal_line_starts_at_a_baseline_of_another_series():
    local = configuration(framework="paddle_ps", strategy="local")
    served = configuration(framework="paddle_ps", strategy="async", devices_per_node=2, parameter_servers=1)
    pushed = replace(TOGETHER, communication="push_pull")
    dataset = study(Planned(local, ALONE), Planned(served, pushed, baseline=local))
    ideals = lines(axes_of(only(figures.scaling(dataset)))[0], "ideal")
    assert [1, 2] in [list(ideal.get_xdata()) for ideal in ideals]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_name_gives_the_absolute_baseline_and_the_legend_has_the_rest(mixed, width):
    drawing = only(figures.scaling(mixed)).drawn(width)
    assert drawing is not None
    texts = [text.get_text() for axes in drawing.axes for text in axes.texts]
    assert len([text for text in texts if "1× = " in text and "samples/s" in text]) == 1
    assert len([text for text in texts if "no baseline measured" in text]) == 1
    assert len(texts) == (2 if width is PAGE else 2 * len(drawing.axes))
    [legend] = drawing.legends
    assert {text.get_text() for text in legend.get_texts()} == {IDEAL, BOUND}
    assert [handle.get_color() for handle in legend.legend_handles] == [style.SOFT] * 2


def test_without_intervals_the_baseline_is_open_and_no_interval_is_named():
    configurations = [configuration(devices_per_node=count) for count in (1, 2)]
    planned = [Planned(each, TOGETHER, baseline=configurations[0], runs=1) for each in configurations]
    dataset = study(*planned)
    throughput, speedup, _ = axes_of(only(figures.scaling(dataset)))
    assert (open_marks(throughput), open_marks(speedup)) == ([1.0, 2.0], [2.0])
    communication = only(figures.communication(dataset))
    legends = [text.get_text() for text in communication.drawing.legends[0].get_texts()]
    assert not [label for label in legends if label.startswith("Interval")]
    assert "grey line" not in communication.caption


def test_the_overview_shows_every_completed_run_and_connects_none(mixed):
    overview = axes_of(only(figures.overview(mixed)))[0]
    intervals, means = overview.collections
    assert all(start[1] == end[1] and start[0] < end[0] for start, end in intervals.get_segments())
    assert 0 < len(intervals.get_segments()) < len(means.get_offsets())
    assert {line.get_linestyle() for line in overview.get_lines()} == {"None"}
    [dots] = [line for line in overview.get_lines() if line.get_marker() == "o"]
    assert len(dots.get_xdata()) == (mixed.runs["status"] == "completed").sum()


def test_a_run_that_no_mean_includes_has_an_open_dot_and_no_part_in_the_drift():
    whole = study(*(Planned(configuration(devices_per_node=n), ALONE, runs=4) for n in (1, 2)))
    is_first = (whole.runs["repetition"] == 1) & (
        whole.runs["configuration_id"] == whole.runs["configuration_id"].iloc[0]
    )
    dataset = replace(whole, runs=whole.runs.assign(disturbed=is_first))
    overview = only(figures.overview(dataset))
    counted, disturbed = (line for line in axes_of(overview)[0].get_lines() if line.get_marker() == "o")
    assert (len(counted.get_xdata()), len(disturbed.get_xdata())) == (7, 1)
    assert disturbed.get_markerfacecolor() == "none"
    assert "Open dots: runs with background load, excluded from the mean." in overview.caption
    drift = only(figures.drift(dataset))
    assert len(lines(axes_of(drift)[0], "round 1")[0].get_xdata()) == 1
    assert "Runs with background load are left out." in drift.caption
    for unchanged in (figures.overview(whole), figures.drift(whole)):
        assert "background load" not in only(unchanged).caption


def communication(dataset: Dataset, **columns: object) -> Axes:
    """Return the panel of the parts of a step, after a change of some columns."""
    changed = replace(dataset, configurations=dataset.configurations.assign(**columns))
    return axes_of(only(figures.communication(changed)))[0]


def test_bars_are_as_long_as_their_steps_and_their_intervals_are_around_the_ends(mixed):
    """Also of a step that is faster than its computation."""
    steps = mixed.configurations.dropna(subset=["throughput"])["step_seconds"].to_numpy() * 1e3
    computation, exposed = communication(mixed).containers[:2]
    assert [bar.get_x() for bar in exposed] == [bar.get_width() for bar in computation]
    np.testing.assert_allclose([bar.get_x() + bar.get_width() for bar in exposed], steps)
    bounds = {
        "exposed_communication_seconds": -0.004,
        "exposed_communication_seconds_low": -0.005,
        "exposed_communication_seconds_high": -0.003,
    }
    _, intervals = communication(mixed, **bounds).collections
    np.testing.assert_allclose([segment[:, 0].mean() for segment in intervals.get_segments()], steps)


def test_a_step_whose_parts_were_not_measured_has_no_empty_row(mixed):
    whole = mixed.configurations["throughput"].notna().idxmax()
    exposed = mixed.configurations["exposed_communication_seconds"].copy()
    exposed[whole] = np.nan
    bars, fewer = (
        communication(mixed).containers[0],
        communication(mixed, exposed_communication_seconds=exposed).containers[0],
    )
    assert len(fewer) == len(bars) - 1
    assert [bar.get_y() for bar in fewer] == [bar.get_y() for bar in bars][:-1]


def test_an_exchange_that_would_outlast_its_step_is_drawn_to_its_end(mixed):
    axes = communication(mixed, communication_seconds=2 * mixed.configurations["step_seconds"])
    collective_operations, _ = axes.collections
    left, right = axes.get_xlim()
    ends = [segment[1][0] for segment in collective_operations.get_segments()]
    assert left == 0
    assert right > 1.05 * max(ends)


def test_a_comparison_has_every_run_of_its_configurations_and_connects_none(mixed):
    throughputs, times = axes_of(only(figures.comparison(mixed)))
    [dots] = [line for line in throughputs.get_lines() if line.get_marker() == "o"]
    completed = mixed.runs[mixed.runs["status"] == "completed"]
    assert sorted(dots.get_xdata()) == sorted(completed["throughput"])
    segments = throughputs.collections[0].get_segments()
    assert segments
    assert all(start[1] == end[1] for start, end in segments)
    computation, exposed = times.containers
    assert [bar.get_x() for bar in exposed] == [bar.get_width() for bar in computation]
    places = {round(bar.get_y() + bar.get_height() / 2) for bar in computation}
    assert places == {round(y) for y in dots.get_ydata()}


def test_steps_are_relative_to_the_measured_median_and_count_from_the_warm_up(mixed):
    line = axes_of(only(figures.steps(mixed)))[0].get_lines()[0]
    x, y = line.get_xdata(), line.get_ydata()
    assert (x[0], x[-1]) == (-5, 19)
    assert np.median(y[x >= 0]) == pytest.approx(1)
    assert y[0] == pytest.approx(3, rel=0.1)


def test_the_slowest_rank_is_one(mixed):
    dots = axes_of(only(figures.stragglers(mixed)))[0].collections
    shares = np.concatenate([one.get_offsets()[:, 0] for one in dots])
    assert max(shares) == 1
    assert min(shares) == pytest.approx(0.95, abs=0.02)


def test_alt_texts_have_what_is_drawn_and_nothing_else():
    alone, two, four = (configuration(devices_per_node=count) for count in (1, 2, 4))
    other = Planned(replace(two, framework="torch_ddp"), TOGETHER, reference=two)
    dataset = study(Planned(alone, ALONE), Planned(two, TOGETHER, reference=two), other, Planned(four, TOGETHER))
    stragglers, comparison = only(figures.stragglers(dataset)), only(figures.comparison(dataset))
    assert stragglers.alt.count("load balance") == len(axes_of(stragglers)[0].get_yticklabels()) == 3
    assert comparison.alt.count("samples/s") == 2
    assert "4 devices" not in comparison.alt


def test_a_group_without_its_reference_is_not_drawn_and_steps_without_parts_are_named():
    two = configuration(devices_per_node=2)
    other = Planned(replace(two, framework="torch_ddp"), TOGETHER, reference=two)
    failed = Recipe(status="failed", reason="exit 1")
    figure = only(figures.comparison(study(Planned(two, failed, reference=two), other)))
    assert figure.is_empty
    assert "Groups without a measured reference are left out." in figure.caption
    measured = study(Planned(two, TOGETHER, reference=two), other)
    whole = measured.configurations.assign(broken_down_step_seconds=np.nan, exposed_communication_seconds=np.nan)
    assert "have no bar" in only(figures.comparison(replace(measured, configurations=whole))).caption
    assert "have no bar" not in only(figures.comparison(measured)).caption


def test_colour_and_marker_tell_many_series_apart():
    looks = {(style.colour(position), style.marker(position)) for position in range(49)}
    assert len(looks) == 49


def test_a_framework_has_one_colour_for_every_model():
    planned = [
        Planned(configuration(model=model, framework=framework, strategy="all_reduce", devices_per_node=count), ALONE)
        for model in ("resnet50", "vgg16")
        for framework in ("paddle_collective", "torch_ddp")
        for count in (1, 2)
    ]
    first, second = (axes_of(figure)[0] for figure in figures.scaling(study(*planned)))
    tones = [[curve(axes, name).get_color() for name in ("Paddle", "DDP")] for axes in (first, second)]
    assert tones[0] == tones[1]
    assert len(set(tones[0])) == 2


@pytest.mark.parametrize(("low", "high"), [(0.9, 1.4), (0.8, 3.1), (0.97, 1.02), (0.5, 1.9)])
def test_what_is_relative_to_a_median_has_a_tick_at_it_and_ticks_leave_each_other_room(low, high):
    ticks = _ticks_with_one(low, high)
    assert 1.0 in ticks
    distances = np.diff(ticks)
    assert distances.min() > 0.4 * distances.max()


@pytest.mark.parametrize("factor", [1, 4000, 5000, 6650, 9000, 40000])
def test_the_ticks_of_many_steps_leave_each_other_room(mixed, factor, tmp_path):
    write(TableName.STEPS, mixed.steps.assign(step=mixed.steps["step"] * factor), tmp_path)
    figure = only(figures.steps(replace(mixed, folder=tmp_path)))
    assert figure.drawing is not None
    figure.drawing.canvas.draw()
    for panel in (panel for panel in axes_of(figure) if panel.get_visible()):
        low, high = panel.get_xlim()
        shown = [label for label in panel.get_xticklabels() if low <= label.get_position()[0] <= high]
        boxes = [label.get_window_extent() for label in shown]
        assert len(boxes) >= 3
        assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_of_a_long_run_the_shortest_and_the_longest_step_of_each_piece_are_drawn():
    dataset = study(Planned(configuration(warmup_steps=1, measured_steps=5000), ALONE, runs=1))
    [line] = axes_of(only(figures.steps(dataset)))[0].get_lines()
    drawn, seconds = line.get_ydata(), dataset.steps.query("window != 'communication'")["seconds"].to_numpy()
    assert len(drawn) <= 2 * STEP_PIECES
    relative = seconds / np.median(seconds[1:])
    assert (drawn.min(), drawn.max()) == pytest.approx((relative.min(), relative.max()))


def test_a_factor_is_drawn_where_nothing_else_differs():
    batches = [configuration(batch_per_device=batch, devices_per_node=n) for batch in (4, 8) for n in (1, 2)]
    [figure] = factors(study(*map(Planned, batches)))
    assert figure.name == "factor-batch-per-device"
    [axes] = figure.drawing.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["4", "8"]
    # Of each number of devices no open mark, and a filled one at both batches.
    assert [len(line.get_xdata()) for line in axes.lines] == [0, 2, 0, 2]
    for width in WIDTHS:
        [panel] = figure.drawn(width).axes
        assert {text.get_text() for text in panel.texts} == {"1 device", "2 devices"}
    assert figure.alt.startswith("Throughput by batch ")
    assert figure.alt.count("ResNet-50 · ") == 4


def test_what_changes_with_another_factor_or_is_devices_is_not_drawn():
    together = [configuration(batch_per_device=4), configuration(batch_per_device=8, precision="bf16")]
    assert list(factors(study(*map(Planned, together)))) == []
    assert list(factors(on_devices(1, 2))) == []


def test_the_drift_has_a_mark_for_every_run_and_a_line_for_every_round():
    dataset = on_devices(1, 2, 4)
    [axes] = axes_of(only(figures.drift(dataset)))
    marks = [lines(axes, f"round {number}") for number in (1, 2, 3)]
    assert [len(mark.get_xdata()) for [mark] in marks] == [3, 3, 3]
    assert [set(mark.get_xdata()) for [mark] in marks] == [{0.0}, {1.0}, {2.0}]
    assert len(axes.get_lines()) == 1 + 2 * 3
    table = tables.rounds(dataset)
    assert table.column("Round") == ["1", "2", "3"]
    intervals = [cell.interval for row in table.rows for cell in row if "." in cell.text]
    assert len(intervals) == 3
    assert all(intervals)


def test_one_run_has_neither_scaling_nor_drift():
    dataset = study(Planned(configuration(), ALONE, runs=1))
    for figure in (only(figures.scaling(dataset)), only(figures.drift(dataset))):
        assert figure.drawing is None
        assert figure.empty in figure._repr_html_()
    assert tables.rounds(dataset).rows == ()


def test_a_round_that_lacks_configurations_has_marks_and_no_line():
    runs = {1: 4, 2: 3, 4: 3}
    dataset = study(*(Planned(configuration(devices_per_node=n), ALONE, runs=count) for n, count in runs.items()))
    figure = only(figures.drift(dataset))
    [axes] = axes_of(figure)
    assert len(lines(axes, "round 4")) == 1
    means = [line.get_ydata()[0] for line in axes.get_lines() if line.get_linestyle() == "-"][1:]
    changes = [
        100 * (effect.log_throughput.factor - 1) for effect in round_effects(dataset.completed_runs, "throughput")
    ]
    assert means == pytest.approx(changes)
    assert len(means) == 3
