"""The page on predictions: its figure, its tables and its sentences, of a study on nodes with GPUs."""

from typing import Any

import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import figures, tables
from dlperf_study.report.figures.style import COLUMN, PAGE
from dlperf_study.report.page_findings import page_findings
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import study

#: Computation takes 80 ms; a transfer between m nodes takes 40 ms x (m - 1)/m.
_EXPOSED = {1: 0.0, 2: 0.020, 4: 0.030}


def on_nodes(*counts: int, **changes: Any) -> Dataset:
    """A study of one model on GPUs, on one and on several nodes of four devices."""
    baseline = configuration(devices_per_node=4)
    planned = []
    for count in counts:
        recipe = Recipe(exposed_communication_seconds=_EXPOSED[count], device="gpu", noise=0.001)
        planned.append(Planned(configuration(nodes=count, devices_per_node=4), recipe, baseline=baseline))
    return study(*planned, sections=("prediction",), published=(), **changes)


def test_the_largest_size_is_predicted_from_the_smaller_ones() -> None:
    dataset = on_nodes(1, 2, 4)
    table = tables.back_test(dataset)
    assert table.column("Size") == ["4 nodes"]
    assert table.column("From") == ["1 and 2"]
    # The ring is what the recipe follows.
    assert abs(float(table.column("Error")[0].replace("−", "-"))) < 1.5
    assert tables.back_test(on_nodes(1, 2)).is_empty


def test_the_next_size_has_an_interval_and_the_efficiency_of_a_ring() -> None:
    table = tables.predictions(on_nodes(1, 2, 4))
    assert table.column("Size") == ["8 nodes"]
    [row] = table.rows
    assert row[2].interval
    # 80 ms of computation and 35 ms of communication.
    assert float(row[3].text) == pytest.approx(80 / 115, rel=0.03)


def test_a_figure_is_drawn_in_each_width() -> None:
    [figure] = figures.prediction(on_nodes(1, 2, 4))
    for width in (PAGE, COLUMN):
        [axes] = [axes for axes in figure.drawn(width).axes if axes.get_visible()]
        labels = axes.get_legend_handles_labels()[1]
        assert {"90 %", "node ring", "from smaller sizes"} <= set(labels)


def test_one_node_is_refused_with_the_point_to_measure() -> None:
    dataset = on_nodes(1)
    assert tables.predictions(dataset).is_empty
    assert len(tables.not_predicted(dataset).rows) == 1
    [figure] = figures.prediction(dataset)
    assert figure.is_empty
    [sentence] = page_findings(dataset, "prediction").sentences
    assert "devices_per_node" in sentence


def test_each_reason_of_a_refusal_stands_behind_the_series_that_have_it() -> None:
    planned = []
    for seed, count in enumerate((1, 2, 1)):
        requested = configuration(nodes=count, devices_per_node=4, seed=seed)
        planned.append(
            Planned(requested, Recipe(exposed_communication_seconds=_EXPOSED[count], device="gpu"), baseline=requested)
        )
    dataset = study(*planned, sections=("prediction",), published=())
    on_one_node, on_two = page_findings(dataset, "prediction").sentences
    assert "(Seed 0); ResNet-50 (Seed 2): one size" in on_one_node
    assert "(Seed 1): one number of nodes" in on_two


def test_servers_are_refused() -> None:
    planned: list[Planned] = []
    for count in (1, 2, 4):
        requested = configuration(framework="paddle_ps", strategy="async", nodes=count, parameter_servers=1)
        recipe = Recipe(
            exposed_communication_seconds=0.01 * count, communication="push_pull", device="gpu", noise=0.001
        )
        planned.append(Planned(requested, recipe, baseline=planned[0].configuration if planned else requested))
    dataset = study(*planned, sections=("prediction",), published=())
    assert tables.predictions(dataset).is_empty
    assert "parameter servers" in " ".join(page_findings(dataset, "prediction").sentences)
    [figure] = figures.prediction(dataset)
    assert figure.is_empty


def test_sentences_give_the_next_size_with_its_interval() -> None:
    first, second = page_findings(on_nodes(1, 2, 4), "prediction").sentences
    assert "8 nodes (32 devices)" in first
    assert "90\u202f% intervals" in first
    assert second.startswith(
        "Back-test of 1 series: the largest measured size, predicted from smaller sizes, is off by "
    )
