import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, rate

V100 = {"model": "resnet50", "image_size": 224, "device_name": "Tesla V100-SXM2-16GB", "precision": "fp32"}


def test_a_rate_the_devices_reach():
    assert examined("physical_limits", [rate("352.72", **V100), rate("9348.17", 32, **V100)]) == [None, None]


def test_a_rate_only_a_faster_algorithm_reaches_is_diagnosed():
    [diagnostic] = found("physical_limits", [rate("700", **V100)])
    assert diagnostic.severity is Severity.WARNING
    assert "1.09 times the peak of 15,700" in diagnostic.computation
    assert "Winograd" in diagnostic.explanations[0]


def test_a_rate_nothing_reaches_is_wrong():
    [diagnostic] = found("physical_limits", [rate("3000", **V100)])
    assert diagnostic.severity is Severity.ERROR


def test_no_faster_algorithm_excuses_what_none_reaches():
    [diagnostic] = found("physical_limits", [rate("36600", **V100)])
    assert not [said for said in diagnostic.explanations if "Winograd" in said]


@pytest.mark.parametrize("spelt", [{"model": "ResNet-50"}, {"model": "ResNet 50"}, {"device_name": "V100"}])
def test_names_are_known_however_they_are_spelt(spelt):
    [diagnostic] = found("physical_limits", [rate("36600", **V100 | spelt)])
    assert "57.2 times the peak of 15,700" in diagnostic.computation


def test_half_precision_is_known_by_its_short_name():
    [diagnostic] = found("physical_limits", [rate("36600", **V100 | {"precision": "fp16"})])
    assert "7.18 times the peak of 125,000" in diagnostic.computation


@pytest.mark.parametrize("precision", ["tf32", "amp", "bf16"])
def test_an_a100_is_known_and_an_a1000_is_another_device(precision):
    a100 = V100 | {"device_name": "NVIDIA A100-SXM4-80GB", "precision": precision}
    assert examined("physical_limits", [rate("2325", **a100)]) == [None]
    assert found("physical_limits", [rate("60000", **a100)])
    assert examined("physical_limits", [rate("60000", **a100 | {"device_name": "RTX A1000"})]) == []


def test_matrices_know_no_faster_algorithm():
    gpt = {"model": "gpt_h1536_l16", "sequence_length": 2048, "device_name": "Tesla V100", "precision": "amp_fp16"}
    assert examined("physical_limits", [rate("18", **gpt)]) == [None]
    [diagnostic] = found("physical_limits", [rate("19", **gpt)])
    assert diagnostic.severity is Severity.ERROR


def test_a_network_of_a_source_is_found_once_by_its_worst_rate():
    [diagnostic] = found("physical_limits", [rate("3000", **V100), rate("40000", 2, **V100), rate("300", 4, **V100)])
    assert [cell.text for cell in diagnostic.cells] == ["40000", "3000"]


def test_what_the_table_says_itself_comes_first():
    own = {"flops_per_sample": 1e9, "device_peak_flops": 1e11}
    assert examined("physical_limits", [rate("99", **own)]) == [None]
    assert "as the table says" in found("physical_limits", [rate("101", **own)])[0].computation


def test_a_thread_of_a_processor_has_its_share_of_the_peak():
    cpu = {"model": "vgg16", "image_size": 224, "device_name": "Intel Xeon E5-2620 v4", "precision": "fp32"}
    assert examined("physical_limits", [rate("1", **cpu)]) == []
    assert examined("physical_limits", [rate("1", threads_per_device=1, **cpu)]) == [None]
    assert len(found("physical_limits", [rate("2", threads_per_device=1, **cpu)])) == 1
    assert found("physical_limits", [rate("2", threads_per_device=8, **cpu)]) == []


def test_what_is_not_known_is_not_examined():
    for name in V100:
        assert examined("physical_limits", [rate("3000", **{**V100, name: None})]) == []
