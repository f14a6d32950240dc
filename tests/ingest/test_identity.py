"""What belongs to one configuration, and why configurations can't be ingested."""

from dlperf_study.ingest.identity import Extras, LogMetadata, LogRun, identity_problems, merge_equal
from dlperf_study.logs.rank_checks import JobSize
from tests.ingest.conftest import REQUIRED_METADATA


def metadata(
    *logs: str, source: str = "logs.yaml", repetition: int = 1, devices: int = 0, **changes: object
) -> LogMetadata:
    """Return a configuration with one run of these logs, some required parameters changed; None: not declared."""
    values = {name: value for name, value in (REQUIRED_METADATA | changes).items() if value is not None}
    return LogMetadata(values, (LogRun(repetition, logs),), source, Extras(devices_per_process=devices or None))


def test_a_process_that_drives_several_devices_is_a_rank_with_the_batch_of_all() -> None:
    assert metadata(nodes=2, devices_per_node=8).job_size == JobSize(2, 8, 128)
    assert metadata(nodes=2, devices_per_node=8, devices=4).job_size == JobSize(2, 2, 512, 4)


def test_a_configuration_of_logs_is_not_a_quick_one() -> None:
    configuration = metadata("a.log").configuration("study")
    assert (configuration.quick, configuration.repeats, configuration.study) == (False, 1, "study")


def test_configurations_with_the_same_metadata_are_one_with_all_runs_in_order() -> None:
    first, other = metadata("a.log", "b.log"), metadata("c.log", nodes=2)
    second = metadata("d.log", repetition=2)
    merged = merge_equal([first, other, second])
    assert [each.logs for each in merged] == [["a.log", "b.log", "d.log"], ["c.log"]]
    assert [run.repetition for run in merged[0].runs] == [1, 2]
    assert len(merge_equal([first, metadata("d.log", devices=4)])) == 2


def test_each_problem_of_metadata_is_said_once() -> None:
    assert list(identity_problems([metadata("a.log"), metadata("b.log", nodes=2)])) == []
    [missing] = identity_problems([metadata("a.log", precision=None)])
    assert missing == "logs.yaml: precision not stated"
    [twice] = identity_problems([metadata("a.log"), metadata("a.log", nodes=2)])
    assert twice == "a.log: named 2 times, but it belongs to one run"
    [repeated] = identity_problems(merge_equal([metadata("a.log"), metadata("b.log")]))
    assert repeated == "logs.yaml: repetition 1 appears 2 times: a.log, b.log"
    [devices] = identity_problems([metadata("a.log", devices_per_node=6, devices=4)])
    assert devices.startswith("logs.yaml: devices_per_process is 4, but a node has 6 devices")


def test_equal_configurations_are_refused_although_one_between_them_is_incomplete() -> None:
    incomplete = metadata("b.log", precision=None, source="incomplete.yaml")
    problems = list(identity_problems([metadata("a.log"), incomplete, metadata("c.log", devices=1)]))
    assert problems[0] == "incomplete.yaml: precision not stated"
    assert len(problems) == 2
    assert "a.log and c.log state the same" in problems[1]
