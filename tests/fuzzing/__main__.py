"""Run the fuzzers one after another, each for an equal share of the time; keep the input of each failure.

python -m tests.fuzzing MINUTES [target ...]
"""

import re
import subprocess
import sys
import time
from pathlib import Path

TARGETS = ("logs", "trackers", "tables", "study_files", "ingest_files", "evidence", "pages")
#: Where inputs that failed are kept.
FAILURES = Path(".fuzz")
#: What libFuzzer needs to start, and the longest input.
GRACE_SECONDS = 400


def main(minutes: float, targets: tuple[str, ...]) -> int:
    """Return 1 when an input crashed, took too long or too much memory; its file is named."""
    FAILURES.mkdir(exist_ok=True)
    failed = [target for target in targets if not _fuzz(target, minutes * 60 / len(targets))]
    if failed:
        print(f"failed: {', '.join(failed)}; the inputs are in {FAILURES}/", file=sys.stderr)
    return int(bool(failed))


def _fuzz(target: str, seconds: float) -> bool:
    """Return whether one target read or refused all inputs."""
    print(f"{target}: {seconds / 60:.1f} minutes …", flush=True)
    log = FAILURES / f"{target}.log"
    options = [f"-max_total_time={seconds:.0f}", f"-artifact_prefix={FAILURES}/{target}-"]
    start = time.monotonic()
    with log.open("wb") as output:
        fuzzer = subprocess.Popen(
            [sys.executable, "-m", f"tests.fuzzing.{target}", *options], stdout=output, stderr=subprocess.STDOUT
        )
        with fuzzer:
            ending = _ending(fuzzer, seconds + GRACE_SECONDS)
    print(f"{target}: {_inputs(log)} inputs in {time.monotonic() - start:.0f} s, {ending}; {log}", flush=True)
    return fuzzer.returncode == 0


def _ending(fuzzer: "subprocess.Popen[bytes]", seconds: float) -> str:
    """Wait for a fuzzer, and end one that hangs where not even libFuzzer's own limit of time ends it."""
    try:
        return f"exit code {fuzzer.wait(seconds)}"
    except subprocess.TimeoutExpired:
        fuzzer.kill()
        return "ended, because it did not end by itself"


def _inputs(log: Path) -> str:
    """Return how many inputs libFuzzer says it has tried, as it does at its end."""
    counts = re.findall(r"^Done (\d+) runs", log.read_text(errors="replace"), re.MULTILINE)
    return counts[-1] if counts else "an unknown number of"


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), tuple(sys.argv[2:]) or TARGETS))
