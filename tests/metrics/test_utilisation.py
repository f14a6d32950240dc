"""The peak of a run's devices, and the share of it that a run reaches."""

import pytest

from dlperf_study.core.errors import Severity
from dlperf_study.metrics.throughput import throughput
from dlperf_study.metrics.utilisation import (
    FROM_CLUSTER_FILE,
    WINOGRAD_FACTOR,
    device_peak,
    hardware_flops_utilisation,
    impossible_hardware_utilisation,
    model_flops_utilisation,
    severity_above_peak,
)
from tests.evidence_factory import Recipe

H100 = "NVIDIA H100 80GB HBM3"


def test_mfu_is_the_share_of_the_peak_of_all_devices(hand_made_run):
    assert model_flops_utilisation(hand_made_run()) == pytest.approx(64 * 4 / 6.0 * 2e9 / (2 * 1e12))


def test_hfu_counts_what_is_computed_again_and_mfu_does_not(make_run):
    assert hardware_flops_utilisation(make_run(seed=2)) is None
    run = make_run(recipe=Recipe(hardware_flops_per_sample=2.5e9))
    assert model_flops_utilisation(run) == pytest.approx(throughput(run) * 2e9 / 1e12)
    assert hardware_flops_utilisation(run) == pytest.approx(throughput(run) * 2.5e9 / 1e12)


def test_devices_that_would_do_more_than_their_peak_are_an_error(make_run):
    run = make_run(recipe=Recipe(hardware_flops_per_sample=2e15))
    [diagnostic] = impossible_hardware_utilisation(run)
    assert (diagnostic.subject, diagnostic.severity) == ("hfu", Severity.ERROR)


@pytest.mark.parametrize("unknown", [{"peak_flops": None}, {"flops_per_sample": None}])
def test_mfu_is_missing_where_peak_or_flops_are_unknown(make_run, unknown):
    assert model_flops_utilisation(make_run(recipe=Recipe(**unknown))) is None


@pytest.mark.parametrize(("precision", "peak"), [("fp32", 67e12), ("tf32", 494.7e12), ("amp_fp16_o2", 989.4e12)])
def test_a_known_device_has_the_peak_of_its_data_sheet_in_what_was_computed_in(make_run, precision, peak, snapshot):
    run = make_run(recipe=Recipe(peak_flops=None, device="gpu", device_name=H100), precision=precision)
    flops, source = device_peak(run)
    assert flops == peak
    assert source is not None
    assert source == snapshot
    assert model_flops_utilisation(run) == pytest.approx(throughput(run) * 2e9 / peak)


def test_the_cluster_file_comes_first_also_by_format(make_run):
    by_format = {"fp16": 900e12}
    in_fp16 = make_run(recipe=Recipe(peak_flops=by_format, device_name=H100), precision="amp_fp16")
    assert device_peak(in_fp16) == (900e12, FROM_CLUSTER_FILE)
    in_fp32 = make_run(recipe=Recipe(peak_flops=by_format, device_name=H100), devices_per_node=2)
    assert device_peak(in_fp32)[0] == 67e12


def test_a_thread_of_a_known_processor_has_a_peak(make_run):
    recipe = Recipe(peak_flops=None, device_name="Intel(R) Xeon(R) CPU E5-2620 v4 @ 2.10GHz")
    assert device_peak(make_run(recipe=recipe, threads_per_device=4))[0] == 4 * 96e9


def test_older_evidence_without_the_computed_format_has_the_one_peak_of_its_file_or_none(make_run, paths):
    recipe = Recipe(peak_flops=None, device_name=H100, says_computed_in=False)
    assert device_peak(make_run(recipe=recipe)) == (None, None)
    assert device_peak(make_run(recipe=Recipe(peak_flops=1e12, says_computed_in=False), devices_per_node=2))[0] == 1e12


def test_only_a_convolutional_network_may_take_more_than_the_peak():
    assert severity_above_peak(1, is_convolutional=False) is None
    assert severity_above_peak(WINOGRAD_FACTOR, is_convolutional=True) is Severity.WARNING
    assert severity_above_peak(WINOGRAD_FACTOR * 1.01, is_convolutional=True) is Severity.ERROR
    assert severity_above_peak(1.01, is_convolutional=False) is Severity.ERROR
