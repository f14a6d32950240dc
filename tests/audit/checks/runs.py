"""Tables for the checks of repetitions, and what each examines: see ``test_checks.py``."""

from tests.audit.tables import Cases, Row, number, runs, throughput

_LIST = ["397.44", "397.64", "398.05", "398.98", "397.78"]
_OF_ONE = {"estimator": "run", "runs_of": "table/throughput/1"}
_THREE = [throughput("100.4"), *runs(["100.1", "101.3", "99.8"])]


def _deviation(printed: str) -> Row:
    return number("standard_deviation", printed, runs_of="table/throughput/1")


CASES: Cases = {
    "run_lists": {
        "the median": ("..", [throughput("397.78"), *runs(_LIST)]),
        "an even list, cut off": ("..", [throughput("1.01"), *runs(["1.01", "1.02"])]),
        "an even list, rounded": ("..", [throughput("1.02"), *runs(["1.01", "1.02"])]),
        "the mean, as the source says": ("..", [throughput("397.98", estimator="mean"), *runs(_LIST)]),
        "the mean, unsaid": ("E.", [throughput("397.98"), *runs(_LIST)]),
        "the median without a run": ("E.", [throughput("397.71"), *runs(_LIST)]),
        "from nowhere": ("E.", [throughput("400.00"), *runs(_LIST)]),
        "a run twice": (
            ".W",
            [throughput("2.0"), *runs(["1.0", "2.0"]), throughput("3.0", cell="again", repetition=2, **_OF_ONE)],
        ),
        "fewer than stated": (".W", [throughput("397.78", runs=7), *runs(_LIST)]),
        "of the same configuration": (
            "..E.",
            [throughput("397.78"), throughput("400.00", table="again"), *runs(_LIST)],
        ),
        "one of three left out": ("E.", [throughput("4.5"), *runs(["1.0", "2.0", "8.0"])]),
        "none of two is left out": ("E.", [throughput("1.00"), *runs(["1.0", "2.0"])]),
    },
    "deviations": {
        **{f"right: {text}": (".", [*_THREE, _deviation(text)]) for text in ("0.8", "0.79", "0.65", "0.6")},
        "of two runs": (".", [throughput("100.2"), *runs(["100.1", "100.3"]), _deviation("0.14")]),
        "further than runs are rounded": ("E", [*_THREE, _deviation("0.88")]),
        "of one run": ("", [throughput("100.4"), *runs(["100.1"]), _deviation("1.2")]),
    },
    "interval": {
        "within what was rounded": (".", [throughput("395.0", low=395.04, high=395.2)]),
        "of no width": (".", [throughput("395.0", low=395, high=395)]),
        "above": ("E", [throughput("100.0", low=50, high=99)]),
        "bounds in the wrong order": ("E", [throughput("200.0", low=210, high=190)]),
        "none, or half of one": ("", [throughput("200.0", low=190), throughput("200.0", 2)]),
    },
}
