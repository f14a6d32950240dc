"""The worked examples of docs/own-programs.md, started as a study starts them; the notebook around them is left out."""

import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dlperf_study.core.paths import PROJECT, RunPaths, StudyPaths
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.launchers import load
from dlperf_study.machines.node_agent.submission import Submission
from dlperf_study.programs.command import CommandRun
from dlperf_study.programs.program_files import identified, keep
from dlperf_study.records.rank_agreement import complete_logs
from dlperf_study.records.rank_log import RankLog
from dlperf_study.study.study_file import load_study

EXAMPLES = PROJECT / "docs" / "examples"
STUDIES = EXAMPLES / "studies"
#: Before and in the measured window; one more settles the program.
STEPS = {"warmup_steps": 2, "measured_steps": 5}
#: By which Open MPI lets root use it, as in a container.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
_CODE = "c" * 64


def example(name: str, folder: Path, **scale: int) -> CommandRun:
    """Return the run of an example at a scale, its files kept in a folder."""
    study = load_study(STUDIES / f"{name}.yaml")
    assert study.program is not None
    program = identified(study.program, study.source)
    configuration = replace(study.configuration(study.points[0], "test"), **STEPS, **scale)
    return CommandRun(program, keep(program, StudyPaths(folder)), configuration)


def rendered(run: CommandRun, cluster: Cluster, folder: Path, **environment: str) -> Submission:
    """Return what the launcher of a cluster starts for a run; the folder of the evidence is the run's."""
    job = run.job(cluster, _CODE, 1).add_environment(environment)
    submission = load(cluster.launcher).render(job, cluster, folder)
    return replace(
        submission, files={**submission.files, "configuration.json": json.dumps(run.configuration.as_dict())}
    )


def check_recorded(folder: Path, run: CommandRun, result: Any, hosts: Sequence[str] = ()) -> Sequence[RankLog]:
    """Check that every rank recorded the requested steps of a training that they did together; return their logs."""
    printed = "\n".join(log.read_text()[-2000:] for log in folder.glob("*.log"))
    assert result.status == "completed", (result.reason, printed)
    logs, problem = complete_logs(RunPaths(folder), run.configuration.world_size)
    assert problem == "", printed
    assert [len(log.windows["training"].step_seconds) for log in logs] == [STEPS["measured_steps"]] * len(logs)
    assert {log.facts["world_size"] for log in logs} == {run.configuration.world_size}
    assert len({log.end["parameter_checksum"] for log in logs}) == 1
    assert len({log.windows["training"].losses[0] for log in logs}) == len(logs)
    if hosts:
        assert [log.facts["host"] for log in logs] == list(hosts)
    return logs


def path_with(folder: Path) -> str:
    """Return a PATH whose ``torchrun`` is that of this Python: a moved environment has the one of its first place."""
    script = folder / "torchrun"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m torch.distributed.run "$@"\n')
    script.chmod(0o755)
    return os.pathsep.join((str(folder), str(Path(sys.executable).parent), os.environ["PATH"]))
