"""One run, read from its evidence as ``docs/files.md`` describes it: ``run.json`` and one log per rank."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlperf_study.core.errors import Diagnostic, DlperfStudyError, RecordError
from dlperf_study.core.paths import RunPaths
from dlperf_study.records import run_file
from dlperf_study.records.lines import TRAINING
from dlperf_study.records.telemetry import NodeTelemetry, read_telemetry
from dlperf_study.study import renamed, validation
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import INTERLEAVED, RunStatus

if TYPE_CHECKING:
    from dlperf_study.core.arrays import Floats
    from dlperf_study.records import rank_log

#: A node may be waited for so long after its node agent began.
MAX_APART_SECONDS = 86_400
#: What makes a node faster or slower, so that it must be equal on all nodes.
SPEED_FACTS = ("cpu_model", "cores", "cpu_governor", "gpu_names", "gpu_driver")


@dataclass(frozen=True, eq=False)
class Run:
    """One repetition; it has ``ranks`` if all their logs are complete.

    ``telemetry`` is of the nodes that have some, in order; a run counts without.
    """

    configuration: Configuration
    configuration_id: str
    repetition: int
    status: RunStatus
    reason: str
    facts: run_file.RunRecord
    ranks: "tuple[rank_log.RankLog, ...]"
    diagnostics: tuple[Diagnostic, ...]
    telemetry: tuple[NodeTelemetry, ...] = ()

    @property
    def completed(self) -> bool:
        """Whether it may be counted."""
        return self.status is RunStatus.COMPLETED

    @property
    def steps_requested(self) -> Configuration:
        """Its configuration with the steps of this run."""
        return self.configuration.for_run(self.repetition)

    def windows(self, name: str) -> "list[rank_log.Window]":
        """Return the window of that name of every rank, in order."""
        return [log.windows[name] for log in self.ranks if name in log.windows]

    def step_seconds(self, name: str) -> "list[Floats]":
        """Return the seconds of the steps of these windows."""
        return [window.step_seconds for window in self.windows(name)]

    def slowest(self, name: str) -> "rank_log.Window | None":
        """Return the longest window of that name, or None."""
        return max(self.windows(name), key=lambda window: window.seconds, default=None)


def read_run(paths: RunPaths) -> Run:
    """Read one repetition.

    A run whose record says that it completed, but whose rank logs are incomplete or contradict it, is returned as
    failed, with that as reason.
    Raises RecordError where ``run.json`` is missing, unreadable, or belongs to a different run.
    """
    with unexpected_as_record_error(paths):
        return _read_run(paths)


@contextmanager
def unexpected_as_record_error(paths: RunPaths) -> Iterator[None]:
    """Let an exception that nobody expected concern this run alone: the others are reported without it."""
    try:
        yield
    except (DlperfStudyError, MemoryError):
        raise
    except Exception as error:
        innermost = error.__traceback__
        while innermost and innermost.tb_next:
            innermost = innermost.tb_next
        assert innermost, "an exception that was raised has one"
        file = Path(innermost.tb_frame.f_code.co_filename).name
        cause = f"{type(error).__name__}: {error}, in line {innermost.tb_lineno} of {file}"
        raise RecordError(f"{paths.folder}: can't be read because of an unexpected error ({cause})") from error


def _read_run(paths: RunPaths) -> Run:
    run = assemble_run(run_facts(paths.run_file), paths)
    telemetry, diagnostics = [], list(run.diagnostics)
    for node in range(len(run.facts["nodes"])):
        path = paths.telemetry(node)
        # The ranks say when a window began since there is telemetry; a run that failed may have none.
        is_expected = any(log.windows[TRAINING].begin_ns is not None for log in run.ranks)
        try:
            if path.exists() or is_expected:
                telemetry.append(_checked_telemetry(read_telemetry(path), run, path))
        except RecordError as error:
            diagnostics.append(Diagnostic("telemetry", f"the resources of the run are not reported: {error}"))
    return replace(run, telemetry=tuple(telemetry), diagnostics=tuple(diagnostics))


def _checked_telemetry(telemetry: NodeTelemetry, run: Run, path: Path) -> NodeTelemetry:
    """Return the telemetry of a node; raises RecordError where it is of another host or time."""
    began_ns = telemetry.facts["wall_anchor"]["unix_ns"]
    allowed_ns = (MAX_APART_SECONDS + (run.facts["seconds"] or 0.0)) * 10**9
    for log in run.ranks:
        host = log.facts["host"]
        if log.facts["node"] == telemetry.node and not log.is_of_program and host != telemetry.facts["host"]:
            raise RecordError(f"{path}: is of {telemetry.facts['host']}, but rank {log.rank} ran on {host}")
        if abs(began_ns - log.facts["wall_anchor"]["unix_ns"]) > allowed_ns:
            raise RecordError(f"{path}: was sampled at another time than its run")
    return telemetry


def assemble_run(facts: run_file.RunRecord, paths: RunPaths) -> Run:
    """Return the repetition that has this record; the rest as ``read_run``."""
    # numpy, which a plan without runs does not need.
    from dlperf_study.records import rank_agreement

    configuration = _configuration(facts, paths)
    status, reason = facts["status"], facts["reason"]
    ranks: list[rank_log.RankLog] = []
    if status is RunStatus.COMPLETED:
        ranks, problem = rank_agreement.complete_logs(paths, configuration.world_size)
        reason = "; ".join(run_file.changed_files(facts, paths))
        reason = f"{paths.folder}: {reason}" if reason else problem
        reason = reason or rank_agreement.contradiction(ranks, facts, configuration, paths)
        if reason:
            status, ranks = RunStatus.FAILED, []
    configuration_id, repetition = facts["configuration_id"], facts["repetition"]
    recorded = [Diagnostic(diagnostic["subject"], diagnostic["message"]) for diagnostic in facts["diagnostics"]]
    # What the nodes of the record tell may be recorded too.
    messages = (*_other_first_node(facts), *different_nodes(facts["nodes"]))
    for message in messages:
        recorded.append(Diagnostic("nodes", message))
    diagnostics = tuple(dict.fromkeys((*recorded, *rank_agreement.program_diagnostics(ranks))))
    return Run(configuration, configuration_id, repetition, status, reason, facts, tuple(ranks), diagnostics)


def _other_first_node(facts: run_file.RunRecord) -> Iterator[str]:
    """Yield where environment and first node have different hardware."""
    for node in facts["nodes"][:1]:
        for name in SPEED_FACTS:
            value, reported = facts["environment"]["hardware"].get(name), node.get("hardware", {}).get(name)
            if "hardware" in node and value != reported:
                yield f"{name} is {value} in environment, but {reported} in nodes[0]: run.json was changed"


def different_nodes(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return how nodes differ from the first."""
    messages = []
    for node in nodes[1:]:
        for name in SPEED_FACTS:
            value, first_value = node.get("hardware", {}).get(name), nodes[0].get("hardware", {}).get(name)
            if value != first_value:
                messages.append(f"{name} is {value} on {node['name']}, but {first_value} on {nodes[0]['name']}")
    return messages


def _configuration(facts: run_file.RunRecord, paths: RunPaths) -> Configuration:
    """Return the configuration, which must be the one whose folder this is."""
    configuration = Configuration.from_record(facts["configuration"], f"{paths.run_file}: configuration")
    configuration_id, repetition = facts["configuration_id"], str(facts["repetition"])
    folder_identity, folder_repetition = paths.folder.parents[1].name, paths.folder.name
    if (configuration_id, repetition) != (folder_identity, folder_repetition):
        folder = f"the folder of run {folder_repetition} of {folder_identity}"
        raise RecordError(f"{paths.run_file}: is run {repetition} of {configuration_id}, in {folder}")
    if configuration.configuration_id != configuration_id:
        raise RecordError(
            f"{paths.run_file}: is of {configuration_id}, but its parameters make it {configuration.configuration_id}"
        )
    return configuration


def run_facts(path: Path) -> run_file.RunRecord:
    """Return the record of a run; raises RecordError if invalid."""
    source = str(path)
    content = validation.parse_object(validation.read_text_file(path), source)
    facts = validation.validate_record(run_file.RUN_RECORD, renamed.rename_run(content), source)
    run_file.check_digest(content, source)
    order, round_number, position = facts["order"], facts["round"], facts["position"]
    is_in_round, has_position = round_number is not None, position is not None
    if is_in_round != has_position or (is_in_round and order != INTERLEAVED):
        raise RecordError(f"{source}: order is {order!r}, but round is {round_number} and position {position}")
    if facts["started"] is None and facts["status"] is RunStatus.COMPLETED:
        raise RecordError(f"{source}: started is null, but the run completed")
    return facts


@dataclass(frozen=True)
class RunProcesses:
    """The name of a run, and its ranks' processes."""

    name: str
    processes: Mapping[int, tuple[str, int, int]]

    @classmethod
    def of(cls, run: Run) -> "RunProcesses":
        """Return those of a run."""
        return cls(f"run {run.repetition} of {run.configuration_id}", {log.rank: log.process for log in run.ranks})


class DuplicateRuns:
    """Finds runs whose logs were copied: no process measures two runs."""

    def __init__(self) -> None:
        # Names alone: a run itself may be large.
        self._runs: dict[tuple[str, int, int], str] = {}

    def copied(self, run: RunProcesses) -> str:
        """Return the earlier run of which a run is a copy."""
        for rank, process in run.processes.items():
            if earlier_run := self._runs.get(process):
                host, pid, _ = process
                same = f"rank {rank} is the same process (pid {pid} on {host}, begun in the same nanosecond)"
                return f"its {same} as in {earlier_run}: a copy is not a repetition"
        self._runs |= dict.fromkeys(run.processes.values(), run.name)
        return ""

    def checked(self, run: Run) -> Run:
        """Return the run, as failed if it is a copy."""
        if reason := self.copied(RunProcesses.of(run)):
            return copied_run(run, reason)
        return run


def copied_run(run: Run, reason: str) -> Run:
    """Return a run whose logs were copied as failed."""
    return replace(run, status=RunStatus.FAILED, reason=reason, ranks=())
