"""``python -m dlperf_study ingest``: it proposes, waits for a yes, then builds."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from threading import Timer

import pytest

from dlperf_study.__main__ import main
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.signals import INTERRUPTIONS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.machines.supervision.locks import lock
from tests.logs.ingest.conftest import folder, paths, small_archive, write_log

__all__ = ["folder", "paths", "small_archive", "write_log"]


def stable(output: str) -> str:
    """Return an output without what a new parameter changes: the names of parameters and the digests of identities."""
    lines = [line for line in output.splitlines() if not line.startswith("Not stated")]
    return re.sub(r"-[0-9a-f]{8}\b", "", "\n".join(lines))


@pytest.mark.usefixtures("small_archive")
def test_nothing_is_ingested_before_a_person_confirms(folder, paths, capsys, snapshot):
    assert main(["ingest", str(folder), "--data-only"]) == 1
    assert stable(capsys.readouterr().out) == snapshot(name="proposal")
    assert (folder / "metadata.yaml").exists()
    assert not paths.folder.exists()
    assert main(["ingest", str(folder), "--data-only", "--yes", "--like-dlperf"]) == 0
    assert capsys.readouterr().out == snapshot(name="ingested")
    assert len(Dataset.load(paths).runs) == 9
    assert json.loads((paths.like_dlperf / "bz128_result.json").read_text())["r50"]["1n1g"]["speedup"] == 1.0


@pytest.mark.usefixtures("small_archive")
def test_refused_runs_are_printed_with_their_reason_and_none_usable_is_an_error(folder, paths, capsys, snapshot):
    logs = sorted(folder.rglob("*.log"))
    logs[0].write_text(logs[0].read_text()[:2000])
    assert main(["ingest", str(folder), "--data-only", "--yes"]) == 0
    output = capsys.readouterr().out
    [refused] = [line for line in output.splitlines() if line.startswith("rejected: ")]
    assert logs[0].relative_to(folder).as_posix() in refused
    assert stable(output) == snapshot(name="one refused")
    for log in logs:
        log.write_text(log.read_text()[:2000])
    assert main(["ingest", str(folder), "--data-only", "--yes"]) == 1
    assert capsys.readouterr().err == snapshot(name="none usable")


@pytest.mark.usefixtures("small_archive")
def test_a_confirmed_file_needs_no_option_and_a_name_can_be_given(folder, paths):
    main(["ingest", str(folder), "--data-only"])
    file = folder / "metadata.yaml"
    file.write_text(file.read_text().replace("confirmed: false", "confirmed: true"))
    assert main(["ingest", str(folder), "--data-only", "--name", "other"]) == 0
    assert Dataset.load(StudyPaths.of("other")).plan.study == "other"


@pytest.mark.usefixtures("small_archive")
def test_an_ingested_study_is_named_by_its_folder(folder, paths, capsys, snapshot):
    main(["ingest", str(folder), "--data-only", "--yes", "--name", "other"])
    capsys.readouterr()
    assert main(["report", "other", "--data-only"]) == 1
    assert capsys.readouterr().err == snapshot
    assert main(["report", "another", "--data-only"]) == 1
    assert "no study 'another'" in capsys.readouterr().err


@pytest.mark.usefixtures("small_archive")
def test_a_dataset_alone_imports_nothing_that_only_a_report_needs(folder, paths):
    command = f"main(['ingest', {str(folder)!r}, '--data-only', '--yes'])"
    code = f"import sys; from dlperf_study.__main__ import main; {command}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"papermill", "matplotlib", "paddle"} & set(done.stdout.split()) == set()
    assert len(Dataset.load(paths).runs) == 9


@pytest.mark.usefixtures("small_archive")
def test_two_ingestions_of_one_study_are_not_mixed(folder, paths, capsys):
    with lock(paths.ingestion_lock, "ingesting logs into study logs", "would mix their tables"):
        assert main(["ingest", str(folder), "--data-only", "--yes"]) == 1
    assert "into study logs" in capsys.readouterr().err
    assert not paths.dataset.exists()
    assert main(["ingest", str(folder), "--data-only", "--yes"]) == 0


def test_an_error_is_one_message(folder, paths, capsys, snapshot):
    assert main(["ingest", str(folder / "nowhere")]) == 1
    assert main(["ingest", str(folder)]) == 1
    errors = capsys.readouterr().err
    assert [line.partition(" ")[0] for line in errors.splitlines()] == ["error:"] * 2
    assert errors == snapshot


@pytest.fixture
def handlers() -> Iterator[None]:
    """Restore the handlers of the signals after the test."""
    before = {signal_number: signal.getsignal(signal_number) for signal_number in INTERRUPTIONS}
    yield
    for signal_number, handler in before.items():
        signal.signal(signal_number, handler)


@pytest.mark.usefixtures("small_archive", "handlers")
def test_an_interrupted_ingestion_starts_over(folder, paths, capsys, snapshot):
    Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with lock(paths.ingestion_lock, "a test", "would mix"):  # It waits for it without end.
        assert main(["ingest", str(folder), "--yes", "--wait"]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == snapshot
