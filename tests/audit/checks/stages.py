"""Tables for the checks of tasks, and what each examines: see ``test_checks.py``."""

from tests.audit.tables import Cases, Row, number

#: ElasticDL's task of MobileNetV2 on two GPUs.
_STAGES = {
    "task_process_seconds": "8.34",
    "report_gradient_seconds": "7.25026",
    "tensor_numpy_seconds": "5.79",
    "apply_gradients_seconds": "0.6",
    "forward_backward_seconds": "0.49",
}
_TASK = number("task_process_seconds", "143.789", 2)
_COMMUNICATION = number("report_gradient_seconds", "33.6484", 2)
_RATIO = "computation_to_communication"


def _task(**changes: str) -> list[Row]:
    return [number(name, text, 2) for name, text in (_STAGES | changes).items()]


def _updates(*seconds: tuple[int | None, str]) -> list[Row]:
    return [number("apply_gradients_seconds", text, devices) for devices, text in seconds]


def _next_to(speedup: str, share: str = "66.7%", devices: int = 8) -> list[Row]:
    return [number("communication_share", share, devices), number("speedup", speedup, devices)]


CASES: Cases = {
    "stages": {
        "a part longer than its whole": ("..E..E", _task(apply_gradients_seconds="8.6")),
        "a sum above the whole": (".....E", _task(forward_backward_seconds="0.89")),
        "a sum below the whole": (".....N", _task(task_process_seconds="9.34")),
        "stages that were cut off": ("......", _task(task_process_seconds="8.44")),
        "copying longer than the communication": ("....W.", _task(tensor_numpy_seconds="7.79")),
        "in the order of devices": ("W", _updates((2, "0.6"), (1, "5.59"))),
        "half as long again": (".", _updates((1, "0.5"), (2, "0.75"))),
        "next to a single time": (
            "W",
            [number("apply_gradients_seconds", "9", table="alone", series="alone"), *_updates((1, "0.5"), (2, "0.8"))],
        ),
        "a time without devices": ("W", _updates((1, "5.59"), (None, "0.6"))),
    },
    "shares": {
        "a right ratio": (".", [_TASK, _COMMUNICATION, number(_RATIO, "10 : 3", 2)]),
        "a right share": (".", [_TASK, _COMMUNICATION, number("communication_share", "23.4%", 2)]),
        "a wrong ratio": ("E", [_TASK, _COMMUNICATION, number(_RATIO, "10 : 4", 2)]),
        "no communication": ("", [_TASK, number("report_gradient_seconds", "0", 2), number(_RATIO, "10 : 3", 2)]),
        "allowed": (".", _next_to("2.66")),
        "forbidden": ("W", _next_to("4.00")),
        "far below": ("N", _next_to("1.83")),
        "one device": ("", _next_to("1.0", "50%", 1)),
        "two devices": (".", _next_to("1.0", "50%", 2)),
        "all of the time": ("W", _next_to("1.0", "100%", 2)),
        "more than all of the time": ("", _next_to("1.0", "120%", 2)),
        "no more can be lost": (
            "N",
            [number("communication_share", "1.00", 2), number("speedup", "5", 2) | {"value": -5.0, "printed": "-5"}],
        ),
    },
}
