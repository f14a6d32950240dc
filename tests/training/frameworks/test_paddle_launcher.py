"""What Paddle's own launcher does around the ranks: the real one, with a small script in place of training."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.machines.node_agent.submission import fill
from dlperf_study.study.job import Job
from dlperf_study.training import frameworks
from tests.nvidia_smi import two_a100
from tests.training.frameworks.launching import CLUSTER, configuration

_RANK = """\
import json, os, time
time.sleep(0.5)
print(json.dumps(dict(os.environ)))
"""
#: What the launcher says of itself, and addresses: its own are of the host's name, and one process needs none.
_OF_LAUNCHER = {"PADDLE_AUTO_CLUSTER", "PADDLE_BACKUP_ENV_PATH", "PADDLE_LOG_DIR"}
_ADDRESSES = {"PADDLE_MASTER", "PADDLE_CURRENT_ENDPOINT", "PADDLE_TRAINER_ENDPOINTS"}


def job(device: str, ranks: int, container: tuple[str, ...] = ()) -> Job:
    """Return the job of some ranks on one node, which starts the launcher if they are in a container."""
    cluster = replace(CLUSTER, device=device, container=container)
    return frameworks.load("paddle_collective").job(configuration(devices_per_node=ranks), cluster)


def launched(folder: Path, device: str, ranks: int = 2) -> list[dict[str, str]]:
    """Launch ranks that print their environment, by the command of a job; return these by rank."""
    [task] = job(device, ranks, container=("apptainer",)).tasks
    script = folder / "rank.py"
    script.write_text(_RANK)
    values = {"run": str(folder), "devices_0": ",".join(map(str, range(ranks)))}
    argv = [fill(argument, values) for argument in (*task.argv[:-2], str(script))]
    environment = {name: fill(value, values) for name, value in task.environment.items()}
    done = subprocess.run(argv, env={**os.environ, **environment}, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    logs = [folder / "scratch" / "ranks-of-node-0" / f"workerlog.{rank}" for rank in range(ranks)]
    return [json.loads(log.read_text().splitlines()[-1]) for log in logs]


def test_it_starts_no_program_while_ranks_are_timed(tmp_path, monkeypatch):
    calls = two_a100(tmp_path, monkeypatch)
    variables = launched(tmp_path, "gpu")
    assert [of_rank["CUDA_VISIBLE_DEVICES"] for of_rank in variables] == ["0,1", "0,1"]
    assert not calls.exists()


@pytest.mark.parametrize(("device", "ranks"), [("cpu", 2), ("gpu", 1), ("gpu", 2)])
def test_without_it_a_rank_has_the_environment_that_it_would_give(tmp_path, monkeypatch, device, ranks):
    two_a100(tmp_path, monkeypatch)
    started = [variables_of_paddle(task.environment) for task in job(device, ranks).tasks]
    assert started == [variables_of_paddle(variables) for variables in launched(tmp_path, device, ranks)]


def test_on_a_cpu_ranks_see_no_gpu_and_exchange_by_gloo():
    for task in job("cpu", 2).tasks:
        assert (task.environment["CUDA_VISIBLE_DEVICES"], task.environment["PADDLE_DISTRI_BACKEND"]) == ("", "gloo")


def variables_of_paddle(environment: dict[str, str]) -> dict[str, str]:
    """Return what decides in which role and on which device a rank trains."""
    kept = ("PADDLE_", "FLAGS_", "NVIDIA_TF32", "OMP_", "MKL_", "OPENBLAS_")
    names = [name for name in environment if name.startswith(kept) and name not in _OF_LAUNCHER | _ADDRESSES]
    return {name: environment[name] for name in names}
