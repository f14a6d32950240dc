from dataclasses import replace

import pytest

from dlperf_study.audit.audit import audit
from dlperf_study.audit.reading.table_file import read_tables
from dlperf_study.audit.result_frames import read_dataset_results
from dlperf_study.core.errors import Severity
from dlperf_study.dataset.dataset import collect
from dlperf_study.report import tables
from tests.evidence_factory import (
    Planned,
    Recipe,
    change,
    configuration,
    example_study,
    write_plan,
    write_run,
    write_study,
)

ONE, TWO = configuration(), configuration(devices_per_node=2)


@pytest.fixture
def dataset(paths):
    example_study(paths)
    return collect(paths)


def diagnostics(dataset):
    return [diagnostic for checked in audit(read_dataset_results(dataset)) for diagnostic in checked.diagnostics]


def test_a_sound_study_has_no_diagnostic(dataset):
    checked = {one.name: one for one in audit(read_dataset_results(dataset))}
    assert [diagnostic for one in checked.values() for diagnostic in one.diagnostics] == []
    compared = ("ratios", "efficiency", "task_throughputs", "run_lists", "physical_limits", "falling")
    for name in (*compared, "interval", "above_zero"):
        assert checked[name].examined > 0, name
    for name in ("world_size", "global_batch"):
        assert checked[name].examined == 0, f"{name} was reckoned, not measured"


@pytest.mark.parametrize("name", ["measured", "scaling"])
def test_the_tables_of_a_report_are_read_and_sound(dataset, tmp_path, name):
    file = tmp_path / f"{name}.csv"
    file.write_text(getattr(tables, name)(dataset).csv())
    checked = {result.name: result for result in audit(read_tables(file).results)}
    assert checked["ratios"].examined > 0
    severities = {diagnostic.severity for result in checked.values() for diagnostic in result.diagnostics}
    assert severities <= {Severity.NOTE}


def test_every_completed_run_belongs_to_its_configuration(dataset):
    results = read_dataset_results(dataset)
    lists = {key: len(runs) for key, runs in results.runs.items()}
    assert set(lists.values()) == {3}
    assert set(lists) == {cell.key for cell in results.select("throughput")}


def test_a_run_in_no_round_makes_no_ratio_wrong(paths):
    """It counts for its throughput, and not for the ratio of runs of the same round."""
    example_study(paths, (1, 2))
    run = write_run(paths, TWO, 4, Recipe(compute_seconds=0.0805))
    change(run, order="by hand", round=None, position=None)
    assert [each for each in diagnostics(collect(paths)) if each.severity is Severity.ERROR] == []


def test_a_number_changed_afterwards_is_found(dataset):
    rows = dataset.configurations.copy()
    rows.loc[rows["configuration_id"] == TWO.configuration_id, "speedup"] *= 1.1
    checks = {diagnostic.check for diagnostic in diagnostics(replace(dataset, configurations=rows))}
    assert checks == {"ratios", "efficiency", "interval"}


def test_a_ratio_is_the_quotient_of_its_throughputs_also_where_rounds_are_missing(paths):
    write_study(paths, [Planned(ONE, runs=3), Planned(TWO, runs=5)])
    dataset = collect(paths)
    row = dataset.configurations.set_index("configuration_id").loc[TWO.configuration_id]
    assert row.speedup == pytest.approx(row.throughput / row.baseline_throughput, rel=1e-12)
    assert row.speedup_low < row.speedup
    assert "ratios" not in {diagnostic.check for diagnostic in diagnostics(dataset)}


@pytest.mark.parametrize(
    ("seconds_of_two", "noise", "check", "message"),
    [(0.21, 0.001, "falling", "throughput regression: "), (0.0995, 0.0002, "above_linear", "above linear: ")],
    ids=["a fall of 5 %", "0.5 % above linear"],
)
def test_a_step_of_a_curve_is_judged_within_rounds_as_on_the_page_on_scaling(
    paths, snapshot, seconds_of_two, noise, check, message
):
    """Between the rounds nothing could be told: the machine slows by half."""
    for repetition, slowness in enumerate((1.0, 1.2, 1.5), 1):
        for configuration_, seconds in ((ONE, 0.1), (TWO, seconds_of_two)):
            recipe = Recipe(seconds * slowness, exposed_communication_seconds=0.0, noise=noise)
            write_run(paths, configuration_, repetition, recipe)
    write_plan(paths, [Planned(ONE), Planned(TWO)])
    dataset = collect(paths)
    assert dataset.diagnostics["message"].str.startswith(message).sum() == 1
    [diagnostic] = [diagnostic for diagnostic in diagnostics(dataset) if diagnostic.check == check]
    assert diagnostic.severity is Severity.WARNING
    assert diagnostic.computation == snapshot


@pytest.mark.parametrize(("order", "severity"), [("interleaved", Severity.WARNING), ("sequential", Severity.NOTE)])
def test_a_falling_curve_of_runs_in_blocks_is_a_note(paths, order, severity):
    recipe = Recipe(order=order)
    write_study(paths, [Planned(ONE, recipe), Planned(TWO, replace(recipe, compute_seconds=0.2))])
    [diagnostic] = [diagnostic for diagnostic in diagnostics(collect(paths)) if diagnostic.check == "falling"]
    assert diagnostic.severity is severity


def test_an_impossible_throughput_is_found(paths):
    write_study(paths, [Planned(ONE, Recipe(flops_per_sample=1e12))])
    [diagnostic] = diagnostics(collect(paths))
    assert diagnostic.check == "physical_limits"


def test_two_runs_that_differ_have_no_reciprocal_medians(paths):
    write_study(paths, [Planned(ONE, runs=1)])
    write_run(paths, ONE, 2, Recipe(compute_seconds=0.088))
    assert diagnostics(collect(paths)) == []


def test_nothing_measured_is_nothing_examined(paths):
    write_study(paths, [Planned(ONE, Recipe(status="failed", reason="broken"))])
    assert {one.examined for one in audit(read_dataset_results(collect(paths)))} == {0}


def test_the_csv_of_a_study_can_be_audited_too(dataset, paths):
    results = read_tables(paths.dataset / "configurations.csv").results
    checked = {one.name: one for one in audit(results)}
    assert [diagnostic for one in checked.values() for diagnostic in one.diagnostics] == []
    assert checked["ratios"].examined == 6
    assert checked["falling"].examined == checked["above_linear"].examined > 0
