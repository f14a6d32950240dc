import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from dlperf_study.audit.published import read_source
from dlperf_study.audit.published.same_question import Difference, Match
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.context import no_sources
from dlperf_study.report.figures import published_figures
from dlperf_study.report.figures.line_charts import IDEAL
from dlperf_study.report.figures.published_figures import MEASURED_HERE
from dlperf_study.report.formatting import MISSING, display_name, html_text
from dlperf_study.report.pages import Page
from dlperf_study.report.tables import audit_tables, printed_tables, published_tables
from dlperf_study.report.tables.published_tables import common_differences, mismatch_reasons
from dlperf_study.report.tables.table import Table
from dlperf_study.study.study import SECTIONS
from tests.evidence_factory import Planned, configuration
from tests.report.conftest import ALONE, TOGETHER, study
from tests.report.tables.cells import assert_dashes_have_reasons, labels

SOURCES = ("elasticdl_allreduce_wiki", "dlperf_paddle_plsc", "paddle_vgg16_cluster")
#: What ElasticDL asked on a cluster's CPUs, in our words.
CPU_ONLY = {
    **{"model": "resnet50_convolution_biases", "strategy": "all_reduce", "image_size": 32, "classes": 10},
    **{"batch_per_device": 64, "threads_per_device": 4, "devices_per_node": 1},
    **{"framework": "tensorflow_mirrored", "memory_format": "nhwc"},
    **{"data_loader": "files", "image_dataset": "cifar10"},
}


#: What DLPerf asked of PLSC.
ARCFACE = {
    **{"model": "arcface_resnet50", "strategy": "all_reduce", "image_size": 112, "classes": 85742},
    **{"batch_per_device": 128, "classifier": "sharded", "sample_ratio": 1.0},
}


@pytest.fixture(scope="module")
def published_study() -> Dataset:
    """One and two workers measured, four unsupported, and eight not in the plan; and ArcFace on one GPU and one CPU."""
    one, two, four = (configuration(nodes=nodes, **CPU_ONLY) for nodes in (1, 2, 4))
    on_gpu, on_cpu = configuration(**ARCFACE), configuration(**ARCFACE, seed=1)
    planned = [
        Planned(one, ALONE),
        Planned(two, TOGETHER),
        Planned(four, unsupported="there are 2 nodes"),
        Planned(on_gpu, replace(ALONE, device="gpu"), baseline=on_gpu),
        Planned(on_cpu, ALONE, baseline=on_cpu),
    ]
    return study(*planned, published=SOURCES)


def row(table: Table, group: str, devices: str, line: str = "") -> dict[str, tuple[str, str, str]]:
    """Return one row of a table by its group, its devices and its line: text, interval and note by label."""
    rows = []
    for name, cells in zip(table.groups, table.rows, strict=True):
        by_label = dict(zip(labels(table), cells, strict=True))
        if group in name and by_label["Devices"].text == devices and line in cells[0].text:
            rows.append({label: (cell.text, cell.interval, cell.footnote) for label, cell in by_label.items()})
    [only_row] = rows
    return only_row


def test_the_same_question_is_one_row_and_only_printed_runs_give_an_interval(published_study, snapshot):
    table = published_tables.next_to_ours(published_study)
    assert table.caption == snapshot
    assert len(table.rows) == 13 + 5 + 36, "every published throughput has a row"
    assert all(re.fullmatch(r"\d+(\.\d+)?", text) for text in table.column("Published throughput"))
    cells = row(table, "CPU only: Resnet50", "2")
    printed = [cells[label][0] for label in ("Published throughput", "Published speedup", "As printed")]
    assert printed == ["41", "1.54", "1.57"]
    assert cells["Measured throughput"][1].startswith("[")
    assert cells["Measured speedup"][0].startswith("1.5")
    text, interval, note = row(table, "ArcFace", "32")["Published speedup"]
    low, high = (float(end) for end in interval.strip("[]").split(","))
    assert low < float(text) < high
    assert note == ""


def test_a_number_outside_the_interval_of_its_runs_says_so():
    bounds = {"throughput_low": 101.0, "throughput_high": 103.0}
    [inside, outside] = [SimpleNamespace(printed=str(value), value=value, **bounds) for value in (102, 100)]
    column = published_tables._THROUGHPUT
    assert (column.cell(inside).interval, column.cell(inside).footnote) == ("[101.0, 103.0]", "")
    speedup = SimpleNamespace(speedup=27.4, speedup_low=19.7, speedup_high=23.0, is_baseline=False)
    assert published_tables._SPEEDUP.cell(speedup).footnote == column.cell(outside).footnote != ""


def test_what_is_missing_or_differs_is_said_at_the_number(published_study, snapshot):
    """Not measured, in no configuration, one value only, an efficiency, another device, and a line not in the plan."""
    table = published_tables.next_to_ours(published_study)
    assert_dashes_have_reasons(table)
    assert_dashes_have_reasons(published_tables.communication(published_study))
    looked_up = (
        ("CPU only: Resnet50", "2", "", "Published throughput"),
        ("CPU only: Resnet50", "4", "", "Measured throughput"),
        ("CPU only: Resnet50", "8", "", "Measured speedup"),
        ("Minikube: Resnet50", "1", "", "Measured throughput"),
        ("Accelerate Rate", "20", "Fluid", "As printed"),
        ("ArcFace", "1", "", "Measured throughput"),
    )
    assert {key: row(table, *key[:3])[key[3]][2] for key in looked_up} == snapshot
    assert [[cell.text for cell in cells] for cells in published_tables.ours_alone(published_study).rows] == snapshot


def test_what_all_numbers_lack_is_apart_from_what_one_lacks(snapshot):
    device, nodes = Difference("device", "gpu", "cpu"), Difference("nodes", 4, 1)
    matches = [Match((), (device,), ()), Match((), (nodes, device), ()), Match(("ours",), (), ())]
    common = common_differences(matches)
    assert common == [device]
    reasons = [mismatch_reasons(match, common) for match in matches[:2]]
    assert list(map(len, reasons)) == [1, 2]
    assert reasons == snapshot
    assert common_differences(matches[2:]) == []


@pytest.mark.usefixtures("on_page")
def test_without_a_page_of_the_audit_its_words_lead_nowhere():
    alone = configuration(**ARCFACE)
    planned = Planned(alone, replace(ALONE, device="gpu"))
    dataset = study(planned, published=("dlperf_paddle_plsc",), sections=("published",))
    shown = published_tables.next_to_ours(dataset)._repr_html_()
    assert "warning: from 8 to" in shown
    assert ".html" not in shown


def test_a_study_without_sources_says_so():
    dataset = study(Planned(configuration()), published=())
    tables = (published_tables.next_to_ours, published_tables.communication)
    for build in (*tables, printed_tables.sources, printed_tables.stages, published_figures.speedups):
        assert html_text(no_sources(dataset)) in build(dataset)._repr_html_()
    unanswered = published_figures.speedups(study(Planned(configuration(), ALONE)))
    assert (unanswered.drawing, "names no published source" in unanswered.empty) == (None, False)


@pytest.mark.usefixtures("on_page")
def test_every_link_to_the_audit_arrives(published_study):
    pages = {Page.answering(question).file for question in SECTIONS}
    built = (published_tables.next_to_ours(published_study), published_tables.communication(published_study))
    shown = "".join(table._repr_html_() for table in built)
    targets = re.findall(r'<li><sup>\w+</sup>&nbsp;<a href="([^"#]+)#([^"]+)">audit, \w+: ([^<]+)', shown)
    _, found = audit_tables.published(published_study)
    rows = re.findall(r'<td id="([^"]+)">.*?</td><td>.*?</td><td>(.*?)(?:<sup |</td>)', found._repr_html_())
    assert len(targets) > 5
    assert {page for page, _, _ in targets} <= pages
    assert {(anchor, said) for _, anchor, said in targets} <= set(rows)


def test_what_ours_answers_is_drawn_with_intervals_of_runs_and_the_caption_names_the_rest(published_study):
    figure = published_figures.speedups(published_study)
    wiki, plsc, vgg16 = (read_source(name).title for name in SOURCES)
    drawn = [part.get_suptitle() for part in figure.drawing.subfigs]
    assert drawn == [f"ResNet-50 with convolution biases: {wiki}", f"{display_name('arcface_resnet50')}: {plsc}"]
    assert figure.caption.count("Dashed: measured here") == figure.caption.count("Bars: 95 % CIs") == 1
    not_drawn = figure.caption.partition("In the tables only")[2]
    assert f"MobileNetV2: {wiki}" in not_drawn
    assert f"VGG16 for CIFAR-10: {vgg16}" in not_drawn
    assert plsc not in not_drawn
    speedup, efficiency = figure.drawing.subfigs[0].axes
    labels = [text.get_text().replace("\n", " ").partition(" 1× = ") for text in efficiency.texts]
    lines = ["Minikube: Resnet50", "ASI, CPU only: Resnet50", f"{MEASURED_HERE} · ASI, CPU only: Resnet50"]
    assert {label for label, *_ in labels} == {*lines}
    assert dict((label, throughput) for label, _, throughput in labels)["Minikube: Resnet50"] == "3.1 samples/s"
    dashed = [line for line in speedup.get_lines() if line.get_linestyle() == "--" and line.get_label() != IDEAL]
    assert [list(line.get_xdata()) for line in dashed] == [[1, 2]]
    cpu, _, arcface, _ = figure.drawing.axes
    lengths = _longest_bars(cpu) | _longest_bars(arcface)
    here = f"{MEASURED_HERE} · ASI, CPU only: Resnet50"
    assert {label for label, length in lengths.items() if length > 0} == {"PLSC", here}
    assert lengths["PLSC"] > 0.1


def _longest_bars(axes: Axes) -> dict[str, float]:
    """Return the length of the longest interval of each line, by the label of the line."""
    lengths = {}
    for bars in axes.collections:
        if isinstance(bars, LineCollection):
            label = str(bars.get_label()).removeprefix("_")
            lengths[label] = max((np.ptp(segment[:, 1]) for segment in bars.get_segments()), default=0.0)
    return lengths


def test_a_speedup_over_a_different_program_is_next_to_none(snapshot):
    """Our two workers are compared with one of a different batch: that is not how this line scales."""
    one, two = (configuration(nodes=nodes, **CPU_ONLY) for nodes in (1, 2))
    other = configuration(nodes=1, **{**CPU_ONLY, "batch_per_device": 32})
    planned = [Planned(other, ALONE), Planned(one, ALONE, baseline=other), Planned(two, TOGETHER, baseline=other)]
    dataset = study(*planned, published=("elasticdl_allreduce_wiki",))
    cells = row(published_tables.next_to_ours(dataset), "CPU only: Resnet50", "2")
    assert cells["Measured throughput"][0] != MISSING
    assert cells["Measured speedup"] == (MISSING, "", snapshot)
    assert published_figures.speedups(dataset).draw is None


def test_where_nothing_of_ours_is_measured_one_column_says_why(published_study):
    nothing = published_study.configurations.assign(throughput=float("nan"), runs_completed=0)
    for dataset, ours in (
        (
            published_study,
            [
                "Measured throughput",
                "Measured mean per-step throughput",
                "Measured baseline throughput",
                "Measured speedup",
            ],
        ),
        (replace(published_study, configurations=nothing), ["Measured throughput"]),
    ):
        assert [
            label for label in labels(published_tables.next_to_ours(dataset)) if label.startswith("Measured ")
        ] == ours
