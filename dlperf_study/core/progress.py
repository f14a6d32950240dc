"""How far a command is that takes more than a few seconds, and how long the rest takes."""

import time
from collections.abc import Callable

from dlperf_study.core.wording import duration

#: A line at most each so many seconds.
PROGRESS_SECONDS = 4.0
#: What prints a line.
Say = Callable[[str], object]


def say_nothing(line: str) -> None:
    """Print no line: what calls has no reader."""


class Progress:
    """Prints every few seconds how many parts are done.

    ``doing`` begins each line, ``part`` is what one of ``parts`` is called: ``building the report: page 3 of 12``.
    ``at_once``: how many parts are under way together; when one is done, the others nearly are.
    """

    def __init__(self, doing: str, part: str, parts: int, say: Say, at_once: int = 1) -> None:
        self._doing, self._part, self._parts, self._say = doing, part, parts, say
        self._others = at_once - 1
        self._done = 0
        self._start = self._last_line = time.monotonic()

    def end(self, name: str = "") -> None:
        """Count a part that is done."""
        self._done += 1
        now, left = time.monotonic(), self._parts - self._done
        if left and now - self._last_line >= PROGRESS_SECONDS:
            self._last_line = now
            seconds = (now - self._start) / (self._done + self._others) * left
            part = f"{self._part} {self._done} of {self._parts}"
            if name:
                part += f" ({name})"
            self._say(f"{self._doing}: {part}, about {duration(seconds)} left")
