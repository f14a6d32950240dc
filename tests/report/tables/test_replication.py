"""The page on the original: its tables with ours below, what differs, and the answer of today."""

import itertools
import re
from dataclasses import replace

import pytest

from dlperf_study.analysis.statistics import Interval
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.paths import StudyPaths
from dlperf_study.published import read_source
from dlperf_study.report.formatting import MISSING
from dlperf_study.report.replications import NO_QUESTION
from dlperf_study.report.tables import published_tables, replication_answers, replication_tables
from dlperf_study.report.tables.replication_answers import compared
from dlperf_study.report.tables.table import Cell, Table
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, write_titled
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


def workers(paths: StudyPaths, of_two: Recipe, runs: int = 3) -> Dataset:
    """Return ElasticDL's ResNet-50 on one and two CPU workers, four unsupported, and ArcFace on a CPU."""
    one, two, four = (configuration(nodes=nodes, **CPU_ONLY) for nodes in (1, 2, 4))
    arcface = configuration(**ARCFACE)
    planned = [
        Planned(one, ALONE, runs=runs),
        Planned(two, of_two, runs=runs),
        Planned(four, unsupported="there are 2 nodes"),
        Planned(arcface, ALONE, baseline=arcface),
    ]
    return write_titled(paths, planned, published=(WIKI, PLSC, REPORT))


def table_of(dataset: Dataset, title: str) -> Table:
    [found] = [table for table in replication_tables.side_by_side(dataset) if table.title.endswith(title)]
    return found


def answer_to(dataset: Dataset, label: str) -> str:
    [found] = [verdict for about, verdict in replication_answers.answers(dataset).verdicts if label in about]
    return found


def test_ours_are_below_the_rows_that_they_answer_and_every_printed_cell_is_there(paths: StudyPaths) -> None:
    dataset = workers(paths, TOGETHER)
    table = table_of(dataset, "CPU only: Resnet50")
    texts = [[cell.text for cell in row] for row in table.rows]
    assert [row[0] for row in texts] == ["1", "ours", "2", "ours", "4", "8"]
    [printed] = [each for each in published_tables.as_printed(dataset) if each.title == table.title]
    assert [row for row in table.rows if row[0].text != "ours"] == list(printed.rows)
    ours = dataset.configurations.set_index("nodes").query("framework == 'tensorflow_mirrored'")
    speed, speedup = texts[3][2], texts[3][3]
    assert float(speed.partition(" ")[0].replace("\u202f", "")) == pytest.approx(ours["throughput"][2], rel=0.01)
    assert speed.endswith("]")
    assert float(speedup.partition(" ")[0]) == pytest.approx(ours["speedup"][2], abs=0.01)
    assert table.rows[3][1].footnote == "not measured under this name"


def test_a_table_without_ours_says_in_what_they_differ(paths: StudyPaths) -> None:
    caption = table_of(workers(paths, TOGETHER), "ArcFace: ResNet 50 FP32, batch size = 128").caption
    assert caption.startswith("As OneFlow, 2021, printed it, cell by cell. Nothing of ours is next to it. ")
    assert caption.endswith("differs from all of these in device; from some also in devices per node and nodes.")


def test_the_stages_of_a_task_are_ours_for_a_task_of_as_many_samples(paths: StudyPaths) -> None:
    facts = CPU_ONLY | {"model": "mobilenet_v2", "image_size": 256, "classes": 100, "threads_per_device": 1}
    one, two = (configuration(nodes=nodes, **facts) for nodes in (1, 2))
    planned = [Planned(one, replace(ALONE, device="gpu")), Planned(two, replace(TOGETHER, device="gpu"))]
    dataset = write_titled(paths, planned, published=(WIKI,))
    table = table_of(dataset, "GPU: MobileNetV2")
    [(_, ours)] = [pair for pair in itertools.pairwise(table.rows) if pair[0][0].text == "2"]
    step_seconds = dataset.configurations.set_index("nodes")["step_seconds"][2]
    assert ours[0].text == "ours"
    assert re.fullmatch(r"1\.\d+ s \[.*\]", ours[1].text)
    assert float(ours[1].text.partition(" ")[0]) == pytest.approx(1024 / 64 * step_seconds, rel=0.01)
    assert ours[3] == Cell.missing("no such stage: gradients are exchanged from where they are")


def test_only_a_source_with_a_question_is_an_original(paths: StudyPaths) -> None:
    table = replication_tables.questions(workers(paths, TOGETHER))
    assert list(dict.fromkeys(table.groups)) == [read_source(WIKI).title, read_source(PLSC).title]
    assert table.rows[0][1].text == read_source(WIKI).question


@pytest.mark.parametrize(
    ("exposed_seconds", "ours", "position"),
    [
        (0.024, "1.5", "within"),
        (0.080, "0.99", "above"),
        (0.004, "1.8", "below"),
    ],
)
def test_the_answer_compares_how_much_both_gain(
    paths: StudyPaths, exposed_seconds: float, ours: str, position: str
) -> None:
    recipe = replace(TOGETHER, exposed_seconds=exposed_seconds, noise=0.05)
    sentence = answer_to(workers(paths, recipe), "CPU only: Resnet50")
    assert sentence.startswith("With devices from 1 to 2, the throughput changes 1.54× (without an interval) in print")
    assert f" and {ours}" in sentence
    assert sentence.endswith(f" here: the printed ratio, which has no interval, is {position} the interval of ours.")


@pytest.mark.parametrize(
    ("published", "verdict"),
    [
        (Interval(1.4, 1.5), "the original gains more"),
        (Interval(1.2, 1.35), "no difference that these runs could tell"),
        (Interval(1.0, 1.1), "ours gains more"),
    ],
)
def test_two_intervals_that_do_not_overlap_are_a_difference(published: Interval, verdict: str) -> None:
    middle = (published.low + published.high) / 2
    assert compared(middle, published, Interval(1.2, 1.3)) == verdict


def test_without_an_interval_of_ours_nothing_is_said_of_the_difference(paths: StudyPaths) -> None:
    sentence = answer_to(workers(paths, TOGETHER, runs=1), "CPU only: Resnet50")
    assert sentence.endswith(
        "(without an interval) here: without an interval of ours nothing is said of the difference."
    )


def test_where_nothing_comparable_was_measured_the_answer_says_so_and_why(paths: StudyPaths) -> None:
    answer = answer_to(workers(paths, TOGETHER), read_source(PLSC).title)
    assert answer.startswith(
        "Nothing comparable was measured here: none of its 5 throughputs has one of ours next to it. "
        "The most similar of ours differs from all of these in device; from some also in devices per node and nodes."
    )


def test_what_is_planned_and_was_not_measured_is_counted(paths: StudyPaths) -> None:
    answer = answer_to(workers(paths, TOGETHER), read_source(WIKI).title)
    assert answer.startswith("Of its 13 throughputs, 2 have one of ours next to it. The others have none. ")
    assert "from each of these in one or more of threads per device, " in answer
    assert answer.endswith("1 is planned without a completed run here.")


def test_a_table_by_batch_is_compared_from_its_first_to_its_last(paths: StudyPaths) -> None:
    small, large = (configuration(batch_per_device=batch, **SINGLE_THREAD) for batch in (32, 256))
    planned = [Planned(small, ALONE, baseline=small), Planned(large, ALONE, baseline=large)]
    dataset = write_titled(paths, planned, published=(VGG16,))
    sentence = answer_to(dataset, "Single Node Single Thread, PaddlePaddle Fluid")
    assert sentence.startswith("With batch per device from 32 to 256, the throughput changes 1.09×")
    assert sentence.endswith("is below the interval of ours.")


def test_what_differs_is_next_to_each_other(paths: StudyPaths) -> None:
    table = replication_tables.differences(workers(paths, TOGETHER))
    rows = {
        row[0].text: (row[1].text, row[2].text)
        for row, group in zip(table.rows, table.groups, strict=True)
        if "PLSC" in group
    }
    assert rows["Device"] == ("GPU", "CPU")
    assert rows["Images"] == ("made up", "made up and read from files")
    assert rows["Software"][1].startswith("PaddlePaddle 3")
    assert rows["Data source"][0] == "not stated"


def test_what_answers_no_number_is_apart(paths: StudyPaths) -> None:
    table = replication_tables.apart(workers(paths, TOGETHER))
    assert len(table.rows) == 1
    assert "ArcFace" in table.groups[0]
    assert MISSING not in table.column("Throughput")


def test_a_study_without_an_original_says_so(paths: StudyPaths) -> None:
    dataset = write_titled(paths, [Planned(configuration(), ALONE)], published=(REPORT,))
    assert NO_QUESTION in replication_answers.answers(dataset)._repr_html_()
    assert NO_QUESTION in replication_tables.questions(dataset)._repr_html_()
    assert list(replication_tables.side_by_side(dataset)) == []
