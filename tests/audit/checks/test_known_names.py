from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, rate

V100 = {"model": "resnet50", "image_size": 224, "device_name": "Tesla V100-SXM2-16GB", "precision": "fp32"}


def test_names_the_tables_of_facts_have():
    assert examined("known_names", [rate("300", **V100), rate("300", 2, **V100 | {"model": "ResNet-50"})]) == [None] * 2


def test_unknown_names_have_one_diagnostic_for_a_source():
    strange = ({"device_name": "Xeon"}, {"model": "r50"}, {"image_size": 160}, {"precision": "tf32"})
    [diagnostic] = found("known_names", [rate("300", 2**at, **V100 | odd) for at, odd in enumerate(strange)])
    assert diagnostic.severity is Severity.NOTE
    names = "Xeon, r50, resnet50 at 160, Tesla V100-SXM2-16GB in tf32"
    missing = f"the tables of networks and devices do not contain {names}"
    assert diagnostic.computation == f"source: 4 rates are not compared with a peak: {missing}"


def test_what_the_table_says_itself_need_not_be_known():
    own = {"model": "r50", "flops_per_sample": 1e9, "device_peak_flops": 1e11, "device_name": "Xeon"}
    assert examined("known_names", [rate("99", **own)]) == [None]


def test_a_name_without_the_other_is_not_examined():
    assert examined("known_names", [rate("300", model="r50"), rate("300", 2, device_name="Xeon")]) == []


def test_a_size_or_precision_that_is_not_stated_is_no_unknown_name():
    for name in ("image_size", "precision"):
        assert examined("known_names", [rate("300", **V100 | {name: None})]) == [None]


def test_a_rate_without_names_hides_no_other():
    assert examined("known_names", [rate("300", model="r50"), rate("300", 2, **V100)]) == [None]
