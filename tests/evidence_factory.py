"""Writes evidence folders as ``docs/files.md`` describes them, with constructed timings.

The numbers are made up and must never be shown as measurements.
"""

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlperf_study.core.paths import RunPaths, StudyPaths
from dlperf_study.records.lines import FORMAT, WITH_BATCHES
from dlperf_study.study.configuration import FIELD_NAMES, Configuration
from dlperf_study.study.job import INTERLEAVED
from dlperf_study.study.plan import Entry, Plan
from dlperf_study.study.precision import COMPUTED_IN
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE, TUNED
from dlperf_study.training.worker.windows import communication_sizes

PEAK_FLOPS, PARAMETERS = 1.0e12, 1_000_000
GRADIENT_BYTES = 4 * PARAMETERS
FLOPS_PER_SAMPLE = 2.0e9
CODE = "0" * 64

Lines = list[dict[str, Any]]


@dataclass(frozen=True)
class Recipe:
    """How a constructed run behaves. Times are per step, in seconds, of the slowest rank: see ``slowest_rank``.

    ``input_seconds``: for which each step of all ranks waits for its batch, besides what the other parts take.
    ``batch_seconds``: for a batch while nothing trains; None: no such window.
    ``drain_seconds``: of the slowest rank; the others drain half as long. ``final_loss``: the mean over ranks.
    """

    compute_seconds: float = 0.080
    exposed_communication_seconds: float = 0.010
    communication_seconds: float = 0.020
    input_seconds: float = 0.0
    batch_seconds: float | None = None
    noise: float = 0.01
    rank_advantage: float = 0.0
    communication: str = "all_reduce"
    final_loss: float = 2.0
    first_step_slowdown: float = 3.0
    warmup_end: str = "steady"
    drain_seconds: float = 0.0
    drain_resolution_seconds: float = 0.0
    latency_seconds: float = 0.001
    communication_threads: int = 1
    status: str = "completed"
    reason: str = ""
    host: str = "host-a"
    library: str = "paddle"
    library_version: str = "3.0.0"
    communication_library: str = ""
    parameters: int = PARAMETERS
    cores: int = 64
    busy_cores: float = 0.0
    waited_seconds: float = 0.0
    peak_flops: float | Mapping[str, float] | None = PEAK_FLOPS
    device_name: str = ""
    says_computed_in: bool = True
    flops_per_sample: float | None = FLOPS_PER_SAMPLE
    hardware_flops_per_sample: float | None = None
    peak_memory: Mapping[str, int] | None = field(default_factory=lambda: {"process_bytes": 300 * 2**20})
    commit: str = "0" * 40
    order: str = INTERLEAVED
    diagnostics: tuple[Mapping[str, str], ...] = ()
    nodes: tuple[Mapping[str, Any], ...] = ({"name": "", "address": "127.0.0.1", "interface": "lo"},)
    device: str = "cpu"
    link: str = "loopback"

    @property
    def step_seconds(self) -> float:
        return self.compute_seconds + self.exposed_communication_seconds


def configuration(**changes: Any) -> Configuration:
    """Return a small configuration, with some parameters changed."""
    values: dict[str, Any] = {
        "study": "example",
        "cluster": "local",
        "framework": "paddle_collective",
        "strategy": "data_parallel",
        "model": "resnet50",
        "compute_only_steps": 10,
        **changes,
    }
    return Configuration(**values)


#: How many runs were written of each round of a study.
_positions: Counter[tuple[Path, int]] = Counter()


def write_run(paths: StudyPaths, asked: Configuration, repetition: int, recipe: Recipe | None = None) -> RunPaths:
    """Write one run: ``run.json`` and, if it completed, one log per rank."""
    recipe = recipe or Recipe()
    run = paths.configuration(asked.configuration_id).run(repetition)
    run.folder.mkdir(parents=True)
    completed = recipe.status == "completed"
    for rank in range(asked.world_size if completed else 0):
        write_lines(run.rank_log(rank), rank_lines(asked, rank, repetition, recipe))
    facts = run_json(asked, repetition, recipe)
    if recipe.order == INTERLEAVED:
        # One after the other, as the runs of a round are.
        _positions[paths.folder, repetition] += 1
        facts["position"] = _positions[paths.folder, repetition]
    run.run_file.write_text(json.dumps(facts), encoding="utf-8")
    return run


def write_lines(path: Path, lines: Lines) -> None:
    """Write one JSON object a line."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def read_lines(path: Path) -> Lines:
    """Return the JSON objects of a log, one a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def edit_log(path: Path, edit: Callable[[Lines], object]) -> None:
    """Let a function change the lines of a log."""
    lines = read_lines(path)
    edit(lines)
    write_lines(path, lines)


def change(run: RunPaths, **values: object) -> None:
    """Write other values into ``run.json``."""
    run.run_file.write_text(json.dumps(json.loads(run.run_file.read_text()) | values))


def run_json(asked: Configuration, repetition: int, recipe: Recipe) -> dict[str, Any]:
    """Return the content of ``run.json``."""
    completed = recipe.status == "completed"
    return {
        "format": FORMAT,
        "configuration": asked.as_dict(),
        "configuration_id": asked.configuration_id,
        "repetition": repetition,
        "order": recipe.order,
        "round": repetition if recipe.order == INTERLEAVED else None,
        "position": 1 if recipe.order == INTERLEAVED else None,
        "cache_key": f"fingerprint-of-{asked.configuration_id}-{recipe.commit[:8]}-{recipe.library_version}",
        "code": CODE,
        "status": recipe.status,
        "reason": recipe.reason,
        "started": f"2024-05-01T10:{repetition % 60:02d}:00+00:00",
        "seconds": 600.0,
        "exit_codes": {"node-0": 0 if completed else 1},
        "ranks_expected": asked.world_size,
        "ranks_seen": list(range(asked.world_size)) if completed else [],
        "cluster": _cluster(asked, recipe),
        "environment": _environment(recipe),
        "nodes": [dict(node) for node in recipe.nodes],
        "load": {
            "waited_seconds": recipe.waited_seconds,
            "busy_cores_before": 0.0,
            "busy_cores_during": recipe.busy_cores,
            "orphans_ended": [],
        },
        "diagnostics": [dict(diagnostic) for diagnostic in recipe.diagnostics],
        "tail": {} if completed else {"trainer-0": ["the last line it printed"]},
    }


def rank_lines(asked: Configuration, rank: int, repetition: int, recipe: Recipe) -> Lines:
    """Return the lines of one rank's log."""
    of_input = np.random.default_rng([repetition, rank])
    windows = [_with_input(window, recipe, of_input) for window in _windows(asked, rank, repetition, recipe)]
    batches = asked.for_run(repetition).input_only_steps
    if recipe.batch_seconds and batches:
        windows.append(_window("input", _steps(of_input, recipe.batch_seconds, batches, recipe.noise), []))
    share = 1.0 if rank == slowest_rank(asked, repetition) else 0.5
    end: dict[str, Any] = {
        "kind": "end",
        "windows": len(windows),
        "parameter_checksum": "trained",
        "initial_checksum": "initial",
        "drain_seconds": recipe.drain_seconds * share,
        "drain_resolution_seconds": recipe.drain_resolution_seconds * share,
        "calibration": {"iterations": 60_000, "seconds": [0.003, 0.00325]},
    }
    if asked.loss_scaling != "none":
        end["loss_scale"] = 1024.0
    if recipe.peak_memory is not None:
        end["peak_memory"] = {kind: size + rank for kind, size in recipe.peak_memory.items()}
    return [_rank_line(asked, rank, repetition, recipe), *windows, end]


def _with_input(window: dict[str, Any], recipe: Recipe, generator: np.random.Generator) -> dict[str, Any]:
    """Return a window with the time for which its steps waited for batches; as of older logs where none did."""
    if window["name"] not in WITH_BATCHES or not recipe.input_seconds:
        return window
    input_seconds = _steps(generator, recipe.input_seconds, window["steps"], recipe.noise)
    steps = {"step_seconds": (input_seconds + window["step_seconds"]).tolist(), "input_seconds": input_seconds.tolist()}
    return window | steps | {"seconds": sum(steps["step_seconds"])}


def slowest_rank(asked: Configuration, repetition: int) -> int:
    """Return which rank is the slowest: the one that is slowed on purpose, or in each repetition the next."""
    return asked.slowed_rank if asked.injected_slowdown else repetition % asked.world_size


def _rank_line(asked: Configuration, rank: int, repetition: int, recipe: Recipe) -> dict[str, Any]:
    # No two runs begin in the same nanosecond.
    nanoseconds = repetition * 60 * 10**9 + zlib.crc32(asked.configuration_id.encode())
    return {
        "kind": "rank",
        "format": FORMAT,
        "run": f"{asked.configuration_id}/{repetition}",
        "code": CODE,
        "rank": rank,
        "world_size": asked.world_size,
        "node": rank // asked.devices_per_node,
        "local_rank": rank % asked.devices_per_node,
        "host": recipe.host,
        "pid": 4000 + rank,
        "device": recipe.device,
        "library": recipe.library,
        "library_version": recipe.library_version,
        "clock": "perf_counter_ns",
        "wall_anchor": {"unix_ns": 1_714_557_600_000_000_000 + nanoseconds, "clock_ns": 1_000_000_000},
        "parameters": recipe.parameters,
        "gradient_bytes": gradient_bytes(asked, recipe),
        "communication_threads": recipe.communication_threads,
        "flops_per_sample": recipe.flops_per_sample,
        "flops_source": "constructed",
        **({"hardware_flops_per_sample": again} if (again := recipe.hardware_flops_per_sample) else {}),
        "communication": communication_window_name(asked, recipe),
        **({"communication_library": recipe.communication_library} if recipe.communication_library else {}),
        **(_first_steps(asked) if recipe.says_computed_in else {}),
    }


def _first_steps(asked: Configuration) -> dict[str, Any]:
    """Return what the steps before all windows proved; nothing of a precision that only logs of others have."""
    if asked.precision not in COMPUTED_IN:
        return {}
    facts = {"computed_in": COMPUTED_IN[asked.precision], "first_steps": 1, "first_steps_seconds": 1.0}
    values = {name: getattr(asked, name) for name in TUNED}
    return facts | {"tuning": {name: value for name, value in values.items() if value != LIBRARYS_CHOICE}}


def gradient_bytes(asked: Configuration, recipe: Recipe) -> int:
    """Return the bytes of all gradients on the link."""
    return recipe.parameters * (2 if asked.gradient_compression == "fp16" else 4)


def communication_window_name(asked: Configuration, recipe: Recipe) -> str:
    """Return how gradients travel; a single device with no server communicates nothing."""
    return recipe.communication if asked.world_size > 1 or asked.parameter_servers else "none"


def _windows(asked: Configuration, rank: int, repetition: int, recipe: Recipe) -> Lines:
    # Without the digest: a further parameter of configurations changes no constructed run.
    name = f"{asked.configuration_id.rpartition('-')[0]}-{asked.replica}"
    generator = np.random.default_rng([asked.seed, rank, repetition, zlib.crc32(name.encode())])
    alone = communication_window_name(asked, recipe) == "none"
    faster = 1.0 - recipe.rank_advantage * (rank != slowest_rank(asked, repetition))
    # Ranks that train on the same samples have the same loss.
    layout = asked.layout
    final_loss = recipe.final_loss + 0.1 * (layout.replica(rank) - (layout.replicas - 1) / 2)
    step = recipe.compute_seconds if alone else recipe.step_seconds
    warmup = _steps(generator, step, asked.warmup_steps, recipe.noise)
    warmup[:1] *= recipe.first_step_slowdown
    count = asked.measured_steps
    windows = [
        {**_window("warmup", warmup, _losses(warmup.size, final_loss)), "ended_by": recipe.warmup_end},
        _window("training", _steps(generator, step, count, recipe.noise), _losses(count, final_loss)),
    ]
    if alone:
        return windows
    of_run = asked.for_run(repetition)
    before, after = of_run.computation_halves(asked.measured_steps)
    computation = recipe.compute_seconds * faster
    for name, position, count in (("computation_before", 1, before), ("computation_after", 3, after)):
        steps = _steps(generator, computation, count, recipe.noise)
        if count:
            windows.insert(position, _window(name, steps, _losses(count, final_loss)))
    return [*windows, *(_communications(generator, asked, recipe) if of_run.communication_only_steps else [])]


def _communications(generator: np.random.Generator, asked: Configuration, recipe: Recipe) -> Lines:
    """Return transfers from 4 KiB to all gradients, which cost a latency and the same time for each byte."""
    total = gradient_bytes(asked, recipe)
    sizes = communication_sizes(total) if recipe.communication == "all_reduce" else [total]
    windows = []
    for size in sizes:
        seconds = recipe.latency_seconds + (recipe.communication_seconds - recipe.latency_seconds) * size / total
        name = "communication" if size == total else f"communication_{size}"
        steps = _steps(generator, seconds, asked.communication_only_steps, recipe.noise)
        windows.append({**_window(name, steps, []), "bytes": size})
    return windows


def _window(name: str, step_seconds: NDArray[np.float64], losses: list[float]) -> dict[str, Any]:
    return {
        "kind": "window",
        "name": name,
        "steps": step_seconds.size,
        "seconds": float(step_seconds.sum()),
        "step_seconds": step_seconds.tolist(),
        "losses": losses,
    }


def _steps(generator: np.random.Generator, seconds: float, count: int, noise: float) -> NDArray[np.float64]:
    return seconds * (1.0 + noise * generator.standard_normal(count))


def _losses(count: int, final_loss: float) -> list[float]:
    losses: list[float] = (final_loss + np.linspace(1.0, 0.0, count)).tolist()
    return losses


def _cluster(asked: Configuration, recipe: Recipe) -> dict[str, Any]:
    return {
        "name": asked.cluster,
        "launcher": "local",
        "device": recipe.device,
        "device_name": recipe.device_name or f"Constructed {recipe.device.upper()}",
        "devices_per_node": asked.devices_per_node,
        "nodes": asked.nodes,
        "device_peak_flops": recipe.peak_flops,
        "interconnect": recipe.link,
    }


def _environment(recipe: Recipe) -> dict[str, Any]:
    return {
        "hardware": {"host": recipe.host, "cpu_model": "Constructed CPU", "cores": recipe.cores, "memory_bytes": 2**34},
        "software": {"python": "3.11.9", "system": "Linux-6.1-x86_64", recipe.library: recipe.library_version},
        "variables": {"OMP_NUM_THREADS": "1"},
        "git": {"commit": recipe.commit, "dirty": False},
    }


@dataclass(frozen=True)
class Planned:
    """One entry of a constructed plan, and how its runs behave."""

    configuration: Configuration
    recipe: Recipe = field(default_factory=Recipe)
    runs: int = 3
    baseline: Configuration | None = None
    reference: Configuration | None = None
    unsupported: str | None = None


def write_plan(paths: StudyPaths, planned: Iterable[Planned], scaling: str = "weak") -> Plan:
    """Write ``plan.json``; without a declared baseline, the first entry is everyone's; a reference must be given."""
    planned = list(planned)
    varying = tuple(n for n in FIELD_NAMES if len({getattr(item.configuration, n) for item in planned}) > 1)
    plan = Plan(
        study="example",
        cluster="local",
        title="An example",
        about="Constructed evidence, for tests.",
        scaling=scaling,
        sections=(),
        published=(),
        factors=varying,
        quick=False,
        entries=tuple(_entry(item, planned[0].configuration) for item in planned),
        order=INTERLEAVED,
        device="cpu",
    )
    plan.write(paths.plan_file)
    return plan


def write_study(paths: StudyPaths, planned: Iterable[Planned], scaling: str = "weak") -> Plan:
    """Write the plan and all runs of a study."""
    planned = list(planned)
    for item in planned:
        for repetition in range(1, 1 + (0 if item.unsupported else item.runs)):
            write_run(paths, item.configuration, repetition, item.recipe)
    return write_plan(paths, planned, scaling)


def example_study(
    paths: StudyPaths, devices: Iterable[int] = (1, 2, 4), recipe: Recipe | None = None, **changes: Any
) -> Plan:
    """Write a weak-scaling study: 3 runs on 1, 2, 4 … devices, and one configuration that is unsupported."""
    recipe = recipe or Recipe()
    planned = [Planned(configuration(devices_per_node=count, **changes), recipe) for count in devices]
    half = configuration(precision="fp16", **changes)
    return write_study(paths, [*planned, Planned(half, unsupported="precision fp16 is not built", baseline=half)])


def _entry(item: Planned, first: Configuration) -> Entry:
    reference = item.reference.configuration_id if item.reference else None
    return Entry(
        configuration=item.configuration,
        baseline_id=(item.baseline or first).configuration_id,
        unsupported=item.unsupported,
        reference_id=reference,
        unstated=item.configuration.unstated,
    )
