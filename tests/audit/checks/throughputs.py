"""Tables for the checks of rates and times, and what each examines: see ``test_checks.py``."""

from typing import Any

from tests.audit.tables import Cases, Row, number, runs, throughput

#: One task of ElasticDL's MobileNetV2 on two workers, as its authors profiled it.
_TASK = number("task_process_seconds", "143.789", 2, samples_per_task=3200)
#: A global batch that is not that of four devices.
_BATCH = {"batch_per_device": 32, "global_batch": 256}
#: 8 samples in 0.1000 s are 80 samples/s.
_STEP = number("step_seconds", "0.1000", global_batch=8)
_OF_DEVICE, _OF_JOB = "tokens_per_second_per_device", "tokens_per_second"


def _devices(of_job: str, of_device: str, devices: int = 8) -> list[Row]:
    return [number(_OF_JOB, of_job, devices), number(_OF_DEVICE, of_device, devices)]


def _tokens(tokens: str, samples: str, **facts: float) -> list[Row]:
    return [number(_OF_JOB, tokens, 8, **facts), throughput(samples, 8, **facts)]


def _step(seconds: str, speed: str, world_size: int | None = 1, **facts: Any) -> list[Row]:
    return [number("step_seconds", seconds, world_size, **facts), throughput(speed, world_size, **facts)]


def _computed(step: float, speed: float) -> list[Row]:
    plain = {"resolution": None, "global_batch": 8}
    return [number("step_seconds", "1") | plain | {"value": step}, throughput("1") | plain | {"value": speed}]


def _near(printed: float) -> list[Row]:
    """Return a throughput whose runs are 1 sample/s apart."""
    listed = runs([f"{printed + change:.1f}" for change in (-1, 0, 1)])
    return [_STEP, throughput(f"{printed:.1f}", global_batch=8), *listed]


CASES: Cases = {
    "device_throughputs": {
        **{f"right: {text}": (".", _devices("2004.87", text)) for text in ("250.61", "250.6", "251", "250.60")},
        "wrong": ("E", _devices("2004.87", "260.61")),
        "that of the job": ("E", _devices("2004.87", "2004.9")),
        "samples and tokens": ("", [throughput("2004.87", 8), number(_OF_DEVICE, "250.61", 8)]),
        "samples": (".", [throughput("2004.87", 8), number("samples_per_second_per_device", "250.61", 8)]),
    },
    "token_throughputs": {
        "tokens of a sample": (".", _tokens("2004.87", "1.958", tokens_per_sample=1024.0)),
        "other tokens of a sample": ("E", _tokens("2004.87", "1.958", tokens_per_sample=1000.0)),
        "samples shorter than the longest": ("W", _tokens("2004.87", "1.958", sequence_length=8192.0)),
        "samples of a step": (
            ".",
            [number("steps_per_second", "0.245", 8, global_batch=8.0), throughput("1.958", 8, global_batch=8.0)],
        ),
        "no quotient": ("", _tokens("2004.87", "1.958")),
        "no tokens": ("", _tokens("0", "1.958", tokens_per_sample=1024.0)),
    },
    "task_throughputs": {
        **{f"right: {text}": (".", [_TASK, throughput(text, 2)]) for text in ("44.5", "44.51", "44.50")},
        "less than 3 per cent off": ("W", [_TASK, throughput("44.7", 2)]),
        "another batch fits": ("E", _step("0.346", "370.0", 4, **_BATCH)),
        "no other batch fits": ("E", _step("0.346", "500.0", 4, **_BATCH)),
        "a time that was cut off": (
            ".",
            [number("task_process_seconds", "13.7", 2, samples_per_task=1024), throughput("149", 2)],
        ),
        "a task without samples": ("", [number("task_process_seconds", "143.789", 2), throughput("44.7", 2)]),
        "means of throughputs and times": (".", _computed(0.105, 8 / 0.1 / 2 + 8 / 0.11 / 2)),
        "computed, beyond its runs": ("E", [*_computed(0.099, 80.0), *runs(["79.9", "80", "80.1"])]),
        "within the spread of its runs": ("W", _near(80.5)),
        "below the spread of its runs": ("E", _near(70.0)),
        "no batch per device": ("E", _step("0.346", "11.56", 4, global_batch=256)),
        "no throughput": ("E", _step("0.346", "0", 4, global_batch=256)),
        "no number of devices": ("E", _step("0.346", "92.5", None, **_BATCH)),
        "a step of one sample": (".", [number("step_seconds", "0.5", global_batch=1), throughput("2.0")]),
        "a step of unknown samples": ("", _step("0.5", "2.0")),
        "a task of unknown devices": (
            "",
            [number("task_process_seconds", "143.789", None, samples_per_task=3200), throughput("22.26", None)],
        ),
    },
}
