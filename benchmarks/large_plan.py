"""The plan of 10,000 configurations: at most 2 s of processor, start of the interpreter included.

With ``--all``, which lists every one, at most 3 s.
"""

import os
import sys
import tempfile
from pathlib import Path

import yaml

from benchmarks._command import run_command
from dlperf_study.core.paths import OUTPUTS_VARIABLE
from dlperf_study.core.writing import write_atomically

CONFIGURATIONS = 10_000
#: The limit in seconds of processor for the arguments of each call.
LIMITS = {(): 2.0, ("--all",): 3.0}
STUDY = {
    "title": "Many",
    "about": "Ten thousand configurations.",
    "sections": ["scaling"],
    "scaling": "weak",
    "constants": {"framework": "paddle_collective", "strategy": "all_reduce", "image_size": 32, "classes": 10},
    "factors": {
        "model": ["mobilenet_v2", "resnet50"],
        "batch_per_device": list(range(1, 1 + CONFIGURATIONS // 20)),
        "seed": list(range(5)),
        "devices_per_node": [1, 2],
    },
    "baseline": {"devices_per_node": 1},
}


def main() -> int:
    """Plan the study; return 1 when it takes longer than its limit."""
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ[OUTPUTS_VARIABLE] = folder
        study = Path(folder) / "many.yaml"
        write_atomically(study, yaml.safe_dump(STUDY))
        for options, limit in LIMITS.items():
            cost = run_command("plan", str(study), *options)
            rows = len(cost.output.splitlines())
            name = " ".join(("plan", *options))
            print(f"{name} of {CONFIGURATIONS} configurations: {cost.processor_seconds:.2f} s of processor", end=" ")
            print(f"(limit {limit:.0f} s), {rows} lines")
            missed += cost.processor_seconds > limit
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
