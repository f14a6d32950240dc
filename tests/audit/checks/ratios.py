"""Tables for the checks of ratios, and what each examines: see ``test_checks.py``."""

from typing import Any

from tests.audit.tables import Cases, Row, number, ratio, runs, throughput

#: Throughputs and ratios of DLPerf's table of PaddlePaddle ResNet50 v1.5, fp32.
_FIRST = [throughput("352.72"), ratio("speedup", "1", 1)]
_TENS = [throughput("1034.64"), ratio("speedup", "1.00", 1), throughput("10633.22", 32)]
_SINGLE = [throughput("16.74"), number("efficiency", "100%", baseline="table/throughput/1"), throughput("263.29", 20)]
_VGG16 = [throughput("16.74")]
_CUT_OFF = [throughput("518.80", 40), ratio("efficiency", "77.47%", 40)]
_ROUNDED = [throughput("1019.29", 100), ratio("efficiency", "60.89%", 100)]
_TWO = [throughput("100.0"), throughput("200.0", 2)]
_SEVEN = [throughput("100"), throughput("700", 8), ratio("speedup", "7.0", 8)]
_ELSEWHERE = ratio("efficiency", "0.5", 8) | {"baseline": "other/throughput/1"}


def _speedup(printed: str, speed: str = "1358.64", **facts: Any) -> list[Row]:
    return [*_FIRST, throughput(speed, 4, **facts), ratio("speedup", printed, 4)]


def _other(text: str, world_size: int, **facts: Any) -> Row:
    """Return a throughput of another table."""
    return throughput(text, world_size, table="other", series="other", **facts)


def _no_baseline(metric: str, *printed: str) -> list[Row]:
    """Return throughputs of 100, 99.9 and 370 on 1, 2 and 4 devices, with a ratio each that names no baseline."""
    throughputs = [throughput(text, 2**power) for power, text in enumerate(("100.0", "99.9", "370.0"))]
    return [*throughputs, *(number(metric, text, 2**power) for power, text in enumerate(printed) if text)]


def _two_singles(second: str) -> list[Row]:
    """Return two rows of a single device, whose second throughput is given, and one of four with a wrong speedup."""
    singles = [throughput(text, cell=text + name, row=name) for text, name in (("100.0", "a"), (second, "b"))]
    ones = [number("speedup", "1.00", cell="1" + name, row=name) for name in ("a", "b")]
    return [*singles, *ones, throughput("370.0", 4, row="c"), number("speedup", "3.80", 4, row="c")]


def _of_rounds(first: str, second: str, **interval: float) -> list[Row]:
    rows = [throughput("100.0", measured_rounds=first), throughput("300.0", 4, measured_rounds=second)]
    return [*rows, ratio("speedup", "3.80", 4, **interval)]


def _of_whole_throughputs(*speedups: str) -> list[Row]:
    """Return throughputs with decimals, and speedups; those without decimals are 1.963, 3.858, 7.456."""
    throughputs = [throughput(text, 2**power) for power, text in enumerate(("352.72", "693.49", "1361.64", "2632.40"))]
    return [*throughputs, *(ratio("speedup", text, 2**power) for power, text in enumerate(speedups, 1))]


def _timed(before: str, after: str, speedup: str, metric: str = "step_seconds", **facts: Any) -> list[Row]:
    """Return times of one and of two devices, and their speedups."""
    rows = [number(metric, before, 1, **facts), number(metric, after, 2, **facts)]
    return [*rows, number("speedup", "1.00", 1, **facts), number("speedup", speedup, 2, **facts)]


CASES: Cases = {
    "ratios": {
        "throughputs that were rounded before": ("NNN", _of_whole_throughputs("1.963", "3.858", "7.456")),
        "two throughputs that were not rounded before": ("EEE", _of_whole_throughputs("1.963", "3.858", "7.556")),
        **{f"right: {text}": ("..", _speedup(text)) for text in ("3.85", "3.9", "4", "3.8", "3.851", "3.852")},
        **{f"wrong: {text}": (".E", _speedup(text)) for text in ("3.86", "3.84", "3.7", "3.95")},
        "an efficiency": ("..", [*_SINGLE, ratio("efficiency", "78.64%", 20)]),
        "rounded throughputs of an efficiency": (
            ".",
            [throughput("145"), throughput("276", 4), ratio("efficiency", "0.478", 4)],
        ),
        "throughputs that were cut off": (
            ".W",
            [throughput("26.7"), ratio("speedup", "1", 1), throughput("41", 2), ratio("speedup", "1.57", 2)],
        ),
        "fewer digits, rounded": (".N", [*_TENS, ratio("speedup", "10.3", 32)]),
        "no baseline of other devices fits": (".E", [*_speedup("3.79"), _other("358.64", 4), _other("1336.81", 8)]),
        "no baseline of another source fits": (
            ".E",
            [_other("300.00", 1, source="elsewhere", cell="elsewhere"), _other("310.00", 1), *_speedup("4.53")],
        ),
        "a baseline of its source fits": (
            ".E",
            [_other("300.00", 1, source="elsewhere", cell="elsewhere"), _other("310.00", 1), *_speedup("4.38")],
        ),
        "throughputs of the table fit, up to three": (
            ".E",
            [*_speedup("3.97"), *(throughput("1400.00", devices) for devices in (8, 16, 32, 64))],
        ),
        "a run of nothing has no ratio": (
            "E",
            [*_TWO, ratio("speedup", "1.5", 2), *runs(["0", "110"]), *runs(["150", "250"], 2)],
        ),
        "another baseline fits an efficiency": (
            "E",
            [throughput("352.72"), throughput("1358.64", 4), ratio("efficiency", "1.132", 4), _other("300.00", 1)],
        ),
        "the mean of ratios fits an efficiency": (
            "E",
            [*_TWO, ratio("efficiency", "0.985", 2), *runs(["90", "110"]), *runs(["150", "250"], 2)],
        ),
        "a throughput below one fits": (
            "E",
            [throughput("0.500"), throughput("0.200", 2), throughput("0.900", 8), ratio("speedup", "1.80", 2)],
        ),
        "the mean of ratios of throughputs below one": (
            "E",
            [
                *(throughput("1.000"), throughput("2.000", 2), ratio("speedup", "1.97", 2)),
                *runs(["0.90", "1.10"]),
                *runs(["1.50", "2.50"], 2),
            ],
        ),
        "the means of runs below one": (
            "E",
            [
                *(throughput("0.500"), throughput("0.900", 2), ratio("speedup", "1.15", 2)),
                *runs(["0.3", "0.5", "0.5"]),
                *runs(["0.4", "0.6"], 2),
            ],
        ),
        **{
            f"nothing is divided by nothing: {name}": ("E", [*_TWO, ratio("speedup", printed, 2), *further])
            for name, (printed, further) in {
                "a throughput": ("0.00", [throughput("0", 8)]),
                "a mean": ("0.00", [*runs(["90", "110", "100"]), *runs(["0", "0"], 2)]),
                "the mean of the baseline": ("2.50", [*runs(["0", "0"]), *runs(["90", "110"], 2)]),
                "a baseline without runs": ("2.50", runs(["90", "110"], 2)),
                "another baseline": ("2.50", [_other("0", 1)]),
                "a baseline that may be nothing": ("400", [_other("1", 1) | {"value": 0.5, "resolution": 2.0}]),
            }.items()
        },
        "no baseline is declared": ("N", [number("speedup", "3.85", 4), throughput("352.72", 4)]),
        "a declared baseline is not there": ("E", [throughput("1358.64", 4), ratio("speedup", "3.85", 4)]),
        "of rows of one that with fewest devices": ("..E", _no_baseline("speedup", "1.00", "1.00", "5.80")),
        "fewer devices have another ratio": ("NNN", _no_baseline("speedup", "0.50", "1.00", "1.00")),
        "relative throughputs of one": ("NN", _no_baseline("relative_throughput", "1.00", "1.00")),
        "an efficiency is relative to one device": (".E", _no_baseline("efficiency", "", "0.50", "0.95")),
        "an efficiency of two": ("EE", _no_baseline("efficiency", "", "0.40", "2")),
        "an efficiency above two": ("EE", _no_baseline("efficiency", "", "0.40", "2.5")),
        "two equal single devices": ("..E", _two_singles("100.0")),
        "two single devices that differ": ("NNN", _two_singles("101.0")),
        "common rounds, at the lower bound": (".", _of_rounds("1 2 3", "2 3 4", low=3.0, high=3.9)),
        "common rounds, at the upper bound": (".", _of_rounds("1 2 3", "2 3 4", low=2.0, high=3.0)),
        "common rounds, below the interval": ("E", _of_rounds("1 2 3", "2 3 4", low=3.1, high=3.9)),
        "common rounds, above the interval": ("E", _of_rounds("1 2 3", "2 3 4", low=2.0, high=2.9)),
        "common rounds without an interval": ("E", _of_rounds("1 2 3", "2 3 4")),
        "the same rounds": ("E", _of_rounds("1 2 3", "1 2 3", low=2.5, high=3.9)),
    },
    "roundings": {
        "rounded": (".", [*_VGG16, *_ROUNDED]),
        "both": ("N", [*_VGG16, *_CUT_OFF, *_ROUNDED]),
        "each table in its own way": (
            "..",
            [
                *(*_VGG16, *_CUT_OFF, throughput("16.74", table="other"), throughput("1019.29", 100, table="other")),
                ratio("efficiency", "60.89%", 100, table="other"),
            ],
        ),
    },
    "efficiency": {
        "right": (".", [*_SEVEN, ratio("efficiency", "87%", 8)]),
        **{f"wrong: {text}": ("E", [*_SEVEN, ratio("efficiency", text, 8)]) for text in ("0.7", "90%", "0.85")},
        "of a speedup that was cut off": (".", [*_SEVEN, ratio("efficiency", "0.887", 8)]),
        "more than any speedup that was cut off": ("E", [*_SEVEN, ratio("efficiency", "0.889", 8)]),
        "another baseline next to a wrong one": (
            "E",
            [
                *(throughput("50", table="other"), *_SEVEN, _ELSEWHERE),
                *(throughput("1500", 16), ratio("speedup", "15.0", 16), ratio("efficiency", "0.5", 16)),
            ],
        ),
        "an unknown number of devices": (
            "",
            [number("speedup", "7.0", None), number("efficiency", "0.5", None), throughput("700", None)],
        ),
    },
    "time_ratios": {
        "right": ("..", _timed("10.0", "5.1", "1.96")),
        "wrong": (".E", _timed("10.0", "2.6", "4.85")),
        "as much work on each device": ("..", _timed("10.0", "10.4", "1.92")),
        "of batches that do not grow": (".E", _timed("10.0", "10.4", "1.92", global_batch=64)),
        "of whole trainings": ("..", _timed("45", "10.54", "4.27", "duration_seconds")),
        "a published one": (".E", _timed("45.0", "10.54", "4.32", "duration_seconds")),
        "of trainings and not of steps": (
            "..",
            [
                *_timed("0.300", "0.330", "1.92"),
                *(number("duration_seconds", "100.0", 1), number("duration_seconds", "52.0", 2)),
            ],
        ),
        "with a throughput": ("", [*_SEVEN, number("step_seconds", "1.0", 1), number("step_seconds", "0.2", 8)]),
    },
}
