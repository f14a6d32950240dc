"""What Paddle's own launcher does around the ranks: the real one, with a small script in place of training."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

from dlperf_study.machines.guard.submission import fill
from dlperf_study.programs import frameworks
from tests.frameworks.launching import CLUSTER, configuration
from tests.nvidia_smi import two_a100

_RANK = """\
import json, os, time
time.sleep(0.5)
print(json.dumps({name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "PADDLE_DISTRI_BACKEND")}))
"""


def launched(folder: Path, device: str) -> list[dict[str, str | None]]:
    """Launch two ranks that print variables of theirs, by the command of a job; return these by rank."""
    job = frameworks.load("paddle_collective").job(configuration(devices_per_node=2), replace(CLUSTER, device=device))
    [task] = job.tasks
    script = folder / "rank.py"
    script.write_text(_RANK)
    values = {"run": str(folder), "devices_0": "0,1"}
    argv = [fill(argument, values) for argument in (*task.argv[:-2], str(script))]
    environment = {name: fill(value, values) for name, value in task.environment.items()}
    done = subprocess.run(argv, env={**os.environ, **environment}, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    logs = [folder / "scratch" / "ranks-of-node-0" / f"workerlog.{rank}" for rank in range(2)]
    return [json.loads(log.read_text().splitlines()[-1]) for log in logs]


def test_it_starts_no_program_while_ranks_are_timed(tmp_path, monkeypatch):
    calls = two_a100(tmp_path, monkeypatch)
    variables = launched(tmp_path, "gpu")
    assert [of_rank["CUDA_VISIBLE_DEVICES"] for of_rank in variables] == ["0,1", "0,1"]
    assert not calls.exists()


def test_on_a_cpu_ranks_see_no_gpu_and_exchange_by_gloo(tmp_path, monkeypatch):
    two_a100(tmp_path, monkeypatch)
    hidden = {"CUDA_VISIBLE_DEVICES": "", "PADDLE_DISTRI_BACKEND": "gloo"}
    assert launched(tmp_path, "cpu") == [hidden, hidden]
