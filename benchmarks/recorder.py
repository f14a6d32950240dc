"""What a step of the recorder costs, outside of a study and in one, against its limits in microseconds.

A call is compared with an empty function in alternating blocks; noise only adds time, so the lowest block counts.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable

from dlperf_study.record import REQUEST_VARIABLE, Recorder, Request

BLOCKS, STEPS = 20, 20_000
OUTSIDE_LIMIT, INSIDE_LIMIT = 0.2, 5.0


def main() -> int:
    """Measure both; return 1 where a limit is exceeded."""
    outside = step_microseconds(Recorder())
    with tempfile.TemporaryDirectory() as folder:
        request = Request("run", "code", folder, 1, 0, (BLOCKS + 1) * STEPS)
        os.environ[REQUEST_VARIABLE] = json.dumps(vars(request))
        inside = step_microseconds(Recorder())
        del os.environ[REQUEST_VARIABLE]
    print(
        f"a step outside of a study {outside:.3f} µs (limit {OUTSIDE_LIMIT}), in one {inside:.2f} µs ({INSIDE_LIMIT})"
    )
    return int(outside > OUTSIDE_LIMIT or inside > INSIDE_LIMIT)


def step_microseconds(recorder: Recorder) -> float:
    """Return how much longer a step of the recorder takes than a call of an empty function."""
    step, pairs = recorder.step, []
    for _ in range(BLOCKS):
        pairs.append((_block(lambda: step(1.0)), _block(lambda: None)))
    recorded, empty = map(min, zip(*pairs, strict=True))
    return (recorded - empty) / STEPS * 1e6


def _block(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    for _ in range(STEPS):
        call()
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
