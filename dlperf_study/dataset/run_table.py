"""The table of runs, one row each, and the table of their steps."""

from functools import lru_cache
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dlperf_study.analysis.communication import communication_of
from dlperf_study.analysis.resources import if_complete, resources_of
from dlperf_study.analysis.steady_state import TOLERANCE, Steadiness, settled_at, steadiness
from dlperf_study.analysis.throughput import slowest_training, throughput, throughput_of
from dlperf_study.analysis.utilisation import utilisation_of
from dlperf_study.columns import TableName
from dlperf_study.columns.memory import PEAKS
from dlperf_study.dataset.tables import RepeatedText, rows_of
from dlperf_study.evidence.rank_log import Window
from dlperf_study.evidence.rank_log_writer import TRAINING, WARMUP
from dlperf_study.evidence.run import Run
from dlperf_study.study.configuration import PARAMETERS
from dlperf_study.study.tuning import TUNED

NO_COMPILER = PARAMETERS["compiler"].default
#: Environment variables of the locale: they do not change a library.
_LOCALE_VARIABLES = ("LANG", "LC_ALL", "TZ")


def run_row(run: Run, tolerance: float = TOLERANCE) -> dict[str, Any]:
    """Return the columns of one run; a run that didn't complete has no measurements.

    ``tolerance``: by how much the parts of a steady window may differ, a share of a step.
    """
    configuration, facts = run.configuration, run.facts
    row = {
        "identity": run.identity,
        "repetition": run.repetition,
        **configuration.displayed_values(),
        "world_size": configuration.world_size,
        "global_batch": configuration.global_batch,
        "outcome": str(run.outcome),
        "reason": run.reason,
        "started": facts["started"],
        "run_seconds": facts["seconds"],
        "order": facts["order"],
        "round": facts["round"],
        "position": facts["position"],
        "ranks_expected": facts["ranks_expected"],
        "ranks_seen": len(facts["ranks_seen"]),
        "fingerprint": facts["fingerprint"],
        "busy_cores_during": facts["load"]["busy_cores_during"],
        "waited_seconds": facts["load"]["waited_seconds"],
        **_environment_columns(run),
    }
    return row | _measured_columns(run, tolerance) if run.completed else row


def hosts_of(run: Run) -> list[str]:
    """Return the names of the hosts of the ranks, each once."""
    return sorted({str(log.facts["host"]) for log in run.ranks})


def _environment_columns(run: Run) -> dict[str, Any]:
    cluster, environment = run.facts["cluster"], run.facts["environment"]
    hardware, git = environment["hardware"], environment["git"]
    columns = {name: cluster.get(name) for name in ("launcher", "device", "device_name", "link")}
    columns |= {name: hardware.get(name) for name in ("cpu_model", "memory_bytes", "cores")}
    variables = environment["variables"]
    settings = [f"{name}={value}" for name, value in variables.items() if name not in _LOCALE_VARIABLES]
    addresses = []
    for node in run.facts["nodes"]:
        if "address" in node:
            addresses.append(f"{node['name']} {node['address']} ({node.get('interface', 'unknown')})".strip())
    return columns | {
        **_gpu_versions(run),
        "addresses": ", ".join(addresses) or None,
        "python_version": environment["software"].get("python"),
        "library_settings": "; ".join(settings) or "none",
        "measuring_code": run.facts["code"],
        "git_commit": git.get("commit"),
        "git_dirty": git.get("dirty"),
    }


def _gpu_versions(run: Run) -> dict[str, str | None]:
    """Return the versions of driver, CUDA and cuDNN that the nodes report, each once; None where none does."""
    drivers, cuda, cudnn = [], [], []
    for node in run.facts["nodes"]:
        support = node.get("gpu_support", {})
        drivers.append(node.get("hardware", {}).get("gpu_driver") if support else None)
        cuda.append(support.get("cuda"))
        cudnn.append(support.get("cudnn"))
    versions = {"gpu_driver": drivers, "cuda_version": cuda, "cudnn_version": cudnn}
    return {name: ", ".join(dict.fromkeys(filter(None, values))) or None for name, values in versions.items()}


def _measured_columns(run: Run, tolerance: float) -> dict[str, Any]:
    facts = run.ranks[0].facts
    described = (
        *("parameters", "gradient_bytes", "flops_per_sample", "computed_in"),
        *("exchange", "exchange_library", "library", "library_version"),
    )
    return {
        "host": ", ".join(hosts_of(run)),
        **{name: facts.get(name) for name in described},
        "compile_seconds": _compile_seconds(run),
        **{f"observed_{name}": run.ranks[0].facts.get("tuning", {}).get(name) for name in TUNED},
        "loss_scale": run.ranks[0].end.get("loss_scale"),
        "skipped_steps": slowest_training(run).skipped_steps,
        **_window_columns(run),
        **throughput_of(run),
        **utilisation_of(run),
        **communication_of(run),
        **_peak_memory(run),
        **_cpu_limit(run),
        **resources_of(run, throughput(run)),
        **_steadiness_columns(run, tolerance),
    }


#: The row of a run calls it, and the diagnostics of the same run after that.
@lru_cache(maxsize=1)
def steadiness_of(run: Run, tolerance: float = TOLERANCE) -> tuple[Steadiness, int | None]:
    """Return whether the measured window is steady, and the first step from which it is: see ``settled_at``."""
    step_seconds = slowest_training(run).step_seconds
    result = steadiness(step_seconds, tolerance)
    return result, 0 if result.is_steady else settled_at(step_seconds, tolerance)


def _steadiness_columns(run: Run, tolerance: float) -> dict[str, str | int | None]:
    result, settled_at_step = steadiness_of(run, tolerance)
    return {
        "steadiness": str(result.answer),
        "further_steps": result.further_steps,
        "settled_at_step": settled_at_step,
    }


def _compile_seconds(run: Run) -> float | None:
    """Return how long the first steps of a compiled network took; None without a compiler, or if a rank has none."""
    seconds: list[float] = [log.facts["first_steps_seconds"] for log in run.ranks if "first_steps_seconds" in log.facts]
    is_complete = run.configuration.compiler != NO_COMPILER and len(seconds) == len(run.ranks)
    return max(seconds) if is_complete else None


def _window_columns(run: Run) -> dict[str, Any]:
    """Return how many steps the windows have, the same number on every rank, and why the warm-up ended."""
    columns: dict[str, Any] = {"steps_measured": slowest_training(run).steps}
    warmup = run.slowest(WARMUP)
    if warmup and warmup.ended_by:
        columns |= {"steps_warmed_up": warmup.steps, "warmup_end": str(warmup.ended_by)}
    return columns


def _peak_memory(run: Run) -> dict[str, int | None]:
    """Return the peaks of the rank that has most; None where a rank has not recorded it, for that may be the most."""
    columns: dict[str, int | None] = {}
    for column in PEAKS:
        kind = column.name.removeprefix("peak_")
        peaks = (cast(dict[str, int], log.end.get("peak_memory", {})).get(kind) for log in run.ranks)
        columns[column.name] = max(if_complete(peaks), default=None)
    return columns


def _cpu_limit(run: Run) -> dict[str, float | None]:
    """Return how many of its cores, and in how many periods all of them, the rank used that used most."""
    cores, shares = [], []
    for log in run.ranks:
        if counts := cast(dict[str, float], log.end.get("cpu_limit", {})):
            cores.append(counts["cpu_seconds"] / log.windows[TRAINING].seconds)
            # A window may be shorter than a period.
            shares.append(counts["throttled_periods"] / max(counts["periods"], 1))
    return {"used_cores": max(cores, default=None), "throttled_share": max(shares, default=None)}


def step_rows(run: Run) -> pa.Table:
    """Return every step of every window of every rank of a completed run, as rows of the table of steps."""
    ranks: list[int] = []
    windows: list[Window] = []
    for log in run.ranks:
        windows += log.windows.values()
        ranks += [log.rank] * len(log.windows)
    counts = [window.steps for window in windows]
    names = list(dict.fromkeys(window.name for window in windows))
    losses = [window.losses if window.losses.size else np.full(window.steps, np.nan) for window in windows]
    columns: dict[str, NDArray[Any] | RepeatedText] = {
        "identity": (np.zeros(sum(counts), np.int32), [run.identity]),
        "repetition": np.full(sum(counts), run.repetition),
        "rank": np.repeat(ranks, counts),
        "window": (np.repeat([names.index(window.name) for window in windows], counts), names),
        "step": np.concatenate(list(map(np.arange, counts))),
        "seconds": np.concatenate([window.step_seconds for window in windows]),
        "loss": np.concatenate(losses),
    }
    return rows_of(TableName.STEPS, columns)
