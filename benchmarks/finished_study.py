"""A finished study of 500 configurations again: at most 1 s of processor more than one of a single configuration.

That one takes what the interpreter and its imports take. Of the first call of `study` here, which builds the report of
500 configurations, only the time is printed.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from benchmarks._command import run_command
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.core.writing import write_atomically
from dlperf_study.execution.planning import make_plan
from dlperf_study.execution.repetitions import requested_runs
from tests.evidence_factory import write_run

CONFIGURATIONS = 500
LIMIT_SECONDS = 1.0
STUDY: dict[str, Any] = {
    "title": "Finished",
    "about": "Five hundred configurations whose evidence is already there.",
    "sections": ["scaling"],
    "scaling": "weak",
    "constants": {
        "model": "mobilenet_v2",
        "image_size": 32,
        "classes": 10,
        "framework": "paddle_collective",
        "strategy": "all_reduce",
        "devices_per_node": 1,
    },
    "baseline": {"devices_per_node": 1},
}


def main() -> int:
    """Make the evidence, then time the command; return 1 when it is slower than the limit or measures something."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[OUTPUTS_VARIABLE] = folder
        seconds = again(Path(folder), CONFIGURATIONS) - again(Path(folder), 1)
    print(f"{CONFIGURATIONS} configurations: {seconds:.2f} s of processor more than one (limit {LIMIT_SECONDS:.0f} s)")
    return int(seconds > LIMIT_SECONDS)


def again(folder: Path, configurations: int) -> float:
    """Return the seconds of processor that `study` takes when everything is measured and reported."""
    study = folder / f"finished_{configurations}.yaml"
    batches = list(range(1, configurations + 1))
    write_atomically(study, yaml.safe_dump(STUDY | {"factors": {"batch_per_device": batches}}))
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
    plan, cluster = make_plan(str(study), "local", quick=False)
    for entry in plan.runnable:
        wanted = requested_runs(entry.configuration, cluster)[0].cache_key
        for repetition in range(1, entry.configuration.repetitions + 1):
            run = write_run(StudyPaths.of(plan.study), entry.configuration, repetition)
            facts = json.loads(run.run_file.read_text()) | {"cache_key": wanted}
            write_atomically(run.run_file, json.dumps(facts))


if __name__ == "__main__":
    sys.exit(main())
