"""How long, and with how much memory, evidence becomes a dataset: at most 3 ms of processor for a run, and 1 GiB.

A quarter of the evidence is read first: a run of the whole must not take more than 1.2 times as long as one of that.
Launch from the root of the project: ``python -m benchmarks.dataset [--configurations 500] [--runs 4] …``
20,000 runs, which must take at most a minute: ``--configurations 5000``.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dlperf_study.core.paths import StudyPaths
from tests.evidence_factory import Planned, Recipe, configuration, write_study

#: Of a run: seconds of processor at most, and how many times those of a run of a quarter of the evidence.
LIMIT_SECONDS, LIMIT_GROWTH = 0.003, 1.2
LIMIT_MIB = 1024
#: Runs in a process of its own, so that the memory is that of reading and not that of writing the evidence.
COLLECT = """
import json, resource, sys, time
from pathlib import Path
from dlperf_study.dataset.dataset import collect
from dlperf_study.core.paths import StudyPaths
imported = time.process_time()
dataset = collect(StudyPaths(Path(sys.argv[1])))
facts = {
    "processor_seconds": time.process_time() - imported,
    "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "runs": len(dataset.runs),
    "steps": len(dataset.steps),
}
print(json.dumps(facts))
"""


def main() -> int:
    """Write constructed evidence into a temporary folder, and read it; return 1 when a limit is missed."""
    arguments = parse()
    quarter = measured(arguments, arguments.configurations // 4)
    whole = measured(arguments, arguments.configurations)
    growth = whole["seconds_of_run"] / quarter["seconds_of_run"]
    print(f"a run of the whole takes {growth:.2f} times as long as one of a quarter (limit {LIMIT_GROWTH})")
    is_within = whole["seconds_of_run"] <= LIMIT_SECONDS and growth <= LIMIT_GROWTH and whole["peak_mib"] <= LIMIT_MIB
    return int(not is_within)


def measured(arguments: argparse.Namespace, configurations: int) -> dict[str, Any]:
    """Return what reading so many configurations takes, and print it."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        write_evidence(StudyPaths(Path(folder)), arguments, configurations)
        print(f"written in {time.perf_counter() - started:.1f} s", flush=True)
        done = subprocess.run([sys.executable, "-c", COLLECT, folder], check=True, stdout=subprocess.PIPE, text=True)
    facts: dict[str, Any] = json.loads(done.stdout)
    facts["seconds_of_run"] = facts["processor_seconds"] / facts["runs"]
    print(f"read: {facts['runs']} runs, {facts['steps']} steps in {facts['processor_seconds']:.1f} s of processor:")
    print(f"{1e3 * facts['seconds_of_run']:.2f} ms a run (limit {1e3 * LIMIT_SECONDS:g} ms),", end=" ")
    print(f"peak {facts['peak_mib']:.0f} MiB (limit {LIMIT_MIB} MiB)", flush=True)
    return facts


def parse() -> argparse.Namespace:
    """Return the size of the evidence."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--configurations", type=int, default=500)
    parser.add_argument("--runs", type=int, default=4, help="runs of each configuration")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=500, help="steps of all four windows of a rank together")
    return parser.parse_args()


def write_evidence(paths: StudyPaths, arguments: argparse.Namespace, count: int) -> None:
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
    configurations = [configuration(seed=seed, **protocol) for seed in range(count)]
    write_study(paths, [Planned(seeded, recipe, arguments.runs) for seeded in configurations])


if __name__ == "__main__":
    sys.exit(main())
