"""Configurations of studies with different names, which are the same or not."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from dlperf_study.history.changes import MeasurementComparison, compare_measurements
from dlperf_study.history.measurements import find_measurement
from dlperf_study.ingest.identification import identify_logs
from dlperf_study.ingest.ingestion import ingest
from dlperf_study.paths import StudyPaths
from dlperf_study.report.sentences.history_sentences import change_sentences
from tests.ingest.conftest import WriteLog, declare, folder, paths, write_log

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
        ingest(identified.identity, identified.files, identified.folder, StudyPaths.of(name), lambda read: None)
    return compare_measurements(find_measurement("before"), find_measurement("after"))


def test_two_ingestions_of_the_same_configurations_are_compared(logs: Path) -> None:
    comparison = compared(logs, {}, {})
    assert len(comparison.throughputs) == 2
    assert len(comparison.speedups) == 1
    assert (comparison.only_before, comparison.only_after) == ([], [])
    assert "of 2 configurations 2 are equal" in change_sentences(comparison)[0]


@pytest.mark.parametrize(
    ("before", "after", "difference"),
    [
        ({}, {"precision": "tf32"}, "precision (fp32 and tf32)"),
        # 224 is also what a configuration has where nothing states it.
        ({}, {"image_size": 224}, "image_size (not stated and 224)"),
    ],
)
def test_ingestions_that_differ_are_not_compared_and_the_difference_is_named(
    logs: Path, before: dict[str, Any], after: dict[str, Any], difference: str
) -> None:
    (sentence,) = change_sentences(compared(logs, before, after))
    assert sentence.endswith(f"have no measured configuration in common: the two most similar differ in {difference}.")


def test_batches_that_devices_cannot_share_equally_are_told_apart(logs: Path) -> None:
    """Each is a batch per device of 0."""
    shutil.rmtree(logs / "1")
    batches = [{"batch_per_device": None, "global_batch": batch} for batch in (127, 129)]
    (sentence,) = change_sentences(compared(logs, *batches))
    assert sentence.endswith("the two most similar differ in global_batch (127 and 129).")
