"""Measurements of one study at several dates: put aside, found, and compared."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.__main__ import main
from dlperf_study.core.errors import BusyError, RecordError
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.dataset.history import Measurement, find_measurement, measurement_names, study_measurements
from dlperf_study.dataset.measurement_comparison import HIGHER, LOWER, MeasurementComparison, compare_measurements
from dlperf_study.execution.controller import put_aside
from dlperf_study.machines.supervision import locks
from dlperf_study.machines.supervision.locks import machine_lock
from dlperf_study.machines.supervision.processes import CONTROLLER_MARK
from dlperf_study.metrics.comparison import SLOWER
from dlperf_study.report import page_findings
from dlperf_study.report.figures import page_figures
from dlperf_study.report.tables.history_tables import (
    condition_changes,
    dates,
    last_comparison,
    speedup_changes,
    throughput_changes,
)
from dlperf_study.study.job import RunStatus
from dlperf_study.study.plan import Plan
from tests.evidence_factory import Planned, Recipe, configuration, write_study
from tests.study.examples import cluster

ONE, TWO = (configuration(devices_per_node=count) for count in (1, 2))
SOONER = Recipe(noise=0.002)
LATER = replace(SOONER, compute_seconds=0.088, library_version="3.1.0", commit="1" * 40, communication_library="gloo")


def outputs(folder: Path, patch: pytest.MonkeyPatch) -> StudyPaths:
    """Return the paths of the study in this folder of outputs."""
    patch.setenv(OUTPUTS_VARIABLE, str(folder))
    # Another test may measure at this moment, under the lock of the machine.
    patch.setenv(CONTROLLER_MARK, "a test")
    return StudyPaths.of("example")


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyPaths:
    return outputs(tmp_path, monkeypatch)


def measure(paths: StudyPaths, recipe: Recipe) -> Plan:
    return write_study(paths, [Planned(ONE, SOONER), Planned(TWO, recipe)])


def test_put_aside_evidence_is_an_earlier_measurement(paths, tmp_path):
    plan = measure(paths, SOONER)
    for number in (1, 2):
        earlier = put_aside(plan, cluster())
        assert earlier == paths.earlier_measurement(number)
        assert not paths.configurations.exists()
        measure(paths, SOONER)
    assert list(measurement_names()) == ["example@1", "example@2", "example"]
    assert [measurement.name for measurement in study_measurements("example")] == list(measurement_names())
    assert len(find_measurement("example@1").throughputs) == 2
    assert find_measurement(str(tmp_path / "example")).throughputs.keys() == {
        ONE.configuration_id,
        TWO.configuration_id,
    }
    assert put_aside(plan, cluster())
    assert put_aside(plan, cluster()) is None


def test_what_has_no_completed_run_is_kept_and_no_measurement(paths):
    failed = Recipe(status=RunStatus.FAILED)
    plan = write_study(paths, [Planned(ONE, failed), Planned(TWO, failed)])
    kept = put_aside(plan, cluster())
    assert kept == StudyPaths(paths.folder / "without-result" / "1")
    assert kept.configuration(ONE.configuration_id).run(1).run_file.exists()
    measure(paths, SOONER)
    assert list(measurement_names()) == ["example"]
    assert put_aside(plan, cluster()) == paths.earlier_measurement(1)


def test_what_a_process_measures_now_is_not_put_aside(paths, tmp_path, monkeypatch):
    """Its next run would be written where nothing is, and its earlier ones would be of an earlier date."""
    plan = measure(paths, SOONER)
    monkeypatch.delenv(CONTROLLER_MARK)
    monkeypatch.setattr(locks, "runtime_folder", lambda: tmp_path)
    with machine_lock("study example"), pytest.raises(BusyError, match="study example"):
        put_aside(plan, cluster())
    assert paths.configurations.exists()
    assert not paths.earlier_measurements()


@pytest.fixture(scope="module")
def regressed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, MeasurementComparison]:
    """A study whose second date is slower, and its comparison. Look, don't touch."""
    folder = tmp_path_factory.mktemp("regressed")
    with pytest.MonkeyPatch.context() as patch:
        return folder, compared(outputs(folder, patch))


def test_a_wrong_name_lists_the_right_ones(paths, refused):
    measure(paths, SOONER)
    for name in ("exmple", "example@1", "example@0"):
        with refused(RecordError):
            find_measurement(name)


def compared(paths: StudyPaths, later: Recipe = LATER) -> MeasurementComparison:
    put_aside(measure(paths, SOONER), cluster())
    measure(paths, later)
    return compare_measurements(find_measurement("example@1"), find_measurement("example"))


def test_regressions_come_first_with_what_differs(regressed, snapshot):
    _, comparison = regressed
    assert [change.configuration_id for change in comparison.throughputs] == [
        TWO.configuration_id,
        ONE.configuration_id,
    ]
    assert comparison.throughputs[0].dates.log_ratio.factor == pytest.approx(0.09 / 0.098, rel=0.01)
    assert {change.column for change in comparison.conditions} == {"library_version", "git_commit"}
    first, second, *others = page_findings.history(comparison).sentences
    assert first.startswith("ResNet-50, 2 devices: throughput after / before 0.9")
    assert second.startswith("ResNet-50, 1 device: throughput after / before 1.0")
    assert others == snapshot
    assert condition_changes(comparison).column("After") == ["3.0.0 and 3.1.0", f"{'0' * 12} and {'1' * 12}"]


def test_two_dates_give_a_ratio_and_no_verdict(regressed):
    _, comparison = regressed
    for changes, table in (
        (comparison.throughputs, throughput_changes(comparison)),
        (comparison.speedups, speedup_changes(comparison)),
    ):
        assert {change.significance.word for change in changes} == {None}
        assert changes[0].dates.log_ratio.factor_interval().high < 0.93
        assert [heading.label for heading in table.headings] == ["Configuration", "Before", "After", "Change"]


def test_the_command_prints_the_regression_first(regressed, monkeypatch, capsys):
    outputs(regressed[0], monkeypatch)
    assert main(["compare", "example@1", "example"]) == 0
    assert capsys.readouterr().out.startswith("ResNet-50, 2 devices: throughput after / before 0.9")
    assert main(["compare", "example@2", "example"]) == 1


def test_that_nothing_recorded_differs_is_said(paths, snapshot):
    comparison = compared(paths, replace(SOONER, compute_seconds=0.088))
    assert page_findings.history(comparison).sentences[-1] == snapshot


def test_another_network_under_the_same_name_is_not_compared(paths, snapshot):
    comparison = compared(paths, replace(LATER, parameters=7))
    assert comparison.other_networks == (TWO.configuration_id,)
    assert [change.configuration_id for change in comparison.throughputs] == [ONE.configuration_id]
    assert throughput_changes(comparison).notes[-1] == snapshot


def test_studies_without_a_common_configuration_are_refused(paths, capsys):
    measure(paths, SOONER)
    write_study(StudyPaths.of("other"), [Planned(configuration(batch_per_device=64))])
    assert main(["compare", "example", "other"]) == 1
    message = "share no measured configuration; the most similar differ in batch_per_device (32 and 64)"
    assert message in capsys.readouterr().err


def test_the_page_of_a_study_whose_earlier_measurement_failed_says_so(paths, snapshot):
    measure(paths, SOONER)
    failed = replace(SOONER, status=RunStatus.FAILED, reason="a rank ended")
    write_study(paths.earlier_measurement(1), [Planned(ONE, failed)])
    measurements = study_measurements("example")
    comparison = compare_measurements(*measurements)
    (sentence,) = page_findings.history(comparison).sentences
    assert sentence.startswith("example@1 (")
    assert sentence == snapshot
    for table in (throughput_changes(comparison), condition_changes(comparison)):
        assert not table.rows
        assert table.empty == snapshot
    assert page_figures.history(measurements).drawing is None


def test_a_measurement_is_not_compared_with_itself(paths, tmp_path):
    measure(paths, SOONER)
    for name in ("example", str(tmp_path / "example")):
        with pytest.raises(RecordError, match=f"example and {name} are the same session"):
            compare_measurements(find_measurement("example"), find_measurement(name))


@pytest.fixture(scope="module")
def six_dates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Measurement]]:
    """Five dates that differ by 1 %, and one on which two devices are much slower. Look, don't touch."""
    with pytest.MonkeyPatch.context() as patch:
        paths = outputs(tmp_path_factory.mktemp("dates"), patch)
        for seconds in (0.080, 0.081, 0.0795, 0.0805, 0.080):
            put_aside(measure(paths, replace(SOONER, compute_seconds=seconds)), cluster())
        measure(paths, replace(SOONER, compute_seconds=0.160))
        yield study_measurements("example")


def test_the_last_of_many_dates_departs_from_the_earlier_ones(six_dates):
    comparison = compare_measurements(*six_dates[-2:])
    assert [date.name for date in comparison.earlier] == [f"example@{number}" for number in range(1, 6)]
    slower = comparison.throughputs[0]
    assert (slower.configuration_id, slower.significance.word) == (TWO.configuration_id, SLOWER)
    throughputs = [date.throughputs[TWO.configuration_id].logarithms.values.mean() for date in six_dates]
    assert slower.dates.change_against_mean.mean == pytest.approx(throughputs[-1] - sum(throughputs[:5]) / 5)
    assert slower.dates.change_against_mean.freedom == 4
    assert slower.dates.log_ratio.mean == pytest.approx(throughputs[-1] - throughputs[-2])
    counts, slowest, *_ = page_findings.history(comparison).sentences
    assert "against the mean of 5 earlier sessions, 2 configurations: 1 slower" in counts
    assert slowest.startswith("ResNet-50, 2 devices: throughput after / mean of earlier sessions 0.5")
    assert slowest.endswith(", slower.")
    assert throughput_changes(comparison).column("Significance")[0] == "slower"
    assert len(dates(six_dates).headings) == 1 + 6


@pytest.mark.parametrize(
    ("one", "two", "word", "moved"),
    [(0.115, 0.080, HIGHER, "1 device"), (0.080, 0.160, LOWER, "2 devices")],
)
def test_a_speedup_is_higher_or_lower_and_the_side_that_moved_is_named(paths, one, two, word, moved):
    """The baseline becomes slower and two devices stay as they were, and the other way round."""
    for seconds in (0.080, 0.0801, 0.0799, 0.0802, 0.080):
        recipe = replace(SOONER, compute_seconds=seconds)
        put_aside(write_study(paths, [Planned(ONE, recipe), Planned(TWO, recipe)]), cluster())
    later = [replace(SOONER, compute_seconds=seconds) for seconds in (one, two)]
    write_study(paths, [Planned(ONE, later[0]), Planned(TWO, later[1])])
    comparison = last_comparison(study_measurements("example"))
    [change] = comparison.speedups
    assert (change.configuration_id, change.significance.word) == (TWO.configuration_id, word)
    assert speedup_changes(comparison).column("Significance") == [word]
    sentences = page_findings.history(comparison).sentences
    assert any("2 devices: speedup after" in sentence and sentence.endswith(f", {word}.") for sentence in sentences)
    assert any(f"{moved}: throughput after" in sentence and ", slower." in sentence for sentence in sentences)


def test_a_dash_says_whether_measurements_are_too_few_or_equal(paths):
    new = replace(ONE, seed=1)
    for _ in range(4):
        put_aside(measure(paths, SOONER), cluster())
    put_aside(write_study(paths, [Planned(ONE, SOONER), Planned(new, SOONER)]), cluster())
    write_study(paths, [Planned(ONE, SOONER), Planned(new, SOONER)])
    table = throughput_changes(last_comparison(study_measurements("example")))
    dashes = {row[0].text: (row[-2].footnote, row[-1].footnote) for row in table.rows}
    assert dashes == {
        "Seed 0 · 1 device": ("no CI: all earlier sessions have the same value",) * 2,
        "Seed 1 · 1 device": ("fewer than 5 earlier sessions have this value",) * 2,
    }


def test_only_earlier_dates_tell_how_dates_differ(six_dates):
    names = [date.name for date in six_dates]
    for before, after, earlier in ((0, 1, 1), (2, 1, 1), (0, 4, 4), (0, 5, 5), (5, 0, 0)):
        comparison = compare_measurements(six_dates[before], six_dates[after])
        assert [date.name for date in comparison.earlier] == names[:earlier]
        assert (comparison.throughputs[0].dates.change_against_mean is not None) == (earlier == 5)
    # Another study is compared with all dates of the one before.
    write_study(StudyPaths.of("other"), [Planned(replace(ONE, study="other"), SOONER)])
    comparison = compare_measurements(find_measurement("example@5"), find_measurement("other"))
    assert [date.name for date in comparison.earlier] == names[:5]


def test_dates_of_another_network_do_not_tell_how_dates_differ(paths):
    for parameters in (7, 8, 8, 8, 8, 8):
        put_aside(measure(paths, replace(SOONER, parameters=parameters)), cluster())
    measure(paths, replace(SOONER, compute_seconds=0.0801, parameters=8))
    changes = {
        change.configuration_id: change
        for change in compare_measurements(*study_measurements("example")[-2:]).throughputs
    }
    assert (
        changes[ONE.configuration_id].dates.change_against_mean is None
        or changes[ONE.configuration_id].significance.word != SLOWER
    )
    assert changes[TWO.configuration_id].dates.change_against_mean is not None


def test_speedups_over_different_baselines_are_not_compared(paths):
    other = replace(TWO, framework="torch_ddp")
    for baseline in (ONE, other, other):
        planned = [Planned(item, SOONER, baseline=baseline) for item in (ONE, TWO, other)]
        put_aside(write_study(paths, planned), cluster())
    for date, configuration_ids in (("example@1", []), ("example@3", [ONE.configuration_id, TWO.configuration_id])):
        comparison = compare_measurements(find_measurement("example@2"), find_measurement(date))
        assert len(comparison.throughputs) == 3
        assert [change.configuration_id for change in comparison.speedups] == configuration_ids


def test_a_change_of_nccl_is_a_difference_and_what_one_did_not_record_is_none(tmp_path):
    def recorded(name: str, communication_library: str) -> Measurement:
        paths = StudyPaths(tmp_path / name)
        write_study(paths, [Planned(TWO, replace(SOONER, communication_library=communication_library))])
        return find_measurement(str(paths.folder))

    older, before, after = recorded("a", ""), recorded("b", "NCCL 2.25.1"), recorded("c", "NCCL 2.27.5")
    [change] = compare_measurements(before, after).conditions
    assert (change.column, change.before, change.after) == ("communication_library", ("NCCL 2.25.1",), ("NCCL 2.27.5",))
    assert not compare_measurements(older, after).conditions


def test_a_study_that_was_measured_once_has_no_last_change(paths, refused):
    measure(paths, SOONER)
    with refused(RecordError):
        last_comparison(study_measurements("example"))
