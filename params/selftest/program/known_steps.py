"""Take steps of a known time: each is over at a moment that was fixed before the first."""

import argparse
import os
import time

from dlperf_study.record import Recorder

#: The first steps last longer than the others: whoever counts them finds another throughput.
SLOW_STEPS, SLOWNESS = 4, 3


def main() -> None:
    """Take the requested steps; those of the second rank last longer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--milliseconds", type=float, required=True)
    parser.add_argument("--longer", type=float, required=True, help="milliseconds more for the second rank")
    options = parser.parse_args()
    step = (options.milliseconds + options.longer * (os.environ["RANK"] == "1")) / 1000
    recorder = Recorder()
    over = time.perf_counter()
    for number in range(options.steps):
        over += step * (SLOWNESS if number < SLOW_STEPS else 1)
        time.sleep(max(0.0, over - time.perf_counter()))
        recorder.step()


if __name__ == "__main__":
    main()
