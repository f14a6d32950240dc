"""Folders of logs with constructed numbers, which must never be shown as measurements."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest
import yaml

from dlperf_study.core.paths import OUTPUTS_VARIABLE, PROJECT, StudyPaths
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.ingestion.ingestion import ingest
from dlperf_study.logs.identification import identify_logs

SAMPLES = PROJECT / "tests" / "logs" / "samples"
STEPS = 120
#: Samples/s of one device, and of each of several.
THROUGHPUT = 350.0

#: The required metadata of a configuration.
REQUIRED_METADATA = {
    "framework": "paddle",
    "model": "resnet50",
    "nodes": 1,
    "devices_per_node": 1,
    "parameter_servers": 0,
    "batch_per_device": 128,
    "precision": "fp32",
}

WriteLog = Callable[..., Path]
Ingest = Callable[..., Dataset]


def elapse_lines(devices, batch, seed, steps=STEPS, head=()):
    """Return the lines of one Paddle 1.8 log: five slow steps, then THROUGHPUT of each device within 1 %."""
    noise = random.Random(seed)
    seconds = [
        batch / THROUGHPUT * (3 if step < 5 else 1) * (1 + 0.01 * noise.uniform(-1, 1)) for step in range(steps + 1)
    ]
    return [
        *head,
        *(f"[Pass 0, train batch {k}] \tloss {7 - k / 100:.5f}, elapse {s:.4f} sec" for k, s in enumerate(seconds)),
    ]


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "logs"
    path.mkdir()
    return path


@pytest.fixture
def write_log(folder):
    """Return a function that writes the log of one run."""

    def write(relative_path, devices=1, batch=128, seed=None, **more):
        path = folder / relative_path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = elapse_lines(devices, batch, seed if seed is not None else crc32(relative_path.encode()), **more)
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


@pytest.fixture
def small_archive(write_log):
    """Three repetitions on one, eight and eighty devices, as DLPerf laid them out."""
    for case, devices in (("1n1g", 1), ("1n8g", 8), ("10n8g", 80)):
        for repetition in (1, 2, 3):
            write_log(f"{case}/r50_b128_fp32_{repetition}.log", devices, seed=devices * 10 + repetition)


@pytest.fixture
def paths(tmp_path, monkeypatch):
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path / "outputs"))
    return StudyPaths.of("logs")


@pytest.fixture
def ingested(folder, paths):
    """Return a function that accepts the proposed identity of the folder, ingests it and loads the dataset."""

    def do(logs=None):
        logs = logs or identify_logs(folder, confirm=True)
        ingest(logs.study, logs.files, logs.folder, paths, lambda read: None)
        return Dataset.load(paths)

    return do


def declare(folder, **changes):
    """Write the declared metadata of the logs of a folder; what is None is not declared."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {name: value for name, value in {**REQUIRED_METADATA, **changes}.items() if value is not None}
    (folder / "configuration.json").write_text(json.dumps(content))


def write_identity(file, runs):
    """Write a confirmed identity of one configuration with these runs."""
    configuration = {**REQUIRED_METADATA, "runs": runs}
    configuration_id = {
        "confirmed": True,
        "study": "logs",
        "scaling": "weak",
        "baseline": {},
        "configurations": [configuration],
    }
    file.write_text(yaml.safe_dump(configuration_id, sort_keys=False))


def refusals(dataset):
    """Return why runs were refused, by case and repetition; those that were counted are not among them."""
    runs = dataset.runs[dataset.runs["status"] != "completed"]
    assert runs["throughput"].isna().all()
    return {f"{run.nodes}n{run.devices_per_node}g {run.repetition}": run.reason for run in runs.itertuples()}


def slow_down(line, factor):
    """Return a line of Paddle 1.8 with a longer step."""
    head, _, seconds = line.partition("elapse ")
    return f"{head}elapse {float(seconds.split()[0]) * factor:.4f} sec"


def speedometer(throughputs):
    """Return the lines of MXNet's Speedometer."""
    return "".join(
        f"Epoch[0] Batch [{20 * k}]\tSpeed: {throughput:.2f} samples/sec\n"
        for k, throughput in enumerate(throughputs, 1)
    )


DOCS = (PROJECT / "docs" / "log-formats.md").read_text()
#: The format of the docs, and the line of a log that it is for.
DOCS_FORMAT = re.search(r"<!-- own format: .*?```yaml\n(.*?)```", DOCS, re.DOTALL)[1]
[_LINE] = re.findall(r"```text\n(.*?)\n```", DOCS[: DOCS.index(DOCS_FORMAT)].rpartition("## A format of your own")[2])


def write_docs_format(folder, *changed):
    """Write the format of the docs, with a text of it changed."""
    text = DOCS_FORMAT.replace(*changed) if changed else DOCS_FORMAT
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log_format.yaml").write_text(text)


def write_docs_log(path, steps=20):
    """Write lines like that of the docs: 512.3 images/s after a start-up of two, and an evaluation after each ten."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for step in range(1, steps + 1):
            line = _LINE.replace("it 20/", f"it {step * 20}/").replace(":05", f":{step:02}")
            file.write((line.replace("512.3", "100.0") if step < 3 else line) + "\n")
            if step % 10 == 0:
                file.write(line.replace("] it", "] eval it").replace("512.3", "9000.0") + "\n")
