"""Study files of programs, for tests."""

from pathlib import Path

STUDY = """\
title: A program
about: A program of a user.
sections: [scaling]
scaling: weak
program:
  name: toy
  folder: ..
  command: "{python} train.py --width {width} --steps {steps} --rank {rank}"
  launch: per-rank
constants: {batch_per_device: 4}
factors: {width: [1, 2], devices_per_node: [1, 2]}
baseline: {devices_per_node: 1}
measurement: {warmup_steps: 2, measured_steps: 10, repetitions: 1}
"""


def write_study(folder: Path, text: str = STUDY) -> Path:
    """Write a study of a program in a folder, and return its path."""
    path = folder / "studies" / "toy.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
