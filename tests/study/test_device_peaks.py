"""The table of devices, and which device a name means."""

import pytest
from pydantic import TypeAdapter

from dlperf_study.study.device_peaks import FORMATS, PeaksByFormat, known_device, known_peak, known_peaks, peak_of_file


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("Tesla V100-SXM2-16GB", "V100"),
        ("Tesla V100-PCIE-32GB", "V100-PCIE"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", None),
        ("NVIDIA RTX A1000", None),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA L20", None),
        ("h100_80gb", "H100"),
        ("a10g_24gb", None),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA B300 SXM6 AC", "B300"),
        ("AMD Instinct MI355X", None),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090 D", None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA GH200 480GB", None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
        ("AMD Instinct MI250X/MI250", "MI250X"),
        ("Tesla V100-SXM2-16GB, NVIDIA A100-SXM4-80GB", None),
        ("Tesla V100-SXM2-16GB, Tesla V100-SXM2-32GB", "V100"),
    ],
)
def test_a_name_means_one_device_or_none(name, device):
    assert known_device(name) == device


def test_dense_tensor_cores_double_with_every_halving_of_the_format():
    """As the data sheets have it, from Ampere on; a number with sparsity in one column would be found."""
    for device in dict.fromkeys(peak.device for peak in known_peaks()):
        tf32, fp16, bf16, fp8 = (known_peak(device, name) for name in ("tf32", "float16", "bfloat16", "fp8"))
        if tf32 and fp16 and bf16:
            assert fp16.flops == bf16.flops
            assert fp16.flops == pytest.approx(2 * tf32.flops, rel=0.03)
        if fp8:
            assert bf16
            assert fp8.flops == pytest.approx(2 * bf16.flops, rel=0.03)


def test_every_peak_names_a_data_sheet_or_a_white_paper():
    sources = {peak.source for peak in known_peaks() if not peak.per_thread}
    assert [source for source in sources if "data sheet" not in source and "white paper" not in source] == []


def test_a_format_without_units_has_no_peak():
    assert known_peak("Tesla V100-SXM2-16GB", "bfloat16") is None
    assert known_peak("Tesla V100-SXM2-16GB", "float32") is not None


def test_a_file_gives_one_number_for_all_formats_or_some_by_name():
    assert peak_of_file(1e12, None) == 1e12
    assert peak_of_file({"fp16": 125e12}, "float16") == 125e12
    assert peak_of_file({"fp16": 125e12}, "float32") is None
    assert peak_of_file({"fp16": 125e12}, None) is None
    assert peak_of_file({"fp8": 1979e12}, "fp8") == 1979e12
    assert set(TypeAdapter(PeaksByFormat).json_schema()["properties"]) == {*FORMATS}
