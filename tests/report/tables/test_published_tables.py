import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from dlperf_study.analysis.same_question import Difference, Match
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.paths import StudyPaths
from dlperf_study.published import read_source
from dlperf_study.report.context import NO_SOURCES
from dlperf_study.report.figures import published_figures
from dlperf_study.report.figures.direct_labels import IDEAL
from dlperf_study.report.figures.published_figures import OURS
from dlperf_study.report.formatting import MISSING, display_name
from dlperf_study.report.pages.pages import Page
from dlperf_study.report.tables import audit_tables, published_tables
from dlperf_study.report.tables.question_differences import common_differences, why_no_match
from dlperf_study.report.tables.table import Link, Table
from dlperf_study.study.study import question_names
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, write_titled

SOURCES = ("elasticdl_allreduce_wiki", "dlperf_paddle_plsc", "paddle_vgg16_cluster")
#: What ElasticDL asked on a cluster's CPUs, in our words.
CPU_ONLY = {
    **{"model": "resnet50_convolution_biases", "strategy": "all_reduce", "image_size": 32, "classes": 10},
    **{"batch_per_device": 64, "threads_per_device": 4, "devices_per_node": 1},
    **{"framework": "tensorflow_mirrored", "memory_format": "nhwc"},
    **{"data_source": "files", "image_set": "cifar10"},
}


#: What DLPerf asked of PLSC.
ARCFACE = {
    **{"model": "arcface_resnet50", "strategy": "all_reduce", "image_size": 112, "classes": 85742},
    **{"batch_per_device": 128, "classifier": "sharded", "sample_ratio": 1.0},
}


@pytest.fixture(scope="module")
def published_study(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """One and two workers measured, four unsupported, and eight not in the plan; and ArcFace on one GPU and one CPU."""
    one, two, four = (configuration(nodes=nodes, **CPU_ONLY) for nodes in (1, 2, 4))
    alone = configuration(**ARCFACE)
    arcface = Planned(alone, replace(ALONE, device="gpu"), baseline=alone)
    unsupported = Planned(four, Recipe(), unsupported="there are 2 nodes")
    on_cpu = configuration(**ARCFACE, seed=1)
    planned = [
        Planned(one, ALONE),
        Planned(two, TOGETHER),
        unsupported,
        arcface,
        Planned(on_cpu, ALONE, baseline=on_cpu),
    ]
    paths = StudyPaths(tmp_path_factory.mktemp("outputs") / "example")
    return write_titled(paths, planned, published=SOURCES)


def row(table: Table, group: str, devices: str, line: str = "") -> dict[str, tuple[str, str, str]]:
    """Return one row of a table by its group, its devices and its line: text, interval and note by label."""
    rows = []
    for name, cells in zip(table.groups, table.rows, strict=True):
        values = {heading.label: cell for heading, cell in zip(table.headings, cells, strict=True)}
        if group in name and values["Devices"].text == devices and line in cells[0].text:
            rows.append({label: (cell.text, cell.interval, cell.footnote) for label, cell in values.items()})
    [only_row] = rows
    return only_row


def test_every_published_throughput_has_a_row(published_study: Dataset) -> None:
    table = published_tables.next_to_ours(published_study)
    assert len(table.rows) == 13 + 5 + 36
    assert {text for text in table.column("Published throughput") if not re.fullmatch(r"\d+(\.\d+)?", text)} == set()


def test_the_same_question_is_one_row(published_study: Dataset) -> None:
    cells = row(published_tables.next_to_ours(published_study), "CPU only: Resnet50", "2")
    assert cells["Published throughput"] == ("41", "", "no interval: one value printed")
    assert cells["Published speedup"][0] == "1.54"
    assert cells["As printed"][0] == "1.57"
    assert cells["Our throughput"][1].startswith("[")
    assert cells["Our speedup"][0].startswith("1.5")


def test_runs_that_were_printed_give_an_interval(published_study: Dataset) -> None:
    cells = row(published_tables.next_to_ours(published_study), "ArcFace", "32")
    text, interval, note = cells["Published speedup"]
    low, high = (float(end) for end in interval.strip("[]").split(","))
    assert low < float(text) < high
    assert cells["Published throughput"][0] == "11084.53"
    assert note == ""


def test_a_number_outside_the_interval_of_its_runs_says_so() -> None:
    bounds = {"throughput_low": 101.0, "throughput_high": 103.0}
    [inside, outside] = [SimpleNamespace(printed=str(value), value=value, **bounds) for value in (102, 100)]
    column = published_tables._published_throughput()
    assert (column.cell(inside).interval, column.cell(inside).footnote) == ("[101.0, 103.0]", "")
    assert column.cell(outside).footnote == "outside its interval, which is that of the means of printed runs"
    speedup = SimpleNamespace(speedup=27.4, speedup_low=19.7, speedup_high=23.0, is_baseline=False)
    assert published_tables._published_speedup().cell(speedup).footnote == column.cell(outside).footnote


def test_an_efficiency_that_was_printed_is_called_one(published_study: Dataset) -> None:
    cells = row(published_tables.next_to_ours(published_study), "Accelerate Rate", "20", "Fluid")
    assert cells["As printed"] == ("78.64%", "", "printed as efficiency")


def test_what_was_not_measured_says_why(published_study: Dataset) -> None:
    table = published_tables.next_to_ours(published_study)
    assert row(table, "CPU only: Resnet50", "4")["Our throughput"] == (MISSING, "", "unsupported: there are 2 nodes")
    nearest = "no configuration answers the same question; the most similar differs in "
    assert row(table, "CPU only: Resnet50", "8")["Our speedup"][2] == f"{nearest}nodes (published 8, ours 1)"
    minikube = row(table, "Minikube: Resnet50", "1")["Our throughput"][2]
    assert minikube == f"{nearest}threads per device (published 1, ours 4) and CPU limit (published 0.3, ours no limit)"


def test_what_all_numbers_lack_is_apart_from_what_one_lacks() -> None:
    device, nodes = Difference("device", "gpu", "cpu"), Difference("nodes", 4, 1)
    matches = [Match((), (device,), ()), Match((), (nodes, device), ()), Match(("ours",), (), ())]
    common = common_differences(matches)
    assert common == [device]
    reason = "no configuration answers the same question; the most similar differs in device (published GPU, ours CPU)"
    assert why_no_match(matches[0], common) == (reason,)
    assert why_no_match(matches[1], common) == (reason, "and also in nodes (published 4, ours 1)")
    assert common_differences(matches[2:]) == []


def test_what_differs_although_the_question_is_the_same_is_at_our_throughput(published_study: Dataset) -> None:
    cells = row(published_tables.next_to_ours(published_study), "ArcFace", "1")
    note = cells["Our throughput"][2]
    assert "device name: published Tesla V100-SXM2-16GB, ours Constructed GPU" in note
    assert "software: published paddlepaddle-gpu 1.8.5.post107" in note
    assert "its source does not state data source, ours synthetic, on the device" in note
    assert "same question" not in cells["Our speedup"][2]


def test_a_configuration_without_a_published_number_says_in_what_the_nearest_differs(published_study: Dataset) -> None:
    table = published_tables.without_number(published_study)
    [[label, reason]] = [[cell.text for cell in cells] for cells in table.rows]
    assert "ArcFace" in label
    assert reason == "the most similar published number differs in device (published GPU, ours CPU)"


def test_every_dash_has_a_reason_and_nothing_prints_as_nan(published_study: Dataset) -> None:
    for table in (published_tables.next_to_ours(published_study), published_tables.communication(published_study)):
        cells = [cell for cells in table.rows for cell in cells]
        assert [cell for cell in cells if cell.text == MISSING and not cell.footnote] == []
        assert [cell for cell in cells if "nan" in cell.text.lower() or "<NA>" in cell.text] == []


def test_a_number_leads_to_the_audits_diagnostic_about_it(published_study: Dataset) -> None:
    table = published_tables.next_to_ours(published_study)
    message = "41 / 26.7 = 1.5356, printed 1.57: it fits no rounding"
    assert f"audit, warning: {message}" in _links(table, "CPU only: Resnet50", "2")
    assert f"audit, warning: {message}" not in _links(table, "CPU only: Resnet50", "1")
    assert [text for text in _links(table, "ArcFace", "8") if "17.0% above linear" in text]
    assert _links(table, "ArcFace", "32") == []


def _links(table: Table, group: str, devices: str) -> list[str]:
    grouped = zip(table.groups, table.rows, strict=True)
    [found] = [cells for name, cells in grouped if group in name and cells[1].text == devices]
    return [link.text for cell in found for link in cell.further if isinstance(link, Link)]


def test_every_link_to_the_audit_arrives(published_study: Dataset) -> None:
    pages = {Page.answering(question).file for question in question_names()}
    shown = (
        published_tables.next_to_ours(published_study)._repr_html_()
        + published_tables.communication(published_study)._repr_html_()
    )
    targets = re.findall(r'<li><sup>\w+</sup>&nbsp;<a href="([^"#]+)#([^"]+)">audit, \w+: ([^<]+)', shown)
    _, found = audit_tables.published(published_study)
    rows = re.findall(r'<td id="([^"]+)">.*?</td><td>.*?</td><td>(.*?)(?:<sup>|</td>)', found._repr_html_())
    assert len(targets) > 5
    assert {page for page, _, _ in targets} <= pages
    assert {(anchor, said) for _, anchor, said in targets} <= set(rows)


def test_without_a_page_of_the_audit_its_words_stand_alone(paths: StudyPaths) -> None:
    alone = configuration(**ARCFACE)
    on_gpu = [Planned(alone, replace(ALONE, device="gpu"))]
    dataset = write_titled(paths, on_gpu, published=("dlperf_paddle_plsc",), questions=("published",))
    shown = published_tables.next_to_ours(dataset)._repr_html_()
    assert "audit, warning: from 8 to 16 devices" in shown
    assert ".html" not in shown


def test_a_caption_names_both_machines_and_warns(published_study: Dataset) -> None:
    caption = published_tables.next_to_ours(published_study).caption
    owed = ("neither is divided by the other", "Tesla V100-SXM2-16GB", "cpu=4", "Constructed CPU", "weak scaling")
    assert [words for words in owed if words not in caption] == []


def test_communication_is_next_to_ours(published_study: Dataset) -> None:
    cells = row(published_tables.communication(published_study), "CPU only: Resnet50", "2")
    assert cells["Communication, as published"][0] == "18%"
    assert cells["Our computation : communication"][0].startswith("10 : ")


def test_sources_have_their_origin_and_what_they_do_not_state(published_study: Dataset) -> None:
    table = published_tables.sources(published_study)
    facts: dict[str, list[str]] = {}
    for word, said in table.rows:
        facts.setdefault(word.text, []).append(said.text)
    assert facts["Page"][0] == "github.com/sql-machine-learning/elasticdl/wiki/allreduce-benchmark"
    assert facts["Inferred"] == [
        "image_size, classes, batch_per_device, data_source, images / classes, device_name, data_source, images",
        "image_size",
        "image_size, classes, data_source, images",
    ]
    assert facts["Software"][2].endswith("versions are not stated")
    assert facts["Not stated"][0] == "link"


def test_sources_are_below_each_other_and_fit_a_page(published_study: Dataset) -> None:
    table = published_tables.sources(published_study)
    assert len(table.headings) == 2
    assert list(dict.fromkeys(table.groups)) == [read_source(name).title for name in SOURCES]


def test_only_what_ours_answers_is_drawn_and_the_caption_names_the_rest(published_study: Dataset) -> None:
    figure = published_figures.speedups(published_study)
    wiki, plsc, vgg16 = (read_source(name).title for name in SOURCES)
    drawn = [part.get_suptitle() for part in figure.drawing.subfigs]
    assert drawn == [f"ResNet-50 with convolution biases: {wiki}", f"{display_name('arcface_resnet50')}: {plsc}"]
    assert figure.caption.count("Dashed: ours") == figure.caption.count("Bars: intervals") == 1
    not_drawn = figure.caption.partition("Not drawn, but in the tables")[2]
    assert f"MobileNetV2: {wiki}" in not_drawn
    assert f"VGG16 for CIFAR-10: {vgg16}" in not_drawn
    assert plsc not in not_drawn


def test_a_source_that_ours_does_not_answer_has_tables_alone(paths: StudyPaths) -> None:
    figure = published_figures.speedups(write_titled(paths, [Planned(configuration(), ALONE)]))
    assert figure.drawing is None
    assert "published numbers are in the tables only" in figure._repr_html_()


def test_tables_are_shown_as_printed(published_study: Dataset) -> None:
    tables = {table.name: table for table in published_tables.as_printed(published_study)}
    assert len(tables) == 6 + 1 + 4
    printed = tables["printed-paddle-vgg16-cluster-accelerate-rate"]
    assert [heading.label for heading in printed.headings] == ["Trainer Count", "20", "40", "80", "100"]
    assert printed.column("20") == ["263.29 (78.64%)", "326.85 (92.85%)", "-"]


def test_a_figure_has_a_line_for_each_published_one_and_ours_dashed(published_study: Dataset) -> None:
    drawing = published_figures.speedups(published_study).drawing
    speedup, efficiency = drawing.subfigs[0].axes
    labels = [text.get_text().replace("\n", " ").partition(" 1× = ") for text in efficiency.texts]
    lines = ["Minikube: Resnet50", "ASI, CPU only: Resnet50", f"{OURS} · ASI, CPU only: Resnet50"]
    assert {label for label, *_ in labels} == {*lines}
    assert dict((label, rate) for label, _, rate in labels)["Minikube: Resnet50"] == "3.1 samples/s"
    dashed = [line for line in speedup.get_lines() if line.get_linestyle() == "--" and line.get_label() != IDEAL]
    assert [list(line.get_xdata()) for line in dashed] == [[1, 2]]


def test_only_runs_draw_intervals(published_study: Dataset) -> None:
    cpu, _, arcface, _ = published_figures.speedups(published_study).drawing.axes
    lengths = _longest_bars(cpu) | _longest_bars(arcface)
    assert {label for label, length in lengths.items() if length > 0} == {"PLSC", f"{OURS} · ASI, CPU only: Resnet50"}
    assert lengths["PLSC"] > 0.1


def _longest_bars(axes: Axes) -> dict[str, float]:
    """Return the length of the longest interval of each line, by the label of the line."""
    lengths = {}
    for bars in axes.collections:
        if isinstance(bars, LineCollection):
            label = str(bars.get_label()).removeprefix("_")
            lengths[label] = max((np.ptp(segment[:, 1]) for segment in bars.get_segments()), default=0.0)
    return lengths


def test_a_study_without_sources_says_so(paths: StudyPaths) -> None:
    dataset = write_titled(paths, [Planned(configuration())], published=())
    for table in (
        published_tables.next_to_ours(dataset),
        published_tables.communication(dataset),
        published_tables.sources(dataset),
    ):
        assert NO_SOURCES in table._repr_html_()
    assert list(published_tables.as_printed(dataset)) == []
    assert NO_SOURCES in published_figures.speedups(dataset)._repr_html_()


def test_a_speedup_over_a_different_program_is_next_to_none(paths: StudyPaths) -> None:
    """Our two workers are compared with one of a different batch: that is not how this line scales."""
    one, two = (configuration(nodes=nodes, **CPU_ONLY) for nodes in (1, 2))
    other = configuration(nodes=1, **{**CPU_ONLY, "batch_per_device": 32})
    planned = [Planned(other, ALONE), Planned(one, ALONE, baseline=other), Planned(two, TOGETHER, baseline=other)]
    dataset = write_titled(paths, planned, published=("elasticdl_allreduce_wiki",))
    cells = row(published_tables.next_to_ours(dataset), "CPU only: Resnet50", "2")
    assert cells["Our throughput"][0] != MISSING
    reason = "our baseline differs from it in batch per device: not how one line scales"
    assert cells["Our speedup"] == (MISSING, "", reason)
    assert published_figures.speedups(dataset).draw is None


def our_labels(dataset: Dataset) -> list[str]:
    labels = [heading.label for heading in published_tables.next_to_ours(dataset).headings]
    return [label for label in labels if label.startswith("Our ")]


def test_where_nothing_of_ours_is_measured_one_column_says_why(published_study: Dataset) -> None:
    assert our_labels(published_study) == ["Our throughput", "Our mean of rates", "Our speedup"]
    nothing = published_study.configurations.assign(throughput=float("nan"), runs_completed=0)
    assert our_labels(replace(published_study, configurations=nothing)) == ["Our throughput"]
