"""One row of the table of runs."""

from typing import Any

from dlperf_study.analysis.communication import communication_of
from dlperf_study.analysis.steady_state import settled_at
from dlperf_study.analysis.throughput import slowest_training, throughput_of
from dlperf_study.logs.evidence import Run

#: Variables of a run that set nothing in a library.
_OF_THE_LOCALE = ("LANG", "LC_ALL", "TZ")


def run_row(run: Run) -> dict[str, Any]:
    """Return the columns of one run; a run that didn't complete has no measurement."""
    return {
        "identity": run.identity,
        "repetition": run.repetition,
        **run.configuration.as_shown(),
        "world_size": run.configuration.world_size,
        "global_batch": run.configuration.global_batch,
        **_life(run),
        **_place(run),
        **(_measurements(run) if run.completed else {}),
    }


def hosts_of(run: Run) -> list[str]:
    """Return the names of the hosts of the ranks, each once."""
    return sorted({str(log.facts["host"]) for log in run.ranks})


def _life(run: Run) -> dict[str, Any]:
    load = run.facts["load"]
    return {
        "outcome": str(run.outcome),
        "reason": run.reason,
        "started": run.facts["started"],
        "run_seconds": run.facts["seconds"],
        "ranks_expected": run.facts["ranks_expected"],
        "ranks_seen": len(run.facts["ranks_seen"]),
        "fingerprint": run.facts["fingerprint"],
        "busy_cores_during": load.get("busy_cores_during"),
        "waited_seconds": load.get("waited_seconds"),
    }


def _place(run: Run) -> dict[str, Any]:
    cluster, environment = run.facts["cluster"], run.facts["environment"]
    hardware, git = environment.get("hardware", {}), environment.get("git", {})
    variables = environment.get("variables", {})
    return {
        **{name: cluster.get(name) for name in ("launcher", "device", "device_name", "device_peak_flops", "link")},
        "addresses": _addresses(run.facts.get("nodes", [])) or None,
        **{name: hardware.get(name) for name in ("cpu_model", "memory_bytes")},
        "cores": hardware.get("cores"),
        "python_version": environment.get("software", {}).get("python"),
        "library_settings": "; ".join(f"{n}={v}" for n, v in variables.items() if n not in _OF_THE_LOCALE) or "none",
        "git_commit": git.get("commit"),
        "git_dirty": git.get("dirty"),
    }


def _addresses(nodes: list[dict[str, Any]]) -> str:
    """Return the address and the interface that each node said it has."""
    return ", ".join(
        f"{node['name']} {node['address']} ({node['interface']})".strip() for node in nodes if "address" in node
    )


def _measurements(run: Run) -> dict[str, Any]:
    facts = run.ranks[0].facts
    described = ("parameters", "gradient_bytes", "flops_per_sample", "exchange", "library", "library_version")
    return {
        "host": ", ".join(hosts_of(run)),
        **{name: facts.get(name) for name in described},
        **throughput_of(run),
        **communication_of(run),
        "settled_at_step": settled_at(slowest_training(run).step_seconds),
    }
