"""How long, and with how much memory, evidence becomes a dataset: 20,000 runs, at most 3 ms for each, and 1 GiB.

Seconds are those of the clock: where there are many runs, several processes read them. A quarter and
a half of the evidence are read first: with growing evidence, a run must not take more than 1.2 times the processor.
Launch from the root of the project: ``python -m benchmarks.dataset [--configurations 500] [--runs 40] …``
100,000 runs of as many configurations as can be: ``--configurations 25000 --runs 4``.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._command import WholeCost, cost_of_all_processes
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.writing import write_atomically
from dlperf_study.records.run_file import add_digests
from tests.evidence_factory import Planned, Recipe, configuration, write_study

#: Of a run: seconds at most, and how many times the processor of a run with less evidence.
LIMIT_SECONDS, LIMIT_GROWTH = 0.003, 1.2
LIMIT_MIB = 1024
#: In a process of its own, so that the memory is that of reading and not that of writing the evidence.
COLLECT = """
import sys
from dlperf_study.core.paths import Path, StudyPaths
from dlperf_study.dataset.dataset import collect
collect(StudyPaths(Path(sys.argv[1])))
"""


def main() -> int:
    """Write constructed evidence into a temporary folder, and read it; return 1 when a limit is missed."""
    arguments = parse()
    quarter, half, whole = (measured(arguments, arguments.configurations // parts) for parts in (4, 2, 1))
    # The differences don't have what any number of runs takes, such as imports.
    later = (whole.processor_seconds - half.processor_seconds) / 2
    growth = later / (half.processor_seconds - quarter.processor_seconds)
    print(
        f"a run of the second half takes {growth:.2f} times what one of the second quarter takes (limit {LIMIT_GROWTH})"
    )
    is_fast = whole.seconds <= LIMIT_SECONDS * arguments.configurations * arguments.runs
    return int(not is_fast or growth > LIMIT_GROWTH or whole.peak_bytes > LIMIT_MIB << 20)


def measured(arguments: argparse.Namespace, configurations: int) -> WholeCost:
    """Return what reading so many configurations takes, and print it."""
    runs = configurations * arguments.runs
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        write_evidence(StudyPaths(Path(folder)), arguments, configurations)
        print(f"written in {time.perf_counter() - started:.1f} s", flush=True)
        cost = cost_of_all_processes(sys.executable, "-c", COLLECT, folder)
    print(f"read: {runs} runs in {cost.seconds:.1f} s, {cost.processor_seconds:.1f} s of processor:", end=" ")
    print(f"{1e3 * cost.seconds / runs:.2f} ms a run (limit {1e3 * LIMIT_SECONDS:g} ms),", end=" ")
    print(f"peak {cost.peak_bytes >> 20} MiB of all processes together (limit {LIMIT_MIB} MiB)", flush=True)
    return cost


def parse() -> argparse.Namespace:
    """Return the size of the evidence."""
    parser = argparse.ArgumentParser(description=__doc__)
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


if __name__ == "__main__":
    sys.exit(main())
