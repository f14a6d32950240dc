"""Tables for the checks along curves, and what each examines: see ``test_checks.py``."""

from tests.audit.tables import Cases, Row, curve, moved, number, runs, throughput

_CERTAIN = [throughput("887.17"), throughput("3598.0", 4)]
_PAIR = [*runs(["676", "680", "684"], 4), *runs(["664", "668", "672"], 8), throughput("680", 4), throughput("668", 8)]
_FALL = [throughput("680", 4), throughput("648", 8)]


def _twice(one: str, other: str, **changes: object) -> list[Row]:
    return [throughput(one, 8, table="one", nodes=2), throughput(other, 8, table="other", nodes=2) | changes]


def _on_nodes(*throughputs: str) -> list[Row]:
    """Return a curve on nodes of eight devices."""
    return [row | {"nodes": max(1, row["world_size"] // 8)} for row in curve(*throughputs)]


_OF_SAME_DEVICES = [throughput(text, 2, cell=text, table="a", series="a") for text in ("100", "101")]
_SPEEDUPS = [number("speedup", "1", devices, table="b", series="b") for devices in (1, 2)]

CASES: Cases = {
    "above_linear": {
        "what rounding explains": (".", [throughput("1"), throughput("3", 2)]),
        "beyond the spread of the runs": (
            "W",
            [
                *(throughput("2545.3", 8), throughput("5953.84", 16)),
                *runs(["2545.1", "2545.3", "2546.0"], 8),
                *runs(["5953.0", "5953.84", "5955.0"], 16),
            ],
        ),
        "without runs": ("N", _CERTAIN),
        "an interval is as good as runs": (
            "W",
            [throughput("887.17", low=887.0, high=887.3), throughput("3598.0", 4, low=3597.0, high=3599.0)],
        ),
        "another series": ("", [throughput("100"), throughput("900", 2, table="other")]),
        "a mean next to a median": (
            "N",
            [
                throughput(text, devices, estimator=estimator, cell=f"{estimator}/{devices}")
                for estimator in ("median", "mean")
                for text, devices in (("100", 1), ("300", 2))
            ],
        ),
        "almost twice linear": ("N", [throughput("100.0"), throughput("390.0", 2)]),
        "just above twice linear": ("E", [throughput("100.0"), throughput("410.0", 2)]),
    },
    "falling": {
        "whose rounding meets": (".", [throughput("10", 4), throughput("9", 8)]),
        "without runs": ("N", [throughput("680", 8), throughput("648", 16)]),
        "to less than half": ("W", [throughput("9000", 2), throughput("3", 4)]),
        "within the intervals of runs": (
            "N",
            [*_FALL, *runs(["600", "680", "700"], 4), *runs(["590", "648", "690"], 8)],
        ),
        "beyond the intervals of runs": (
            "W",
            [*_FALL, *runs(["679", "680", "681"], 4), *runs(["647", "648", "649"], 8)],
        ),
        "alone": ("W", _PAIR),
        "one of nine, which are judged together": (
            "N" * 9,
            [row for copy in range(9) for row in moved(_PAIR, f"t{copy}")],
        ),
    },
    "scopes": {
        "a point multiplied by its devices": ("...W", curve("100", "195", "385", "6080")),
        "a point of one node": ("....W", _on_nodes("100", "195", "385", "760", "750")),
        "the last point falls": ("...", curve("100", "99", "60")),
        "a point that the curve contradicts": (".W.", curve("100", "100", "390")),
        "two points are not flat": (".W", curve("100", "99")),
        "a flat curve and another one": (
            "W...W",
            [*moved(curve("100", "99", "98"), "flat"), *curve("100", "195", "385", "95")],
        ),
        "3 per cent above": ("W", curve("100", "103", "101")),
        "15 per cent below": ("W", curve("100", "99", "85")),
        "3 per cent below a corrected point": (".W.", curve("100", "100", "194")),
        "a point of a device of its node": ("....W", _on_nodes("100", "195", "385", "760", "187")),
        "devices of unknown nodes": ("....", curve("100", "195", "385", "380")),
        "no curve of throughputs": ("", [*_OF_SAME_DEVICES, *_SPEEDUPS]),
        "two throughputs of as many devices at first": (
            "...",
            [throughput("100"), throughput("101", cell="again"), throughput("195", 2)],
        ),
    },
    "disagreements": {
        "fewer digits, rounded": (".", _twice("352.72", "353")),
        "3 per cent apart": ("N", _twice("100.0", "103.0")),
        "the factor of the nodes": ("W", _twice("352.72", "705.44")),
        "of two factors that of the devices": (
            "W",
            [throughput(text, 101, table=table, nodes=100) for text, table in (("100.0", "a"), ("10050.0", "b"))],
        ),
        "one device is no factor": ("N", [throughput("100.0", table="one"), throughput("100.9", table="other")]),
        "another condition": ("", _twice("352.72", "400.00", mode="replicated")),
        "a mean and a median": ("", _twice("352.72", "353.1", estimator="mean")),
        "twice with other digits": ("N", [throughput("352.72", 8), throughput("352.7", 8, cell="again")]),
        "two numbers in one table": ("W", [throughput("352.72", 8), throughput("400.00", 8, cell="again")]),
    },
}
