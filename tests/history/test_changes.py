"""Measurements of one study at several dates: put aside, found, and compared."""

from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.__main__ import main
from dlperf_study.analysis.comparison import EQUAL, SLOWER
from dlperf_study.errors import EvidenceError
from dlperf_study.execution.anew import put_aside
from dlperf_study.history.changes import MeasurementComparison, compare_measurements, departures_from_earlier
from dlperf_study.history.measurements import Measurement, find_measurement, measurement_names, measurements_of
from dlperf_study.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.plan.plan import Plan
from dlperf_study.report.figures import history_figure
from dlperf_study.report.sentences.history_sentences import change_sentences
from dlperf_study.report.tables.history_tables import (
    condition_changes,
    dates,
    speedup_changes,
    throughput_changes,
)
from dlperf_study.study.job import Outcome
from dlperf_study.supervision.processes import DRIVER_MARK
from tests.evidence_factory import Planned, Recipe, configuration, write_study
from tests.study.examples import cluster

ONE, TWO = (configuration(devices_per_node=count) for count in (1, 2))
SOONER = Recipe(noise=0.002)
LATER = replace(SOONER, computation_seconds=0.088, library_version="3.1.0", commit="1" * 40, exchange_library="gloo")


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyPaths:
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    # Another test may measure at this moment, under the lock of the machine.
    monkeypatch.setenv(DRIVER_MARK, "a test")
    return StudyPaths.of("example")


def measure(paths: StudyPaths, recipe: Recipe) -> Plan:
    return write_study(paths, [Planned(ONE, SOONER), Planned(TWO, recipe)])


def test_put_aside_evidence_is_an_earlier_measurement(paths: StudyPaths, tmp_path: Path) -> None:
    plan = measure(paths, SOONER)
    for number in (1, 2):
        earlier = put_aside(plan, cluster())
        assert earlier == paths.earlier_measurement(number)
        assert not paths.configurations.exists()
        measure(paths, SOONER)
    assert list(measurement_names()) == ["example@1", "example@2", "example"]
    assert [measurement.name for measurement in measurements_of("example")] == list(measurement_names())
    assert len(find_measurement("example@1").throughputs) == 2
    assert find_measurement(str(tmp_path / "example")).throughputs.keys() == {ONE.identity, TWO.identity}


def test_a_study_that_was_never_measured_has_nothing_to_put_aside(paths: StudyPaths) -> None:
    plan = measure(paths, SOONER)
    assert put_aside(plan, cluster())
    assert put_aside(plan, cluster()) is None


def test_a_wrong_name_lists_the_right_ones(paths: StudyPaths) -> None:
    measure(paths, SOONER)
    for name in ("exmple", "example@1", "example@0"):
        with pytest.raises(
            EvidenceError, match=f"^{name}: no measurement has this name.* did you mean example.*: example$"
        ):
            find_measurement(name)


def compared(paths: StudyPaths, later: Recipe = LATER) -> MeasurementComparison:
    put_aside(measure(paths, SOONER), cluster())
    measure(paths, later)
    return compare_measurements(find_measurement("example@1"), find_measurement("example"))


def test_regressions_come_first_with_what_differs(paths: StudyPaths) -> None:
    comparison = compared(paths)
    assert [(change.identity, change.verdict.word) for change in comparison.throughputs] == [
        (TWO.identity, SLOWER),
        (ONE.identity, EQUAL),
    ]
    assert comparison.throughputs[0].log_ratio.factor == pytest.approx(0.09 / 0.098, rel=0.01)
    assert {change.column for change in comparison.conditions} == {"library_version", "git_commit"}
    since, slower, differing = change_sentences(comparison)
    assert since.endswith("of 2 configurations 1 is slower and 1 is equal.")
    assert slower.startswith("Slower: 2 devices 0.9")
    assert differing == "What is recorded of the two differs in library version and commit."
    assert throughput_changes(comparison).column("Verdict")[0] == "slower"
    assert speedup_changes(comparison).column("Verdict") == ["slower"]
    assert condition_changes(comparison).column("After") == ["3.0.0 and 3.1.0", f"{'0' * 12} and {'1' * 12}"]


def test_the_command_prints_the_regression_first(paths: StudyPaths, capsys: pytest.CaptureFixture[str]) -> None:
    compared(paths)
    assert main(["compare", "example@1", "example"]) == 0
    since, slower, *_ = capsys.readouterr().out.splitlines()
    assert since.startswith("From example@1 (2024-05-01 10:01) to example (2024-05-01 10:01), of 2")
    assert slower.startswith("Slower: 2 devices 0.9")
    assert main(["compare", "example@2", "example"]) == 1


def test_that_nothing_recorded_differs_is_said(paths: StudyPaths) -> None:
    comparison = compared(paths, replace(SOONER, computation_seconds=0.088))
    assert "Nothing that is recorded differs" in change_sentences(comparison)[-1]


def test_another_network_under_the_same_name_is_not_compared(paths: StudyPaths) -> None:
    comparison = compared(paths, replace(LATER, parameters=7))
    assert comparison.other_networks == (TWO.identity,)
    assert [change.identity for change in comparison.throughputs] == [ONE.identity]
    assert "different numbers of parameters: 2 devices." in throughput_changes(comparison).notes[-1]


def test_studies_without_a_common_configuration_are_refused(
    paths: StudyPaths, capsys: pytest.CaptureFixture[str]
) -> None:
    measure(paths, SOONER)
    write_study(StudyPaths.of("other"), [Planned(configuration(batch_per_device=64))])
    assert main(["compare", "example", "other"]) == 1
    message = "have no measured configuration in common: the two most similar differ in batch_per_device (32 and 64)"
    assert message in capsys.readouterr().err


def test_the_page_of_a_study_whose_earlier_measurement_failed_says_so(paths: StudyPaths) -> None:
    measure(paths, SOONER)
    write_study(
        paths.earlier_measurement(1), [Planned(ONE, replace(SOONER, outcome=Outcome.FAILED, reason="a rank ended"))]
    )
    measurements = measurements_of("example")
    comparison = compare_measurements(*measurements)
    (sentence,) = change_sentences(comparison)
    assert sentence.startswith("example@1 (")
    assert sentence.endswith("have no measured configuration in common.")
    for table in (throughput_changes(comparison), condition_changes(comparison)):
        assert not table.rows
        assert table.empty == "No configuration has completed runs in both."
    assert history_figure.history(measurements).drawing is None


def test_a_measurement_is_not_compared_with_itself(paths: StudyPaths, tmp_path: Path) -> None:
    measure(paths, SOONER)
    for name in ("example", str(tmp_path / "example")):
        with pytest.raises(EvidenceError, match=f"example and {name} are the same measurement"):
            compare_measurements(find_measurement("example"), find_measurement(name))


def test_the_last_of_many_dates_departs_from_the_earlier_ones(paths: StudyPaths) -> None:
    for seconds in (0.080, 0.081, 0.0795):
        put_aside(measure(paths, replace(SOONER, computation_seconds=seconds)), cluster())
    measure(paths, replace(SOONER, computation_seconds=0.160))
    measurements = measurements_of("example")
    [change] = [change for change in departures_from_earlier(measurements) if change.identity == TWO.identity]
    assert change.verdict.word == SLOWER
    table = dates(measurements)
    assert len(table.headings) == 1 + 4 + 2
    assert table.column("Verdict")[0] == "slower"


def test_a_change_of_nccl_is_a_difference_and_what_one_did_not_record_is_none(tmp_path: Path) -> None:
    def recorded(name: str, exchange_library: str) -> Measurement:
        paths = StudyPaths(tmp_path / name)
        write_study(paths, [Planned(TWO, replace(SOONER, exchange_library=exchange_library))])
        return find_measurement(str(paths.folder))

    older, before, after = recorded("a", ""), recorded("b", "NCCL 2.25.1"), recorded("c", "NCCL 2.27.5")
    [change] = compare_measurements(before, after).conditions
    assert (change.column, change.before, change.after) == ("exchange_library", ("NCCL 2.25.1",), ("NCCL 2.27.5",))
    assert not compare_measurements(older, after).conditions
