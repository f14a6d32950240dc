"""The studies of the self-test, measured one after another: many pairs, an exchange over a known link, a straggler."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from dlperf_study.errors import UnsupportedError
from dlperf_study.execution.driver import Say, cluster_for, plan_study, run_study
from dlperf_study.execution.gate import machine_lock
from dlperf_study.execution.shaped_link import link_obstacle, run_on_shaped_link
from dlperf_study.paths import SELFTEST, StudyPaths
from dlperf_study.plan.plan import Plan
from dlperf_study.study.strict_yaml import PARAMS
from dlperf_study.study.study import Study
from dlperf_study.study.study_file import load_study
from dlperf_study.supervision.locks import lock
from dlperf_study.writing import write_atomically

#: How many pairs are measured, and how many in the short form.
PAIRS, QUICK_PAIRS = 20, 3


@dataclass
class MeasuredStudies:
    """The names of the studies that a self-test measured, and why it could not measure the others, by name."""

    pairs: list[str]
    straggler: str
    link: str
    obstacles: dict[str, str] = field(default_factory=dict)

    def measure(self, study: str, obstacle: str, measurement: Callable[[], object]) -> None:
        """Do the measurement of a study, or note what is in its way."""
        if obstacle:
            self.obstacles[study] = obstacle
        else:
            measurement()


def measure_studies(pairs: int, quick: bool, cluster_name: str, say: Say) -> MeasuredStudies:
    """Measure the studies of the self-test on this machine, as any other study; continue what was interrupted.

    What an earlier self-test measured is kept aside. Nothing of it is touched when one of these is raised before the
    first run.

    Raises:
        BusyError: another self-test or another study measures on this machine.
        UnsupportedError: not even the pairs can be measured here.

    """
    with lock(StudyPaths.of(SELFTEST).lock, "running the self-test", "would put each other's evidence aside"):
        return _measure(pairs, quick, cluster_name, say)


def end_measurement() -> None:
    """Note that the self-test is complete: the next one measures everything anew."""
    StudyPaths.of(SELFTEST).selftest_unfinished.unlink(missing_ok=True)


def pair_studies(pairs: int, quick: bool) -> list[Study]:
    """Return the study of pairs as many times, each with a name and an order of its own, and with one slowdown."""
    study = _study("pairs", quick)
    slowdowns = [value for value in study.factors["planted_slowdown"] if value]
    studies = []
    for number in range(1, pairs + 1):
        left_out = [value for value in slowdowns if value != slowdowns[number % len(slowdowns)]]
        exclude = (*study.exclude, {"planted_slowdown": left_out}) if left_out else study.exclude
        studies.append(replace(study, name=f"{study.name}_{number:02d}", exclude=exclude, order_seed=number))
    return studies


def _measure(pairs: int, quick: bool, cluster_name: str, say: Say) -> MeasuredStudies:
    studies, straggler, link = pair_studies(pairs, quick), _study("straggler", quick), _study("link", quick)
    cluster = cluster_for([*studies, straggler, link], cluster_name)
    plans = {study.name: plan_study(study, cluster) for study in (*studies, straggler, link)}
    measured = MeasuredStudies([study.name for study in studies], straggler.name, link.name)
    for name in measured.pairs:
        if obstacle := _obstacle(plans[name]):
            raise UnsupportedError(f"the self-test can't run here: {obstacle}")
    # Whoever measures on this machine would refuse the first run: then there is no new evidence to make room for.
    with machine_lock("the self-test"):
        _begin(pairs, quick)
    progress = _Parts(plans, say)
    for number, name in enumerate(measured.pairs, start=1):
        progress.begin(name, f"pair {number} of {pairs}")
        run_study(plans[name], cluster, say)
    progress.begin(straggler.name, "a straggler")
    over_loopback = partial(run_study, plans[straggler.name], cluster, say)
    measured.measure(straggler.name, _obstacle(plans[straggler.name]), over_loopback)
    progress.begin(link.name, "an exchange over a link of known rate")
    over_link = partial(run_on_shaped_link, study_file("link"), cluster_name, quick)
    measured.measure(link.name, link_obstacle() or _obstacle(plans[link.name]), over_link)
    return measured


def _study(name: str, quick: bool) -> Study:
    return load_study(study_file(name), quick)


def study_file(name: str) -> str:
    """Return the path of one of its study files: ``pairs``, ``straggler`` or ``link``."""
    return str(PARAMS / SELFTEST / f"{SELFTEST}_{name}.yaml")


def _begin(pairs: int, quick: bool) -> None:
    """Put the evidence of the last self-test aside, unless it was interrupted and measured the same."""
    paths, form = StudyPaths.of(SELFTEST), json.dumps({"pairs": pairs, "quick": quick})
    unfinished = paths.selftest_unfinished
    if unfinished.exists() and unfinished.read_text(encoding="utf-8") == form:
        return
    earlier = paths.next_earlier()
    for folder in sorted(paths.folder.glob(f"{SELFTEST}_*")):
        earlier.mkdir(parents=True, exist_ok=True)
        folder.rename(earlier / folder.name)
    write_atomically(unfinished, form)


def _obstacle(plan: Plan) -> str:
    """Return why a study can't be measured on this machine, or nothing."""
    return str(plan.unsupported[0].unsupported) if plan.unsupported else ""


class _Parts:
    """Prints which study of the self-test begins, and the time left, estimated from the runs done so far."""

    def __init__(self, plans: Mapping[str, Plan], say: Say) -> None:
        self._runs = {}
        for name, plan in plans.items():
            self._runs[name] = sum(entry.configuration.repeats for entry in plan.runnable)
        self._total, self._begun = len(plans), list[str]()
        self._say = say
        self._start = time.monotonic()

    def begin(self, name: str, title: str) -> None:
        """Print that a study begins."""
        minutes = (time.monotonic() - self._start) / 60
        runs_done = sum(self._runs[study] for study in self._begun)
        runs_left = sum(self._runs.values()) - runs_done
        left = f", about {minutes / runs_done * runs_left:.0f} min left" if runs_done else ""
        self._begun.append(name)
        self._say(f"== self-test, part {len(self._begun)} of {self._total}: {title} ({minutes:.0f} min elapsed{left})")
