"""What many configurations and runs cost to plan, to read, to report, and to find finished.

Launch from the root of the project: ``python -m benchmarks.large_studies [plan] [dataset] [report] [finished] …``;
without a name all four. Each prints its limits, and one that is missed makes the exit code 1.

``plan``: 10,000 configurations, start of the interpreter included. ``dataset``: 500 configurations of 40 runs; 100,000
runs of as many configurations as can be are ``dataset --configurations 25000 --runs 4``. ``report``: 500 configurations
with every section. ``finished``: a measured and reported study of 500 configurations again.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from benchmarks._command import WholeCost, cost_of_all_processes, run_command
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.core.writing import write_atomically
from dlperf_study.execution.planning import make_plan
from dlperf_study.execution.repetitions import requested_runs
from dlperf_study.records.run_file import add_digests
from dlperf_study.study.study import SECTIONS
from tests.evidence_factory import Planned, Recipe, configuration, write_run, write_study

PLANNED = 10_000
#: The limit in seconds of processor for the arguments of each call of ``plan``.
PLAN_LIMITS = {(): 2.0, ("--all",): 3.0}
STUDY = {
    "title": "Many",
    "about": "Ten thousand configurations.",
    "sections": ["scaling"],
    "scaling": "weak",
    "constants": {"framework": "paddle_collective", "strategy": "all_reduce", "image_size": 32, "classes": 10},
    "factors": {
        "model": ["mobilenet_v2", "resnet50"],
        "batch_per_device": list(range(1, 1 + PLANNED // 20)),
        "seed": list(range(5)),
        "devices_per_node": [1, 2],
    },
    "baseline": {"devices_per_node": 1},
}
#: The configurations of a report: each with a reference, three rounds and some diagnostics.
MODELS, FRAMEWORKS = ("resnet50", "mobilenet_v2"), ("paddle_collective", "torch_ddp")
BATCHES, DEVICES = tuple(range(8, 208, 8)), (1, 2, 3, 4, 8)
PROTOCOL = {"warmup_steps": 20, "measured_steps": 200, "compute_only_steps": 40, "communication_only_steps": 20}
REPORT_SECONDS, PAGE_BYTES = 150.0, 1_000_000
BUILD = "from dlperf_study.report.pages import build; build('example')"
#: Of a run: seconds at most, and how many times the processor of a run with less evidence.
RUN_SECONDS, RUN_GROWTH = 0.003, 1.2
READ_MIB = 1024
#: In a process of its own, so that the memory is that of reading and not that of writing the evidence.
COLLECT = """
import sys
from dlperf_study.core.paths import Path, StudyPaths
from dlperf_study.dataset.dataset import collect
collect(StudyPaths(Path(sys.argv[1])))
"""
#: A finished study again may take so many seconds of processor more than one of a single configuration.
FINISHED, FINISHED_SECONDS = 500, 1.0
FINISHED_STUDY: dict[str, Any] = STUDY | {
    "constants": STUDY["constants"] | {"model": "mobilenet_v2", "devices_per_node": 1},
}


def main() -> int:
    """Measure what is named; return 1 where a limit is missed."""
    arguments, missed = parse(), 0
    for name in arguments.subjects or SUBJECTS:
        missed += not SUBJECTS[name](arguments)
    return int(missed > 0)


def plan(arguments: argparse.Namespace) -> bool:
    """Plan a study; return whether that stays within its limits."""
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        os.environ[OUTPUTS_VARIABLE] = folder
        study = Path(folder) / "many.yaml"
        write_atomically(study, yaml.safe_dump(STUDY))
        for options, limit in PLAN_LIMITS.items():
            cost = run_command("plan", str(study), *options)
            rows = len(cost.output.splitlines())
            name = " ".join(("plan", *options))
            print(f"{name} of {PLANNED} configurations: {cost.processor_seconds:.2f} s of processor", end=" ")
            print(f"(limit {limit:.0f} s), {rows} lines")
            is_good &= cost.processor_seconds <= limit
    return is_good


def report(arguments: argparse.Namespace) -> bool:
    """Build a report of constructed evidence; return whether it is fast and each of its pages is small."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[OUTPUTS_VARIABLE] = folder
        paths = StudyPaths.of("example")
        planned = list(reported_configurations())
        written = write_study(paths, planned)
        written.changed(sections=SECTIONS, published=("tensorpack_multigpu",)).write(paths.plan_file)
        seconds = cost_of_all_processes(sys.executable, "-c", BUILD).processor_seconds
        sizes = {page.name: page.stat().st_size for page in sorted(paths.report.glob("*.html"))}
    for name, size in sizes.items():
        print(f"{name}: {size / 1e6:.2f} MB (limit {PAGE_BYTES / 1e6:g} MB)")
    print(f"report of {len(planned)} configurations: {seconds:.1f} s of processor (limit {REPORT_SECONDS:.0f} s)")
    return seconds <= REPORT_SECONDS and max(sizes.values()) <= PAGE_BYTES


def reported_configurations() -> Iterator[Planned]:
    """Yield the configurations of the study: larger batches take longer, more devices wait longer."""
    for model, framework, batch, devices in product(MODELS, FRAMEWORKS, BATCHES, DEVICES):
        parameters = {"model": model, "batch_per_device": batch, "devices_per_node": devices, **PROTOCOL}
        configuration_of_study = configuration(framework=framework, **parameters)
        recipe = Recipe(
            compute_seconds=0.01 * batch * (1.02 if framework == "torch_ddp" else 1.0),
            exposed_communication_seconds=0.002 * devices,
            communication_seconds=0.02,
            noise=0.01 if batch % 16 else 0.04,
            rank_advantage=0.08 if batch == max(BATCHES) else 0.0,
            library="torch" if framework == "torch_ddp" else "paddle",
        )
        baseline = configuration(framework=framework, **parameters | {"devices_per_node": 1})
        reference = configuration(framework=FRAMEWORKS[0], **parameters)
        yield Planned(configuration_of_study, recipe, 3, baseline, reference)


def dataset(arguments: argparse.Namespace) -> bool:
    """Read constructed evidence, a quarter and a half of it first; return whether all limits are kept.

    Seconds are those of the clock: where there are many runs, several processes read them.
    """
    quarter, half, whole = (measured(arguments, arguments.configurations // parts) for parts in (4, 2, 1))
    # The differences don't have what any number of runs takes, such as imports.
    later = (whole.processor_seconds - half.processor_seconds) / 2
    growth = later / (half.processor_seconds - quarter.processor_seconds)
    print(
        f"a run of the second half takes {growth:.2f} times what one of the second quarter takes (limit {RUN_GROWTH})"
    )
    is_fast = whole.seconds <= RUN_SECONDS * arguments.configurations * arguments.runs
    return is_fast and growth <= RUN_GROWTH and whole.peak_bytes <= READ_MIB << 20


def measured(arguments: argparse.Namespace, configurations: int) -> WholeCost:
    """Return what reading so many configurations takes, and print it."""
    runs = configurations * arguments.runs
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        write_evidence(StudyPaths(Path(folder)), arguments, configurations)
        print(f"written in {time.perf_counter() - started:.1f} s", flush=True)
        cost = cost_of_all_processes(sys.executable, "-c", COLLECT, folder)
    print(f"read: {runs} runs in {cost.seconds:.1f} s, {cost.processor_seconds:.1f} s of processor:", end=" ")
    print(f"{1e3 * cost.seconds / runs:.2f} ms a run (limit {1e3 * RUN_SECONDS:g} ms),", end=" ")
    print(f"peak {cost.peak_bytes >> 20} MiB of all processes together (limit {READ_MIB} MiB)", flush=True)
    return cost


def parse() -> argparse.Namespace:
    """Return what to measure, and the size of the evidence of ``dataset``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="subject", help=", ".join(SUBJECTS))
    parser.add_argument("--configurations", type=int, default=500)
    parser.add_argument("--runs", type=int, default=40, help="runs of each configuration")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=500, help="steps of all four windows of a rank together")
    return parser.parse_args()


def write_evidence(paths: StudyPaths, arguments: argparse.Namespace, count: int) -> None:
    """Write a study whose configurations differ in their seed alone."""
    protocol = {
        "devices_per_node": arguments.ranks,
        "warmup_steps": arguments.steps // 10,
        "measured_steps": arguments.steps // 2,
        "compute_only_steps": arguments.steps // 5,
        "communication_only_steps": arguments.steps // 5,
        "repetitions": arguments.runs,
    }
    recipe = Recipe()
    configurations = [configuration(seed=seed, **protocol) for seed in range(count)]
    write_study(paths, [Planned(seeded, recipe, arguments.runs) for seeded in configurations])
    for seeded in configurations:
        for run in paths.configuration(seeded.configuration_id).runs():
            # Those that a controller records are checked too.
            facts = add_digests(json.loads(run.run_file.read_text()), run)
            write_atomically(run.run_file, json.dumps(facts))


def finished(arguments: argparse.Namespace) -> bool:
    """Call ``study`` where nothing is left to do; return whether that is fast.

    Of the first call, which builds the report, only the time is printed.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.environ[OUTPUTS_VARIABLE] = folder
        seconds = again(Path(folder), FINISHED) - again(Path(folder), 1)
    print(f"{FINISHED} configurations: {seconds:.2f} s of processor more than one (limit {FINISHED_SECONDS:.0f} s)")
    return seconds <= FINISHED_SECONDS


def again(folder: Path, configurations: int) -> float:
    """Return the seconds of processor that `study` takes when everything is measured and reported."""
    study = folder / f"finished_{configurations}.yaml"
    batches = list(range(1, configurations + 1))
    write_atomically(study, yaml.safe_dump(FINISHED_STUDY | {"factors": {"batch_per_device": batches}}))
    make_evidence(study)
    first = run_command("study", str(study))
    second = run_command("study", str(study))
    assert "nothing to do" in first.output
    assert "nothing to do" in second.output
    assert "built before" in second.output
    print(f"{configurations} configurations: {first.processor_seconds:.1f} s of processor with the report,", end=" ")
    print(f"{second.processor_seconds:.2f} s again")
    return second.processor_seconds


def make_evidence(study: Path) -> None:
    """Write three completed runs for every configuration of the plan."""
    planned, cluster = make_plan(str(study), "local", quick=False)
    for entry in planned.runnable:
        wanted = requested_runs(entry.configuration, cluster)[0].cache_key
        for repetition in range(1, entry.configuration.repetitions + 1):
            run = write_run(StudyPaths.of(planned.study), entry.configuration, repetition)
            facts = json.loads(run.run_file.read_text()) | {"cache_key": wanted}
            write_atomically(run.run_file, json.dumps(facts))


SUBJECTS = {"plan": plan, "dataset": dataset, "report": report, "finished": finished}

if __name__ == "__main__":
    sys.exit(main())
