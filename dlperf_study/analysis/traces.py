"""What the traced run of a configuration says: on what an exchange spends its time. Never part of a throughput."""

from dataclasses import dataclass, field

from dlperf_study.errors import EvidenceError
from dlperf_study.logs.complaint import Complaint, Severity
from dlperf_study.logs.evidence import TRAINING, read_run
from dlperf_study.logs.horovod_timeline import read_timeline
from dlperf_study.paths import RunPaths, StudyPaths
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.plan import Plan


@dataclass(frozen=True)
class Traces:
    """The columns of the traced configurations, by identity, and what is wrong with traces."""

    columns: dict[str, dict[str, float]] = field(default_factory=dict)
    complaints: list[Complaint] = field(default_factory=list)


def read_traces(plan: Plan, paths: StudyPaths) -> Traces:
    """Read the traced run of every configuration that asked for one and has begun it."""
    traces = Traces()
    for configuration in (entry.configuration for entry in plan.entries if entry.configuration.trace_steps):
        run_paths = paths.configuration(configuration.identity).trace(configuration.traced.identity)
        if not run_paths.folder.exists():
            continue
        try:
            traces.columns[configuration.identity] = _columns(configuration.traced, run_paths)
        except EvidenceError as error:
            traces.complaints.append(Complaint("trace", str(error), Severity.ERROR, configuration.identity))
    return traces


def _columns(traced: Configuration, paths: RunPaths) -> dict[str, float]:
    run = read_run(paths)
    slowest = run.slowest(TRAINING)
    if not slowest:
        raise EvidenceError(f"{paths.folder}: the traced run is no evidence: {run.outcome}: {run.reason}")
    timeline = read_timeline(paths.timeline, traced.warmup_steps, traced.measured_steps)
    return {
        "traced_step_seconds": slowest.mean_seconds,
        "negotiation_seconds": timeline.negotiation_seconds,
        "all_reduce_seconds": timeline.all_reduce_seconds,
    }
