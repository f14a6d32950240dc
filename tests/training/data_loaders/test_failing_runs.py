"""Real runs whose batches end: each is failed, says why, and leaves no process."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from dlperf_study.core.paths import RunPaths
from dlperf_study.records.failure_reason import add_last_exception
from dlperf_study.study.job import JobResult
from dlperf_study.training.data_loaders._producers import MODULE
from dlperf_study.training.data_loaders._samples import Samples
from dlperf_study.training.image_datasets import open_image_dataset
from dlperf_study.training.image_datasets._base import FOLDER_VARIABLE
from tests.command_line import wait_for
from tests.conftest import left_over
from tests.training.frameworks.launching import LAUNCH_SECONDS, asynchronous, configuration, launch
from tests.training.image_datasets import tiny

pytestmark = pytest.mark.timeout(240)
READING: dict[str, Any] = {"data_loader": "files", "image_dataset": "pictures", "classes": 3, "data_workers": 1}
#: A run that does not end by itself.
ENDLESS = {"measured_steps": 1_000_000, "compute_only_steps": 0}


def failure(result: JobResult, folder: Path) -> str:
    """Return the reason of a run, which must have failed."""
    explained = add_last_exception(result, RunPaths(folder))
    assert explained.status == "failed"
    return explained.reason


def killed_while_training(folder: Path, find: Callable[[], list[psutil.Process]], *job: Any, **images: str) -> str:
    """Launch a run, kill the first process that is found, and return the reason of its failure."""
    with ThreadPoolExecutor() as pool:
        run = pool.submit(launch, *job, folder, **images)
        process = wait_for(find, "a process that makes batches", LAUNCH_SECONDS)[0]
        process.kill()
        return failure(run.result(), folder)


def commands() -> dict[psutil.Process, list[str]]:
    """Return the words behind the interpreter of each process of a run of this test."""
    words = {}
    for process in left_over():
        with suppress(psutil.NoSuchProcess):
            words[process] = process.cmdline()[1:]
    return words


def producers_in_use() -> list[psutil.Process]:
    """Return the producers to which a rank is connected."""
    producers = [process for process, words in commands().items() if MODULE in words]
    return [each for each in producers if any(link.status == "ESTABLISHED" for link in each.net_connections("tcp"))]


def loader_workers() -> list[psutil.Process]:
    """Return the worker processes of loaders, each a fork of its rank."""
    ranks = [process for process, words in commands().items() if words == ["-u", "-m", "dlperf_study.training.worker"]]
    return [process for process in ranks if process.parent() in ranks]


@pytest.mark.parametrize("memory_format", ["nchw", "nhwc"])
def test_servers_train_on_the_batches_of_a_loader(tmp_path, memory_format):
    images = {FOLDER_VARIABLE: str(tiny.class_folders(tmp_path / "pictures"))}
    result = launch(asynchronous(1, **READING, memory_format=memory_format), tmp_path / "1", **images)
    assert (result.status, result.reason) == ("completed", "")


def test_a_producer_that_is_killed_ends_trainers_and_servers(tmp_path):
    served = asynchronous(1, data_loader="zmq", **ENDLESS)
    assert killed_while_training(tmp_path / "1", producers_in_use, served) == "producer-0 was ended by signal SIGKILL"
    assert not left_over()


@pytest.mark.needs("horovod")
def test_a_worker_of_a_loader_that_is_killed_ends_the_run(tmp_path):
    images = {FOLDER_VARIABLE: str(tiny.class_folders(tmp_path / "pictures"))}
    by_horovod = configuration(framework="horovod_torch", **READING, **ENDLESS)
    reason = killed_while_training(tmp_path / "1", loader_workers, by_horovod, **images)
    # PyTorch raises it wherever the rank is: waiting for a batch, or computing; within Horovod it becomes Horovod's.
    assert "DataLoader worker (pid" in reason
    assert not left_over()


@pytest.mark.needs("torch")
def test_an_image_that_breaks_after_the_first_steps_is_named(tmp_path):
    images = open_image_dataset(tiny.class_folders(tmp_path / "pictures"))
    broken = images.location(Samples(images, 32, seed=0).index(2 * 2 * 2))
    Path(broken).write_bytes(b"x")
    two_ranks = configuration(framework="torch_ddp", devices_per_node=2, **{**READING, "batch_per_device": 2})
    result = launch(two_ranks, tmp_path / "1", **{FOLDER_VARIABLE: str(tmp_path / "pictures")})
    assert failure(result, tmp_path / "1").endswith(f"ImageDatasetError: {broken} can't be decoded: it is not an image")
    assert not left_over()
