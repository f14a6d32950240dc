"""How far a study is, and how long the rest will take."""

import time
from collections.abc import Callable, Mapping

from dlperf_study.study.words import counted


class Progress:
    """Says each step with the time left, estimated from the runs done so far.

    Configurations go by name; several may be on their way at once. What is said of one has its name in front,
    unless it stands right below the line with which that one started.
    """

    def __init__(self, runs: Mapping[str, int], say: Callable[[str], None]) -> None:
        self._left = dict(runs)
        self._total = len(runs)
        self._started = self._done = 0
        self._spoken_of = ""
        self._say = say
        self._start = time.monotonic()

    def starts(self, name: str) -> None:
        """Say that a configuration starts."""
        self._started += 1
        self._spoken_of = name
        self._say(f"[{self._started}/{self._total}] {name}: {counted(self._left[name], 'run')} …")

    def says(self, name: str, words: str) -> None:
        """Say what is new of a configuration that has started."""
        self._say("    " + (words if name == self._spoken_of else f"{name}: {words}"))
        self._spoken_of = name

    def ended(self, name: str, verdict: str) -> None:
        """Say how a configuration ended, and the time left."""
        self._done += self._left.pop(name)
        elapsed = time.monotonic() - self._start
        left = elapsed / self._done * sum(self._left.values())
        self.says(name, f"{verdict} ({_clock(elapsed)} elapsed, about {_clock(left)} left)")


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
