"""What belongs to one configuration, and why configurations can't be ingested."""

from dlperf_study.logs.metadata import Extras, LogMetadata, LogRun, merge_equal, metadata_problems
from dlperf_study.logs.rank_checks import JobSize
from tests.logs.ingest.conftest import REQUIRED_METADATA


def metadata(*logs, source="logs.yaml", repetition=1, devices=0, **changes):
    """Return a configuration with one run of these logs, some required parameters changed; None: not declared."""
    values = {name: value for name, value in (REQUIRED_METADATA | changes).items() if value is not None}
    runs = (LogRun(repetition, logs),) if logs else ()
    return LogMetadata(values, runs, source, Extras(devices_per_process=devices or None))


def test_configurations_have_the_size_of_their_job_and_are_not_quick():
    assert metadata(nodes=2, devices_per_node=8).job_size == JobSize(2, 8, 128)
    assert metadata(nodes=2, devices_per_node=8, devices=4).job_size == JobSize(2, 2, 512, 4)
    configuration = metadata("a.log").configuration("study")
    assert (configuration.quick, configuration.repetitions, configuration.study) == (False, 1, "study")


def test_configurations_with_the_same_metadata_are_one_with_all_runs_in_order():
    first, other = metadata("a.log", "b.log"), metadata("c.log", nodes=2)
    second = metadata("d.log", repetition=2)
    merged = merge_equal([first, other, second])
    assert [each.logs for each in merged] == [["a.log", "b.log", "d.log"], ["c.log"]]
    assert [run.repetition for run in merged[0].runs] == [1, 2]
    assert len(merge_equal([first, metadata("d.log", devices=4)])) == 2


def problems(*configurations):
    return list(metadata_problems(configurations))


def test_each_problem_of_metadata_is_said_once(snapshot):
    """Equal configurations are refused although one between them is incomplete."""
    assert problems(metadata("a.log"), metadata("b.log", nodes=2)) == []
    incomplete = metadata("b.log", precision=None, source="incomplete.yaml")
    found = [
        problems(metadata("a.log", precision=None)),
        problems(metadata("a.log"), metadata("a.log", nodes=2)),
        problems(*merge_equal([metadata("a.log"), metadata("b.log")])),
        problems(metadata("a.log", devices_per_node=6, devices=4)),
        problems(metadata()),
        problems(metadata("a.log"), incomplete, metadata("c.log", devices=1)),
    ]
    assert list(map(len, found)) == [1, 1, 1, 1, 1, 2]
    assert found == snapshot
