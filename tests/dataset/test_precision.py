"""What a report says of a precision that was not reached."""

from dataclasses import replace

import pytest

from dlperf_study.dataset.dataset import collect
from dlperf_study.dataset.precision import configurations_too_wide
from dlperf_study.paths import OUTPUTS_VARIABLE, StudyPaths
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


def test_a_precision_that_was_reached_is_not_mentioned(paths):
    plan = write_plan_with(paths, write_study(paths, [Planned(ONE), Planned(TWO)]), 0.2)
    assert configurations_too_wide(plan) == set()
    assert "asks for" not in " ".join(collect(paths).diagnostics["message"])


def test_a_precision_that_was_not_reached_is_said_with_what_the_rest_costs(paths):
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
    # Deviation 0.111 of the logarithm: t(n - 1) 0.111 / sqrt(n) = log(1.05) for n = 23; runs of 600 s.
    assert message == "± 32 % after 3 runs, the study asks for ± 5 %; that takes about 20 more, 3 h 20 min"


def test_without_an_interval_the_report_says_what_it_takes(paths):
    plan = write_plan_with(paths, write_study(paths, [Planned(ONE, runs=2)]), 0.05)
    assert configurations_too_wide(plan) == {ONE.identity}
    messages = collect(paths).diagnostics["message"]
    assert messages.str.startswith("no interval after 2 runs, the study asks for ± 5 %").any()


def test_without_common_rounds_the_report_asks_for_rounds_and_not_for_runs(paths):
    plan = write_study(paths, [Planned(ONE, runs=2), Planned(TWO, runs=3, baseline=ONE)])
    write_plan_with(paths, plan, 0.05)
    diagnostics = collect(paths).diagnostics
    messages = diagnostics.loc[diagnostics["identity"] == TWO.identity, "message"]
    expected = "no interval after 3 runs, the study asks for ± 5 %: it takes three rounds with a run of both"
    assert expected in messages.tolist()


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
    plan = write_plan_with(paths, write_study(paths, [Planned(ONE), Planned(TWO), Planned(THREE)]), 0.2)
    assert configurations_too_wide(plan) == set()
    change(paths.configuration(THREE.identity).run(3), started="2024-06-01T10:00:00+00:00")
    assert THREE.identity in configurations_too_wide(plan)
