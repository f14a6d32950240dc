"""Commands that measure: plan, run, study."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dlperf_study.commands.output import print_aside, print_json, print_line
from dlperf_study.commands.reading import report
from dlperf_study.errors import UnsupportedError
from dlperf_study.paths import StudyPaths
from dlperf_study.study.grid import DENOMINATORS

if TYPE_CHECKING:
    from dlperf_study.plan.plan import Plan


def plan(options: argparse.Namespace) -> int:
    """Print the configurations of a study, how long they take, and those that can't run here, each with its reason."""
    from dlperf_study.execution.batch_trials import batch_searches
    from dlperf_study.execution.driver import make_plan
    from dlperf_study.execution.pending import out_of_memory_reasons, unmeasured_runs
    from dlperf_study.execution.progress import earlier_run_seconds
    from dlperf_study.plan.description import describe

    planned, cluster = make_plan(options.study, options.cluster, options.quick)
    not_fitting = out_of_memory_reasons(planned, cluster)
    searches = batch_searches(planned, cluster)
    if options.json:
        print_json(_plan_content(planned, not_fitting, earlier_run_seconds(planned)))
    else:
        unmeasured = unmeasured_runs(planned, cluster)
        print_line(describe(planned, earlier_run_seconds(planned), not_fitting, searches, unmeasured, options.all))
    return 0


def _plan_content(planned: "Plan", not_fitting: Mapping[str, str], run_seconds: Mapping[str, float]) -> dict[str, Any]:
    """Return the plan with a mapping for each configuration, also of those that can't run here."""
    configurations = []
    for entry in planned.entries:
        identity = entry.configuration.identity
        references: dict[str, str | None] = {kind: entry.denominator(kind) for kind in DENOMINATORS}
        obstacle = entry.unsupported or not_fitting.get(identity)
        measured = {"repeats": entry.configuration.repeats, "earlier_run_seconds": run_seconds.get(identity)}
        configurations.append(
            {"identity": identity, "why_not": obstacle, **references, **measured, "parameters": entry.parameters}
        )
    head = {name: getattr(planned, name) for name in ("study", "cluster", "title", "scaling", "quick", "factors")}
    return {**head, "configurations": configurations}


def run(options: argparse.Namespace) -> int:
    """Measure what is not measured yet."""
    code, _ = _measure(options)
    return code


def _measure(options: argparse.Namespace, again: bool = False) -> tuple[int, str]:
    """Measure what is not measured yet, or ``again`` all; return the exit code, and the name of the study."""
    from dlperf_study.execution.driver import make_plan, run_study
    from dlperf_study.wording import counted

    planned, cluster = make_plan(options.study, options.cluster, options.quick)
    configurations = counted(len(planned.runnable), "configuration")
    print_line(f"study {planned.study}: {configurations}, {len(planned.unsupported)} unsupported here")
    if planned.why_not_gpu:
        print_line(f"note: {planned.why_not_gpu}")
    if not planned.runnable:
        raise UnsupportedError(f"nothing of study {planned.study} can run on cluster {cluster.name}; `plan` says why")
    if again:
        from dlperf_study.execution.anew import put_aside

        earlier = put_aside(planned, cluster)
        print_line(f"kept as an earlier measurement: {earlier.folder}" if earlier else "nothing was measured before")
    if planned.precision is None:
        result = run_study(planned, cluster, print_line)
    else:
        from dlperf_study.dataset.precision import configurations_too_wide

        result = run_study(planned, cluster, print_line, configurations_too_wide)
    if not result.measured and not result.failures:
        print_line(f"nothing to do: {counted(result.already_measured, 'run')}, all measured already")
    for identity, reason in result.out_of_memory.items():
        print_line(f"does not fit in memory: {identity}: {reason}")
    for failure in result.failures:
        print_aside(f"failed: {failure}")
    return 1 if result.failures else 0, planned.study


def study(options: argparse.Namespace) -> int:
    """Measure what is missing, then build the report, also after failed runs: these make the exit code 1."""
    from dlperf_study.report.report_inputs import is_current

    code, name = _measure(options, options.again)
    paths = StudyPaths.of(name)
    if is_current(paths):
        print_line(f"report: {paths.report_page}, built before from the same evidence; `report` builds it again")
    else:
        report(options)
    return code
