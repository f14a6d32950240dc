"""How fast an archive of logs becomes a dataset, against the loops that published results were extracted with.

The archive is made from the samples of the tests, one format a file, their steps counted on. The loop reads a file line
by line and takes one number out of each line by ``re.search``, to have its mean. Ours reads every metric, place and
time of every line, with a pool of processes. Both are measured in turn, in one run. It also says how much memory ours
takes for few files and for many.

    python benchmarks/reading_logs.py [MB [FILES]]
"""

import re
import resource
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice
from pathlib import Path

from dlperf_study.errors import LogError
from dlperf_study.logs.engine import read
from dlperf_study.logs.format import Line
from dlperf_study.logs.lines import compiled
from dlperf_study.paths import PROJECT

SAMPLES = PROJECT / "tests" / "logs" / "samples"
WORKERS, TURNS, FACTOR = 2, 3, 5.0
#: What an extractor of each format looks for.
NUMBER_OF = {
    "gluonnlp_bert": r"throughput=([\d.]+)K tks/s",
    "horovod_synthetic": r"Iter #\d+: ([\d.]+) img/sec",
    "hugectr": r"iters\): ([\d.]+)s",
    "insightface_partial_fc": r"Total:([\d.]+) it/sec",
    "mindspore": r"per step time: ([\d.]+)",
    "mxnet_speedometer": r"Speed: ([\d.]+) samples/sec",
    "nvidia_dll": r"(?:imgs_per_sec|throughput_train|total_ips) : ([\d.]+)",
    "oneflow_insightface": r"throughput: ([\d.]+)",
    "oneflow_resnet50": r"samples/s: ([\d.]+)",
    "paddle_bert": r"speed: ([\d.]+) steps/s",
    "paddle_fluid_benchmark": r"([\d.]+) examples/sed",
    "paddle_resnet50": r"(?:elapse|batch_cost) ([\d.]+) sec",
    "paddle_vgg16_fluid": r"(?:Speed =|spent) ([\d.]+)",
    "paddle_vgg16_v2": r"spent: ([\d.]+)",
    "paddleclas": r"elapse: ([\d.]+)s",
    "plsc_2020": r"qps:([\d.]+)",
    "plsc_2_2": r"throughput: ([\d.]+) imgs/sec",
    "plsc_2_4": r"ips: ([\d.]+) images/sec",
    "pytorch_imagenet": r"Time +([\d.]+)",
    "tensorpack": r"Throughput \(samples/sec\): ([\d.]+)",
    "tf2_timehistory": r"([\d.]+) examples/second",
    "tf_cnn_benchmarks": r"images/sec: ([\d.]+)",
}


def main() -> int:
    """Measure both in turns; return 1 when ours is less than FACTOR times as fast."""
    megabytes, files = (int(text) for text in (*sys.argv[1:], *("1000", "40")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        paths = archive(Path(folder), megabytes, files)
        size = sum(path.stat().st_size for path in paths) / 1e6
        turns = [(seconds(loop, paths), seconds(ours, paths)) for _ in range(TURNS)]
        few, many = memory(paths[:1]), memory(paths)
    slow, fast = (statistics.median(column) for column in zip(*turns, strict=True))
    print(
        f"{size:.0f} MB in {files} files: loop {size / slow:.0f} MB/s, ours {size / fast:.0f} MB/s, {WORKERS} processes"
    )
    print(f"ratio {slow / fast:.1f} (limit {FACTOR:.0f})")
    print(f"memory of a process: {few:.0f} MB after 1 file, {many:.0f} MB after {files}")
    return int(slow / fast < FACTOR)


def loop(paths: list[Path]) -> int:
    """Find one mean per file."""
    means = []
    for path in paths:
        values, pattern = [], next(NUMBER_OF[name] for name in NUMBER_OF if path.name[5:].startswith(name))
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                match = re.search(pattern, line)
                if match:
                    values.append(float(match.group(1)))
        means.append(statistics.fmean(values))
    return len(means)


def ours(paths: list[Path]) -> int:
    """Read everything; return how many rows there are."""
    with ProcessPoolExecutor(WORKERS) as pool:
        return sum(pool.map(rows, paths, chunksize=1))


def rows(path: Path) -> int:
    """Read one file."""
    return len(read(path).records)


def seconds(work: object, paths: list[Path]) -> float:
    """Return the wall time of some work."""
    start = time.perf_counter()
    work(paths)  # type: ignore[operator]
    return time.perf_counter() - start


def memory(paths: list[Path]) -> float:
    """Return the most memory a process takes that reads some files, one after another."""
    with ProcessPoolExecutor(1) as pool:
        return pool.submit(peak, paths).result()


def peak(paths: list[Path]) -> float:
    """Read files; return this process's peak memory in MB."""
    for path in paths:
        rows(path)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def archive(folder: Path, megabytes: int, files: int) -> list[Path]:
    """Write logs of some size altogether, sample after sample."""
    paths = []
    samples = [path for path in sorted(SAMPLES.glob("*.log")) if readable(path)]
    for number, sample in enumerate(islice(cycle(samples), files)):
        path = folder / f"{number:04d}_{sample.name}"
        path.write_bytes(longer(sample, megabytes * 1_000_000 // files))
        paths.append(path)
    return paths


def readable(sample: Path) -> bool:
    """Say whether a sample is of one format, so that it need not be named, and of one that the loop knows."""
    try:
        return read(sample).format.name in NUMBER_OF
    except LogError:
        return False


def longer(sample: Path, size: int) -> bytes:
    """Return a sample's lines again and again, their steps counted on."""
    kinds = [compiled(line).expression for line in read(sample).format.lines if isinstance(line, Line)]
    lines = [(line, _step(kinds, line)) for line in sample.read_bytes().splitlines()]
    parts, total = [], 0
    for number, (line, span) in enumerate(cycle(lines)):
        parts.append(line if span is None else b"%b%d%b" % (line[: span[0]], number, line[span[1] :]))
        total += len(parts[-1]) + 1
        if total >= size:
            return b"\n".join([*parts, b""])
    raise AssertionError


def _step(kinds: list[re.Pattern[bytes]], line: bytes) -> tuple[int, int] | None:
    matches = (kind.search(line) for kind in kinds if "step" in kind.groupindex)
    return next((match.span("step") for match in matches if match and match["step"]), None)


if __name__ == "__main__":
    sys.exit(main())
