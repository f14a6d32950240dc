"""What the harness costs per configuration, against one bare ``papermill`` command on an empty notebook.

Cost: the wall time of ``make study`` per configuration, less the life of the training processes and less the time
it deliberately waits for an idle machine. Both are measured in turn, in one run.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from dlperf_study.core.paths import OUTPUTS_VARIABLE
from dlperf_study.execution.measurement import Measurements
from dlperf_study.execution.planning import load_cluster
from dlperf_study.execution.repetitions import configuration_paths, requested_runs
from dlperf_study.machines.supervision.locks import machine_lock
from dlperf_study.study.configuration import Configuration

REPETITIONS = 5
POLL_SECONDS = 0.05


def main() -> int:
    """Measure both in turn; return 1 when ours costs more."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[OUTPUTS_VARIABLE] = folder
        empty = Path(folder) / "empty.ipynb"
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
        nbformat.write(notebook, empty)
        with machine_lock("benchmarks"):
            harness_seconds(0)
            pairs = [(harness_seconds(k), papermill_seconds(empty)) for k in range(1, REPETITIONS + 1)]
    ours, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"harness {ours:.2f} s, bare papermill {bare:.2f} s per configuration: ratio {ratio:.2f} (limit 1)")
    return int(ratio > 1)


def harness_seconds(seed: int) -> float:
    """Execute the notebook of one configuration; return its wall time less that of the training processes."""
    configuration = Configuration(
        study="benchmark", cluster="local", framework="paddle_collective", strategy="all_reduce", model="mobilenet_v2",
        image_size=32, classes=10, batch_per_device=4, warmup_steps=1, max_warmup_seconds=0.0, measured_steps=1,
        repetitions=1, seed=seed,
    )  # fmt: skip
    cluster = load_cluster("local")
    start = time.perf_counter()
    with Measurements(cluster) as measurements:
        measurements.start(configuration, requested_runs(configuration, cluster))
        while not measurements.finish_one(POLL_SECONDS):
            pass
    elapsed = time.perf_counter() - start
    facts = json.loads(configuration_paths(configuration).run(1).run_file.read_text())
    assert facts["status"] == "completed", facts["reason"]
    return elapsed - facts["seconds"] - facts["load"]["waited_seconds"]


def papermill_seconds(notebook: Path) -> float:
    """Run the bare command; return its wall time."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "papermill", str(notebook), str(notebook.with_suffix(".out.ipynb"))]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
