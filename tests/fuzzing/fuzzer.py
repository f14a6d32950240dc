"""How every target is fuzzed: atheris makes bytes and watches what code they reach; time and memory have limits."""

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import atheris

#: An input that takes more processor time, or more memory, fails like one that crashes.
LONGEST_SECONDS, MOST_MEMORY = 10, 1 << 30
#: One that is not read in this time by the clock hangs; on a busy machine the clock alone says nothing.
HANGING_SECONDS = 30 * LONGEST_SECONDS
#: Longer inputs reach no code that a short one does not, and take longer.
LONGEST_BYTES = 1 << 14


def fuzz(target: Callable[[bytes], None], seeds: Mapping[str, bytes], *further: str) -> None:
    """Fuzz until the time of libFuzzer's options has passed, or an input fails; that input is kept as a file.

    ``further``: options of libFuzzer that a target needs.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed, content in seeds.items():
            (folder / seed).write_bytes(content[:LONGEST_BYTES])
        # libFuzzer's own limit of memory is no use: what atheris itself needs grows from input to input.
        limits = (f"-max_len={LONGEST_BYTES}", f"-timeout={HANGING_SECONDS}", "-rss_limit_mb=0")
        options = [*limits, *further, *sys.argv[1:]]
        atheris.Setup([sys.argv[0], *options, str(folder)], _limited(target))
        atheris.Fuzz()


def fuzz_in_folder(
    make_target: Callable[[Path], Callable[[bytes], None]], seeds: Mapping[str, bytes], *further: str
) -> None:
    """Fuzz a target that needs a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        fuzz(make_target(Path(name)), seeds, *further)


def _limited(target: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Return the target, failing when one input needs more memory or processor time than allowed."""

    def run(data: bytes) -> None:
        before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        target(data)
        if (seconds := time.process_time() - begun) > LONGEST_SECONDS:
            raise TimeoutError(f"one input of {len(data)} bytes took {seconds:.1f} s of the processor")
        taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        if taken > MOST_MEMORY:
            raise MemoryError(f"one input of {len(data)} bytes took {taken / 1e6:.0f} MB")

    return run
