"""Logs with tokens/s, with and without the number of tokens in a sample."""

import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.text import Text

from dlperf_study.api.explorer import data_rows, printed_rows
from dlperf_study.api.plot import known_metrics, varying_columns
from dlperf_study.audit.audit import audit
from dlperf_study.audit.result_frames import read_dataset_results
from dlperf_study.core.errors import RecordError
from dlperf_study.dataset.history import Measurement
from dlperf_study.dataset.measurement_comparison import compare_measurements
from dlperf_study.report import figures
from dlperf_study.report.figures.line_charts import IDEAL
from dlperf_study.report.page_findings import page_findings
from dlperf_study.report.tables import history_tables, study_tables
from dlperf_study.report.tables.missing import explain_missing
from dlperf_study.report.tables.page_tables import stability
from tests.logs.ingest.conftest import declare

FORMAT = 'name: tokens\nlines: ["step {step} tps {rate}"]\nnumbers: {rate: {unit: tokens/s, of: device}}\n'


def write(folder, devices, throughput, **metadata):
    """Write two runs that differ by noise."""
    declare(folder, devices_per_node=devices, **metadata)
    for repetition in (1, 2):
        lines = [f"step {step} tps {throughput + repetition + step % 3}\n" for step in range(1, 41)]
        (folder / f"run_{repetition}.log").write_text("".join(lines))


@pytest.fixture
def token_logs(folder):
    (folder / "log_format.yaml").write_text(FORMAT)
    (folder / "metadata.yaml").write_text(
        "confirmed: true\nstudy: logs\nscaling: weak\nbaseline: {devices_per_node: 1}\n"
    )
    return folder


@pytest.fixture
def tokens_alone(token_logs, ingested):
    """Return a function that ingests logs of one and of four devices."""
    write(token_logs / "one", 1, 10_000)
    write(token_logs / "four", 4, 9_000)
    return ingested


def test_tokens_alone_have_a_speedup_and_no_samples(tokens_alone):
    dataset = tokens_alone()
    rows = dataset.configurations.set_index("devices_per_node").sort_index()
    assert rows["token_throughput"].tolist() == pytest.approx([10_002.5, 4 * 9_002.5], rel=1e-3)
    assert rows["device_token_throughput"].tolist() == pytest.approx([10_002.5, 9_002.5], rel=1e-3)
    assert rows["speedup"].tolist() == pytest.approx([1, 3.6], rel=1e-3)
    assert rows["efficiency"].tolist() == pytest.approx([1, 0.9], rel=1e-3)
    assert rows[["throughput", "step_seconds", "mean_step_throughput"]].isna().all(axis=None)
    assert dataset.runs["status"].tolist() == ["completed"] * 4
    assert np.isnan(dataset.steps["seconds"]).all()
    assert dataset.diagnostics["message"].str.contains("state tokens_per_sample").sum() == 4


def test_tokens_alone_can_be_explored(tokens_alone):
    rows = data_rows(tokens_alone().plan.study)
    assert known_metrics(rows)[0] == "token_throughput"
    assert printed_rows(rows, "token_throughput").shape == (2, 2 + len(varying_columns(rows)))


def test_pages_show_tokens_without_columns_of_samples(tokens_alone, snapshot):
    dataset = tokens_alone()
    assert page_findings(dataset, "runs").sentences == snapshot
    for table in (study_tables.measured(dataset), study_tables.scaling(dataset), stability(dataset)):
        units = {heading.unit for heading in table.headings}
        assert len({(heading.label, heading.unit) for heading in table.headings}) == len(table.headings)
        assert "tokens/s" in units
        assert "samples/s" not in units
    [row, _] = dataset.configurations.itertuples()
    assert explain_missing(dataset, row, "throughput").startswith("its logs state tokens/s")


def test_figures_are_of_tokens_where_nothing_else_is_known(tokens_alone):
    dataset = tokens_alone()
    [overview], [scaled] = figures.overview(dataset), figures.scaling(dataset)
    assert [axes.get_xlabel() for axes in overview.drawing.axes] == ["Token throughput (tokens/s)"]
    throughput, speedup, _ = scaled.drawing.axes
    assert throughput.get_title("left") == "Token throughput (tokens/s)"
    assert [line.get_ydata().tolist() for line in speedup.lines if line.get_label() == IDEAL] == [[1.0, 4.0]]
    assert re.search("1× = 10.000 tokens/s", " ".join(text.get_text() for text in scaled.drawing.findobj(Text)))
    assert "tokens/s" in scaled.alt
    assert "samples/s" not in scaled.alt
    # Of tokens alone no step has a time.
    assert [figure.drawing for figure in figures.steps(dataset)] == [None]


def test_dates_are_compared_by_tokens_and_never_with_samples(token_logs, ingested, refused):
    measurements = []
    for name, throughput, metadata in (("a", 10_000, {}), ("b", 9_000, {}), ("c", 9_000, {"tokens_per_sample": 500})):
        write(token_logs / "one", 1, throughput, **metadata)
        measurements.append(Measurement(name, replace(ingested(), folder=token_logs / name)))
    in_tokens, later, in_samples = measurements
    [[_, before, after, change]] = history_tables.throughput_changes(compare_measurements(in_tokens, later)).rows
    assert (before.text[:2], after.text[:1], change.text[:3]) == ("10", "9", "0.9")
    with refused(RecordError):
        compare_measurements(later, in_samples)


def test_tokens_of_a_sample_make_both_throughputs(token_logs, ingested):
    write(token_logs / "one", 1, 10_000, tokens_per_sample=500)
    [row] = ingested().configurations.itertuples()
    assert (row.throughput, row.token_throughput) == pytest.approx((20.005, 10_002.5), rel=1e-3)


def test_tokens_are_not_compared_with_samples(token_logs, ingested, snapshot):
    write(token_logs / "one", 1, 10_000, tokens_per_sample=500)
    write(token_logs / "four", 4, 9_000)
    dataset = ingested()
    four = dataset.configurations.set_index("devices_per_node").loc[4]
    assert page_findings(dataset, "runs").sentences == snapshot
    assert np.isnan(four["speedup"])
    assert four["token_throughput"] > 0


def test_sentences_and_the_audit_know_tokens(token_logs, ingested):
    for folder, devices, throughput in (("one", 1, 10_000), ("four", 4, 9_000)):
        write(token_logs / folder, devices, throughput)
        lines = [f"step {step} tps {throughput + 3 + step % 3}\n" for step in range(1, 41)]
        (token_logs / folder / "run_3.log").write_text("".join(lines))
    dataset = ingested()
    [sentence, *_] = page_findings(dataset, "scaling").sentences
    assert re.search(r"speedup 3\.60\d+ ", sentence)
    checked = {each.name: each for each in audit(read_dataset_results(dataset))}
    assert checked["ratios"].examined == 4
    assert [each.diagnostics for each in checked.values() if each.diagnostics] == []
