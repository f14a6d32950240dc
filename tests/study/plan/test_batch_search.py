"""The search for the largest batch, against every possible answer."""

from dataclasses import replace

import pytest

from dlperf_study.study.batch_search import STEPS, BatchSearch, search, trial
from dlperf_study.study.job import RunStatus
from tests.evidence_factory import configuration


def fits_up_to(largest: int, tried: list[int]):
    """Return how trials end where batches up to ``largest`` fit; those that are asked for are added to ``tried``."""

    def probe_outcome(batch: int) -> RunStatus:
        tried.append(batch)
        return RunStatus.COMPLETED if batch <= largest else RunStatus.OUT_OF_MEMORY

    return probe_outcome


@pytest.mark.parametrize("at_most", [1, 2, 3, 7, 8, 33])
def test_every_largest_batch_is_found_in_no_more_trials_than_were_said(at_most):
    for largest in range(at_most + 1):
        tried: list[int] = []
        known = search(at_most, 1, fits_up_to(largest, tried))
        assert (known.fitting, known.next_batch, known.trials_left) == (largest, None, 0)
        assert known.too_large == (None if largest == at_most else largest + 1)
        assert known.trials == len(tried) == len(set(tried)) <= BatchSearch(at_most).trials_left


@pytest.mark.parametrize("micro_batches", [2, 3, 8])
def test_only_batches_that_divide_into_their_micro_batches_are_tried(micro_batches):
    """Up to 29 there are 14, 9 and 3 of them; one in between that would fit is none that can be trained."""
    multiples = range(0, 30, micro_batches)
    for largest in range(30):
        tried: list[int] = []
        known = search(29, micro_batches, fits_up_to(largest, tried))
        assert set(tried) <= set(multiples) - {0}
        assert known.fitting == max(batch for batch in multiples if batch <= largest)
        assert known.largest_micro_batch * micro_batches == known.fitting
        assert known.too_large in (known.fitting + micro_batches, None)
        assert (known.too_large is None) == (known.fitting == max(multiples))
        assert known.trials == len(tried) <= BatchSearch(29, micro_batches=micro_batches).trials_left


@pytest.mark.parametrize("status", [None, RunStatus.FAILED, RunStatus.TIMEOUT])
def test_a_trial_that_is_missing_or_failed_is_the_next(status, snapshot):
    """Nothing is taken for granted of it, and what is known is kept."""
    known = search(64, 1, lambda batch: status if batch == 48 else fits_up_to(40, [])(batch))
    assert (known.fitting, known.too_large, known.next_batch) == (32, 64, 48)
    assert known.description == snapshot


def test_a_program_that_logs_one_time_for_ten_steps_is_tried_with_its_own_steps():
    of_user = configuration(own_program="train.py", warmup_steps=10, measured_steps=50)
    assert (trial(of_user, 4).warmup_steps, trial(of_user, 4).measured_steps) == (10, 50)
    assert trial(replace(of_user, own_program=""), 4).measured_steps == STEPS


def test_what_is_known_is_said(snapshot):
    assert BatchSearch(32).description == snapshot
    assert BatchSearch(32, 0, 4, 4).description == snapshot
    assert BatchSearch(32, 3, 4, 6).description == snapshot
    assert BatchSearch(32, 32, None, 1).description == snapshot
    assert BatchSearch(32, 0, 1, 6).description == snapshot
    assert BatchSearch(32, 8, 12, 3, micro_batches=4).description == snapshot
    assert BatchSearch(32, 0, 4, 4, micro_batches=4).description == snapshot


def test_configurations_that_differ_in_batch_and_measurement_share_their_trials():
    smaller = configuration(batch_per_device=8)
    other = replace(smaller, batch_per_device=16, measured_steps=50, repetitions=9, max_warmup_seconds=3.0)
    assert trial(smaller, 4) == replace(trial(other, 4), timeout_seconds=smaller.timeout_seconds)
    assert trial(smaller, 4).configuration_id != trial(replace(smaller, precision="amp_bf16"), 4).configuration_id
