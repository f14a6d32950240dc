"""Launch real jobs of the frameworks, with the worker or with another script in its place."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.launchers import local
from dlperf_study.records.rank_log import RankLog, read_rank_log
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import JobResult, TaskRole
from dlperf_study.training import data_loaders, frameworks
from dlperf_study.training.data_loaders._producers import add_producers
from dlperf_study.training.questions import described
from tests.training.frameworks.forked_ranks import FORKED, run_forks

#: These tests measure no time: they do not wait until other tests leave the machine alone.
CLUSTER = Cluster("test", 1, 2, "cpu", "a CPU", "local", idle_max_busy_cores=1000.0, idle_wait_seconds=0.0)
#: How long a job may take, on a machine that runs other tests too.
LAUNCH_SECONDS = 100
RANKS = Path(__file__).with_name("ranks.py")


def configuration(**changes: Any) -> Configuration:
    """Return the point of the tiny study that one process trains, with some parameters changed."""
    values: dict[str, Any] = {
        "study": "example",
        "cluster": "test",
        "framework": "paddle_collective",
        "strategy": "all_reduce",
        "model": "mobilenet_v2",
        "image_size": 32,
        "classes": 10,
        "batch_per_device": 4,
        "warmup_steps": 1,
        "max_warmup_seconds": 0.0,
        "measured_steps": 3,
        **changes,
    }
    return Configuration(**values)


def asynchronous(trainers: int, **changes: Any) -> Configuration:
    return configuration(
        framework="paddle_ps", strategy="async", parameter_servers=1, devices_per_node=trainers, **changes
    )


def synchronous(trainers: int, **changes: Any) -> Configuration:
    return configuration(
        framework="paddle_ps", strategy="sync", parameter_servers=2, devices_per_node=trainers, **changes
    )


def launch(asked: Configuration, folder: Path, script: tuple[str, ...] = (), **environment: str) -> JobResult:
    """Run the job of a configuration, with its producers, or ``script`` in every trainer of it."""
    job = frameworks.load(asked.framework).job(asked, CLUSTER)
    if data_loaders.load(asked.data_loader).produce:
        job = add_producers(job, asked)
    job = described(job.add_environment(environment), asked, image_folder="")
    tasks = []
    for task in job.tasks:
        if script and task.role is TaskRole.TRAINER:
            assert task.argv[-2:] == ("-m", "dlperf_study.training.worker")
            task = replace(task, argv=(*task.argv[:-2], *script))
        tasks.append(task)
    submission = local.render(replace(job, tasks=tuple(tasks)), CLUSTER, folder)
    files = {"configuration.json": json.dumps(asked.as_dict())}
    [result] = local.execute([replace(submission, files=files)], CLUSTER, LAUNCH_SECONDS)
    return result


def run_ranks(asked: Configuration, folder: Path, script: tuple[str, ...] = (), **environment: str) -> None:
    """Run the ranks of a configuration, or ``script`` in every one, to their end; if one fails, say what it printed.

    Those of PyTorch are forks: what these tests ask is what ranks train, not who started them.
    """
    if asked.framework in FORKED:
        run_forks(asked, folder, script, LAUNCH_SECONDS, **environment)
        return
    result = launch(asked, folder, script, **environment)
    assert result.status == "completed", (result, [log.read_text()[-2000:] for log in folder.glob("*.log")])


def logs_of(asked: Configuration, folder: Path, *script: str) -> list[RankLog]:
    """Train a configuration, with ``script`` as its ranks if there is one; return their logs."""
    run_ranks(asked, folder / "1", script)
    return [read_rank_log(folder / "1" / f"rank-{rank:05d}.jsonl") for rank in range(asked.world_size)]


def tell(
    asked: Configuration, folder: Path, steps: int = 0, script: Path = RANKS, **environment: str
) -> list[dict[str, Any]]:
    """Let every trainer run ``script``, which trains ``steps`` steps; return what each rank told."""
    run_ranks(asked, folder, (str(script), str(steps)), **environment)
    return [json.loads((folder / f"told-{rank}.json").read_text()) for rank in range(asked.world_size)]


def require_equal_ranks(one: dict[str, Any], two: dict[str, Any], drift_apart: bool = True) -> None:
    """Require of what ``ranks.py`` tells that two ranks train the same model, and nothing else changes it.

    Compute-only steps let the ranks ``drift_apart``, or train a copy; afterwards both go on alike.
    """
    both = (one, two)
    assert one["initial"] == two["initial"] != one["trained"] == two["trained"], both
    assert one["maximum"] == two["maximum"] == 1.125, both
    assert len({one["trained"], one["computed"], two["computed"]}) == (3 if drift_apart else 1), both
    for rank in both:
        assert rank["restored"] == rank["communicated"] == one["trained"], both
    assert one["trained"] != one["continued"] == two["continued"], both
