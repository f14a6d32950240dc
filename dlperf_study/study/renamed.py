"""Earlier names of keys and columns: an error names the new one, and records of earlier versions are read.

Standard library only: every training process imports this.
"""

from collections.abc import Mapping, Sequence
from typing import Any

#: Parameters of a configuration: keys of a study file, of records, and columns of the dataset.
PARAMETERS = {
    "computation_steps": "compute_only_steps",
    "data_source": "data_loader",
    "exchange_steps": "communication_only_steps",
    "image_set": "image_dataset",
    "input_steps": "input_only_steps",
    "planted_slowdown": "injected_slowdown",
    "program_digest": "program_hash",
    "recompute": "activation_checkpointing",
    "repeats": "repetitions",
    "servers": "parameter_servers",
}
#: Other keys of a study file.
STUDY_KEYS = {
    "extras": "unpublished",
    "fixed": "constants",
    "max_repeats": "max_repetitions",
    "precision": "target_ci",
    "questions": "sections",
    "rate": "throughput_unit",
}
#: Keys of the section ``program``.
PROGRAM_KEYS = {"start": "launch", "steps": "timing"}
CLUSTER_KEYS = {"image_sets": "image_datasets", "link": "interconnect"}
#: Values of the key ``order``.
ORDERS = {"blocks": "sequential", "rounds": "interleaved"}
#: Columns of the dataset besides parameters. Those of an interval have these names with ``_low`` and ``_high``.
COLUMNS = {
    "baseline_identity": "baseline_id",
    "baseline_verdict": "baseline_significance",
    "batch_trials": "batch_probes",
    "computation_difference_seconds": "compute_difference_seconds",
    "computation_seconds": "compute_seconds",
    "data_exchange_bytes": "data_communication_bytes",
    "data_exchange_seconds": "data_communication_seconds",
    "difference_lies_in": "largest_difference",
    "exchange": "communication",
    "exchange_bandwidth": "communication_bandwidth",
    "exchange_latency_seconds": "communication_latency_seconds",
    "exchange_library": "communication_library",
    "exchange_seconds": "communication_seconds",
    "exposed_difference_seconds": "exposed_communication_difference_seconds",
    "exposed_seconds": "exposed_communication_seconds",
    "exposed_share": "exposed_communication_share",
    "fingerprint": "cache_key",
    "fixed_window_mean_of_rates": "fixed_window_mean_step_throughput",
    "foreign_processes": "other_processes",
    "identity": "configuration_id",
    "input_rate": "input_throughput",
    "link": "interconnect",
    "mean_of_rates": "mean_step_throughput",
    "network_rate": "network_throughput",
    "network_rate_before": "network_throughput_before",
    "outcome": "status",
    "pipeline_exchange_bytes": "pipeline_communication_bytes",
    "pipeline_exchange_seconds": "pipeline_communication_seconds",
    "printed_rate": "printed_throughput",
    "rate_levels": "throughput_levels",
    "reference_identity": "reference_id",
    "shard_exchange_bytes": "shard_communication_bytes",
    "shard_exchange_seconds": "shard_communication_seconds",
    "sum_of_rank_rates": "sum_of_rank_throughputs",
    "tensor_exchange_bytes": "tensor_communication_bytes",
    "tensor_exchange_seconds": "tensor_communication_seconds",
    "verdict": "significance",
}
#: Keys of a YAML file, whichever it is: a key that is valid in its section is none of these.
KEYS = PARAMETERS | STUDY_KEYS | PROGRAM_KEYS | CLUSTER_KEYS

_ENTRY_KEYS = {
    "baseline_identity": "baseline_id",
    "identity": "configuration_id",
    "is_extra": "is_unpublished",
    "reference_identity": "reference_id",
}
_RUN_KEYS = {
    "configuration_identity": "configuration_id",
    "fingerprint": "cache_key",
    "fingerprint_definition": "cache_key_definition",
    "fingerprint_parts": "cache_key_parts",
    "link": "interconnect",
    "outcome": "status",
    "survivors_ended": "orphans_ended",
}
_LOG_KEYS = {
    "exchange": "communication",
    "exchange_library": "communication_library",
    "exchange_threads": "communication_threads",
    "exchanges": "collective_operations",
    "planted": "injected",
}
_EARLIER = {new: old for old, new in PARAMETERS.items()}


def rename(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return values by the names of today; a value that has its name of today stays."""
    renamed = {}
    for name, value in values.items():
        new = names.get(name, name)
        if new == name or new not in values:
            renamed[new] = value
    return renamed


def name_column(name: str) -> str | None:
    """Return today's name of a column, also of an end of its interval; None if it is not an earlier name."""
    column = name.removesuffix("_low").removesuffix("_high")
    new = (PARAMETERS | COLUMNS).get(column)
    if new is None:
        return None
    return new + name.removeprefix(column)


def earlier_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters by their first names: what is hashed stays the same."""
    return {_EARLIER.get(name, name): value for name, value in values.items()}


def rename_plan(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of ``plan.json`` by the names of today."""
    plan = _rename_order(rename(content, STUDY_KEYS))
    for name, names in (("factors", PARAMETERS), ("entries", _ENTRY_KEYS)):
        if isinstance(plan.get(name), list):
            plan[name] = [_rename_value(value, names) for value in plan[name]]
    return plan


def rename_run(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of ``run.json`` by the names of today, without the parameters of its configuration."""
    run = _rename_order(rename(content, _RUN_KEYS))
    for section in ("cluster", "load"):
        if isinstance(run.get(section), dict):
            run[section] = rename(run[section], _RUN_KEYS)
    if isinstance(run.get("program"), dict):
        run["program"] = rename(run["program"], PROGRAM_KEYS)
    return run


def rename_log(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines of a rank log by the names of today."""
    renamed = []
    for line in lines:
        new = rename(line, _LOG_KEYS)
        name = line.get("name")
        if isinstance(name, str) and name.startswith("exchange"):
            new["name"] = name.replace("exchange", "communication", 1)
        renamed.append(new)
    return renamed


def _rename_order(content: dict[str, Any]) -> dict[str, Any]:
    if content.get("order") in tuple(ORDERS):
        content["order"] = ORDERS[content["order"]]
    return content


def _rename_value(value: Any, names: Mapping[str, str]) -> Any:
    """Return a name, or the names of a mapping, of today."""
    if isinstance(value, str):
        return names.get(value, value)
    if not isinstance(value, dict):
        return value
    entry = rename(value, names)
    if isinstance(entry.get("unstated"), list):
        entry["unstated"] = [_rename_value(name, PARAMETERS) for name in entry["unstated"]]
    return entry
