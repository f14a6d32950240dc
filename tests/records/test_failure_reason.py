"""What a failed task says of itself."""

import os
from pathlib import Path

import pytest

from dlperf_study.core.paths import RunPaths
from dlperf_study.machines.supervision.processes import ending_words
from dlperf_study.records.failure_reason import LONGEST_EXCEPTION, add_last_exception, refused_allocation
from dlperf_study.study.job import JobResult, RunStatus

REASON = "node-1 on dls2 exited with code 1"
TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n'


def write_logs(folder: Path, logs: dict[str, str]) -> None:
    """Write the logs of tasks that fell silent one after the other."""
    for second, (name, text) in enumerate(logs.items()):
        (folder / f"{name}.log").write_text(text)
        os.utime(folder / f"{name}.log", (second, second))


def reason(
    folder: Path,
    logs: dict[str, str],
    reason: str = REASON,
    status: RunStatus = RunStatus.FAILED,
    code: int = 1,
    task: str = "node-1",
) -> str:
    """Return the reason of a run whose tasks printed these logs, one after the other."""
    write_logs(folder, logs)
    codes = {"node-0": None, "node-1": code, "horovodrun": code}
    return add_last_exception(JobResult(status, reason, 1.0, codes, failed_task=task), RunPaths(folder)).reason


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (f"{TRACEBACK}ValueError: the batch is 3\n", "ValueError: the batch is 3"),
        (
            f"{TRACEBACK}dlperf_study.core.errors.RunError: late\nLAUNCH INFO bye\n",
            "dlperf_study.core.errors.RunError: late",
        ),
        (f"{TRACEBACK}KeyError: 1\n\n{TRACEBACK}RuntimeError: 2\n", "RuntimeError: 2"),
        ("[1]<stderr>:RuntimeError: gloo\n", "RuntimeError: gloo"),
        ("[rank1]: RuntimeError: gloo\n", "RuntimeError: gloo"),
        ("[0]<stderr>:ValueError: no\nRuntimeError: Horovod detected that a process exited\n", "ValueError: no"),
        ("[0]<stderr>:epoch 1\nRuntimeError: Horovod can't reach node2\n", "RuntimeError: Horovod can't reach node2"),
        ("FatalError: `Segmentation fault` is detected by the operating system.\n", "FatalError: `Segmentation fault`"),
        ("/usr/bin/python3: No module named dlperf_study\n", "No module named dlperf_study"),
        ("/usr/bin/python3: can't open file '/a/train.py': [Errno 2] No such file or directory\n", "can't open file"),
        ("train.sh: line 3: no-such-command: command not found\n", "no-such-command: command not found"),
        (
            f"{TRACEBACK}ValueError: 1\n{TRACEBACK}torch.distributed.elastic.errors.ChildFailedError: \n",
            "ValueError: 1",
        ),
        (f"{TRACEBACK}KeyboardInterrupt\n", "KeyboardInterrupt"),
    ],
)
def test_the_last_exception_of_a_task_is_the_reason(tmp_path, printed, words):
    reason_found = reason(tmp_path, {"node-0": "ValueError: of another task\n", "node-1": printed})
    assert reason_found.startswith(f"{REASON}: {words}")


@pytest.mark.parametrize(
    "printed",
    [
        "RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 300000ms for recv operation",
        "torch.distributed.DistBackendError: [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)",
    ],
)
def test_a_collective_that_took_too_long_names_the_key_of_its_limit(tmp_path, printed):
    limit = "; the limit is start_up.collective_seconds of the cluster file"
    assert reason(tmp_path, {"node-1": f"{printed}\n"}) == f"{REASON}: {printed}{limit}"


def test_a_long_exception_keeps_its_beginning_and_what_to_do(tmp_path):
    message = f"ValueError: no images; {'the folder is empty, ' * 100}set image_dataset of the study"
    reason_found = reason(tmp_path, {"node-1": f"{TRACEBACK}{message}\n"})
    assert reason_found.startswith(f"{REASON}: ValueError: no images; ")
    assert reason_found.endswith("set image_dataset of the study")
    assert len(reason_found) <= len(f"{REASON}: ") + LONGEST_EXCEPTION


def test_of_ranks_the_one_that_fell_silent_first_is_the_cause(tmp_path):
    logs = {
        "node-1-rank-1": "ValueError: the cause\n",
        "node-1-rank-0": "RuntimeError: connection closed by peer\n",
        "node-1": "torch.distributed.elastic.errors.ChildFailedError: \n",
    }
    assert reason(tmp_path, logs) == f"{REASON}: ValueError: the cause"


def test_a_rank_that_others_ended_is_not_the_cause(tmp_path):
    ended = "RuntimeError: peer has gone\nFatalError: `Termination signal` is detected by the operating system.\n"
    logs = {"node-1-rank-0": ended, "node-1-rank-1": "ValueError: the cause\n"}
    assert reason(tmp_path, logs) == f"{REASON}: ValueError: the cause"


def test_of_ranks_without_a_launcher_the_first_to_fall_silent_is_named(tmp_path):
    logs = {"rank-1": "ValueError: the cause\n", "rank-0": "RuntimeError: connection closed by peer\n"}
    codes = {"rank-0": 1, "rank-1": 1}
    write_logs(tmp_path, logs)
    for task, words in {"rank-0": "rank-1: ValueError: the cause", "rank-1": "ValueError: the cause"}.items():
        failed = JobResult(RunStatus.FAILED, "failed", 1.0, codes, failed_task=task)
        assert add_last_exception(failed, RunPaths(tmp_path)).reason == f"failed: {words}"


def test_the_ranks_of_horovodrun_have_logs_of_their_own(tmp_path):
    logs = {"rank-0-stderr": "fine\n", "rank-1-stderr": "MemoryError\n", "horovodrun": "RuntimeError: it ended\n"}
    reason_found = reason(tmp_path, logs, "horovodrun exited with code 1", task="horovodrun")
    assert reason_found == "horovodrun exited with code 1: MemoryError"


@pytest.mark.parametrize(
    ("words", "status", "task"),
    [
        (REASON, RunStatus.KILLED, "node-1"),
        ("not finished after 3 s", RunStatus.TIMEOUT, ""),
        ("job 7: NODE_FAIL: node-1 on dls2 exited with code 1", RunStatus.FAILED, ""),
        ("node-0 on dls1 exited with code 1", RunStatus.FAILED, "node-0"),
    ],
)
def test_no_other_reason_is_explained_by_an_exception(tmp_path, words, status, task):
    assert reason(tmp_path, {"node-1": "ValueError: why\n"}, words, status, task=task) == words


@pytest.mark.parametrize(("code", "is_added"), [(1, True), (241, True), (143, True), (247, False), (-9, False)])
def test_a_signal_says_more_than_what_others_died_of(tmp_path, code, is_added):
    """But for the one by which a launcher ends its own ranks."""
    job_reason = f"node-1 on dls2 {ending_words(code)}"
    reason_found = reason(tmp_path, {"node-1": "RuntimeError: peer has gone\n"}, job_reason, code=code)
    assert reason_found == job_reason + (": RuntimeError: peer has gone" if is_added else "")


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (
            "[rank0]: RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate "
            "memory: you tried to allocate 1572864 bytes. Error code 12 (Cannot allocate memory)",
            "RuntimeError: [enforce fail at alloc_cpu.cpp:127]",
        ),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "torch.OutOfMemoryError: CUDA"),
        ("RuntimeError: CUDA error: out of memory", "RuntimeError: CUDA error"),
        ("[1]<stderr>:torch.cuda.OutOfMemoryError: CUDA out of memory.", "torch.cuda.OutOfMemoryError"),
        (
            "MemoryError: (ResourceExhausted) Fail to alloc memory of 104857600 size, error code is 12.",
            "MemoryError: (",
        ),
        ("ResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 2.0GB", "ResourceExhaustedError:"),
        (
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[9]",
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM",
        ),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 100. MiB", "numpy._core._exceptions._Arr"),
        ("terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc", "terminate"),
        (f"MemoryError\n{TRACEBACK}torch.distributed.elastic.errors.ChildFailedError: \n", "MemoryError"),
    ],
)
def test_what_libraries_say_of_refused_memory_is_recognised(tmp_path, printed, words):
    (tmp_path / "node-0.log").write_text("Traceback (most recent call last):\n")
    (tmp_path / "node-1.log").write_text(f"LAUNCH INFO\n{printed}\n")
    assert refused_allocation(RunPaths(tmp_path)).startswith(words)


@pytest.mark.parametrize(
    "printed",
    [
        "UserWarning: a larger batch may run out of memory",
        "ValueError: memory_format is wrong",
        "we catch MemoryError and ResourceExhaustedError elsewhere",
        "Killed",
    ],
)
def test_talk_of_memory_is_no_refusal(tmp_path, printed):
    (tmp_path / "node-1.log").write_text(f"{printed}\n")
    assert refused_allocation(RunPaths(tmp_path)) == ""


@pytest.mark.parametrize("printed", ["", "on step 3\n", "we saw 3 Errors: none\n", "\n"])
def test_a_task_that_names_no_exception_adds_nothing(tmp_path, printed):
    assert reason(tmp_path, {"node-1": printed}) == REASON
