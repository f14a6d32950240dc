"""Measuring a study once more: what is there becomes an earlier measurement, which pages and commands compare with."""

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.execution.gate import study_lock
from dlperf_study.paths import StudyPaths
from dlperf_study.plan.plan import Plan
from dlperf_study.writing import naming, write_atomically


def put_aside(plan: Plan, cluster: Cluster) -> StudyPaths | None:
    """Make what was measured of a study an earlier measurement, with its tables and pages; return its paths.

    None if nothing was measured. The evidence moves at once, after its plan was copied: whenever this is ended, the
    evidence is complete in one of the two places.

    Raises:
        BusyError: another study measures on this machine, or another driver runs this study.

    """
    paths = StudyPaths.of(plan.study)
    with study_lock(plan.study, cluster):
        if not (paths.configurations.exists() and paths.plan_file.exists()):
            return None
        earlier = StudyPaths(paths.next_earlier())
        earlier.folder.mkdir(parents=True)
        write_atomically(earlier.plan_file, paths.plan_file.read_text(encoding="utf-8"))
        with naming(earlier.folder):
            paths.configurations.rename(earlier.configurations)
            for made in (paths.dataset, paths.report, paths.tables, paths.figures):
                if made.exists():
                    made.rename(earlier.folder / made.name)
    return earlier
