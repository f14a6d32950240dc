from tests.audit.tables import examined, found, number


def sizes(samples, batches="50", batch="64"):
    names = ("samples_per_task", "batches_per_task", "batch_per_device")
    return [number(name, text, None) for name, text in zip(names, (samples, batches, batch), strict=True)]


def test_batches_times_batch():
    assert examined("task_sizes", sizes("3200")) == [None]


def test_another_size():
    [diagnostic] = found("task_sizes", sizes("3220"))
    assert diagnostic.computation == "50 × 64 = 3200, printed 3220"


def test_two_of_three_say_nothing():
    assert examined("task_sizes", sizes("3220")[:2]) == []
