"""The page on the original: its tables with ours below, what differs, and the answer of today."""

import itertools
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from dlperf_study.audit.published import read_source
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.formatting import MISSING
from dlperf_study.report.tables import published_sources, replication_tables
from dlperf_study.report.tables.replication_tables import NO_QUESTION, _published_ratio
from dlperf_study.report.tables.table import Table
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, study
from tests.report.tables.test_published_tables import ARCFACE, CPU_ONLY

WIKI, PLSC, VGG16, REPORT = (
    *("elasticdl_allreduce_wiki", "dlperf_paddle_plsc"),
    *("paddle_vgg16_cluster", "elasticdl_ftlib_report"),
)
#: What the first table of PaddlePaddle's page asks, in our words.
SINGLE_THREAD = {
    **{"framework": "paddle_ps", "strategy": "local", "model": "vgg16_cifar", "image_size": 32, "classes": 10},
    **{"data_source": "files", "image_set": "cifar10"},
}


def workers(of_two: Recipe = TOGETHER, runs: int = 3) -> Dataset:
    """Return ElasticDL's ResNet-50 on one and two CPU workers, four unsupported, and ArcFace on a CPU."""
    one, two, four = (configuration(nodes=nodes, **CPU_ONLY) for nodes in (1, 2, 4))
    arcface = configuration(**ARCFACE)
    planned = [
        Planned(one, ALONE, runs=runs),
        Planned(two, of_two, runs=runs),
        Planned(four, unsupported="there are 2 nodes"),
        Planned(arcface, ALONE, baseline=arcface),
    ]
    return study(*planned, published=(WIKI, PLSC, REPORT))


def table_of(dataset: Dataset, title: str) -> Table:
    [found] = [table for table in replication_tables.side_by_side(dataset) if table.title.endswith(title)]
    return found


def answer_to(dataset: Dataset, label: str) -> str:
    [found] = [verdict for about, verdict in replication_tables.answers(dataset).verdicts if label in about]
    return found


def test_ours_are_below_the_rows_that_they_answer_and_every_printed_cell_is_there():
    dataset = workers()
    table = table_of(dataset, "CPU only: Resnet50")
    texts = [[cell.text for cell in row] for row in table.rows]
    assert [row[0] for row in texts] == ["1", "ours", "2", "ours", "4", "8"]
    [printed] = [each for each in published_sources.as_printed(dataset) if each.title == table.title]
    assert [row for row in table.rows if row[0].text != "ours"] == list(printed.rows)
    ours = dataset.configurations.set_index("nodes").query("framework == 'tensorflow_mirrored'")
    speed, speedup = texts[3][2], texts[3][3]
    assert float(speed.partition(" ")[0].replace("\u202f", "")) == pytest.approx(ours["throughput"][2], rel=0.01)
    assert speed.endswith("]")
    assert float(speedup.partition(" ")[0]) == pytest.approx(ours["speedup"][2], abs=0.01)
    assert table.rows[3][1].footnote.startswith("not measured")


def test_the_stages_of_a_task_are_ours_for_a_task_of_as_many_samples():
    facts = CPU_ONLY | {"model": "mobilenet_v2", "image_size": 256, "classes": 100, "threads_per_device": 1}
    one, two = (configuration(nodes=nodes, **facts) for nodes in (1, 2))
    planned = [Planned(one, replace(ALONE, device="gpu")), Planned(two, replace(TOGETHER, device="gpu"))]
    dataset = study(*planned, published=(WIKI,))
    table = table_of(dataset, "GPU: MobileNetV2")
    [(_, ours)] = [pair for pair in itertools.pairwise(table.rows) if pair[0][0].text == "2"]
    step_seconds = dataset.configurations.set_index("nodes")["step_seconds"][2]
    assert ours[0].text == "ours"
    assert re.fullmatch(r"1\.\d+ s \[.*\]", ours[1].text)
    assert float(ours[1].text.partition(" ")[0]) == pytest.approx(1024 / 64 * step_seconds, rel=0.01)
    assert ours[3].text == MISSING


def test_what_answers_no_number_is_apart():
    table = replication_tables.apart(workers())
    assert len(table.rows) == 1
    assert "ArcFace" in table.groups[0]
    assert MISSING not in table.column("Throughput")


def test_a_study_without_an_original_says_so():
    dataset = study(Planned(configuration(), ALONE), published=(REPORT,))
    assert NO_QUESTION in replication_tables.answers(dataset)._repr_html_()
    assert NO_QUESTION in replication_tables.questions(dataset)._repr_html_()
    assert list(replication_tables.side_by_side(dataset)) == []


@pytest.mark.parametrize(("exposed_seconds", "ours"), [(0.024, 1.5), (0.080, 0.99), (0.004, 1.88)])
def test_the_answer_compares_how_much_both_gain(exposed_seconds, ours):
    """Published are 1.54 times as many images a second on two workers."""
    recipe = replace(TOGETHER, exposed_seconds=exposed_seconds, noise=0.05)
    sentence = answer_to(workers(recipe), "CPU only: Resnet50")
    printed, of_ours, relative = (float(match) for match in re.findall(r"(\d+\.?\d*)(?:×| \(without)", sentence)[:3])
    assert of_ours == pytest.approx(ours, rel=0.03)
    assert relative == pytest.approx(of_ours / printed, rel=0.02)


@pytest.mark.parametrize("bounds", [(1.4, 1.6), (None, None)])
def test_a_published_ratio_and_ours_are_two_dates(bounds):
    first = SimpleNamespace(cell="a", value=100.0)
    last = SimpleNamespace(baseline="a", value=150.0, speedup_low=bounds[0], speedup_high=bounds[1])
    published = _published_ratio(first, last)
    assert published.factor == pytest.approx(1.5)
    assert published.bounded_factor[1:] == pytest.approx((1.403, 1.604), abs=0.01) if bounds[0] else (None, None)


def test_an_answer_says_why_it_is_none(snapshot):
    """One run, another device, what is planned only, and a table by batch size."""
    small, large = (configuration(batch_per_device=batch, **SINGLE_THREAD) for batch in (32, 256))
    planned = [Planned(small, ALONE, baseline=small), Planned(large, ALONE, baseline=large)]
    by_batch = study(*planned, published=(VGG16,))
    assert [
        answer_to(workers(runs=1), "CPU only: Resnet50"),
        answer_to(workers(), read_source(PLSC).title),
        answer_to(workers(), read_source(WIKI).title),
        answer_to(by_batch, "Single Node Single Thread, PaddlePaddle Fluid"),
        table_of(workers(), "ArcFace: ResNet 50 FP32, batch size = 128").caption,
    ] == snapshot
