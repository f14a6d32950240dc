"""Tables for the checks against peaks, and what each examines: see ``test_checks.py``."""

from typing import Any

from tests.audit.tables import Cases, Row, number, throughput

_V100 = {"model": "resnet50", "image_size": 224, "device_name": "Tesla V100-SXM2-16GB", "precision": "fp32"}
_A100 = _V100 | {"device_name": "NVIDIA A100-SXM4-80GB"}
_GPT = {"model": "gpt_h1536_l16", "sequence_length": 2048, "device_name": "Tesla V100", "precision": "amp_fp16"}
_XEON = {"device_name": "Intel Xeon E5-2620 v4", "precision": "fp32"}
_VGG16 = {"model": "vgg16", "image_size": 224, **_XEON}
#: The single thread of PaddlePaddle's VGG16, whose page does not state the input.
_THREAD = {"model": "vgg16_cifar", **_XEON, "threads_per_device": 1}
_STATED = {"flops_per_sample": 1e9, "device_peak_flops": 1e11}
_KNOWN = {"flops_per_sample": 2e9, "device_peak_flops": 1e12}
_GPT_V100 = {"device_name": "Tesla V100", "precision": "amp_fp16", "model": "gpt"}


def _flops(printed: str, world_size: int = 1, **facts: Any) -> Row:
    """Return TFLOP/s as they are printed, in FLOP/s."""
    tera = number("device_flops", printed, world_size, **_GPT_V100, **facts)
    return tera | {"value": tera["value"] * 1e12, "resolution": tera["resolution"] * 1e12}


def _row(tera: str, seconds: str, world_size: int) -> list[Row]:
    facts = {"global_batch": 2 * world_size}
    return [_flops(tera, world_size, **facts), number("step_seconds", seconds, world_size, **facts)]


def _share(share: str, speed: str, world_size: int) -> list[Row]:
    return [number("mfu", share, world_size, **_GPT_V100), throughput(speed, world_size, **_GPT_V100)]


_ONE, _EIGHT, _SIXTEEN = _row("49.43", "0.40616", 1), _row("48.03", "0.41795", 8), _row("51", "0.48967", 16)
_SHARES = [*_share("0.310", "2600", 1), *_share("0.299", "20100", 8)]
_INCOMPLETE = {
    "no time": [_flops("48.03", 8, global_batch=16)],
    "no batch": [_flops("48.03", 8), number("step_seconds", "0.41795", 8)],
    "no devices": [row | {"world_size": None} for row in _EIGHT],
}

CASES: Cases = {
    "physical_limits": {
        "reached": ("..", [throughput("352.72", **_V100), throughput("9348.17", 32, **_V100)]),
        "by a faster algorithm": ("W", [throughput("700", **_V100)]),
        "by none": ("E", [throughput("3000", **_V100)]),
        "also spelt": ("E", [throughput("36600", **_V100 | {"model": "ResNet 50", "device_name": "V100"})]),
        **{
            f"{text} on an A100 in {name}": (status, [throughput(text, **_A100 | {"precision": name})])
            for text, status in (("2325", "."), ("60000", "E"))
            for name in ("tf32", "amp", "bf16")
        },
        "an A1000 is another device": (
            "",
            [throughput("60000", **_A100 | {"device_name": "RTX A1000", "precision": "amp"})],
        ),
        "matrices": (".", [throughput("18", **_GPT)]),
        "matrices have no faster algorithm": ("E", [throughput("19", **_GPT)]),
        "the worst throughput of a network": (
            ".E",
            [throughput("3000", **_V100), throughput("40000", 2, **_V100), throughput("300", 4, **_V100)],
        ),
        "above what the table states": ("W", [throughput("101", **_STATED)]),
        "unknown threads": ("", [throughput("1", **_VGG16)]),
        "one thread": (".", [throughput("1", threads_per_device=1, **_VGG16)]),
        "too fast for one thread": ("W", [throughput("2", threads_per_device=1, **_VGG16)]),
        **{f"unknown {name}": ("", [throughput("3000", **{**_V100, name: None})]) for name in _V100},
    },
    "input_sizes": {
        "inferred": ("W", [throughput("16.74", image_size=32, inferred="classes, image_size", **_THREAD)]),
        "stated": ("", [throughput("16.74", image_size=32, **_THREAD)]),
        "possible": (".", [throughput("1.00", **_THREAD)]),
        "the fastest throughput of a device": (
            "W",
            [throughput("15.44", **_THREAD), throughput("335", 20, **_THREAD), throughput("400", 40, **_THREAD)],
        ),
        "by a faster algorithm": (
            "W",
            [throughput("247.0", model="insightface_resnet100", device_name="Tesla V100", precision="fp32")],
        ),
        "unknown device": ("", [throughput("16.74", **_THREAD | {"device_name": "Xeon"})]),
        "unknown network": ("", [throughput("16.74", **_THREAD | {"model": "r50"})]),
    },
    "known_names": {
        "known": ("..", [throughput("300", **_V100), throughput("300", 2, **_V100 | {"model": "ResNet-50"})]),
        "four unknown ones": (
            "N",
            [
                throughput("300", 2**power, **_V100 | unknown)
                for power, unknown in enumerate(
                    ({"device_name": "Xeon"}, {"model": "r50"}, {"image_size": 160}, {"precision": "tf32"})
                )
            ],
        ),
        "stated by the table": (".", [throughput("99", model="r50", device_name="Xeon", **_STATED)]),
        "one without the other": ("", [throughput("300", model="r50"), throughput("300", 2, device_name="Xeon")]),
        "without a device, next to a known one": (".", [throughput("300", model="r50"), throughput("300", 2, **_V100)]),
    },
    "utilisation": {
        "right": (".", [_flops("49.43"), number("mfu", "39.5%", **_GPT_V100)]),
        "wrong": ("E", [_flops("49.43"), number("mfu", "45%", **_GPT_V100)]),
        "from a throughput": (".", [throughput("100", 2, **_KNOWN), number("mfu", "0.10", 2, **_KNOWN)]),
        "wrong from a throughput": ("E", [throughput("100", 2, **_KNOWN), number("mfu", "0.20", 2, **_KNOWN)]),
        **{
            f"from a throughput without {name}": (
                "",
                [throughput("100", devices, **of_throughput), number("mfu", "0.20", devices, **share)],
            )
            for name, of_throughput, share, devices in (
                ("a peak", {"flops_per_sample": 2e9}, {"flops_per_sample": 2e9}, 2),
                ("its FLOPs", {}, _KNOWN, 2),
                ("FLOPs of the share", _KNOWN, {"device_peak_flops": 1e12}, 2),
                ("devices", _KNOWN, _KNOWN, None),
            )
        },
        "others in one row": ("E", [*_ONE, *_EIGHT, *_SIXTEEN]),
        "one row": ("", _ONE),
        "a row without time": (".", [*_ONE, *_row("41", "0.48967", 16), *_row("48.03", "0", 8)]),
        "a row without FLOPs": (".", [*_ONE, *_row("41", "0.48967", 16), *_row("0", "0.41795", 8)]),
        **{f"a row with {name}": ("", rows) for name, rows in _INCOMPLETE.items()},
        **{f"a row with {name} next to others": ("E", [*rows, *_ONE, *_SIXTEEN]) for name, rows in _INCOMPLETE.items()},
        "shares without a peak": (".", _SHARES),
        "another share": ("E", [*_SHARES, *_share("0.620", "40200", 16)]),
    },
}
