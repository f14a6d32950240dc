"""Whether the ranks of one run agree with each other, with what was asked, and with the life of their run."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dlperf_study.evidence.rank_log import CLOCK_TOLERANCE, RankLog
from dlperf_study.study.configuration import Configuration
from dlperf_study.wording import counted

#: How gradients travel where nothing does, and by averaging among the ranks.
NO_EXCHANGE, ALL_REDUCE = "none", "all_reduce"
#: What every rank of a run must say alike; of ``REPLICATED``, where each holds the whole network.
SAME, REPLICATED = ("exchange", "gradient_bytes", "library", "library_version"), ("parameters", "flops_per_sample")
#: Bytes of one element of a gradient on the link: parameters are kept as float32.
ELEMENT_BYTES = {"none": 4, "fp16": 2}


def disagreement(logs: Sequence[RankLog], asked: Configuration, device: str, seconds: float | None) -> str:
    """Return how the ranks of a run contradict the cluster, the configuration or each other, or nothing.

    ``seconds`` is the life of the training processes, None where nobody saw its end.
    """
    checks = (_place(logs, device), _facts(logs, asked), _exchange(logs, asked), _training(logs), _life(logs, seconds))
    return next((found for check in checks for found in check), "")


def _place(logs: Sequence[RankLog], device: str) -> Iterator[str]:
    found = {log.facts["device"] for log in logs}
    if found != {device}:
        yield f"the ranks trained on {', '.join(sorted(found))}, but the cluster file says {device}"
    for node, hosts in sorted(_hosts_of_nodes(logs).items()):
        if len(hosts) > 1:
            yield f"the ranks of node {node} ran on {', '.join(sorted(hosts))}: a node is one host"


def _hosts_of_nodes(logs: Sequence[RankLog]) -> Mapping[int, set[str]]:
    hosts = defaultdict[int, set[str]](set)
    for log in logs:
        hosts[log.facts["node"]].add(log.facts["host"])
    return hosts


def _facts(logs: Sequence[RankLog], asked: Configuration) -> Iterator[str]:
    for name in SAME if _is_sharded(asked) else (*SAME, *REPLICATED):
        values = dict.fromkeys(log.facts[name] for log in logs)
        if len(values) > 1:
            said = ", ".join(map(str, values))
            yield f"the ranks say different things of {name} ({said}): they did not train the same"


def _exchange(logs: Sequence[RankLog], asked: Configuration) -> Iterator[str]:
    kind, alone = logs[0].facts["exchange"], asked.world_size == 1 and not asked.servers
    if (kind == NO_EXCHANGE) != alone:
        ranks, servers = counted(asked.world_size, "rank"), counted(asked.servers, "server")
        yield f"exchange is {kind} in a run of {ranks} and {servers}"
    if asked.strategy == ALL_REDUCE and kind not in (NO_EXCHANGE, ALL_REDUCE):
        yield f"exchange is {kind}, but the strategy is {ALL_REDUCE}"
    yield from () if alone else _gradients(logs[0].facts, asked)


def _gradients(facts: Mapping[str, Any], asked: Configuration) -> Iterator[str]:
    """Yield how the bytes exchanged don't fit the parameters; the shard of a classifier is not exchanged."""
    element = ELEMENT_BYTES[asked.gradient_compression]
    said, whole = facts["gradient_bytes"], facts["parameters"] * element
    if not 0 < said <= whole or (said != whole and not _is_sharded(asked)):
        held = f"{facts['parameters']} parameters of {element} bytes"
        yield f"gradient_bytes is {said}, which doesn't fit {held}: {whole}"


def _training(logs: Sequence[RankLog]) -> Iterator[str]:
    if any(log.end["initial_checksum"] == log.end["parameter_checksum"] for log in logs):
        yield "the parameters did not change: nothing was trained"
    if len({log.end["parameter_checksum"] for log in logs}) > 1:
        yield "the ranks ended with different parameters: their gradients were not exchanged"


def _life(logs: Sequence[RankLog], seconds: float | None) -> Iterator[str]:
    """Yield which rank measured for longer than its run lived."""
    for log in logs:
        measured = sum(window.seconds for window in log.windows.values())
        if seconds is not None and measured > seconds * (1 + CLOCK_TOLERANCE):
            yield f"the windows of rank {log.rank} last {measured:.4g} s, but the run {seconds:.4g} s"


def _is_sharded(asked: Configuration) -> bool:
    return asked.classifier == "sharded"
