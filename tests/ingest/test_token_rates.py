"""Logs with tokens/s, with and without the number of tokens in a sample."""

import re
from pathlib import Path

import numpy as np
import pytest

from dlperf_study.audit.audit import audit
from dlperf_study.audit.result_frames import results_of_dataset
from dlperf_study.report.sentences import scaling
from dlperf_study.report.sentences.quality_sentences import on_missing_configurations
from dlperf_study.report.tables import study_tables
from dlperf_study.report.tables.missing import why_missing
from dlperf_study.report.tables.quality_tables import stability
from tests.ingest.conftest import Ingest, declare

FORMAT = 'name: tokens\nlines: ["step {step} tps {rate}"]\nnumbers: {rate: {unit: tokens/s, of: device}}\n'


def write(folder: Path, devices: int, rate: int, **metadata: object) -> None:
    """Write two runs that differ by noise."""
    declare(folder, devices_per_node=devices, **metadata)
    for repetition in (1, 2):
        lines = [f"step {step} tps {rate + repetition + step % 3}\n" for step in range(1, 41)]
        (folder / f"run_{repetition}.log").write_text("".join(lines))


@pytest.fixture
def token_logs(folder: Path) -> Path:
    (folder / "log_format.yaml").write_text(FORMAT)
    (folder / "identity.yaml").write_text(
        "confirmed: true\nstudy: logs\nscaling: weak\nbaseline: {devices_per_node: 1}\n"
    )
    return folder


def test_tokens_alone_have_a_speedup_and_no_samples(token_logs: Path, ingested: Ingest) -> None:
    write(token_logs / "one", 1, 10_000)
    write(token_logs / "four", 4, 9_000)
    dataset = ingested()
    rows = dataset.configurations.set_index("devices_per_node").sort_index()
    assert rows["token_throughput"].tolist() == pytest.approx([10_002.5, 4 * 9_002.5], rel=1e-3)
    assert rows["speedup"].tolist() == pytest.approx([1, 3.6], rel=1e-3)
    assert rows["efficiency"].tolist() == pytest.approx([1, 0.9], rel=1e-3)
    assert rows[["throughput", "step_seconds", "mean_of_rates"]].isna().all(axis=None)
    assert dataset.runs["outcome"].tolist() == ["completed"] * 4
    assert np.isnan(dataset.steps["seconds"]).all()
    assert dataset.diagnostics["message"].str.contains("state tokens_per_sample").sum() == 4


def test_pages_show_tokens_without_columns_of_samples(token_logs: Path, ingested: Ingest) -> None:
    write(token_logs / "one", 1, 10_000)
    write(token_logs / "four", 4, 9_000)
    dataset = ingested()
    [sentence] = on_missing_configurations(dataset)
    assert sentence.startswith("The rates of 2 of 2 configurations are in tokens/s")
    for table in (study_tables.measured(dataset), study_tables.scaling(dataset), stability(dataset)):
        units = {heading.unit for heading in table.headings}
        assert "tokens/s" in units
        assert "samples/s" not in units
    [row, _] = dataset.configurations.itertuples()
    assert why_missing(dataset, row, "throughput").startswith("its logs state tokens/s")


def test_tokens_of_a_sample_make_both_rates(token_logs: Path, ingested: Ingest) -> None:
    write(token_logs / "one", 1, 10_000, tokens_per_sample=500)
    [row] = ingested().configurations.itertuples()
    assert (row.throughput, row.token_throughput) == pytest.approx((20.005, 10_002.5), rel=1e-3)


def test_tokens_are_not_compared_with_samples(token_logs: Path, ingested: Ingest) -> None:
    write(token_logs / "one", 1, 10_000, tokens_per_sample=500)
    write(token_logs / "four", 4, 9_000)
    dataset = ingested()
    four = dataset.configurations.set_index("devices_per_node").loc[4]
    assert np.isnan(four["speedup"])
    assert four["token_throughput"] > 0


def test_sentences_and_the_audit_know_tokens(token_logs: Path, ingested: Ingest) -> None:
    for folder, devices, rate in (("one", 1, 10_000), ("four", 4, 9_000)):
        write(token_logs / folder, devices, rate)
        lines = [f"step {step} tps {rate + 3 + step % 3}\n" for step in range(1, 41)]
        (token_logs / folder / "run_3.log").write_text("".join(lines))
    dataset = ingested()
    [sentence, *_] = scaling(dataset).sentences
    assert re.search(
        r"trains 3\.60\d+ times .* as fast on 4 devices as on 1 device, 36.\d* instead of .* tokens/s", sentence
    )
    checked = {each.name: each for each in audit(results_of_dataset(dataset))}
    assert checked["ratios"].examined == 4
    assert [each.diagnostics for each in checked.values() if each.diagnostics] == []
