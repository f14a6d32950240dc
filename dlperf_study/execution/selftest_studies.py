"""The studies of the self-test, measured one after another: many pairs, known steps, a straggler, a known link.

The link is the loopback interface of a network namespace, shaped by ``tc``: nothing else on the machine uses it, and it
disappears with the last process in the namespace.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from dlperf_study.core import resources, writing
from dlperf_study.core.errors import RunError, UnsupportedError
from dlperf_study.core.paths import SELFTEST, StudyPaths
from dlperf_study.execution.controller import Say, run_study
from dlperf_study.execution.planning import cluster_for, plan_study
from dlperf_study.machines.supervision.locks import lock, machine_lock
from dlperf_study.study.plan import Plan
from dlperf_study.study.study import Study
from dlperf_study.study.study_file import load_study

#: How many pairs are measured, and how many in quick mode.
PAIRS, QUICK_PAIRS = 20, 3
#: How many bits the interface lets pass per second, all ranks together.
BITS_PER_SECOND = 400_000_000
#: A bucket of a few packets of 64 KiB, and a queue so long that none is dropped.
_SHAPE = f"tbf rate {BITS_PER_SECOND}bit burst 256kb limit 64mb"
_PROGRAMS = ("unshare", "ip", "tc")


@dataclass
class MeasuredStudies:
    """The measured studies of a self-test, and its obstacles.

    ``others``: by what is known of them: ``steps``, ``straggler`` and ``link``.
    """

    pairs: list[str]
    others: dict[str, str]
    obstacles: dict[str, str] = field(default_factory=dict)


def measure_studies(pairs: int, quick: bool, cluster_name: str, say: Say) -> MeasuredStudies:
    """Measure the studies of the self-test, or continue them.

    What an earlier self-test measured is kept aside. Nothing of it is touched when an error is raised before the first
    run: BusyError where another self-test or another study measures on this machine, and UnsupportedError where not
    even the pairs can be measured here.
    """
    with lock(StudyPaths.of(SELFTEST).lock, "running the self-test", "would replace each other's run records"):
        return _measure(pairs, quick, cluster_name, say)


def end_measurement() -> None:
    """Note that the self-test is complete: the next one measures everything anew."""
    StudyPaths.of(SELFTEST).selftest_unfinished.unlink(missing_ok=True)


def pair_studies(pairs: int, quick: bool) -> list[Study]:
    """Return the studies of pairs, each with its own order."""
    study = _study("pairs", quick)
    slowdowns = [value for value in study.factors["injected_slowdown"] if value]
    studies = []
    for pair in range(1, pairs + 1):
        left_out = [value for value in slowdowns if value != slowdowns[pair % len(slowdowns)]]
        exclude = (*study.exclude, {"injected_slowdown": left_out}) if left_out else study.exclude
        studies.append(study.changed(name=f"{study.name}_{pair:02d}", exclude=exclude, order_seed=pair))
    return studies


def _measure(pairs: int, quick: bool, cluster_name: str, say: Say) -> MeasuredStudies:
    studies = pair_studies(pairs, quick)
    studies_of_checks = {name: _study(name, quick) for name in ("steps", "straggler", "link")}
    steps, straggler, link = studies_of_checks.values()
    cluster = cluster_for([*studies, steps, straggler, link], cluster_name)
    plans = {study.name: plan_study(study, cluster) for study in (*studies, steps, straggler, link)}
    names = {name: study.name for name, study in studies_of_checks.items()}
    measured = MeasuredStudies([study.name for study in studies], names)
    for name in measured.pairs:
        if obstacle := _obstacle(plans[name]):
            raise UnsupportedError(f"the self-test can't run here: {obstacle}")
    # Whoever measures on this machine would refuse the first run: then there is no new evidence to make room for.
    with machine_lock("the self-test"):
        _begin(pairs, quick)
    progress = _Parts(plans, say)
    for index, name in enumerate(measured.pairs, start=1):
        progress.begin(name, f"pair {index} of {pairs}")
        run_study(plans[name], cluster, say)
    for study, title in ((steps, "steps of a known time"), (straggler, "a straggler")):
        progress.begin(study.name, title)
        if obstacle := _obstacle(plans[study.name]):
            measured.obstacles[study.name] = obstacle
        else:
            run_study(plans[study.name], cluster, say)
    progress.begin(link.name, "an all-reduce over an interface of known bandwidth")
    if obstacle := link_obstacle() or _obstacle(plans[link.name]):
        measured.obstacles[link.name] = obstacle
    else:
        run_on_shaped_link(study_file("link"), cluster_name, quick)
    return measured


def _study(name: str, quick: bool) -> Study:
    return load_study(study_file(name), quick)


def study_file(name: str) -> str:
    """Return the path of a study file of the self-test."""
    return str(resources.PARAMS / SELFTEST / f"{SELFTEST}_{name}.yaml")


def _begin(pairs: int, quick: bool) -> None:
    """Put the last self-test aside, unless it was interrupted."""
    paths, form = StudyPaths.of(SELFTEST), json.dumps({"pairs": pairs, "quick": quick})
    unfinished = paths.selftest_unfinished
    if unfinished.exists() and unfinished.read_text(encoding="utf-8") == form:
        return
    earlier = paths.next_earlier()
    for folder in sorted(paths.folder.glob(f"{SELFTEST}_*")):
        earlier.mkdir(parents=True, exist_ok=True)
        folder.rename(earlier / folder.name)
    writing.write_atomically(unfinished, form)


def _obstacle(plan: Plan) -> str:
    return str(plan.unsupported[0].unsupported) if plan.unsupported else ""


class _Parts:
    """Prints which study begins, and the time left."""

    def __init__(self, plans: Mapping[str, Plan], say: Say) -> None:
        self._runs = {}
        for name, plan in plans.items():
            self._runs[name] = sum(entry.configuration.repetitions for entry in plan.runnable)
        self._total, self._begun = len(plans), list[str]()
        self._say = say
        self._start = time.monotonic()

    def begin(self, name: str, title: str) -> None:
        """Print that a study begins."""
        minutes = (time.monotonic() - self._start) / 60
        runs_done = sum(self._runs[study] for study in self._begun)
        runs_left = sum(self._runs.values()) - runs_done
        time_text = f"{minutes:.0f} min elapsed"
        if runs_done:
            time_text += f", about {minutes / runs_done * runs_left:.0f} min left"
        self._begun.append(name)
        self._say(f"== self-test, part {len(self._begun)} of {self._total}: {title} ({time_text})")


def link_obstacle() -> str:
    """Return why no link can be shaped on this machine, or nothing."""
    if os.geteuid() != 0:
        return "only root can limit the bandwidth of an interface; run the self-test as root"
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"{', '.join(missing)} not found; install iproute2 and util-linux"
    trial = subprocess.run(_in_namespace("true"), capture_output=True, text=True)
    if trial.returncode:
        return f"the bandwidth of an interface cannot be limited here: {trial.stderr.strip()}"
    return ""


def run_on_shaped_link(study_file: str, cluster: str, quick: bool) -> None:
    """Measure a study in a namespace with a shaped link.

    Runs that fail are in its evidence. Raises RunError when the command could not measure anything.
    """
    arguments = ["run", study_file, "--cluster", cluster, *["--quick"] * quick]
    code = subprocess.run(_in_namespace(sys.executable, "-m", "dlperf_study", *arguments)).returncode
    if code not in (0, 1):
        raise RunError(f"{study_file}: measuring it over an interface of limited bandwidth ended with code {code}")


def _in_namespace(*command: str) -> list[str]:
    """Return the argv of a command in a shaped namespace.

    Libraries meet at the address of the host's name, which only this machine's own interfaces have outside.
    """
    steps = ["ip link set lo up", f"tc qdisc add dev lo root {_SHAPE}"]
    # A name without an address has none that a library could use.
    with suppress(OSError):
        address = socket.gethostbyname(socket.gethostname())
        if not address.startswith("127."):
            steps.append(f"ip address add {address}/32 dev lo")
    return ["unshare", "--net", "sh", "-c", f'{" && ".join(steps)} && exec "$@"', "sh", *command]
