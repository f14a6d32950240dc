"""Running a finished study of 500 configurations again: under 3 seconds, start of the interpreter included."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from dlperf_study.execution.driver import make_plan
from dlperf_study.execution.repetitions import fingerprint
from dlperf_study.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.writing import write_atomically
from tests.evidence_factory import write_run

CONFIGURATIONS = 500
LIMIT_SECONDS = 3.0
STUDY = {
    "title": "Finished",
    "about": "Five hundred configurations whose evidence is already there.",
    "questions": ["scaling"],
    "scaling": "weak",
    "fixed": {
        "model": "mobilenet_v2",
        "image_size": 32,
        "classes": 10,
        "strategy": "all_reduce",
        "devices_per_node": 1,
    },
    "factors": {"framework": ["paddle_collective"], "batch_per_device": list(range(1, CONFIGURATIONS + 1))},
    "baseline": {"devices_per_node": 1},
}


def main() -> int:
    """Make the evidence, then time the command; return 1 when it is slower than the limit or measures something."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[OUTPUTS_VARIABLE] = folder
        study = Path(folder) / "finished.yaml"
        write_atomically(study, yaml.safe_dump(STUDY))
        make_evidence(study)
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", "dlperf_study", "run", str(study)], capture_output=True, text=True)
        seconds = time.perf_counter() - start
    said = done.stdout.splitlines()[-1]
    print(f"{CONFIGURATIONS} finished configurations: {seconds:.2f} s (limit {LIMIT_SECONDS:.0f} s); {said}")
    return int(seconds > LIMIT_SECONDS or "nothing to do" not in done.stdout)


def make_evidence(study: Path) -> None:
    """Write three completed runs for every configuration of the plan."""
    plan, cluster = make_plan(str(study), "local", quick=False)
    for entry in plan.runnable:
        wanted = fingerprint(entry.configuration, cluster)
        for repetition in range(1, entry.configuration.repeats + 1):
            run = write_run(StudyPaths.of(plan.study), entry.configuration, repetition)
            facts = json.loads(run.run_file.read_text()) | {"fingerprint": wanted}
            write_atomically(run.run_file, json.dumps(facts))


if __name__ == "__main__":
    sys.exit(main())
