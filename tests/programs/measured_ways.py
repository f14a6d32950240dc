"""What a program leaves by each way of measuring it: the evidence of this package's own runs, cut down to that."""

import json
from dataclasses import replace
from typing import Any

from dlperf_study.core.paths import RunPaths, StudyPaths
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.program import OWN_PROGRAM
from tests.evidence_factory import Planned, Recipe, change, configuration, write_lines, write_plan, write_run
from tests.telemetry_factory import gpu, sample, with_telemetry

LOG, RECORDER, NO_SYNC, BUILT_IN = WAYS = ("log", "recorder", "no_sync", "built_in")
#: What no recorder knows, and what no log of a job knows besides.
_OF_THE_WORKER = ("flops_per_sample", "communication_threads", "flops_source", "peak_memory")
_OF_A_RANK = ("parameters", "gradient_bytes", "initial_checksum", "parameter_checksum", "input_seconds", "begin_ns")
_WINDOWS = {LOG: ("warmup", "training"), RECORDER: ("warmup", "training")}
_WINDOWS[NO_SYNC] = ("warmup", "training", "computation_before", "computation_after")
_PROGRAM: dict[str, Any] = {"name": "toy", "command": "x", "launch": "per-rank", "digest": "d", "commit": ""}
_PROGRAM |= {"remote": "", "dirty": False, "tokens_per_step": 1024.0, "flops_per_sample": 1e9}


def write_way(paths: StudyPaths, way: str, **changes: Any) -> None:
    """Write a study of one and two devices, three runs each, as it is measured in a way."""
    configurations = [replace(_configuration(way, devices), **changes) for devices in (1, 2)]
    for each in configurations:
        for repetition in (1, 2, 3):
            run = write_run(paths, each, repetition, Recipe(input_seconds=0.002))
            with_telemetry(run, _sample(-1), list(map(_sample, range(8))))
            _cut(run, way)
    write_plan(paths, map(Planned, configurations))


def _sample(tenths: int) -> dict[str, Any]:
    """Return what the node agent sampled of a GPU and of the processors, so many tenths of a second after its begin."""
    return sample(tenths / 10, [gpu(seconds=tenths / 10)], {"package-0": 10.0 + 5.0 * tenths})


def _configuration(way: str, devices: int) -> Configuration:
    if way == BUILT_IN:
        return configuration(devices_per_node=devices)
    steps = {
        "compute_only_steps": 6 if way == NO_SYNC and devices > 1 else 0,
        "communication_only_steps": 0,
        "input_only_steps": 0,
    }
    own: dict[str, Any] = {"own_program": "toy", "settings": "{}", "program_hash": "d" * 64}
    own |= {"framework": OWN_PROGRAM, "strategy": OWN_PROGRAM, "model": "toy"}
    return replace(configuration(devices_per_node=devices, **steps), **own)


def _cut(run: RunPaths, way: str) -> None:
    """Leave out of a run what its program does not measure."""
    if way == BUILT_IN:
        return
    scope = {"recorded_by": "log", "scope": "job"} if way == LOG else {"recorded_by": "recorder", "scope": "rank"}
    removed = (*_OF_THE_WORKER, *(_OF_A_RANK if way == LOG else ()))
    for path in sorted(run.folder.glob("rank-*.jsonl")):
        if way == LOG and path != run.rank_log(0):
            path.unlink()
            continue
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        kept = [line for line in lines if line["kind"] != "window" or line["name"] in _WINDOWS[way]]
        kept[0] |= scope
        if kept[0]["communication"] != "none":
            kept[0]["communication"] = "unknown" if way == LOG else "all_reduce"
        kept[-1]["windows"] = len(kept) - 2
        write_lines(path, [{key: line[key] for key in line if key not in removed} for line in kept])
    facts: dict[str, Any] = {"program": {**_PROGRAM, "steps": way}}
    change(run, **facts, **({"ranks_seen": [0]} if way == LOG else {}))
