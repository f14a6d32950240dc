"""How long, and with how much memory, evidence becomes a dataset.

Launch from the root of the project: ``python -m benchmarks.dataset [--configurations 500] [--runs 4] …``
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dlperf_study.paths import StudyPaths
from tests.evidence_factory import Planned, Recipe, configuration, write_study

#: Runs in a process of its own, so that the memory is that of reading and not that of writing the evidence.
COLLECT = """
import resource, sys, time
from pathlib import Path
started = time.perf_counter()
from dlperf_study.dataset.dataset import collect
from dlperf_study.paths import StudyPaths
dataset = collect(StudyPaths(Path(sys.argv[1])))
seconds = time.perf_counter() - started
peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
processor = f"({time.process_time():.1f} s of processor)"
print(f"read: {len(dataset.runs)} runs, {len(dataset.steps)} steps")
print(f"in {seconds:.1f} s {processor}, peak {peak_mib:.0f} MiB")
"""


def main() -> None:
    """Write constructed evidence into a temporary folder, read it, and print seconds and memory."""
    arguments = parse()
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        write_evidence(StudyPaths(Path(folder)), arguments)
        print(f"written in {time.perf_counter() - started:.1f} s", flush=True)
        subprocess.run([sys.executable, "-c", COLLECT, folder], check=True)


def parse() -> argparse.Namespace:
    """Return the size of the evidence."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--configurations", type=int, default=500)
    parser.add_argument("--runs", type=int, default=4, help="runs of each configuration")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=500, help="steps of all four windows of a rank together")
    return parser.parse_args()


def write_evidence(paths: StudyPaths, arguments: argparse.Namespace) -> None:
    """Write a study whose configurations differ in their seed alone."""
    protocol = {
        "devices_per_node": arguments.ranks,
        "warmup_steps": arguments.steps // 10,
        "measured_steps": arguments.steps // 2,
        "computation_steps": arguments.steps // 5,
        "exchange_steps": arguments.steps // 5,
        "repeats": arguments.runs,
    }
    recipe = Recipe()
    configurations = [configuration(seed=seed, **protocol) for seed in range(arguments.configurations)]
    write_study(paths, [Planned(one, recipe, arguments.runs) for one in configurations])


if __name__ == "__main__":
    main()
