"""Logs of other programs. The fuzzer starts from the samples."""

from pathlib import Path

import atheris

with atheris.instrument_imports(include=["dlperf_study.logs", "dlperf_study.dataset"]):
    from dlperf_study.core.errors import LogError
    from dlperf_study.dataset.ingestion.run_reader import RunToRead, read_printed_run
    from dlperf_study.logs.blocks import LogSource
    from dlperf_study.logs.formats import names
    from dlperf_study.logs.log_reader import read_log
    from dlperf_study.logs.metadata import Extras, LogMetadata, LogRun

from tests.fuzzing.fuzzer import fuzz_in_folder

SAMPLES = Path(__file__).parents[1] / "logs" / "samples"
DEVICES = {
    "nodes": 1,
    "devices_per_node": 2,
    "batch_per_device": 32,
    "parameter_servers": 0,
    "precision": "fp32",
    "model": "resnet50",
}


class Target:
    """Reads one input; its first byte is the index of the format to name, none if there are fewer formats."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "input"

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


if __name__ == "__main__":
    seeds = {sample.name: b"\xff" + sample.read_bytes() for sample in SAMPLES.rglob("*.log")}
    fuzz_in_folder(Target, seeds)
