"""Feeds bytes from a fuzzer to the reader of logs: whatever they are, it reads or refuses them and never crashes.

atheris watches which code of the reader the bytes reach, and changes them towards code that they did not reach yet. It
starts from the samples. It is not one of the tests, which must have the same result every time. Launch from the root:

    python -m tests.fuzz_logs -max_total_time=300 [other options of libFuzzer] [folder of bytes to continue from]
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["dlperf_study.logs", "dlperf_study.ingest"]):
    from dlperf_study.errors import LogError
    from dlperf_study.ingest.identity import Extras, LogMetadata, LogRun
    from dlperf_study.ingest.run_reader import RunToRead, read_printed_run
    from dlperf_study.logs.formats import names
    from dlperf_study.logs.log_reader import read_log
    from dlperf_study.logs.log_source import LogSource

SAMPLES = Path(__file__).parent / "logs" / "samples"
#: Longer inputs reach no code that a few lines don't, and take longer.
LONGEST_BYTES = 1 << 14
DEVICES = {"nodes": 1, "devices_per_node": 2, "batch_per_device": 32, "precision": "fp32", "model": "resnet50"}


class Target:
    """Reads one input; its first byte is the index of the format to name, none if there are fewer formats."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __call__(self, data: bytes) -> None:
        self._file.write_bytes(data[1:])
        formats = names()
        name = formats[data[0]] if data and data[0] < len(formats) else ""
        metadata = LogMetadata(DEVICES, (), "fuzz", Extras(format=name, tokens_per_sample=512))
        source = LogSource(self._file)
        try:
            read_log(source, name)
        except LogError:
            return
        read_printed_run(RunToRead(metadata, LogRun(1, ("fuzz",)), (source,), len(data)))


def main() -> None:
    """Fuzz until the given time has passed, or the reader crashes; the input of the crash is kept as a file."""
    with tempfile.TemporaryDirectory() as folder:
        seeds = Path(folder, "seeds")
        seeds.mkdir()
        for sample in SAMPLES.glob("*.log"):
            (seeds / sample.name).write_bytes(b"\xff" + sample.read_bytes()[: LONGEST_BYTES - 1])
        # The memory of atheris itself grows from run to run, so that the total says nothing about the reader.
        options = [f"-max_len={LONGEST_BYTES}", "-rss_limit_mb=0", *sys.argv[1:], str(seeds)]
        atheris.Setup([sys.argv[0], *options], Target(Path(folder, "input")))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
