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


def test_a_table_that_prints_two_of_three_hides_no_other():
    assert (
        len(
            found(
                "task_sizes", [*(row | {"table": "a", "cell": row["metric"]} for row in sizes("1")[:2]), *sizes("3220")]
            )
        )
        == 1
    )
