"""A lock is a file that this user alone writes, and what it contains can't stop anybody."""

import fcntl
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dlperf_study.core.errors import BusyError
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.slurm.script import SlurmSettings
from dlperf_study.machines.supervision.locks import lock, runtime_folder, study_lock
from dlperf_study.machines.supervision.processes import CONTROLLER_MARK
from dlperf_study.report.pages import build
from tests.evidence_factory import example_study

HOLD = "import sys; from pathlib import Path; from dlperf_study.machines.supervision.locks import lock\n"
HOLD += "with lock(Path(sys.argv[1]), 'measuring', 'would mix'): print('held', flush=True); sys.stdin.read()"


def test_a_link_is_not_followed(tmp_path, refused):
    target = tmp_path / "precious"
    target.write_text("of somebody")
    (tmp_path / "lock").symlink_to(target)
    with refused(BusyError):
        lock(tmp_path / "lock", "measuring", "would mix").__enter__()
    assert target.read_text() == "of somebody"


def test_only_this_user_can_read_and_write_it(tmp_path):
    with lock(tmp_path / "lock", "measuring", "would mix"):
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    assert runtime_folder().stat().st_mode & 0o077 == 0


def test_a_study_on_a_queue_is_measured_by_one_command(tmp_path, monkeypatch):
    """Nodes are of each run alone: another study may be measured at the same time."""
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    monkeypatch.delenv(CONTROLLER_MARK, raising=False)
    cluster = Cluster("queue", 1, 1, device="cpu", device_name="a CPU", launcher="slurm", settings=SlurmSettings())
    refusal = pytest.raises(BusyError, match=f"process {os.getpid()} is measuring study mine")
    with study_lock("mine", cluster), study_lock("another", cluster), refusal:
        study_lock("mine", cluster).__enter__()


def test_a_report_is_built_by_one_process(tmp_path, monkeypatch):
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    example_study(paths := StudyPaths.of("example"), devices=(1,))
    purpose = "building the report of study example"
    refusal = pytest.raises(BusyError, match=f"process {os.getpid()} is {purpose}")
    with lock(paths.report_lock, purpose, "would mix their pages"), refusal:
        build("example")
    assert not paths.report.exists()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"pid": 1}', b"\x00\xff"])
def test_damaged_content_is_no_traceback(tmp_path, content, refused):
    path, pipe = tmp_path / "lock", subprocess.PIPE
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        path.write_bytes(content)
        with refused(BusyError):
            lock(path, "measuring", "would mix").__enter__()
        holder.kill()


def test_a_process_that_holds_a_lock_for_a_moment_and_says_nothing_stops_nobody(tmp_path):
    path = tmp_path / "lock"
    holder = path.open("w")
    fcntl.flock(holder, fcntl.LOCK_EX)
    release = threading.Timer(0.2, holder.close)
    release.start()
    with lock(path, "measuring", "would mix"):
        assert json.loads(path.read_text())["doing"] == "measuring"
    release.join()


def test_a_runtime_folder_of_somebody_else_is_refused(tmp_path, monkeypatch):
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 4321)
    folder = Path("/tmp") / f"dlperf_study-{uid + 4321}"
    folder.symlink_to(tmp_path)
    try:
        with pytest.raises(BusyError, match=folder.name):
            runtime_folder()
    finally:
        folder.unlink()
    # A folder that is no link, of the user who runs the test.
    folder.mkdir()
    try:
        with pytest.raises(BusyError, match=folder.name):
            runtime_folder()
    finally:
        folder.rmdir()


@pytest.mark.parametrize("has_another_start", [True, False])
def test_a_holder_is_named_only_if_the_process_with_its_id_is_that_one(tmp_path, has_another_start, snapshot):
    path = tmp_path / "lock"
    with lock(path, "measuring", "would mix"):
        content = json.loads(path.read_text())
        pid, _, started = content["process"].partition("-")
        content["process"] = f"{pid}-{int(started) - has_another_start}"
        path.write_text(json.dumps(content))
        with pytest.raises(BusyError) as busy:
            lock(path, "measuring", "would mix").__enter__()
    assert str(busy.value).replace(pid, "{pid}") == snapshot


def test_a_holder_on_another_machine_is_named_with_that(tmp_path):
    path = tmp_path / "lock"
    with lock(path, "measuring", "would mix"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"host": "elsewhere"}))
        with pytest.raises(BusyError, match=r"process \d+ is measuring on elsewhere; two at once would mix"):
            lock(path, "measuring", "would mix").__enter__()
