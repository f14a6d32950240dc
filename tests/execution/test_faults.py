"""What may go wrong while a study is measured: the right outcome, nothing lost, nothing left, and on with it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from dlperf_study.core.paths import OUTPUTS_VARIABLE, RunPaths
from dlperf_study.execution.planning import load_cluster
from dlperf_study.machines.supervision.processes import AGENT, CONTROLLER_MARK, marked
from dlperf_study.study.configuration import Configuration
from tests.command_line import LIMIT_SECONDS, ONE, SERVED, TWO, Workplace, finish, wait_for
from tests.conftest import changed_signals, left_over
from tests.execution.constructed import missing_runs
from tests.small_disk import fill, mounted_disk

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)

MEGABYTE = 1_000_000
INTERRUPTED = "interrupted; no training process is left on this machine. The same command continues.\n"


def evidence(place: Workplace, *parts: str) -> dict[str, bytes]:
    """Return the runs of some configurations, every byte."""
    folders = [place.configuration(part).folder / "runs" for part in parts]
    return {str(file): file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file()}


def assert_completes(place: Workplace, part: str) -> None:
    """The same command measures what is missing, and then no run is."""
    assert_completed(place, part, place.command("run --no-report"))


def assert_completed(place: Workplace, part: str, done: "subprocess.CompletedProcess[str]") -> None:
    assert done.returncode == 0, done.stderr + done.stdout
    assert "[1/1]" in done.stdout
    assert place.run_facts(part)["status"] == "completed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OUTPUTS_VARIABLE, str(place.outputs))
        for each in (ONE, TWO, SERVED):
            measured = Configuration.from_mapping(place.run_facts(each)["configuration"])
            assert missing_runs(measured, load_cluster(measured.cluster)) == []


@pytest.mark.usefixtures("signals_are_not_ignored")
def test_a_driver_that_is_ended_in_any_way_leaves_nothing_and_the_study_goes_on(measured, tmp_path):
    place = measured.copy(tmp_path / "one", without=ONE)
    before = evidence(place, TWO, SERVED)
    at_once = (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT)
    for numbers in ((signal.SIGKILL,), (signal.SIGQUIT,), (signal.SIGTERM,), (signal.SIGHUP,), at_once):
        controller = place.start("run --no-report")
        place.first_rank()
        for number in numbers:
            controller.send_signal(number)
        ended = finish(controller)
        if numbers in ((signal.SIGKILL,), (signal.SIGQUIT,)):
            assert ended.returncode == -numbers[0]
            wait_for(lambda: not left_over(), "everything to end", 20)
        else:
            assert (ended.returncode, ended.stderr) == (130, INTERRUPTED)
            assert not left_over()
    last = place.start("run --no-report")
    assert_refused_meanwhile(last, place, measured.copy(tmp_path / "other", without=ONE))
    assert_completed(place, ONE, finish(last))
    assert place.run_facts(ONE)["load"]["orphans_ended"] == []
    assert evidence(place, TWO, SERVED) == before
    kept = sorted((place.configuration(ONE).folder / "interrupted").iterdir())
    assert [folder.name for folder in kept] == ["1", "2", "3", "4", "5"]
    assert not any((folder / "run.json").exists() for folder in kept)


def assert_refused_meanwhile(controller: "subprocess.Popen[str]", place: Workplace, other: Workplace) -> None:
    """Only one study measures at a time."""
    place.first_rank()
    second = other.command("run --no-report", busy=True)
    assert second.returncode == 1
    assert second.stderr == (
        f"error: process {controller.pid} is measuring study tiny on this machine; "
        "two at once would spoil each other. Wait for it to end, as --wait does (WAIT=1 with make), or end it.\n"
    )


def test_a_background_job_is_ended_by_sigint_and_outlives_its_terminal(measured, tmp_path):
    """A shell lets it ignore SIGINT, which only who means it sends then, and ``nohup`` lets it ignore SIGHUP."""
    place = measured.copy(tmp_path, without=ONE)
    for number in (signal.SIGINT, signal.SIGHUP):
        with changed_signals(signal.SIG_IGN, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            controller = place.start("run --no-report")
        place.first_rank()
        controller.send_signal(number)
        ended = finish(controller)
        if number == signal.SIGINT:
            assert (ended.returncode, ended.stderr) == (130, INTERRUPTED)
            assert not left_over()
    assert_completed(place, ONE, ended)


def test_an_impatient_user_at_a_terminal_leaves_nothing_either(measured, tmp_path):
    place = measured.copy(tmp_path, without=ONE)
    controller = place.start("run --no-report")
    place.first_rank()
    for _ in range(3):
        os.killpg(controller.pid, signal.SIGINT)
    ended = finish(controller)
    assert (ended.returncode, ended.stderr) == (130, INTERRUPTED)
    assert not left_over()


def _kernel_of(rank: psutil.Process) -> psutil.Process:
    """Return the kernel above a rank, the parent of what supervises its node agent."""
    _, supervisor = [process for process in rank.parents() if AGENT in process.cmdline()]
    assert supervisor in marked(CONTROLLER_MARK)
    kernel = supervisor.parent()
    assert kernel is not None
    return kernel


def _printed(run: RunPaths) -> int:
    """Return how many ranks have printed something."""
    return sum(log.stat().st_size > 0 for log in run.process_logs)


def test_what_a_killed_kernel_a_killed_and_a_hanging_rank_leave_is_measured_again(measured, tmp_path):
    place = measured.copy(tmp_path, without=TWO)
    controller = place.start("run --no-report")
    _kernel_of(place.first_rank()).kill()
    ended = finish(controller)
    facts = place.run_facts(TWO)
    assert (ended.returncode, facts["status"]) == (1, "killed")
    assert "kernel died" in facts["reason"].lower()
    assert f"run 1 killed: {facts['reason']}" in ended.stderr

    killed = place.start("run --no-report")
    first = place.first_rank()
    wait_for(lambda: _printed(place.configuration(TWO).run(1)) == 2, "both ranks to print something")
    first.kill()
    ended = finish(killed)
    facts = place.run_facts(TWO)
    assert (ended.returncode, facts["status"]) == (1, "failed")
    assert facts["reason"] == "rank-0 was ended by signal SIGKILL"
    assert facts["ranks_seen"] == []
    assert set(facts["tail"]) == {"rank-0", "rank-1"}
    assert f"run 1 failed: {facts['reason']}" in ended.stderr

    _set_timeout(place, 12)
    hanging = place.start("run --no-report")
    place.first_rank().suspend()
    ended = finish(hanging)
    facts = place.run_facts(TWO)
    assert (ended.returncode, facts["status"], facts["reason"]) == (1, "timeout", "not finished after 12 s")

    _set_timeout(place, 120)
    assert_completes(place, TWO)
    statuses = [RunPaths(f).run_file for f in sorted((place.configuration(TWO).folder / "interrupted").iterdir())]
    assert [file.exists() for file in statuses] == [True, True, True]


def _set_timeout(place: Workplace, seconds: int) -> None:
    """Change the timeout, which doesn't make another configuration."""
    old = place.study_file.read_text()
    new = old.replace("timeout_seconds: 120", f"timeout_seconds: {seconds}")
    place.study_file.write_text(new.replace("timeout_seconds: 12}", f"timeout_seconds: {seconds}}}"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 32 MB."""
    with mounted_disk(tmp_path / "disk", "32m") as folder:
        yield folder


def test_a_full_disk(measured, small_disk):
    place = measured.copy(small_disk, without=ONE)
    before = evidence(place, TWO, SERVED)
    filler = small_disk / "filler"

    filler.write_bytes(bytes(16 * MEGABYTE))
    ended = place.command("run --no-report")
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert "MB free on this disk; a run needs 20" in line
    assert "Traceback" not in ended.stderr

    filler.unlink()
    controller = place.start("run --no-report")
    place.first_rank()
    fill(filler)
    ended = finish(controller)
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert "No space left on device" in line or "MB free on this disk" in line
    assert not left_over()

    filler.unlink()
    assert_completes(place, ONE)
    assert evidence(place, TWO, SERVED) == before
