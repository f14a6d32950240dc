"""Tables for the checks of language models, and what each examines: see ``test_checks.py``."""

from typing import Any

from tests.audit.tables import Cases, Row, number, throughput

_SPLIT = {"TP": "2", "PP": "4"}
_STEP = {"micro_batch": 2, "accumulation": 4, "global_batch": 64}
_TOKENS = {"global_batch": 16, "sequence_length": 2048}
_GPT = {"model": "gpt_h1536_l16", "sequence_length": 2048, "device_name": "Tesla V100", "precision": "amp_fp16"}


def _share(metric: str, printed: str, **facts: Any) -> list[Row]:
    """Return a row of OneFlow's GPT, which takes 40 % with recomputation and 29.7 % without."""
    return [number(metric, printed, **_GPT | facts), throughput("4.92", **_GPT | facts)]


CASES: Cases = {
    "degrees": {
        "copies": (".", [throughput("1", 16, **_SPLIT, DP="2")]),
        "without copies": (".", [throughput("1", 16, **_SPLIT)]),
        "more than the devices": ("E", [throughput("1", 8, **_SPLIT, DP="2")]),
        "many rows are one diagnostic": ("W", [throughput("1", size, row=size, **_SPLIT) for size in (12, 14, 18, 20)]),
        "of no number": ("", [throughput("1", 12, TP="full")]),
    },
    "accumulations": {
        "right": (".", [throughput("1", 8, **_STEP)]),
        "of copies": (".", [throughput("1", 16, TP="2", **_STEP)]),
        "a smaller last pass": (".", [throughput("1", 8, **_STEP | {"global_batch": 60})]),
        "another batch": ("W", [throughput("1", 8, **_STEP | {"global_batch": 128})]),
        "of too many copies": ("W", [throughput("1", 16, **_STEP)]),
    },
    "step_tokens": {
        "right": (".", [throughput("1", 8, tokens_per_step=32768, **_TOKENS)]),
        "too many": ("W", [throughput("1", 8, tokens_per_step=65536, **_TOKENS)]),
    },
    "recomputation": {
        "counted in mfu": ("E", _share("mfu", "40%")),
        "not counted in mfu": (".", _share("mfu", "30%")),
        "another architecture": (".", _share("mfu", "70%")),
        "no sizes": ("", _share("mfu", "40%", model="gpt")),
        **{
            f"hfu {printed}": (status, [number("hfu", printed), number("mfu", "30%")])
            for printed, status in (("40%", "."), ("30%", "."), ("27%", "E"), ("60%", "E"))
        },
    },
}
