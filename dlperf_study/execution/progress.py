"""How far a study is, and how long the rest will take."""

import time
from collections.abc import Callable, Sequence


class Progress:
    """Says each step with the time left, estimated from the runs done so far."""

    def __init__(self, runs: Sequence[int], say: Callable[[str], None]) -> None:
        self._runs = list(runs)
        self._done = 0
        self._say = say
        self._start = time.monotonic()

    def starts(self, what: str) -> None:
        """Say that the next configuration starts."""
        self._say(f"[{self._done + 1}/{len(self._runs)}] {what}: {_runs(self._runs[self._done])} …")

    def ended(self, verdict: str) -> None:
        """Say how it ended, and the time left."""
        self._done += 1
        elapsed = time.monotonic() - self._start
        left = elapsed / sum(self._runs[: self._done]) * sum(self._runs[self._done :])
        self._say(f"    {verdict} ({_clock(elapsed)} elapsed, about {_clock(left)} left)")


def _runs(count: int) -> str:
    return f"{count} run{'s' * (count != 1)}"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
