"""The instrument, made wrong on purpose: each fault is found by the check that is there for it, which passes without.

What the checks read is evidence of known truth, as steps that sleep, pairs and a link would leave it.
"""

from dataclasses import replace

import pytest

from dlperf_study.metrics import communication, comparison, computation, statistics, step_times, throughput
from dlperf_study.selftest.checks import check_intervals, check_same_program, check_slowdowns
from dlperf_study.selftest.known_truths import check_link, check_steps, check_straggler
from dlperf_study.selftest.result import Status
from dlperf_study.study.configuration import Configuration
from tests.evidence_factory import GRADIENT_BYTES
from tests.selftest.studies import link_dataset, pair_dataset, steps_dataset, straggler_dataset

LINK_BITS = 4e8
PAIRS = 10


def pairs(count=PAIRS):
    return [pair_dataset(number, slowdown=0.1, noise=0.02) for number in range(1, count + 1)]


CHECKS = {
    "steps": lambda: check_steps(steps_dataset()),
    "straggler": lambda: check_straggler(straggler_dataset(1.25)),
    "link": lambda: check_link(link_dataset(2 * 8 * GRADIENT_BYTES / LINK_BITS), LINK_BITS),
    "same program": lambda: check_same_program(pairs(3)),
    "slowdowns": lambda: check_slowdowns(pairs(3)),
    "intervals": lambda: check_intervals(pairs()),
}
RANK_SECONDS, T_QUANTILE = throughput.rank_seconds, statistics.t_quantile


def with_warmup(log):
    return RANK_SECONDS(log) + log.windows["warmup"].seconds


def fastest_rank(run):
    return min(map(RANK_SECONDS, run.ranks))


def too_fast(log):
    return RANK_SECONDS(log) / 1.02


def of_two_steps(run):
    return 2 * run.ranks[0].windows["training"].step_seconds


def fits_too_much(*arguments, original=communication.fitted_cost):
    cost = original(*arguments)
    return replace(cost, seconds_per_byte=1.2 * cost.seconds_per_byte)


#: What is wrong, the check that finds it, and what is replaced by what.
MUTANTS = {
    "the warm-up is counted": ("steps", (throughput, "rank_seconds", with_warmup)),
    "the rates are 2 % too high": ("steps", (throughput, "rank_seconds", too_fast)),
    "the fastest rank is taken for the job": ("steps", (throughput, "makespan_seconds", fastest_rank)),
    "the samples are those of one rank": (
        "steps",
        (Configuration, "global_batch", property(lambda self: self.batch_per_device)),
    ),
    "the unit is two steps": ("steps", (step_times, "steps_of_job", of_two_steps)),
    "the intervals have half their width": (
        "intervals",
        (statistics, "t_quantile", lambda *arguments: T_QUANTILE(*arguments) / 2),
    ),
    "the words of verdicts are communicated": ("slowdowns", (comparison, "SLOWER", comparison.FASTER)),
    "every difference is one": ("same program", (comparison, "significant", lambda values: [True] * len(values))),
    "a straggler must be twice as slow": ("straggler", (computation, "STRAGGLER", 2.0)),
    "the fit of the link counts a fifth more": ("link", (communication, "fitted_cost", fits_too_much)),
}


@pytest.mark.parametrize("check", CHECKS)
def test_a_right_instrument_passes(check):
    assert CHECKS[check]().status is Status.PASSED


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_instrument_fails(mutant, monkeypatch):
    check, (owner, name, wrong) = MUTANTS[mutant]
    monkeypatch.setattr(owner, name, wrong)
    assert CHECKS[check]().status is Status.FAILED
