"""Figures of more configurations than they have room for: which are drawn, and that the caption says so."""

from dataclasses import replace

import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import figures
from dlperf_study.report.figures import drawings, factor_figure, factors
from dlperf_study.report.figures import figure as figure_texts
from dlperf_study.report.figures.drawings import most_different
from dlperf_study.report.series import all_groups, configuration_labels
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, study
from tests.report.figures.drawn import axes_of, only

#: How many a figure shows of many configurations, where a test makes more than that.
MOST_LINES, MOST_ROWS, MOST_PANELS, MOST_VALUES, MOST_CONFIGURATIONS = 8, 12, 6, 6, 4

#: What has no place where only the batches 2 and 5 have nothing to show.
LEFT_OUT = {"Batch per device 2", "Batch per device 5"}


@pytest.fixture(autouse=True)
def _has_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures have room for fewer configurations than usual, which would take long to make."""
    for module, names in (
        (drawings, ("MOST_LINES", "MOST_ROWS", "MOST_PANELS")),
        (factor_figure, ("MOST_VALUES",)),
        (figure_texts, ("MOST_CONFIGURATIONS",)),
    ):
        for name in names:
            assert globals()[name] < getattr(module, name)
            monkeypatch.setattr(module, name, globals()[name])


def batches(most: int, recipe: Recipe, uninteresting: Recipe, devices: int = 1) -> Dataset:
    """Return a study of two more batches than there is room for; batches 2 and 5 have a recipe of their own."""
    planned = []
    for batch in range(1, most + 3):
        own = uninteresting if batch in (2, 5) else recipe
        planned.append(Planned(configuration(batch_per_device=batch, devices_per_node=devices), own, runs=1))
    return study(*planned)


def test_of_many_configurations_those_whose_steps_vary_most_have_a_panel():
    dataset = batches(MOST_PANELS, Recipe(noise=0.02), Recipe(noise=0.001))
    figure = only(figures.steps(dataset))
    titles = [panel.get_title(loc="left") for panel in axes_of(figure) if panel.get_visible()]
    assert titles == [f"Batch per device {batch}\n1 device" for batch in (1, 3, 4, 6, 7, 8)]
    assert f"Shown: the {MOST_PANELS} of {MOST_PANELS + 2} configurations " in figure.caption


def test_of_many_configurations_those_whose_ranks_differ_most_have_a_row():
    dataset = batches(MOST_ROWS, Recipe(rank_advantage=0.2), Recipe(rank_advantage=0.0), devices=2)
    figure = only(figures.stragglers(dataset))
    labels = {label.get_text().split(" ·")[0] for label in axes_of(figure)[0].get_yticklabels()}
    assert labels == {f"Batch per device {batch}" for batch in range(1, MOST_ROWS + 3)} - LEFT_OUT
    assert f" the {MOST_ROWS} " in figure.caption


@pytest.mark.parametrize("has_baselines", [True, False])
def test_of_many_lines_those_that_scale_best_and_worst_are_drawn(has_baselines):
    planned = []
    for batch in range(1, MOST_LINES + 3):
        exposed = {2: 0.001, 5: 0.002}.get(batch, 0.0 if batch % 2 else 0.02)
        one, two = (configuration(batch_per_device=batch, devices_per_node=count) for count in (1, 2))
        baseline = one if has_baselines else None
        planned.append(Planned(one, Recipe(exposed_communication_seconds=0.0), 1, baseline))
        planned.append(Planned(two, Recipe(exposed_communication_seconds=exposed), 1, baseline))
    figure = only(figures.scaling(study(*planned)))
    names = {text.get_text().split("\n")[0] for panel in axes_of(figure) for text in panel.texts}
    left_out = {f"Batch per device {batch}" for batch in range(1, MOST_LINES + 3)} - names
    assert left_out == LEFT_OUT if has_baselines else len(left_out) == 2
    assert f"Shown: the {MOST_LINES} of {MOST_LINES + 2} lines " in figure.caption


@pytest.fixture(scope="module")
def many() -> Dataset:
    """Two more configurations than a figure has room for: pairs, of which all but that of batch 5 are far apart."""
    planned = []
    for batch in range(1, MOST_ROWS // 2 + 2):
        two = configuration(batch_per_device=batch, devices_per_node=2)
        exposed, longer = (
            {"exposed_communication_seconds": 0.001 * batch, "communication_seconds": 0.05},
            1.01 if batch == 5 else 1.5,
        )
        compared = replace(two, framework="horovod_torch")
        planned.append(Planned(two, Recipe(0.08, **exposed), 1, reference=two))
        planned.append(Planned(compared, Recipe(0.08 * longer, **exposed), 1, reference=two))
    return study(*planned)


@pytest.mark.parametrize("name", ["overview", "communication"])
def test_of_many_configurations_those_at_both_ends_have_a_row(many, name):
    figure, rows = only(getattr(figures, name)(many)), many.configurations
    values = (
        rows["throughput"]
        if name == "overview"
        else rows["exposed_communication_seconds"] / rows["broken_down_step_seconds"]
    )
    labels = {" ".join(text.get_text().split()) for text in axes_of(figure)[0].texts}
    assert len(labels) == MOST_ROWS
    middle = rows.loc[values.sort_values().index[MOST_ROWS // 2 : MOST_ROWS // 2 + 2], "configuration_id"]
    names = configuration_labels(many)
    assert {names[configuration_id] for configuration_id in rows["configuration_id"]} - labels == {
        names[configuration_id] for configuration_id in middle
    }
    assert f" of {MOST_ROWS + 2} configurations" in figure.caption
    assert f"Shown: the {MOST_ROWS} " in figure.caption
    assert f"; and {MOST_ROWS - MOST_CONFIGURATIONS} more." in figure.alt
    assert not any(f"{names[configuration_id]}: " in figure.alt for configuration_id in middle)


def test_of_many_references_those_with_the_largest_differences_are_shown(many):
    figure = only(figures.comparison(many))
    assert f"Shown: {MOST_ROWS} of {MOST_ROWS + 2} configurations, the most different" in figure.caption
    headings = [label.get_text() for label in axes_of(figure)[0].get_yticklabels()]
    assert "Batch per device 4 · 2 devices" in headings
    assert "Batch per device 5 · 2 devices" not in headings


def test_of_one_reference_with_many_configurations_those_that_differ_most_are_shown():
    reference = configuration()
    planned = [Planned(reference, ALONE, 1, reference=reference)]
    for batch in range(1, MOST_ROWS + 2):
        if batch != reference.batch_per_device:
            slower = Recipe(0.08 * (1.3 if batch % 2 else 1.001) * batch / reference.batch_per_device)
            planned.append(Planned(configuration(batch_per_device=batch), slower, 1, reference=reference))
    dataset = study(*planned)
    figure, [group] = only(figures.comparison(dataset)), most_different(dataset, all_groups(dataset))
    assert (len(group.rows), len(group.members)) == (MOST_ROWS, MOST_ROWS)
    assert group.members[0].configuration_id == reference.configuration_id
    assert f"Shown: {MOST_ROWS} of {len(planned)} configurations, the most different" in figure.caption


def test_of_many_levels_of_a_factor_as_many_are_shown_as_have_room():
    planned = [Planned(configuration(batch_per_device=batch)) for batch in range(1, 2 * MOST_VALUES + 2)]
    [figure] = factors(study(*planned))
    [axes] = axes_of(figure)
    ticks = [label.get_text() for label in axes.get_xticklabels()]
    assert (len(ticks), ticks[0], ticks[-1]) == (MOST_VALUES, "1", f"{2 * MOST_VALUES + 1}")
    assert f"{MOST_VALUES} of {2 * MOST_VALUES + 1} values are shown" in figure.caption
