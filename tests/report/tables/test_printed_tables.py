"""Published tables as printed with ours below, and how much throughputs change in print and here."""

import itertools
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from dlperf_study.audit.published import read_source
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings.published import read_published
from dlperf_study.report.context import no_sources
from dlperf_study.report.formatting import MISSING, html_text
from dlperf_study.report.tables import printed_tables
from dlperf_study.report.tables.table import Table
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, study
from tests.report.tables.test_published_tables import ARCFACE, CPU_ONLY

WIKI, REPORT = "elasticdl_allreduce_wiki", "elasticdl_ftlib_report"
PLSC, VGG16 = "dlperf_paddle_plsc", "paddle_vgg16_cluster"
#: What the first table of PaddlePaddle's page asks, in our words.
SINGLE_THREAD = {
    **{"framework": "paddle_ps", "strategy": "local", "model": "vgg16_cifar", "image_size": 32, "classes": 10},
    **{"data_loader": "files", "image_dataset": "cifar10"},
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
    [found] = [table for table in printed_tables.as_printed(dataset) if table.title.endswith(title)]
    return found


def test_ours_are_below_the_rows_that_they_answer_and_every_printed_cell_is_there(snapshot):
    dataset = workers()
    table = table_of(dataset, "CPU only: Resnet50")
    texts = [[cell.text for cell in row] for row in table.rows]
    assert [row[0] for row in texts] == ["1", "measured here", "2", "measured here", "4", "8"]
    printed = read_published(dataset).as_printed(WIKI, "cpu_resnet50")
    rows = [[label, *cells] for label, cells in zip(printed.index, printed.to_numpy().tolist(), strict=True)]
    assert [row for row in texts if row[0] != "measured here"] == rows
    ours = dataset.configurations.set_index("nodes").query("framework == 'tensorflow_mirrored'")
    speed, speedup = texts[3][2], texts[3][3]
    assert float(speed.partition(" ")[0].replace("\u202f", "")) == pytest.approx(ours["throughput"][2], rel=0.01)
    assert speed.endswith("]")
    assert float(speedup.partition(" ")[0]) == pytest.approx(ours["speedup"][2], abs=0.01)
    assert table.rows[3][1].footnote.startswith("not measured")
    unanswered = table_of(dataset, "ArcFace: ResNet 50 FP32, batch size = 128")
    assert "measured here" not in unanswered.column(unanswered.headings[0].label)
    assert unanswered.caption == snapshot


def test_the_stages_of_a_task_are_ours_for_a_task_of_as_many_samples():
    facts = CPU_ONLY | {"model": "mobilenet_v2", "image_size": 256, "classes": 100, "threads_per_device": 1}
    one, two = (configuration(nodes=nodes, **facts) for nodes in (1, 2))
    planned = [Planned(one, replace(ALONE, device="gpu")), Planned(two, replace(TOGETHER, device="gpu"))]
    dataset = study(*planned, published=(WIKI,))
    table = table_of(dataset, "GPU: MobileNetV2")
    [(_, ours)] = [pair for pair in itertools.pairwise(table.rows) if pair[0][0].text == "2"]
    step_seconds = dataset.configurations.set_index("nodes")["step_seconds"][2]
    assert ours[0].text == "measured here"
    assert re.fullmatch(r"1\.\d+ s \[.*\]", ours[1].text)
    assert float(ours[1].text.partition(" ")[0]) == pytest.approx(1024 / 64 * step_seconds, rel=0.01)
    assert ours[3].text == MISSING


def test_a_study_without_sources_has_no_table_and_no_change():
    dataset = study(Planned(configuration(), ALONE), published=())
    assert list(printed_tables.as_printed(dataset)) == []
    assert html_text(no_sources(dataset)) in printed_tables.changes_table(dataset)._repr_html_()
    unanswered = study(Planned(configuration(), ALONE), published=(REPORT,))
    assert printed_tables.changes_table(unanswered).is_empty


@pytest.mark.parametrize(("exposed_communication_seconds", "ours"), [(0.024, 1.5), (0.080, 0.99), (0.004, 1.88)])
def test_a_change_is_the_published_speedup_and_ours(exposed_communication_seconds, ours):
    """Published are 1.54 times as many images a second on two workers."""
    dataset = workers(replace(TOGETHER, exposed_communication_seconds=exposed_communication_seconds, noise=0.05))
    [change] = [change for change in printed_tables.changes(dataset) if "CPU only: Resnet50" in change.table]
    assert change.between == "devices from 1 to 2"
    assert change.published.factor == pytest.approx(1.54, abs=0.005)
    assert change.ours.factor == pytest.approx(ours, rel=0.03)
    table = printed_tables.changes_table(dataset)
    printed = {
        label: float(table.column(label)[0]) for label in ("Published", "Measured here", "Measured here / published")
    }
    assert printed["Measured here / published"] == pytest.approx(
        printed["Measured here"] / printed["Published"], rel=0.01
    )


def test_configurations_on_the_same_devices_are_compared_by_batch():
    small, large = (configuration(batch_per_device=batch, **SINGLE_THREAD) for batch in (32, 256))
    planned = [Planned(small, ALONE, baseline=small), Planned(large, ALONE, baseline=large)]
    dataset = study(*planned, published=(VGG16,))
    changes = [(change.program, change.between) for change in printed_tables.changes(dataset)]
    assert ("PaddlePaddle Fluid", "batch per device from 32 to 256") in changes


def test_one_run_has_a_change_without_an_interval():
    row = printed_tables.changes_table(workers(runs=1)).rows[0]
    assert [cell.interval for cell in row[2:]] == ["", "", ""]
    assert all(cell.footnote.startswith("no CI") for cell in row[2:])


@pytest.mark.parametrize("bounds", [(1.4, 1.6), (None, None)])
def test_a_published_ratio_has_the_printed_interval(bounds):
    first = SimpleNamespace(cell="a", value=100.0)
    last = SimpleNamespace(baseline="a", value=150.0, speedup_low=bounds[0], speedup_high=bounds[1])
    published = printed_tables.published_ratio(first, last)
    assert published.factor == pytest.approx(1.5)
    assert published.bounded_factor[1:] == pytest.approx((1.403, 1.604), abs=0.01) if bounds[0] else (None, None)


def test_the_sources_have_their_question_and_the_same_facts_of_ours():
    table = printed_tables.sources(workers())
    rows = [row for group, row in zip(table.groups, table.rows, strict=True) if group == read_source(WIKI).title]
    wiki = {row[0].text: [cell.text for cell in row[1:]] for row in rows}
    assert wiki["Question"][0].startswith("How much faster does all-reduce make")
    assert wiki["Device"] == ["CPU / GPU", "CPU"]
