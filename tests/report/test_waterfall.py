"""Why a configuration is slower than ideal: causes that add up, and the figure that shows them."""

from typing import Any

import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import figures, tables
from dlperf_study.report.figures.style import COLUMN, PAGE
from dlperf_study.report.waterfalls import waterfalls
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import study

_ALONE = Recipe(exposed_seconds=0.0, noise=0.002)


def lossy(recipe: Recipe, **changes: Any) -> Dataset:
    """Return a study of one and of two devices, of which two have this recipe."""
    one, two = configuration(devices_per_node=1), configuration(devices_per_node=2, **changes)
    return study(Planned(one, _ALONE), Planned(two, recipe, baseline=one))


@pytest.mark.parametrize(
    ("recipe", "cause", "seconds"),
    [
        (Recipe(computation_seconds=0.1, exposed_seconds=0.0, noise=0.002), "computation", 0.02),
        (Recipe(exposed_seconds=0.01, noise=0.002), "exchange", 0.01),
        (Recipe(exposed_seconds=0.0, input_seconds=0.015, noise=0.002), "input", 0.015),
    ],
)
def test_what_a_recipe_adds_is_found_under_its_cause(recipe, cause, seconds):
    [steps] = waterfalls(lossy(recipe)).values()
    assert steps.causes[cause].mean == pytest.approx(seconds, abs=0.002)
    interval = steps.causes[cause].interval()
    assert interval.low < seconds < interval.high or abs(steps.causes[cause].mean - seconds) < 0.001
    for name, estimate in steps.causes.items():
        if name != cause:
            assert abs(estimate.mean) < 0.002, name


def test_an_uneven_rank_is_load_imbalance_and_not_scaling_of_computation():
    [steps] = waterfalls(lossy(Recipe(exposed_seconds=0.0, rank_advantage=0.2, noise=0.002))).values()
    assert steps.causes["imbalance"].mean > 0.004
    assert steps.causes["computation"].mean < 0.0


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(computation_seconds=0.1, exposed_seconds=0.013, input_seconds=0.007, noise=0.03),
        Recipe(exchange="push_pull", exposed_seconds=0.01, drain_seconds=0.3),
    ],
)
def test_the_ideal_step_and_all_causes_add_up_to_the_measured_step(recipe):
    dataset = lossy(recipe)
    [(identity, steps)] = waterfalls(dataset).items()
    assert steps.ideal.mean + sum(cause.mean for cause in steps.causes.values()) == pytest.approx(steps.measured.mean)
    row = dataset.configuration_rows[identity]
    assert steps.measured.mean == pytest.approx(row.broken_down_step_seconds)
    assert steps.ideal.mean == pytest.approx(dataset.configuration_rows[row.baseline_identity].broken_down_step_seconds)


def test_the_ideal_step_is_for_as_much_work_of_a_device():
    [steps] = waterfalls(lossy(_ALONE, batch_per_device=16)).values()
    baseline = configuration(devices_per_node=1).batch_per_device
    assert steps.ideal.mean == pytest.approx(0.08 * 16 / baseline, rel=0.02)


def test_the_table_and_the_figure_have_every_cause():
    dataset = lossy(Recipe(exposed_seconds=0.01, noise=0.002))
    table = tables.causes(dataset)
    assert len(table.headings) == 9
    assert len(table.rows) == 1
    *timed, drain, measured = table.rows[0][1:]
    assert all(cell.interval for cell in (*timed[:4], measured))
    assert (drain.interval, drain.footnote) == ("", "")
    [figure] = figures.waterfall(dataset)
    for width in (PAGE, COLUMN):
        assert len(figure.drawn(width).axes) == 1
    alone = study(Planned(configuration(devices_per_node=1), _ALONE))
    assert tables.causes(alone).is_empty
    assert next(figures.waterfall(alone)).is_empty
