"""How fast an archive of logs becomes a dataset, against the loops that published results were extracted with.

The loop reads a file line by line and takes one number out of each line by ``re.search``, to have its mean, in one
process. Ours, the command that anybody types, makes of the same files the whole dataset: every metric, place and time,
the steady part, the diagnostics, all tables. Both are measured in turn, in one run. It also says how much memory ours
takes for few files and for many of one size. Launch from the root of the project:

    python -m benchmarks.reading_logs [MB [FILES]]
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from benchmarks._log_archive import write_archive
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.ingestion import run_reader
from dlperf_study.dataset.ingestion.ingestion import ingest
from dlperf_study.logs.identification import identify_logs

TURNS, FACTOR = 3, 5.0
#: How many files of which size show whether memory depends on their number.
MEMORY_FILES, MEMORY_MEGABYTES = (1, 33, 1000), 1
POLL_SECONDS = 0.02
#: What an extractor of each format looks for.
NUMBER_OF = {
    "dllogger": r'"train\.total_ips": ([\d.]+)',
    "elasticdl": r"task_process time is ([\d.]+)",
    "gluonnlp_bert": r"throughput=([\d.]+)K tks/s",
    "horovod_synthetic": r"Iter #\d+: ([\d.]+) img/sec",
    "hugectr": r"iters\): ([\d.]+)s",
    "insightface_partial_fc": r"Total:([\d.]+) it/sec",
    "mindspore": r"per step time: ([\d.]+)",
    "mllog": r'"throughput": ([\d.]+)',
    "mxnet_speedometer": r"Speed: ([\d.]+) samples/sec",
    "nvidia_dll": r"(?:imgs_per_sec|throughput_train|total_ips) : ([\d.]+)",
    "oneflow_bert": r"throughput: ([\d.]+)",
    "oneflow_insightface": r"throughput: ([\d.]+)",
    "oneflow_resnet50": r"samples/s: ([\d.]+)",
    "paddle_bert": r"speed: ([\d.]+) steps/s",
    "paddle_fluid_benchmark": r"([\d.]+) examples/sed",
    "paddle_resnet50": r"(?:elapse|batch_cost:?) ([\d.]+) sec",
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
    """Measure both in turns, then the memory; return 1 when ours is less than FACTOR times as fast."""
    options = parse()
    if options.read:
        dataset(*options.read)
        return 0
    ratio = speed_ratio(options.megabytes, options.files)
    for files in MEMORY_FILES if options.memory else ():
        print(memory(files), flush=True)
    return int(ratio < FACTOR)


def speed_ratio(megabytes: float, files: int) -> float:
    """Measure both in turns on one archive, print the speeds, and return how many times as fast ours is (median)."""
    with tempfile.TemporaryDirectory() as folder:
        logs, outputs = Path(folder, "logs"), Path(folder, "outputs")
        logs.mkdir()
        formats = write_archive(logs, megabytes, files)
        size = sum(path.stat().st_size for path in formats) / 1e6
        turns = [(seconds(loop, formats), seconds(command, logs, outputs)) for _ in range(TURNS)]
        print(described(Dataset.load(StudyPaths(outputs / logs.name)), size, files), flush=True)
    slow, fast = (statistics.median(column) for column in zip(*turns, strict=True))
    cores = len(os.sched_getaffinity(0))
    print(f"loop {size / slow:.0f} MB/s in one process, ours {size / fast:.0f} MB/s on {cores} cores")
    ratios = [loop_seconds / our_seconds for loop_seconds, our_seconds in turns]
    ratio = statistics.median(ratios)
    print(f"ratio {ratio:.1f} (limit {FACTOR:.0f}; turn by turn {', '.join(f'{one:.1f}' for one in ratios)})")
    return ratio


def parse() -> argparse.Namespace:
    """Return how large the archive is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("megabytes", type=float, nargs="?", default=1000.0)
    parser.add_argument("files", type=int, nargs="?", default=64)
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="measure speed only")
    parser.add_argument("--read", type=Path, nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def loop(formats: Mapping[Path, str]) -> list[float]:
    """Return one mean per file."""
    return [mean(path, NUMBER_OF[name]) for path, name in formats.items()]


def mean(path: Path, pattern: str) -> float:
    """Return the mean of what a pattern finds in the lines of a file."""
    values = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = re.search(pattern, line)
            if match:
                values.append(float(match.group(1)))
    return statistics.fmean(values) if values else float("nan")


def command(logs: Path, outputs: Path) -> None:
    """Make the whole dataset, as a reader of logs does."""
    line = [sys.executable, "-m", "dlperf_study", "ingest", str(logs), "--yes", "--data-only"]
    environment = {**os.environ, OUTPUTS_VARIABLE: str(outputs)}
    subprocess.run(line, check=True, capture_output=True, env=environment)


def dataset(logs: Path, folder: Path) -> None:
    """Make the whole dataset in this process and its workers, of which there are some however small the archive is."""
    run_reader.WORTH_A_POOL_BYTES = 0
    identified = identify_logs(logs, accept=True)
    ingest(identified.study, identified.files, identified.folder, StudyPaths(folder), lambda size: None)


def described(made: Dataset, size: float, files: int) -> str:
    """Return what a dataset holds, so that nobody takes refusing for reading."""
    counted = int((made.runs["status"] == "completed").sum())
    return f"{size:.0f} MB in {files} files: {counted} runs counted, {len(made.steps)} rows of steps"


def seconds(work: Callable[..., object], *arguments: object) -> float:
    """Return the wall time of some work."""
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


def memory(files: int) -> str:
    """Return, in words, the most memory that log files of one size takes, always with a pool of processes."""
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder, "logs")
        logs.mkdir()
        write_archive(logs, MEMORY_MEGABYTES * files, files)
        reader = psutil.Popen([sys.executable, "-m", __spec__.name, "--read", str(logs), str(Path(folder, "outputs"))])
        peaks: dict[int, float] = {}
        while reader.poll() is None:
            peaks |= {one.pid: peak for one in [reader, *reader.children(recursive=True)] if (peak := peak_of(one))}
            time.sleep(POLL_SECONDS)
    own = peaks.pop(reader.pid)
    worker = f"{max(peaks.values()):.0f} MB" if peaks else "none"
    return f"{files} files of {MEMORY_MEGABYTES} MB: parent {own:.0f} MB, largest worker {worker}"


def peak_of(process: psutil.Process) -> float:
    """Return the most memory a process has had so far, in MB; 0 of one that has ended."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return 0.0
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(match[1]) / 1e3 if match else 0.0


if __name__ == "__main__":
    sys.exit(main())
