"""What NCCL chose for each configuration, from an unmeasured run before those that count."""

from dataclasses import dataclass, field
from typing import Any

from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.errors import EvidenceError
from dlperf_study.evidence.nccl_report import NcclReport, link_contradictions, read_nccl_report
from dlperf_study.evidence.run import read_run
from dlperf_study.paths import RunPaths, StudyPaths
from dlperf_study.plan.plan import Plan

#: How many orders of ranks are named; the unnamed are counted.
NAMED_RINGS = 2


@dataclass(frozen=True)
class NcclReports:
    """The columns on NCCL, by identity, and where it contradicts the cluster file."""

    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def read_nccl_reports(plan: Plan, paths: StudyPaths) -> NcclReports:
    """Read the report of every configuration that has one: those of several GPUs that average gradients."""
    reports = NcclReports()
    for entry in plan.entries:
        configuration = entry.configuration
        run_paths = paths.configuration(configuration.identity).nccl_report(configuration.reported.identity)
        if run_paths.folder.exists():
            _read_report(configuration.identity, run_paths, reports)
    return reports


def _read_report(identity: str, paths: RunPaths, reports: NcclReports) -> None:
    """Add the columns of one report, or the diagnostic why there are none."""
    try:
        run = read_run(paths)
        report = read_nccl_report(paths)
    except EvidenceError as error:
        reports.diagnostics.append(Diagnostic("nccl_transports", str(error), Severity.WARNING, identity))
        return
    reports.columns[identity] = _columns(report)
    for message in link_contradictions(report, run.facts["cluster"]["link"], run.configuration.nodes):
        reports.diagnostics.append(Diagnostic("nccl_transports", message, identity=identity))


def _columns(report: NcclReport) -> dict[str, Any]:
    connections = [f"{transport} ({pairs})" for transport, pairs in report.connections.items()]
    named = [order.replace(" ", "→") for order in report.rings[:NAMED_RINGS]]
    unnamed = len(report.rings) - len(named)
    network = f"{report.network}: {', '.join(report.cards)}" if report.cards else report.network
    return {
        "nccl_transports": ", ".join(connections) or None,
        "nccl_path": report.path or None,
        "nccl_network": network or None,
        "nccl_channels": report.channels or None,
        "nccl_rings": "; ".join([*named, *([f"{unnamed} more"] if unnamed else [])]) or None,
        "nccl_trees": report.trees or None,
    }
