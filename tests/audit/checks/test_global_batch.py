from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, rate


def test_the_batches_of_all_devices():
    assert examined("global_batch", [rate("370.0", 4, batch_per_device=32, global_batch=128)]) == [None]


def test_another_batch_contradicts_its_parts():
    [diagnostic] = found("global_batch", [rate("600", 8, batch_per_device=32, global_batch=999)])
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation == "32 × 8 = 256, but global_batch is 999"
    assert diagnostic.explanations


def test_a_batch_without_its_parts_is_not_examined():
    assert examined("global_batch", [rate("370.0", 4, global_batch=128)]) == []


def test_a_batch_that_was_reckoned_is_not_held_against_its_own_parts():
    assert examined("global_batch", [rate("370.0", 4, batch_per_device=32)]) == []
    assert examined("global_batch", [rate("370.0", 4, batch_per_device=32, global_batch=128, inferred="classes")]) == [
        None
    ]
