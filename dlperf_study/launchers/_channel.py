"""A guard as its coordinator sees it: a process that reaches it, and a pipe each way."""

import subprocess
import tempfile
from contextlib import suppress

from dlperf_study.launchers._base import Place
from dlperf_study.launchers._messages import Inbox, Message, line
from dlperf_study.study.outcome import Outcome
from dlperf_study.study.words import last_line
from dlperf_study.supervision.endings import ending_words
from dlperf_study.supervision.processes import GUARD

#: How long a guard that was told to end, or whose pipe is closed, may take to go.
CLOSING_SECONDS = 10.0


class Channel:
    """The way to the guard of one node, opened at once. Always call ``close``: without it the guard goes on.

    Raises OSError when the command that reaches the node can't be started.
    """

    def __init__(self, node: int, place: Place, mark: str, module: str = GUARD) -> None:
        self.node, self.place = node, place
        self._mark = mark
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 closed by close
        try:
            self._process = self._start(place.argv("-m", module, mark))
        except OSError:
            self._errors.close()
            raise
        assert self._process.stdin
        assert self._process.stdout
        self._outbox = self._process.stdin
        self.inbox = Inbox(self._process.stdout.fileno(), mark)

    def _start(self, argv: tuple[str, ...]) -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=self._errors, start_new_session=True)

    def say(self, kind: str, **values: object) -> None:
        """Tell the guard something; that one has gone is seen where it is listened to."""
        with suppress(OSError):
            self._outbox.write(line(self._mark, kind, dict(values)))
            self._outbox.flush()

    def of(self, reason: str, task: str = "") -> str:
        """Return what happened on this node in words; where there is only this machine, it needs no name."""
        where = f" on {self.place.name}" if self.place.name else ""
        return f"{task}{where} {reason}" if task else f"{self.place.name}: {reason}" if where else reason

    def loss(self) -> Message:
        """Return why nothing more comes from the guard, as a message."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSING_SECONDS)
        code = self._process.poll()
        ending = ending_words(code) if code is not None else "fell silent"
        words = f"{ending}: {last}" if (last := self._last_words()) else ending
        outcome = Outcome.KILLED if code is not None and code < 0 else Outcome.FAILED
        who = f"was lost, its {self.place.reach[0]}" if self.place.reach else "the guard of the run"
        return {"kind": "gone", "outcome": outcome, "reason": f"{who} {words}"}

    def close(self) -> None:
        """Let go of the guard, and wait until it has gone."""
        with suppress(OSError):
            self._outbox.close()
        try:
            self._process.wait(CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()
        self._errors.close()

    def _last_words(self) -> str:
        """Return the last line the guard, or what reaches it, said outside of the conversation."""
        self._errors.seek(0)
        return last_line(self._errors.read().decode(errors="replace"))
