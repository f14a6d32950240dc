"""Why a configuration is slower than ideal: causes that add up, and the figure that shows them."""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dlperf_study.audit.published import load
from dlperf_study.core.paths import PROJECT
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.printed_waterfall import printed_waterfalls
from dlperf_study.metrics.statistics import Interval, Sample
from dlperf_study.metrics.waterfall import _common, contradicts, exposed_of_kinds
from dlperf_study.report import figures, tables
from dlperf_study.report.figures.style import COLUMN, PAGE
from dlperf_study.report.figures.waterfall_figure import printed_waterfall
from dlperf_study.report.formatting import MISSING
from dlperf_study.report.tables.waterfall_table import causes, printed_causes, waterfalls
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import study
from tests.report.tables.cells import labelled

_ALONE = Recipe(exposed_communication_seconds=0.0, noise=0.002)


def lossy(recipe: Recipe, **changes: Any) -> Dataset:
    """Return a study of one and of two devices, of which two have this recipe."""
    one, two = configuration(), configuration(devices_per_node=2, **changes)
    return study(Planned(one, _ALONE), Planned(two, recipe, baseline=one))


def test_a_run_in_no_round_is_in_neither_end():
    rounds = np.array([1.0, 2.0, 3.0, np.nan])
    sample = Sample(np.array([1.0, 2.0, 3.0, 100.0]), rounds)
    assert _common(sample, Sample(np.ones(4), rounds)).mean == 2.0


@pytest.mark.parametrize(
    ("recipe", "cause", "seconds"),
    [
        (Recipe(compute_seconds=0.1, exposed_communication_seconds=0.0, noise=0.002), "computation", 0.02),
        (Recipe(exposed_communication_seconds=0.01, noise=0.002), "communication", 0.01),
        (Recipe(exposed_communication_seconds=0.0, input_seconds=0.015, noise=0.002), "input", 0.015),
    ],
)
def test_what_a_recipe_adds_is_found_under_its_cause(recipe, cause, seconds):
    [steps] = waterfalls(lossy(recipe)).shown.values()
    for name, estimate in steps.causes.items():
        assert estimate.mean == pytest.approx(seconds if name == cause else 0.0, abs=0.002), name
    interval = steps.causes[cause].interval()
    assert interval.low < seconds < interval.high or abs(steps.causes[cause].mean - seconds) < 0.001


def test_an_uneven_rank_is_load_imbalance_and_not_scaling_of_computation():
    [steps] = waterfalls(
        lossy(Recipe(exposed_communication_seconds=0.0, rank_advantage=0.2, noise=0.002))
    ).shown.values()
    assert steps.causes["imbalance"].mean > 0.004
    assert steps.causes["computation"].mean < 0.0


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(compute_seconds=0.1, exposed_communication_seconds=0.013, input_seconds=0.007, noise=0.03),
        Recipe(communication="push_pull", exposed_communication_seconds=0.01, drain_seconds=0.3),
    ],
)
def test_the_ideal_step_and_all_causes_add_up_to_the_measured_step(recipe):
    dataset = lossy(recipe)
    [(configuration_id, steps)] = waterfalls(dataset).shown.items()
    assert steps.ideal.mean + sum(cause.mean for cause in steps.causes.values()) == pytest.approx(steps.measured.mean)
    row = dataset.configuration_rows[configuration_id]
    assert steps.measured.mean == pytest.approx(row.broken_down_step_seconds)
    assert steps.ideal.mean == pytest.approx(dataset.configuration_rows[row.baseline_id].broken_down_step_seconds)


def test_the_ideal_step_is_for_as_much_work_of_a_device():
    [steps] = waterfalls(lossy(_ALONE, batch_per_device=16)).shown.values()
    assert steps.ideal.mean == pytest.approx(0.08 * 16 / configuration().batch_per_device, rel=0.02)


@pytest.mark.parametrize(("noise", "has_jitter"), [(0.002, False), (0.1, True)])
def test_the_table_and_the_figure_have_every_cause(noise, has_jitter):
    dataset = lossy(Recipe(exposed_communication_seconds=0.01, noise=noise))
    table = tables.causes(dataset)
    assert ("Synchronisation jitter" in [heading.label for heading in table.headings]) is has_jitter
    assert len(table.headings) == 8 + has_jitter
    assert len(table.rows) == 1
    *timed, drain, measured = table.rows[0][1:]
    assert all(cell.interval for cell in (*timed[: 3 + has_jitter], measured))
    assert (drain.interval, drain.footnote) == ("", "")
    [figure] = figures.waterfall(dataset)
    for width in (PAGE, COLUMN):
        [axes] = figure.drawn(width).axes
        *bars, _ = axes.patches
        for before, after in pairwise(bars):
            assert after.get_x() == pytest.approx(before.get_x() + before.get_width())
    alone = study(Planned(configuration(), _ALONE))
    assert tables.causes(alone).is_empty
    assert next(figures.waterfall(alone)).is_empty


@pytest.mark.parametrize(
    ("seconds", "by_throughput", "expected"),
    [
        (0.104, (0.100, 0.095, 0.105), False),
        (0.106, (0.100, 0.095, 0.105), True),
        (0.115, (0.100, 0.050, 0.200), True),
        (0.109, (0.100, None, None), False),
        (0.111, (0.100, None, None), True),
    ],
)
def test_a_step_outside_the_interval_or_a_tenth_away_contradicts_the_throughput(seconds, by_throughput, expected):
    assert contradicts(seconds, by_throughput) is expected


@pytest.mark.parametrize(("devices", "whose"), [(2, "it"), (1, "its baseline")])
def test_a_breakdown_that_contradicts_the_throughput_is_not_shown(devices, whose):
    """The runs that measured the parts were faster than the others, as on a machine that was busy before."""
    dataset = lossy(Recipe(exposed_communication_seconds=0.01, noise=0.002))
    rows, is_slower = dataset.configurations.copy(), dataset.configurations["world_size"] == devices
    for column in ("throughput", "throughput_low", "throughput_high"):
        rows.loc[is_slower, column] *= 0.8
    contradicted = replace(dataset, configurations=rows)
    breakdowns = waterfalls(contradicted)
    [reason] = breakdowns.hidden.values()
    assert breakdowns.shown == {}
    assert reason.startswith(f"not shown: a step of {whose} takes ")
    [row] = causes(contradicted).rows
    assert [cell.text for cell in row[1:]] == [MISSING] * 2
    assert {cell.footnote for cell in row[1:]} == {reason}
    [figure] = figures.waterfall(contradicted)
    assert figure.is_empty
    assert figure.empty == "Not shown, only in the table: 1 breakdown that contradicts the throughput."


#: A micro-batch takes a device of the pipeline so many seconds, and its step has 1.5 of them as a bubble.
_MICRO_BATCH, _BUBBLES = 0.05, 1.5


def _pipelines(order: str = "interleaved") -> Dataset:
    """Return a study of pipelines with three numbers of micro-batches, and of the whole model on one device."""
    one = configuration(devices_per_node=1, batch_per_device=2)
    planned = [Planned(one, Recipe(exposed_communication_seconds=0.0, noise=0.002))]
    for count in (4, 8, 16):
        pipeline = {"devices_per_node": 2, "pipeline_parallel": 2, "pipeline_schedule": "1f1b", "micro_batches": count}
        windows = {"compute_only_steps": 0, "communication_only_steps": 0}
        stages = configuration(batch_per_device=4 * count, **pipeline, **windows)
        seconds = _MICRO_BATCH * (count + _BUBBLES)
        recipe = Recipe(
            seconds, exposed_communication_seconds=0.0, noise=0.002, communication="collectives", order=order
        )
        planned.append(Planned(stages, recipe, baseline=one))
    return study(*planned)


def test_of_a_pipeline_the_bubble_is_told_apart_from_the_rest_of_a_step():
    dataset = _pipelines()
    steps_of = waterfalls(dataset).shown
    assert len(steps_of) == 3
    for configuration_id, steps in steps_of.items():
        row = dataset.configuration_rows[configuration_id]
        assert set(steps.causes) == {"together", "bubble"}
        assert steps.causes["bubble"].mean == pytest.approx(_MICRO_BATCH * _BUBBLES, rel=0.1)
        # The table of the bubble has the same number.
        assert steps.causes["bubble"].mean / row.step_seconds == pytest.approx(row.bubble_share, abs=0.001)
        interval = steps.causes["bubble"].interval()
        assert interval.low < _MICRO_BATCH * _BUBBLES < interval.high
        added = steps.ideal.mean + sum(cause.mean for cause in steps.causes.values())
        assert added == pytest.approx(steps.measured.mean)
        # A device has 2 samples of each micro-batch of 4, as the baseline has in a step of 0.08 s.
        expected = row.micro_batches * (_MICRO_BATCH - 0.08)
        assert steps.causes["together"].mean == pytest.approx(expected, abs=0.01)


def test_a_bubble_without_common_rounds_has_a_value_and_says_why_it_has_no_interval():
    table = tables.pipeline(_pipelines("sequential"))
    reason = "no CI: 0 rounds have a run of each number of micro-batches, and a CI needs 3"
    for row in range(len(table.rows)):
        bubble = labelled(table, row)["Pipeline bubble"]
        assert bubble.text != MISSING
        assert (bubble.interval, bubble.footnote) == ("", reason)


def test_what_is_not_told_apart_says_why():
    table = tables.causes(_pipelines())
    assert len(table.headings) == 5
    assert MISSING not in table.column("Unattributed")
    one, two = configuration(devices_per_node=1), configuration(devices_per_node=2)
    divided = replace(
        two, framework="torch_tensor", tensor_parallel=2, compute_only_steps=0, communication_only_steps=0
    )
    with_both = study(
        Planned(one, _ALONE),
        Planned(two, Recipe(noise=0.002), baseline=one),
        Planned(divided, Recipe(noise=0.002, communication="collectives"), baseline=one),
    )
    table = tables.causes(with_both)
    assert labelled(table, 0)["Unattributed"].text == MISSING
    computation = labelled(table, 1)["Scaling of computation"]
    assert (computation.text, "matrices" in computation.footnote) == (MISSING, True)


@pytest.mark.parametrize(
    ("exposed", "expected"),
    [
        # Of 5 to 6 the broadcast explains at most 2: at least 3 are of the all-reduce.
        (Interval(5.0, 6.0), {"all-reduce": (3.0, 6.0), "broadcast": (0.0, 2.0)}),
        # More than the all-reduce takes: at least 1 is of the broadcast.
        (Interval(9.0, 9.5), {"all-reduce": (7.0, 8.0), "broadcast": (1.0, 2.0)}),
        (None, {"all-reduce": (0.0, 8.0), "broadcast": (0.0, 2.0)}),
        (Interval(11.0, 12.0), {}),
        (Interval(-2.0, -1.0), {"all-reduce": (0.0, 0.0), "broadcast": (0.0, 0.0)}),
    ],
)
def test_bounds_of_what_is_exposed_of_each_exchange(exposed, expected):
    bounds = exposed_of_kinds(exposed, {"all-reduce": Interval(7.0, 8.0), "broadcast": Interval(1.0, 2.0)})
    assert {name: (interval.low, interval.high) for name, interval in bounds.items()} == expected


def test_the_table_has_bounds_unless_what_is_exposed_lacks_an_interval():
    """Of 9 to 10 ms the broadcast takes at most 2: the rest is the all-reduce's."""
    dataset = lossy(Recipe(exposed_communication_seconds=0.01, noise=0.002))
    alone = {"all_reduce_alone_seconds": 0.008, "broadcast_alone_seconds": 0.002}
    columns = {f"{name}{bound}": seconds for name, seconds in alone.items() for bound in ("", "_low", "_high")}
    ends = ("Exposed at least", "Exposed at most")
    expected = {
        (0.0095, 0.009, 0.01): ("7.00", "8.00"),
        (0.0095, None, None): (MISSING, MISSING),
        (None, None, None): ("0", "8.00"),
    }
    for exposed, bounds in expected.items():
        value, low, high = exposed
        rows = dataset.configurations.assign(
            **columns,
            exposed_communication_seconds=value,
            exposed_communication_seconds_low=low,
            exposed_communication_seconds_high=high,
            jitter_seconds=0.0,
        )
        table = tables.exposed_kinds(replace(dataset, configurations=rows))
        cells = labelled(table, 0)
        assert tuple(cells[end].text for end in ends) == bounds, exposed


def test_printed_stages_add_up_and_the_wait_for_a_device_is_no_communication():
    """ElasticDL prints 7.25 of 8.34 s as all-reduce; its update is 4.99 s faster than with one worker."""
    steps_of = {}
    for steps in printed_waterfalls(load(("elasticdl_allreduce_wiki", "elasticdl_ftlib_report"))):
        steps_of[steps.source, steps.table, steps.world_size] = steps
        assert steps.ideal + sum(steps.causes.values()) == pytest.approx(steps.measured)
    assert len(steps_of) == 19
    gpu = steps_of["elasticdl_allreduce_wiki", "gpu_mobilenet_v2", 2]
    assert (gpu.communication, gpu.wait) == pytest.approx((7.25026, 5.59 - 0.6))
    assert gpu.causes == pytest.approx({"computation": 0.01974, "copy": 0.8, "communication": 7.25026 - 5.79})
    # The same network with the copy timed apart from the communication, in a later report.
    apart = steps_of["elasticdl_ftlib_report", "gpu_image_compression", 2]
    assert apart.causes == pytest.approx({"computation": -0.01, "copy": 0.83, "communication": 1.47})
    minikube = steps_of["elasticdl_allreduce_wiki", "minikube_resnet50_profile", 2]
    assert minikube.causes["communication"] == pytest.approx(101.069 - 0.000983)
    assert minikube.causes["outside"] == pytest.approx((1131.8 - 1127.86) - (1033.2 - 1032.73))
    share = steps_of["elasticdl_allreduce_wiki", "cpu_resnet50", 8]
    assert share.causes["communication"] == pytest.approx(0.32 * 8 * 64 / 123)
    # No stage but these changes by more than 2 % of the task: the wait is the whole difference of the update.
    of_devices = [steps for steps in steps_of.values() if steps.wait]
    assert len(of_devices) == 10
    assert all(abs(steps.causes["computation"]) < 0.022 * steps.ideal for steps in of_devices)


def test_the_table_and_the_figure_of_printed_stages_have_each_of_them():
    single_device = Planned(configuration(devices_per_node=1), _ALONE)
    dataset = study(single_device, published=("elasticdl_allreduce_wiki",))
    table = printed_causes(dataset)
    assert len(table.rows) == 13
    waits = table.column("Of it wait for the device")
    assert waits.count(MISSING) == 9
    assert len(printed_waterfall(dataset).drawn(PAGE).axes) == 6
    without = study(single_device, published=())
    assert printed_causes(without).is_empty
    assert printed_waterfall(without).is_empty


def test_the_docs_have_the_causes_of_the_printed_stages():
    steps_of = {}
    for steps in printed_waterfalls(load(("elasticdl_allreduce_wiki",))):
        steps_of[steps.table, steps.world_size] = steps
    page = (PROJECT / "docs/published.md").read_text()
    rows = re.findall(r"^\| (MobileNetV2|ResNet-50), (\d) \|(.+)\|$", page, re.MULTILINE)
    assert len(rows) == 4
    for network, workers, cells in rows:
        table = {"MobileNetV2": "gpu_mobilenet_v2", "ResNet-50": "gpu_resnet50"}[network]
        steps = steps_of[table, int(workers)]
        printed = [float(cell.removesuffix(" s ").replace("+", "")) for cell in cells.split("|")]
        causes = [steps.causes[name] for name in ("computation", "copy", "communication")]
        assert printed == pytest.approx([steps.ideal, *causes, steps.measured, steps.communication], abs=0.0051)
