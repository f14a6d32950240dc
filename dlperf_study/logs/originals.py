"""No process measures two runs: a repetition whose log was written by a process of another run is its copy."""

from dataclasses import replace

from dlperf_study.logs.evidence import Run
from dlperf_study.logs.rank_log import RankLog
from dlperf_study.study.outcome import Outcome


class Originals:
    """The processes of the runs seen so far."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int, int], Run] = {}

    def checked(self, run: Run) -> Run:
        """Return a run, as failed when it is a copy of an earlier one; so copies are not counted."""
        copied = next((log for log in run.ranks if log.process in self._runs), None)
        if copied:
            return replace(run, outcome=Outcome.FAILED, reason=self._reason(copied), ranks=())
        self._runs |= {log.process: run for log in run.ranks}
        return run

    def _reason(self, log: RankLog) -> str:
        host, pid, _ = log.process
        other = self._runs[log.process]
        said = f"rank {log.rank} is the same process (pid {pid} on {host}, begun in the same nanosecond)"
        return f"its {said} as in run {other.repetition} of {other.identity}: a copy is no repetition"
