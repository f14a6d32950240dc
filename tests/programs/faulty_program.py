"""A program of a user with the fault that its command names; a part of the studies of test_running_programs.py."""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from dlperf_study.record import Recorder

#: More than a log may have.
PRINTED_BYTES, BLOCK = 1 << 30, "x" * (1 << 20)
#: Children that forget every mark, in sessions of their own, whose parents end at once.
DAEMONS = "setsid sleep 7531 & setsid sh -c 'sleep 7531 &' &"

#: The last step that is printed as the study's log format has it.
LAST_PRINTED = {"printed": 1000, "few": 5, "changed": 5, "mute": 0}


def main() -> None:
    """Do what the fault says, and train."""
    parser = argparse.ArgumentParser()
    for name, kind in (("--fault", str), ("--rank", int), ("--steps", int)):
        parser.add_argument(name, type=kind)
    options = parser.parse_args()
    begin(options.fault, options.rank)
    recorder = Recorder(world_size=1 if options.fault == "alone" else None)
    for step in range(1, options.steps + 1):
        time.sleep(0.002)
        train(options.fault, options.rank, step)
        recorder.step(1 / step)
        if options.fault in LAST_PRINTED and not options.rank:
            print_step(options.fault, step)
    resume(options.rank)
    if options.fault == "abort" and options.rank == 1:
        # As C++ does where a thread lives when Python ends.
        os.write(2, b"terminate called without an active exception\n")
        os.abort()


def begin(fault: str, rank: int) -> None:
    """Do what a program does before it trains."""
    while os.path.exists(os.environ.get("GATE", "")):
        print("waits", os.environ.get("MY_TOKEN"), flush=True)
        time.sleep(0.1)
    if fault in ("prints", "leak"):
        print("token:", os.environ["MY_TOKEN"], flush=True)
    if fault in ("ignored", "absent"):
        Path(f"data/{fault}.bin").read_bytes()
    if fault == "silent" or (fault in ("half", "alone") and rank == 1):
        sys.exit()
    if fault == "children":
        subprocess.Popen(["sh", "-c", DAEMONS], start_new_session=True, env={"PATH": os.environ["PATH"]})
        subprocess.Popen(["sleep", "7531"], start_new_session=True)
    if fault == "hang" and rank == 1:
        time.sleep(7531)


def train(fault: str, rank: int, step: int) -> None:
    """Do what a program does in a step."""
    if rank == 1 and step == 3 and fault in ("crash", "leak"):
        raise ValueError(f"bad batch {os.environ['MY_TOKEN']}" if fault == "leak" else "bad batch")
    if fault == "early" and step == 6:
        sys.exit()
    if fault == "noisy" and step == 2:
        for _ in range(PRINTED_BYTES // len(BLOCK)):
            sys.stdout.write(BLOCK)


def print_step(fault: str, step: int) -> None:
    """Print a step as the log format has it, or otherwise where the fault is that it changes."""
    if step <= LAST_PRINTED[fault]:
        print(f"step {step} took {2 + step % 2} ms, loss {1 / step:.3f}", flush=True)
    elif fault == "changed":
        print(f"step {step}: {2 + step % 2} ms, loss {1 / step:.3f}", flush=True)


def resume(rank: int) -> None:
    """Continue from what an earlier run left, as many programs do: in a study no run may find it."""
    snapshot = Path(f"snapshot-{rank}.pt")
    assert not snapshot.exists()
    snapshot.touch()


if __name__ == "__main__":
    main()
