"""Tables for the checks of numbers by themselves and of products, and what each examines: see ``test_checks.py``."""

from typing import Any

from tests.audit.tables import Cases, Row, number, throughput

_WRONG_NODES = {"nodes": 2, "devices_per_node": 4}
_RECOMPUTED = number("mfu", "120%", flops_per_sample=1e9)


def _task(samples: str) -> list[Row]:
    numbers = {"samples_per_task": samples, "batches_per_task": "50", "batch_per_device": "64"}
    return [number(name, text, None) for name, text in numbers.items()]


def _machine(instance: str, **facts: Any) -> Row:
    return throughput("2844", 8, instance=instance, device_name="Tesla V100", devices_per_node=8, **facts)


CASES: Cases = {
    "above_zero": {
        "above": ("...", [throughput("100"), number("speedup", "1"), number("step_seconds", "0.1")]),
        **{
            f"{value}": ("E", [throughput("100") | {"value": float(value), "printed": value}])
            for value in ("-200", "0")
        },
        "no communication": ("", [number("communication_share", "0")]),
    },
    "durations": {
        "a hundred seconds": (".", [number("step_seconds", "100")]),
        "more than a hundred": ("W", [number("step_seconds", "101")]),
    },
    "shares_up_to_one": {
        "a share": (".", [number("communication_share", "0.31")]),
        "per cent": (".", [number("mfu", "31%")]),
        "per cent without its sign": ("E", [number("mfu", "31")]),
        "the whole": (".", [number("mfu", "1")]),
        "four times": ("W", [number("mfu", "400%")]),
        "more than four times": ("E", [number("mfu", "401%")]),
        "of the time": ("E", [number("communication_share", "1.2")]),
        "one of two examined elsewhere": ("W", [_RECOMPUTED, number("mfu", "120%", 2)]),
    },
    "world_size": {
        "right": (".", [throughput("760.0", 16, nodes=2, devices_per_node=8)]),
        "wrong": ("E", [throughput("760.0", 16, **_WRONG_NODES), number("speedup", "7.60", 16, **_WRONG_NODES)]),
        "no devices of a node": ("", [throughput("760.0", 16, nodes=2)]),
        "of nodes that were inferred": ("", [throughput("760.0", 16, nodes=2, devices_per_node=8, inferred="nodes")]),
    },
    "global_batch": {
        "right": (".", [throughput("370.0", 4, batch_per_device=32, global_batch=128)]),
        "wrong": ("E", [throughput("600", 8, batch_per_device=32, global_batch=999)]),
        "others inferred": (".", [throughput("370.0", 4, batch_per_device=32, global_batch=128, inferred="classes")]),
    },
    "task_sizes": {
        "right": (".", _task("3200")),
        "two of three in another table": (
            "E",
            [*(row | {"table": "a", "cell": row["metric"]} for row in _task("1")[:2]), *_task("3220")],
        ),
    },
    "instances": {
        "with these devices": (".", [_machine("p3.16xlarge")]),
        "with others": ("E", [_machine("p2.16xlarge")]),
        "not listed": ("N", [_machine("x9.nano")]),
        "every number once": ("E", [_machine("p2.16xlarge", cell=f"{position}") for position in range(3)]),
    },
}
