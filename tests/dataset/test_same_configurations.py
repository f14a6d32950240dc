"""Configurations of studies with different names, which are the same or not."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.history import find_measurement
from dlperf_study.dataset.ingestion.ingestion import ingest
from dlperf_study.dataset.measurement_comparison import MeasurementComparison, compare_measurements
from dlperf_study.logs.identification import identify_logs
from dlperf_study.report import page_findings
from tests.logs.ingest.conftest import WriteLog, declare, folder, paths, write_log

__all__ = ["folder", "paths", "write_log"]


@pytest.fixture
def logs(folder: Path, paths: StudyPaths, write_log: WriteLog) -> Path:
    """Three runs on one device and on two."""
    for devices in (1, 2):
        for repetition in (1, 2, 3):
            write_log(f"{devices}/run_{repetition}.log", devices)
    return folder


def compared(logs: Path, before: dict[str, Any], after: dict[str, Any]) -> MeasurementComparison:
    """Return the comparison of two ingestions of copies of logs, with the metadata of each."""
    for name, metadata in (("before", before), ("after", after)):
        copy = shutil.copytree(logs, logs.with_name(name))
        for configuration in copy.iterdir():
            declare(configuration, devices_per_node=int(configuration.name), **metadata)
        identified = identify_logs(copy)
        ingest(identified.study, identified.files, identified.folder, StudyPaths.of(name), lambda read: None)
    return compare_measurements(find_measurement("before"), find_measurement("after"))


def test_two_ingestions_of_the_same_configurations_are_compared(logs, snapshot):
    comparison = compared(logs, {}, {})
    assert len(comparison.throughputs) == 2
    assert len(comparison.speedups) == 1
    assert (comparison.only_before, comparison.only_after) == ([], [])
    assert page_findings.history(comparison).sentences[0] == snapshot


@pytest.mark.parametrize(
    ("before", "after", "difference"),
    [
        ({}, {"precision": "tf32"}, "precision (fp32 and tf32)"),
        # 224 is also what a configuration has where nothing states it.
        ({}, {"image_size": 224}, "image_size (not stated and 224)"),
        (
            {},
            {"image_size": 224, "precision": "tf32"},
            "image_size (not stated and 224), precision (fp32 and tf32)",
        ),
    ],
)
def test_ingestions_that_differ_are_not_compared_and_the_difference_is_named(logs, before, after, difference, snapshot):
    (sentence,) = page_findings.history(compared(logs, before, after)).sentences
    assert sentence.endswith(f"; the most similar differ in {difference}.")
    assert sentence == snapshot


def test_batches_that_devices_cannot_share_equally_are_told_apart(logs, snapshot):
    """Each is a batch per device of 0."""
    shutil.rmtree(logs / "1")
    batches = [{"batch_per_device": None, "global_batch": batch} for batch in (127, 129)]
    (sentence,) = page_findings.history(compared(logs, *batches)).sentences
    assert sentence == snapshot
