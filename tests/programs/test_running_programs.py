"""Programs with a fault each, measured as a user does: outcome, message, no process left, and no secret anywhere."""

import gzip
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest

from dlperf_study.core.paths import RunPaths
from dlperf_study.study.secrets import WITHHELD
from tests.command_line import CLUSTER, LIMIT_SECONDS, Workplace, finish, wait_for, workplace
from tests.conftest import left_over
from tests.programs import faulty_program

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)

SECRET = "s3cret-of-a-program"
RECORDED = """\
title: Faults
about: Programs with faults.
sections: [scaling]
scaling: weak
program:
  name: toy
  folder: repository
  command: "{runner} {script} --fault {fault} --rank {rank} --steps {steps}"
  launch: per-rank
  pass_environment: [MY_TOKEN]
  environment: {GATE: GATE_FILE}
constants: {batch_per_device: 4, devices_per_node: 2, runner: PYTHON, script: train.py}
factors: {fault: [FAULTS]}
baseline: [{values: {}}]
measurement: {warmup_steps: 2, measured_steps: 10, repetitions: 1, timeout_seconds: 5}
"""
LOG_FORMAT = """\
name: toy
lines: ["step {step} took {time} ms, loss {loss}"]
numbers: {time: {unit: ms/step, of: job}}
"""
NO_SCRIPT, NO_COMMAND = "no script", "no command"
INCLUDED = f"""\
include: [{{fault: {NO_SCRIPT}, script: missing.py}}, {{fault: {NO_COMMAND}, runner: no-such-command}}]
"""
#: The outcome of each fault, and the ranks that recorded all steps.
OUTCOMES = {
    "none": ("completed", [0, 1]),
    "prints": ("completed", [0, 1]),
    "children": ("completed", [0, 1]),
    "crash": ("failed", None),
    "leak": ("failed", None),
    "abort": ("failed", None),
    "early": ("failed", []),
    "silent": ("failed", []),
    "half": ("failed", [0]),
    "alone": ("failed", [0]),
    "ignored": ("failed", []),
    "absent": ("failed", []),
    "noisy": ("failed", None),
    "hang": ("timeout", None),
    NO_SCRIPT: ("failed", []),
    NO_COMMAND: ("failed", []),
}
#: The outcome of each way to print steps.
PRINTED_OUTCOMES = {"printed": "completed", "few": "failed", "changed": "failed", "mute": "failed"}


def faulty_workplace(folder: Path, faults: list[str], end: str = "", repetitions: int = 1) -> Workplace:
    """Write a repository with the program of all faults, and a study of some of them."""
    repository = folder / "repository"
    (repository / "data").mkdir(parents=True)
    shutil.copy(faulty_program.__file__, repository / "train.py")
    (repository / "data" / "ignored.bin").touch()
    (repository / ".gitignore").write_text("data/\n")
    subprocess.run(("git", "-C", str(repository), "init", "-q"), check=True)
    study = RECORDED.replace("FAULTS", ", ".join(faults)).replace("PYTHON", sys.executable)
    study = study.replace("GATE_FILE", str(folder / "gate")).replace("repetitions: 1", f"repetitions: {repetitions}")
    return workplace(folder, study + end, CLUSTER)


@pytest.fixture(scope="module")
def measured_faults(tmp_path_factory):
    """All faults, measured in one study, with its report."""
    declared = [fault for fault in OUTCOMES if fault not in (NO_SCRIPT, NO_COMMAND)]
    place = faulty_workplace(tmp_path_factory.mktemp("faults"), declared, INCLUDED)
    place.first = place.command("run", MY_TOKEN=SECRET)
    return place


def runs(place: Workplace) -> dict[str, RunPaths]:
    """Return the runs of a study that count, by fault and repetition: ``none 1``."""
    folders: dict[str, RunPaths] = {}
    for file in sorted(place.study.configurations.glob("*/runs/*/run.json")):
        settings = json.loads(json.loads(file.read_text())["configuration"]["settings"])
        folders[f"{settings['fault']} {file.parent.name}"] = RunPaths(file.parent)
    return folders


def validate_record(run: RunPaths) -> dict[str, Any]:
    return dict(json.loads(run.run_file.read_text()))


def reason_of(run: RunPaths) -> str:
    """Return why a run failed, whichever rank failed first; its folder has the hash of a path in its name."""
    reason = str(validate_record(run)["reason"]).replace(str(run.folder), "{run}")
    return re.sub(r"^rank-[01] (exited with code \d+: |printed )(rank-[01]: )?", r"a rank \1", reason)


@pytest.mark.parametrize("fault", OUTCOMES)
def test_the_outcome_of_each_fault_and_its_message(measured_faults, snapshot, fault):
    run = runs(measured_faults)[f"{fault} 1"]
    status, ranks = OUTCOMES[fault]
    assert validate_record(run)["status"] == status
    assert ranks in (None, validate_record(run)["ranks_seen"])
    assert reason_of(run) == snapshot


def test_no_process_is_left_and_what_is_printed_without_end_is_kept_in_small_records(measured_faults):
    """Also daemons with an environment of their own, which no mark finds."""
    assert not [process for process in psutil.process_iter() if "7531" in process_words(process)]
    run = runs(measured_faults)["noisy 1"]
    assert sum(log.stat().st_size for log in run.process_logs) < faulty_program.PRINTED_BYTES
    assert run.run_file.stat().st_size < 100_000
    assert not [file for file in run.home.folder.glob("*.*") if file.stat().st_size > 1_000_000]


def process_words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_a_secret_reaches_the_program_and_neither_evidence_nor_report(measured_faults):
    assert measured_faults.first.returncode == 1
    printed = runs(measured_faults)["prints 1"].folder / "rank-0.log"
    assert printed.read_text() == f"token: {WITHHELD}\n"
    assert reason_of(runs(measured_faults)["leak 1"]).endswith(f"bad batch {WITHHELD}")
    assert (measured_faults.study.report / "index.html").exists()
    assert files_with_secret(measured_faults) == []
    assert SECRET not in measured_faults.first.stdout + measured_faults.first.stderr


def files_with_secret(place: Workplace) -> list[Path]:
    return [file for file in place.outputs.rglob("*") if file.is_file() and SECRET.encode() in readable(file)]


def readable(file: Path) -> bytes:
    """Return the content of a file, decompressed."""
    if file.suffix == ".parquet":
        return str(pd.read_parquet(file).to_csv()).encode()
    return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()


def test_what_programs_print_and_what_of_it_is_no_step(tmp_path, snapshot):
    place = faulty_workplace(tmp_path, list(PRINTED_OUTCOMES))
    study = place.study_file.read_text().replace("  launch:", "  timing: log_format.yaml\n  launch:")
    place.study_file.write_text(study)
    (tmp_path / "log_format.yaml").write_text(LOG_FORMAT)
    ended = place.command("run --no-report")
    assert ended.returncode == 1, ended.stderr
    statuses = {fault.partition(" ")[0]: validate_record(run)["status"] for fault, run in runs(place).items()}
    assert statuses == PRINTED_OUTCOMES
    assert {fault: reason_of(run) for fault, run in runs(place).items()} == snapshot


def started(place: Workplace) -> "subprocess.Popen[str]":
    """Start a study whose first program waits at its gate until this test has done its work."""
    (place.folder / "gate").touch()
    controller = place.start("run --no-report", MY_TOKEN=SECRET)
    wait_for(lambda: any(log.stat().st_size for log in place.study.configurations.glob("*/runs/*/*.log")), "a program")
    return controller


def test_an_interrupted_study_goes_on_and_a_measured_one_has_nothing_to_do(tmp_path):
    place = faulty_workplace(tmp_path, ["none"])
    for number, code in ((signal.SIGKILL, -9), (signal.SIGINT, 130)):
        controller = started(place)
        controller.send_signal(number)
        assert finish(controller).returncode == code
        wait_for(lambda: not left_over(), "everything to end", 20)
        assert runs(place) == {}
    (tmp_path / "gate").unlink()
    assert place.command("run --no-report", MY_TOKEN=SECRET).returncode == 0
    # Where all processes were killed at once, it is the next call that replaces what they had printed.
    assert files_with_secret(place) == []
    assert list(runs(place)) == ["none 1"]
    assert "nothing to do" in place.command("run --no-report", busy=True).stdout


def test_an_edit_reaches_no_run_of_the_study_and_then_all_are_measured_again(tmp_path):
    place = faulty_workplace(tmp_path, ["none"], repetitions=2)
    controller = started(place)
    script = tmp_path / "repository" / "train.py"
    script.write_text(script.read_text() + "    print('edited')\n")
    (tmp_path / "gate").unlink()
    assert finish(controller).returncode == 0
    digests = [validate_record(run)["program"]["digest"] for run in runs(place).values()]
    assert (len(digests), len(set(digests))) == (2, 1)
    assert not [log for run in runs(place).values() for log in run.process_logs if "edited" in log.read_text()]
    assert place.command("run --no-report").returncode == 0
    edited = [validate_record(run)["program"]["digest"] for run in runs(place).values()]
    assert (len(edited), len(set(edited)), set(edited) & set(digests)) == (2, 1, set())
    assert all("edited" in log.read_text() for run in runs(place).values() for log in run.process_logs)
