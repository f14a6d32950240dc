"""The runs of one configuration: which are requested, which are missing, and how they are performed."""

import json
import os
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from typing import Any, cast

from dlperf_study.core import code_identity, wording
from dlperf_study.core.errors import RunError
from dlperf_study.core.paths import ConfigurationPaths, StudyPaths
from dlperf_study.execution.cache_key import cache_key, cache_key_parts, measuring_code
from dlperf_study.execution.planning import load_cluster, require_support
from dlperf_study.machines import launchers
from dlperf_study.machines.cluster import Cluster, software
from dlperf_study.machines.node_agent.submission import Submission
from dlperf_study.machines.supervision.locks import study_lock
from dlperf_study.programs.command import CommandRun
from dlperf_study.programs.program_files import file_not_copied, kept_program, module_not_there
from dlperf_study.records import failure_reason, nccl_report, run_file, run_record
from dlperf_study.study.communication import ALL_REDUCE, STRATEGIES
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import RunStatus, Turn
from dlperf_study.study.program import OWN_PROGRAM
from dlperf_study.training import data_loaders, frameworks, models
from dlperf_study.training.data_loaders._producers import add_producers
from dlperf_study.training.image_datasets._base import FOLDER_VARIABLE
from dlperf_study.training.parts import add_parts
from dlperf_study.training.questions import described, passed_variables

FAILURE_LOG_LINES = 5
#: What an unmeasured run is for, as messages name it.
NCCL_REPORT = "NCCL-reported"
#: A controller sets it for the notebook that it executes: which runs are to be performed now, and at which turn.
REQUEST_VARIABLE = "DLPERF_STUDY_REQUEST"


def configuration_paths(configuration: Configuration) -> ConfigurationPaths:
    """Return where the evidence of a configuration is."""
    return StudyPaths.of(configuration.study).configuration(configuration.configuration_id)


def requested_runs(
    configuration: Configuration, cluster: Cluster, further: Collection[int] = ()
) -> list[run_record.RequestedRun]:
    """Return every run of a configuration, the unmeasured one first.

    In that run NCCL reports what connects the GPUs, which costs time.
    ``further``: repetitions beyond its ``repetitions``, which a precision asked for.
    """
    paths, parts = configuration_paths(configuration), cache_key_parts(configuration, cluster)
    digest, code = cache_key(configuration, parts), measuring_code(configuration, cluster)

    repetitions = sorted({*range(1, configuration.repetitions + 1), *further})
    runs = [run_record.RequestedRun(configuration, each, digest, paths.run(each), code) for each in repetitions]
    purposes = unmeasured_purposes(configuration, cluster)
    if NCCL_REPORT in purposes:
        reported = configuration.reported
        digest, home = cache_key(reported, parts), paths.nccl_report(reported.configuration_id)
        variables = nccl_report.VARIABLES
        runs.insert(0, run_record.RequestedRun(reported, 1, digest, home, code, variables, NCCL_REPORT))
    return [replace(run, parts=parts) for run in runs]


def unmeasured_purposes(configuration: Configuration, cluster: Cluster) -> list[str]:
    """Return the purposes of the unmeasured runs of a configuration."""
    strategy = STRATEGIES.get(configuration.strategy)
    is_all_reduce = strategy is not None and strategy.communication == ALL_REDUCE
    uses_nccl = cluster.device == "gpu" and configuration.world_size > 1 and is_all_reduce
    if uses_nccl:
        return [NCCL_REPORT]
    return []


def run_states(runs: Sequence[run_record.RequestedRun]) -> list[run_record.RunState]:
    """Return what the records of runs say now; each is read once."""
    return [run.state() for run in runs]


def missing_repetitions(states: Sequence[run_record.RunState]) -> list[run_record.RequestedRun]:
    """Return the runs of a configuration that are to be measured."""
    if out_of_memory_reason(states):
        return []
    return [state.run for state in states if not state.is_completed]


def out_of_memory_reason(states: Sequence[run_record.RunState]) -> str:
    """Return why a configuration does not fit in memory, or nothing."""
    return next(filter(None, (state.out_of_memory_reason for state in states)), "")


def run_names(runs: Sequence[run_record.RequestedRun]) -> str:
    """Return runs for messages: ``run 2``, ``3 runs and the NCCL-reported one``."""
    repetitions, unmeasured = _repetitions_and_purposes(runs)
    if not repetitions:
        return " and ".join(map("the {} run".format, unmeasured))
    names = wording.counted(len(repetitions), "run")
    if len(repetitions) == 1:
        names = f"run {repetitions[0]}"
    return " and ".join([names, *map("the {} one".format, unmeasured)])


def controller_request(runs: Sequence[run_record.RequestedRun], cluster: Cluster) -> str:
    """Return a controller's request to perform these runs.

    Its device and its wait for idle nodes may be others than a kernel would read from its file.
    """
    repetitions, unmeasured = _repetitions_and_purposes(runs)
    request = {"repetitions": repetitions, "unmeasured": unmeasured, "turn": asdict(runs[0].turn)}
    return json.dumps(request | {"device": cluster.device, "idle_wait_seconds": cluster.idle_wait_seconds})


def _repetitions_and_purposes(runs: Sequence[run_record.RequestedRun]) -> tuple[list[int], list[str]]:
    """Return the repetitions and the purposes among runs."""
    repetitions, purposes = [], []
    for run in runs:
        if run.is_measured:
            repetitions.append(run.repetition)
        else:
            purposes.append(run.purpose)
    return repetitions, purposes


class ConfigurationRuns:
    """The runs of one configuration, as its notebook performs them.

    Under a controller, only the runs that it requests are performed; by hand, all. The cluster file is read once, when
    this is made. Raises UnsupportedError when the configuration can't run there, and RunError when a controller started
    this process with other benchmark code than its own.
    """

    def __init__(self, configuration: Configuration) -> None:
        code_identity.require_code_of_controller()
        self._cluster = load_cluster(configuration.cluster, [configuration.runtime])
        require_support(configuration, self._cluster)
        self._configuration = configuration
        if REQUEST_VARIABLE not in os.environ:
            self._requested = self._now = requested_runs(configuration, self._cluster)
            return
        request = json.loads(os.environ[REQUEST_VARIABLE])
        if request["device"] != self._cluster.device:
            change = f"the study was planned for device {request['device']}, but now it is {self._cluster.device}"
            raise RunError(": ".join(filter(None, (change, self._cluster.why_not_gpu))))
        self._cluster = replace(self._cluster, idle_wait_seconds=request["idle_wait_seconds"])
        repetitions, turn = request["repetitions"], Turn(**request["turn"])
        self._requested = requested_runs(configuration, self._cluster, repetitions)
        self._now = []
        for run in self._requested:
            if run.repetition in repetitions if run.is_measured else run.purpose in request["unmeasured"]:
                self._now.append(replace(run, turn=turn))

    @property
    def are_last(self) -> bool:
        """Whether no planned run comes after these."""
        return self._now[-1].paths == self._requested[-1].paths

    def submission_text(self) -> str:
        """Return what would be started for the first run."""
        first = next(run for run in self._requested if run.is_measured)
        submission = _render(first, self._cluster)
        files = [text for name, text in submission.files.items() if name != first.paths.configuration_file.name]
        return "\n".join([*files, submission.as_json()])

    def perform(self) -> list[dict[str, Any]]:
        """Perform the missing runs; return all records in order.

        A run that fails is recorded and does not keep the next from being tried. After one that finds too little memory
        none is tried, and those have no record. If nothing is missing, nothing is locked.
        Raises BusyError when somebody else measures.
        """
        missing = missing_repetitions(run_states(self._now))
        if missing:
            with study_lock(self._configuration.study, self._cluster):
                _perform(missing, self._cluster, self._configuration.timeout_seconds)
        last = self._now[-1].paths
        count = 1 + [run.paths for run in self._requested].index(last)
        records = []
        does_not_fit = bool(out_of_memory_reason(run_states(self._requested)))
        for run in self._requested[:count]:
            if does_not_fit and not run.paths.run_file.exists():
                continue
            # An earlier execution may have been stopped before it began a run.
            never_begun = {"status": RunStatus.FAILED, "reason": "it was never started", "tail": {}}
            records.append(run_record.read(run.paths) or {"repetition": run.repetition, **never_begun})
        return records


def require_no_failure(records: Sequence[dict[str, Any]]) -> None:
    """Raise RunError, with the ends of logs, if a run failed."""
    lines: list[str] = []
    for facts in records:
        if facts["status"] in (RunStatus.COMPLETED, RunStatus.OUT_OF_MEMORY):
            continue
        lines.append(f"run {facts['repetition']}: {facts['status']}: {facts['reason']}")
        for task, tail in facts["tail"].items():
            lines.append(f"  {task}, last lines:")
            lines.extend(f"    {line}" for line in tail[-FAILURE_LOG_LINES:])
    if lines:
        raise RunError("\n".join(lines))


def controller_facts(cluster: Cluster, configuration: Configuration | None = None) -> run_record.ControllerFacts:
    """Return the controller's facts for the record of a run."""
    variables, program, names, flops = passed_variables(), None, list(cluster.pass_environment), None
    if configuration and configuration.own_program:
        command = CommandRun.of(configuration)
        program = command.record()
        names += command.program.pass_environment
    elif configuration:
        variables = passed_variables(configuration.framework)
        flops = models.load(configuration.model).flops(configuration)
    cluster_facts = cast(
        run_file.ClusterFacts, {name: getattr(cluster, name) for name in run_file.ClusterFacts.__annotations__}
    )
    passed = variables.passed(further=names) | dict(cluster.environment)
    git = cast(run_file.GitFacts, software.git())
    return run_record.ControllerFacts(cluster_facts, git, passed, variables, program, flops)


def _perform(missing: Sequence[run_record.RequestedRun], cluster: Cluster, timeout_seconds: float) -> None:
    """Perform these runs, and record each as it ends.

    One that finds too little memory is the last.
    """
    folder = missing[0].paths.home.folder
    folder.mkdir(parents=True, exist_ok=True)
    if shortage := failure_reason.disk_shortage(folder):
        raise RunError(shortage)
    submissions = [_render(run, cluster) for run in missing]
    with closing(launchers.load(cluster.launcher).execute(submissions, cluster, timeout_seconds)) as results:
        for run, result in zip(missing, results, strict=True):
            if run.configuration.own_program:
                from dlperf_study.execution.program_log import read_printed_steps

                result = read_printed_steps(run, result, cluster.device)
            facts = run_record.record(run, result, controller_facts(cluster, run.configuration))
            if run.configuration.own_program and facts["status"] is not RunStatus.COMPLETED:
                # It may have had not a file of its folder, or a module.
                reason = facts["reason"]
                program, _ = kept_program(run.paths.home.study, run.configuration.program_hash)
                not_copied = file_not_copied(program, reason)
                not_there = module_not_there(program, cluster.python_for(OWN_PROGRAM), reason)
                facts["reason"] = "; ".join(filter(None, (reason, not_copied, not_there)))
            run_record.write(facts, run.paths)
            if result.interrupted:
                raise KeyboardInterrupt
            if facts["status"] is RunStatus.OUT_OF_MEMORY:
                return


def _render(run: run_record.RequestedRun, cluster: Cluster) -> Submission:
    configuration = run.configuration
    travels = code_identity.imports_parts_of_folders(run.code.roots)
    if configuration.own_program:
        job = CommandRun.of(configuration).job(cluster, run.code.digest, run.repetition)
    else:
        job = frameworks.load(configuration.framework).job(configuration, cluster)
        if data_loaders.load(configuration.data_loader).produce:
            job = add_producers(job, configuration)
        folder = cluster.image_folder(configuration)
        images = {FOLDER_VARIABLE: folder} if folder else {}
        controller_code = code_identity.describe_controller_code(run.code.roots)
        job = job.add_environment({**run.variables, **images, code_identity.CONTROLLER_CODE_VARIABLE: controller_code})
        job = described(job, configuration, folder)
        if travels:
            job = add_parts(job, StudyPaths.of(configuration.study))
    submission = launchers.load(cluster.launcher).render(job, cluster, run.paths.folder)
    configuration_text = json.dumps(configuration.as_dict(), indent=1)
    files = {**submission.files, run.paths.configuration_file.name: configuration_text}
    # Nodes are compared before they get what travels with the run; its processes compare that too.
    roots = code_identity.roots_without_folders(run.code.roots) if travels else run.code.roots
    submission = replace(submission, code=code_identity.code_digest(roots), code_roots=roots)
    return replace(submission, cache_key=run.cache_key, files=files)
