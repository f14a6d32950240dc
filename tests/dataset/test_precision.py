"""What a report says of a precision that was not reached."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dlperf_study.audit.result_frames import results_of_dataset
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.dataset.dataset import collect
from dlperf_study.dataset.wanted_precision import configurations_too_wide
from dlperf_study.report.sentences import quality_sentences
from dlperf_study.study.plan import Plan
from tests.evidence_factory import Planned, Recipe, change, configuration, write_run, write_study

ONE, TWO, THREE = (configuration(devices_per_node=devices) for devices in (1, 2, 4))


@pytest.fixture
def paths(tmp_path, monkeypatch):
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    return StudyPaths.of("example")


def write_plan_with(paths, plan, precision):
    plan = replace(plan, precision=precision, max_repeats=10)
    plan.write(paths.plan_file)
    return plan


def messages_on_precision(paths):
    messages = collect(paths).diagnostics["message"]
    return messages[messages.str.contains("asks for")].tolist()


def test_a_precision_that_was_reached_is_not_mentioned(paths):
    plan = write_plan_with(paths, write_study(paths, [Planned(ONE, runs=6), Planned(TWO, runs=6)]), 0.2)
    assert configurations_too_wide(plan) == set()
    assert messages_on_precision(paths) == []


def test_a_precision_that_was_not_reached_is_said_with_what_the_rest_costs(paths, snapshot):
    plan = write_study(paths, [Planned(ONE, runs=0), Planned(TWO, runs=0)])
    for repetition, seconds in enumerate((0.08, 0.09, 0.07), start=1):
        write_run(paths, ONE, repetition, Recipe(computation_seconds=0.08, noise=0.0001))
        write_run(paths, TWO, repetition, Recipe(computation_seconds=seconds, noise=0.0))
    plan = write_plan_with(paths, plan, 0.05)
    assert configurations_too_wide(plan) == {ONE.identity, TWO.identity}
    diagnostics = collect(paths).diagnostics
    [(identity, message)] = diagnostics[diagnostics["message"].str.contains("asks for")][
        ["identity", "message"]
    ].itertuples(index=False)
    assert identity == TWO.identity
    # Deviation 0.111 of logarithms: t(n - 1) 0.111 / sqrt(n) = log(1.05) for n = 23, and as many again. A run: 600 s.
    assert message == snapshot


def test_without_an_interval_the_report_says_what_it_takes(paths, snapshot):
    plan = write_plan_with(paths, write_study(paths, [Planned(ONE, runs=2)]), 0.05)
    assert configurations_too_wide(plan) == {ONE.identity}
    assert messages_on_precision(paths) == snapshot


def test_without_common_rounds_the_report_asks_for_rounds_and_not_for_runs(paths, snapshot):
    plan = write_study(paths, [Planned(ONE, runs=2), Planned(TWO, runs=3, baseline=ONE)])
    write_plan_with(paths, plan, 0.05)
    assert messages_on_precision(paths) == snapshot


def test_a_precision_says_what_is_called_equal(paths):
    """Runs that differ by up to 1 % are equal within 5 %, but not within 0.1 %."""
    two = configuration(optimizer="momentum")
    plan = write_study(paths, [Planned(ONE, runs=0), Planned(two, runs=0, reference=ONE)])
    for repetition, factor in enumerate((0.99, 1.01, 1.0, 1.005, 0.995), start=1):
        write_run(paths, ONE, repetition, Recipe(noise=0.0))
        write_run(paths, two, repetition, Recipe(computation_seconds=0.08 * factor, noise=0.0))
    words = {}
    for precision in (0.05, 0.001):
        write_plan_with(paths, plan, precision)
        table = collect(paths).configurations.set_index("identity")
        words[precision] = table.loc[two.identity, "verdict"]
    assert words == {0.05: "equal", 0.001: "not distinguishable"}


def test_a_round_that_was_not_shared_does_not_count_for_the_precision(paths):
    planned = [Planned(configuration, runs=6) for configuration in (ONE, TWO, THREE)]
    plan = write_plan_with(paths, write_study(paths, planned), 0.2)
    assert configurations_too_wide(plan) == set()
    change(paths.configuration(THREE.identity).run(3), started="2024-06-01T10:00:00+00:00")
    assert THREE.identity in configurations_too_wide(plan)


def test_what_was_reached_has_the_digits_that_set_it_apart_from_what_was_asked_for(paths):
    write_study(paths, [Planned(ONE, recipe=Recipe(noise=0.05), runs=6)])
    [reached] = [row.throughput_high / row.throughput - 1 for row in collect(paths).configurations.itertuples()]
    write_plan_with(
        paths, Plan.read(paths.plan_file), round(reached, 2) if round(reached, 2) < reached else reached - 1e-4
    )
    [message] = messages_on_precision(paths)
    shown, wanted = (float(number) for number in re.findall(r"± ([0-9.]+) %", message))
    assert shown > wanted
    assert shown == pytest.approx(100 * reached, abs=0.1)


def test_the_error_is_that_of_the_later_half_once_the_first_ended_measuring(paths):
    """Three runs that are near each other, then three that are not: rate, step and ratio alike."""
    two = configuration(optimizer="momentum")
    plan = write_study(paths, [Planned(ONE, runs=0), Planned(two, runs=0, baseline=ONE, reference=ONE)])
    seconds = np.array([0.100, 0.101, 0.100, 0.110, 0.100, 0.090])
    for repetition, of_run in enumerate(seconds, start=1):
        write_run(paths, ONE, repetition, Recipe(computation_seconds=0.08, noise=0.0))
        write_run(paths, two, repetition, Recipe(computation_seconds=of_run, noise=0.0))
    plan = write_plan_with(paths, plan, 0.05)
    assert configurations_too_wide(plan) == {ONE.identity}  # equal runs have no interval
    dataset = collect(paths)
    row = dataset.configurations.set_index("identity").loc[two.identity]
    rates = np.log(dataset.runs.set_index("identity").loc[two.identity, "throughput"].to_numpy(float))
    half_width = stats.t.ppf(0.975, 2) * rates[3:].std(ddof=1) / np.sqrt(6)
    for column in ("throughput", "speedup"):
        bounds = np.log(row[[f"{column}_low", f"{column}_high"]].to_numpy(float))
        assert bounds == pytest.approx(np.log(row[column]) + np.array([-half_width, half_width]))
    assert np.log(row["throughput"]) == pytest.approx(rates.mean())
    assert np.log(row["step_seconds_high"] / row["step_seconds"]) == pytest.approx(half_width, rel=0.05)
    means = dataset.runs.groupby("identity")["step_seconds"].mean()
    differences = dataset.runs.set_index("identity").loc[two.identity, "step_seconds"] - means[ONE.identity]
    half_width_seconds = stats.t.ppf(0.975, 2) * differences.to_numpy(float)[3:].std(ddof=1) / np.sqrt(6)
    assert row["step_difference_seconds_high"] - row["step_difference_seconds"] == pytest.approx(half_width_seconds)
    results = results_of_dataset(dataset)
    audited = [results.rate(cell) for cell in results.of("throughput") if cell.value == row["throughput"]]
    assert [rate.logarithm.interval().high for rate in audited] == [pytest.approx(np.log(row["throughput_high"]))]
    message = dataset.diagnostics.set_index("identity").loc[two.identity, "message"]
    assert "no run is added after it" in message
    assert message.endswith("precision: 2.5 %")
    # Said at the top of the page, and no further diagnostic there.
    first, *others = quality_sentences.remedy_sentence(dataset), *quality_sentences.warning_sentences(dataset)
    assert "as precise as the ±5" in first
    assert "10 rounds" in first
    assert not any("throughput" in sentence or "speedup" in sentence for sentence in others)
    # Without a precision the number of runs was not decided by them.
    replace(plan, precision=None, max_repeats=None).write(paths.plan_file)
    row = collect(paths).configurations.set_index("identity").loc[two.identity]
    half_width = stats.t.ppf(0.975, 5) * rates.std(ddof=1) / np.sqrt(6)
    assert np.log(row["throughput_high"] / row["throughput"]) == pytest.approx(half_width)
