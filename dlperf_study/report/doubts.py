"""Where a complaint is shown, and how those of many runs become one line."""

import re
from collections.abc import Iterable

from dlperf_study.report.missing import EXCHANGE_COLUMNS

QUALITY = "quality"
#: What is wrong with a run and makes its throughput doubtful: on the page on quality, and wherever there are rates.
_OF_THE_RATE = ("cores", "drain_seconds")
#: The subjects of complaints that belong on a page; on that on quality belongs what has no other page.
TOPICS = {
    "scaling": {"throughput", "mean_of_rates", "baseline_throughput", "speedup", "efficiency", "mfu", *_OF_THE_RATE},
    "communication": {*EXCHANGE_COLUMNS, "computation_seconds", "step_seconds", "exchange"},
    "comparison": {"throughput", "relative_throughput", "computation_seconds", "exposed_seconds", *_OF_THE_RATE},
}
#: A number that measures something: no part of a name or version, no process, and no rank, which says who it was.
_NUMBER = re.compile(r"(?<![\w.-])(?<!rank )\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w:-]|\.\w)")


def belongs(subject: str, topic: str) -> bool:
    """Say whether complaints about a subject are shown on the page of a topic; every subject has a page."""
    if topic != QUALITY:
        return subject in TOPICS[topic]
    return subject in _OF_THE_RATE or not any(subject in subjects for subjects in TOPICS.values())


def without_numbers(message: str) -> str:
    """Return what messages have in common that differ only in what they measured."""
    return _NUMBER.sub("#", message)


def merged(messages: Iterable[str]) -> str:
    """Return messages that differ only in numbers as one, with the smallest and the largest of each number."""
    distinct = list(dict.fromkeys(messages))
    ranges = iter([_range(numbers) for numbers in zip(*map(_NUMBER.findall, distinct), strict=True)])
    return _NUMBER.sub(lambda _: next(ranges), distinct[0])


def one_each(messages: Iterable[str]) -> list[str]:
    """Return messages so that those that differ only in numbers are one."""
    alike: dict[str, list[str]] = {}
    for message in messages:
        alike.setdefault(without_numbers(message), []).append(message)
    return [merged(group) for group in alike.values()]


def _range(numbers: tuple[str, ...]) -> str:
    low, high = min(numbers, key=float), max(numbers, key=float)
    return low if float(low) == float(high) else f"{low} to {high}"
