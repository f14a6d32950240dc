"""Files of trackers of experiments, in binary formats whose checksums no fuzzer guesses: the target writes them."""

import io
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["dlperf_study.logs"]):
    from dlperf_study.core.errors import LogError
    from dlperf_study.logs import event_files, wandb_files
    from dlperf_study.logs.log_files import find_log_files
    from dlperf_study.logs.log_reader import read_log
    from dlperf_study.logs.tracker_files import collect_tracker_runs

from tests.fuzzing.fuzzer import fuzz_in_folder

SAMPLES = Path(__file__).parents[1] / "logs" / "samples" / "today"
[EVENTS] = SAMPLES.glob("*.tfevents.*")
[WANDB] = SAMPLES.glob("*.wandb")
#: The first bytes of a file of Weights & Biases, and what is before each piece of a record.
WANDB_HEADER, WANDB_PIECE = WANDB.read_bytes()[:7], struct.Struct("<IHB")
#: So many bytes are the length of a record in an input, and at most so many are one piece.
LENGTH_BYTES, LONGEST_PIECE = 2, 0xFFFF
#: The files of a run in MLflow's file store.
OF_RUN = {
    "run/meta.yaml": "lifecycle_stage: active\nrun_id: 1\nstatus: 3\n",
    "run/metrics/throughput/samples_per_sec": "".join(
        f"{1795407925000 + 365 * step} 350 {step}\n" for step in range(9)
    ),
}


def records(data: bytes) -> Iterator[bytes]:
    """Yield the records of an input, each after its length."""
    file = io.BytesIO(data)
    while length := file.read(LENGTH_BYTES):
        yield file.read(int.from_bytes(length, "little"))


def of_records(contents: Iterable[bytes]) -> bytes:
    """Return records as an input has them."""
    return b"".join(len(content).to_bytes(LENGTH_BYTES, "little") + content for content in contents)


def event_file(data: bytes) -> bytes:
    """Return the records of an input as TensorBoard stores them."""
    parts = []
    for content in records(data):
        for part in (struct.pack("<Q", len(content)), content):
            parts.append(part + struct.pack("<I", event_files._masked_checksum(part)))
    return b"".join(parts)


def wandb_file(data: bytes) -> bytes:
    """Return the records of an input as Weights & Biases stores them: the first byte of each is its kind."""
    content = bytearray(WANDB_HEADER)
    for record in records(data):
        kind, piece = record[:1] or b"\1", record[1:LONGEST_PIECE]
        checksum = zlib.crc32(piece, zlib.crc32(kind))
        content += WANDB_PIECE.pack(checksum, len(piece), kind[0]) + piece
    return bytes(content)


#: The name of the file that an input becomes, and how.
FILES: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("events.out.tfevents.1", bytes),
    ("events.out.tfevents.1", event_file),
    ("run-1.wandb", bytes),
    ("run-1.wandb", wandb_file),
    ("mlflow.db", bytes),
    ("run/meta.yaml", bytes),
    ("run/metrics/throughput/samples_per_sec", bytes),
    ("metrics.csv", bytes),
    ("trainer_state.json", bytes),
)


class Target:
    """Reads the runs in a folder with one input, which is one of these files by its first byte."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in OF_RUN:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)

    def __call__(self, data: bytes) -> None:
        name, make = FILES[(data[0] if data else 0) % len(FILES)]
        for path, content in OF_RUN.items() if name in OF_RUN else ():
            (self._folder / path).write_text(content)
        (self._folder / name).write_bytes(make(data[1:]))
        try:
            for log in collect_tracker_runs(find_log_files(self._folder)):
                read_log(log.source)
        except LogError:
            return
        finally:
            for path in {*OF_RUN, name}:
                (self._folder / path).unlink(missing_ok=True)


def seeds() -> dict[str, bytes]:
    """Return the samples, each after the byte that selects its file, as stored and as records."""
    events, wandb = EVENTS.read_bytes(), WANDB.read_bytes()
    with EVENTS.open("rb") as file:
        event_records = [content for _, content in event_files._records(file)][:30]
    with WANDB.open("rb") as file:
        file.read(len(WANDB_HEADER))
        wandb_records = [b"\1" + content for _, content in wandb_files._records(file)]
    contents = [events, of_records(event_records), wandb, of_records([*wandb_records[:20], wandb_records[-1]])]
    contents += [database(), *(content.encode() for content in OF_RUN.values())]
    contents += [sample.read_bytes() for pattern in ("*.csv", "*state*.json") for sample in SAMPLES.glob(pattern)][:1]
    contents += [b'{"log_history": [{"loss": 1.5, "step": 1, "train_samples_per_second": 350.0}]}']
    return {f"seed-{kind}": bytes([kind]) + content for kind, content in enumerate(contents)}


def database() -> bytes:
    """Return a database as MLflow has it, with one run of two steps."""
    with closing(sqlite3.connect(":memory:")) as written:
        # The smallest pages: an input has no more than a few.
        written.execute("PRAGMA page_size = 512")
        written.execute("CREATE TABLE runs (run_uuid TEXT, status TEXT, start_time INT, lifecycle_stage TEXT)")
        written.execute("CREATE TABLE metrics (key TEXT, value, timestamp INT, run_uuid TEXT, step INT, is_nan)")
        written.execute("INSERT INTO runs VALUES ('1', 'FINISHED', 0, 'active')")
        for step in range(2):
            values = (350.0, 1795407925000 + 365 * step, step)
            written.execute("INSERT INTO metrics VALUES ('samples_per_sec', ?, ?, '1', ?, 0)", values)
        written.commit()
        return written.serialize()


if __name__ == "__main__":
    fuzz_in_folder(Target, seeds())
