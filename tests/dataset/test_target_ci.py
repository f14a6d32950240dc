"""The target precision: when a study looks at its intervals, what ends measuring, and what a missed target costs."""

import math
import re

import numpy as np
import pytest
from scipy import stats

from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.dataset.dataset import collect
from dlperf_study.dataset.further_rounds import DISTURBED, TARGET, reason_for_further_round
from dlperf_study.dataset.target_ci import (
    Precision,
    looks_that_ended_measuring,
    needs_further_round,
    precisions,
    rounds_of_all,
    too_wide,
    widest,
)
from dlperf_study.findings import quality
from dlperf_study.metrics.statistics import Estimate, Sample
from dlperf_study.study.plan import Plan, build_plan
from tests.evidence_factory import Planned, Recipe, change, configuration, write_run, write_study
from tests.study.examples import anything_goes, cluster, study

ROUNDS = np.arange(1.0, 13.0)
NOISE = np.tile([0.02, -0.01, 0.03, -0.04, 0.0, 0.0], 2)
ONE, TWO, THREE = (configuration(devices_per_node=devices) for devices in (1, 2, 4))


@pytest.fixture
def paths(tmp_path, monkeypatch):
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    return StudyPaths.of("example")


def plan(precision: float = 0.02, max_repetitions: int = 12) -> Plan:
    """A baseline and two others, of three rounds each."""
    example = study(factors={"devices_per_node": [1, 2, 4]}, target_ci=precision, max_repetitions=max_repetitions)
    return build_plan(example, cluster(), anything_goes)


def without_target() -> Plan:
    return build_plan(study(factors={"devices_per_node": [1, 2, 4]}), cluster(), anything_goes)


def sample(factors: np.ndarray) -> Sample:
    return Sample(np.exp(factors) * 100, ROUNDS[: len(factors)])


def samples(*factors: np.ndarray) -> dict[str, Sample]:
    return dict(
        zip((entry.configuration.configuration_id for entry in plan().entries), map(sample, factors), strict=False)
    )


def with_target(paths, planned: Plan, precision: float | None, max_repetitions: int = 12) -> Plan:
    planned = planned.changed(target_ci=precision, max_repetitions=max_repetitions)
    planned.write(paths.plan_file)
    return planned


def messages_on_target(paths):
    messages = collect(paths).diagnostics["message"]
    return messages[messages.str.contains("the target is")].tolist()


@pytest.mark.parametrize(("most", "looks"), [(3, (3,)), (5, (3,)), (8, (3, 6)), (12, (3, 6, 12)), (40, (3, 6, 12))])
def test_a_study_looks_after_once_twice_and_four_times_its_repeats(most, looks):
    assert plan(max_repetitions=most).rounds.looks == looks
    assert plan(max_repetitions=most).rounds.most == looks[-1]
    assert (without_target().rounds.looks, without_target().rounds.most) == ((), 3)


def test_the_half_width_is_that_of_the_t_interval():
    three, two = (Precision("throughput", Estimate.from_values(values)) for values in ((1.0, 1.01, 1.02), (1.0, 1.01)))
    # Standard error 0.01 / sqrt(3), t(2) = 4.303.
    assert three.half_width == pytest.approx(math.expm1(0.01 / math.sqrt(3) * 4.3027), 1e-4)
    assert two.half_width is None


@pytest.mark.parametrize(("deviation", "runs"), [(0.01, 7), (0.018, 15), (0.03, 38)])
def test_further_rounds_for_one_per_cent(deviation, runs):
    """Those of t(n - 1) s / sqrt(n) = log(1.01); by tables of Student's distribution, and of chi squared."""
    for quartile, chi_squared in enumerate((2.7726, 0.5754)):
        # A sample with this deviation of its three runs, of which this quartile of the true one is ``deviation``.
        sampled = deviation / math.sqrt(2 / chi_squared)
        further = Precision("throughput", Estimate(0.0, sampled / math.sqrt(3), 2, 3)).further_rounds(
            plan(0.01, max_repetitions=3)
        )
        assert further is not None
        assert further[quartile] == pytest.approx(runs - 3, abs=2)


def test_a_ratio_may_be_wider_than_both_throughputs():
    one, two, _ = plan().entries
    throughputs = samples(0.1 * NOISE, -0.6 * NOISE, 0.11 * NOISE)
    assert [precision.column for precision in precisions(one, throughputs)] == ["throughput"]
    assert [precision.column for precision in precisions(two, throughputs)] == ["throughput", "speedup"]
    assert widest(two, throughputs).column == "speedup"  # type: ignore[union-attr]
    assert too_wide(plan(0.01), throughputs) == [two.configuration.configuration_id]
    assert too_wide(plan(0.2), throughputs) == []
    assert rounds_of_all(plan(), throughputs) == 12


def test_between_two_looks_measuring_goes_on_whatever_the_intervals_are():
    narrow = 0.01 * NOISE
    for count, needs_more in ((3, False), (4, True), (5, True), (6, False), (7, True), (12, False)):
        assert needs_further_round(plan(), samples(narrow[:count])) is needs_more
    wide = 2 * NOISE
    for count, needs_more in ((3, True), (6, True), (11, True), (12, False)):
        assert needs_further_round(plan(), samples(wide[:count])) is needs_more
    assert not needs_further_round(without_target(), samples(wide[:3]))


def test_intervals_are_corrected_for_the_looks_only_if_the_target_ended_measuring():
    narrow, wide = 0.01 * NOISE, 2 * NOISE
    assert looks_that_ended_measuring(plan(), samples(narrow[:6])) == 3
    # Something else ended measuring: the time, or the number of rounds.
    assert looks_that_ended_measuring(plan(), samples(narrow[:5])) == 1
    assert looks_that_ended_measuring(plan(), samples(wide[:6])) == 1
    # One look is no choice.
    assert looks_that_ended_measuring(plan(max_repetitions=5), samples(narrow[:3])) == 1
    assert looks_that_ended_measuring(without_target(), samples(narrow[:3])) == 1


def test_the_decision_uses_the_interval_that_is_printed():
    """Within the target by a plain interval, and not by one that is corrected for three looks."""
    factors = np.array([0.002, -0.002, 0.0])
    half_width = math.expm1(0.002 / math.sqrt(3) * stats.t.ppf(0.975, 2))
    assert needs_further_round(plan(1.01 * half_width), samples(factors))
    assert not needs_further_round(plan(1.01 * half_width, max_repetitions=5), samples(factors))


def test_a_target_that_was_reached_is_not_mentioned_and_widens_every_interval(paths):
    written = write_study(paths, [Planned(ONE, runs=6), Planned(TWO, runs=6)])
    planned = with_target(paths, written, 0.2)
    assert reason_for_further_round(planned) == ""
    assert messages_on_target(paths) == []
    corrected = collect(paths).configurations.set_index("configuration_id").loc[TWO.configuration_id]
    with_target(paths, written, None)
    plain = collect(paths).configurations.set_index("configuration_id").loc[TWO.configuration_id]
    wider = stats.t.ppf(1 - 0.025 / 3, 5) / stats.t.ppf(0.975, 5)
    for column in ("throughput", "speedup", "step_seconds"):
        half_widths = [np.log(row[f"{column}_high"] / row[column]) for row in (corrected, plain)]
        assert half_widths[0] == pytest.approx(wider * half_widths[1], rel=1e-6)
    for name in ("exposed_communication", "step_difference"):
        bounds = [row[f"{name}_seconds_high"] - row[f"{name}_seconds"] for row in (corrected, plain)]
        assert np.isnan(bounds[0]) or bounds[0] == pytest.approx(wider * bounds[1], rel=1e-6)


def test_a_missed_target_is_said_with_what_the_rest_costs(paths, snapshot):
    planned = write_study(paths, [Planned(ONE, runs=0), Planned(TWO, runs=0)])
    for repetition, seconds in enumerate((0.08, 0.09, 0.07), start=1):
        write_run(paths, ONE, repetition, Recipe(compute_seconds=0.08, noise=0.0001))
        write_run(paths, TWO, repetition, Recipe(compute_seconds=seconds, noise=0.0))
    planned = with_target(paths, planned, 0.05)
    assert reason_for_further_round(planned) == TARGET
    # Deviation 0.111 of logarithms: t(n - 1) 0.111 / sqrt(n) = log(1.05) for n = 23 with one look, more with three.
    # A round: two runs of 600 s.
    assert messages_on_target(paths) == snapshot
    dataset = collect(paths)
    [missed] = quality.remedies(dataset)
    assert (missed.max_rounds, missed.target) == (12, 0.05)
    # The missed target is in no other count.
    assert not any(others.warnings for others in quality.other_diagnostics(dataset))


def test_without_an_interval_the_report_says_what_it_takes(paths, snapshot):
    with_target(paths, write_study(paths, [Planned(ONE, runs=2), Planned(TWO, runs=3, baseline=ONE)]), 0.05)
    assert messages_on_target(paths) == snapshot


def test_a_target_says_what_is_called_equal(paths):
    """Runs that differ by up to 1 % are equal within 5 %, but not within 0.1 %."""
    two = configuration(optimizer="momentum")
    planned = write_study(paths, [Planned(ONE, runs=0), Planned(two, runs=0, reference=ONE)])
    for repetition, factor in enumerate((0.99, 1.01, 1.0, 1.005, 0.995), start=1):
        write_run(paths, ONE, repetition, Recipe(noise=0.0))
        write_run(paths, two, repetition, Recipe(compute_seconds=0.08 * factor, noise=0.0))
    words = {}
    for precision in (0.05, 0.001):
        with_target(paths, planned, precision)
        table = collect(paths).configurations.set_index("configuration_id")
        words[precision] = table.loc[two.configuration_id, "significance"]
    assert words == {0.05: "equal", 0.001: "no significant difference"}


def test_a_round_that_was_not_shared_does_not_count_for_the_target(paths):
    planned = [Planned(each, runs=6) for each in (ONE, TWO, THREE)]
    planned = with_target(paths, write_study(paths, planned), 0.2)
    assert reason_for_further_round(planned) == ""
    change(paths.configuration(THREE.configuration_id).run(3), started="2024-06-01T10:00:00+00:00")
    assert reason_for_further_round(planned) == TARGET


def test_what_was_reached_has_the_digits_that_set_it_apart_from_the_target(paths):
    write_study(paths, [Planned(ONE, recipe=Recipe(noise=0.05), runs=6)])
    [reached] = [row.throughput_high / row.throughput - 1 for row in collect(paths).configurations.itertuples()]
    target = round(reached, 2) if round(reached, 2) < reached else reached - 1e-4
    with_target(paths, Plan.read(paths.plan_file), target)
    [message] = messages_on_target(paths)
    shown, wanted = (float(number) for number in re.findall(r"± ([0-9.]+) %", message))
    assert shown > wanted
    assert shown == pytest.approx(100 * reached, abs=0.1)


@pytest.mark.parametrize(
    ("disturbed", "runs", "reason"),
    [((), 6, ""), ((3,), 6, DISTURBED), (range(1, 7), 6, DISTURBED), ((3,), 7, "")],
    ids=["none disturbed", "one disturbed", "all disturbed", "one disturbed and repeated"],
)
def test_a_round_with_background_load_is_repeated(paths, disturbed, runs, reason):
    """Of two configurations of six planned rounds, the second has the load."""
    configurations = [configuration(devices_per_node=devices, repetitions=6) for devices in (1, 2)]
    written = write_study(paths, [Planned(each, runs=0) for each in configurations])
    for repetition in range(1, runs + 1):
        for each in configurations:
            busy = 0.5 if repetition in disturbed and each is configurations[1] else 0.02
            write_run(paths, each, repetition, Recipe(busy_cores=busy))
    assert reason_for_further_round(written) == reason


def test_a_study_without_intervals_repeats_no_round(paths):
    single_run = configuration(repetitions=1)
    written = write_study(paths, [Planned(single_run, runs=0)])
    write_run(paths, single_run, 1, Recipe(busy_cores=1.0))
    assert reason_for_further_round(written) == ""
