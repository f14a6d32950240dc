"""What NCCL says of itself at the start of a run, with ``NCCL_DEBUG=INFO``: one file of each rank.

The words are NCCL's own. P2P: GPUs read each other's memory; SHM: through the memory of the host; NET: a network card,
with GDRDMA without the host's memory. The path between two GPUs is NVL, PIX, PXB, PHB or SYS; see ``nvidia-smi topo``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import RunPaths
from dlperf_study.core.wording import counted

#: The variables that make NCCL write it; what these subsystems say comes before all windows.
VARIABLES = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,GRAPH,NET,ENV", "NCCL_DEBUG_FILE": "{run}/nccl-%h-%p.log"}
FILES = "nccl-*.log"
#: The paths between GPUs of a machine, the fastest first.
PATHS = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "PXN", "P2C", "PHB", "SYS")
SOCKET = "Socket"
_MESSAGE = re.compile(r"NCCL INFO (.*?)\s*$", re.MULTILINE)
_VERSION = re.compile(r"NCCL version (\S+)")
_NETWORK = re.compile(r"Using network (\S+)")
_CARDS = re.compile(r"NET/(\w+) : Using (\[0\].*?)(?:; OOB.*)?")
_CARD = re.compile(r"\[\d+\](\S+)")
_RING = re.compile(r"Channel \d+/(\d+) :((?:\s+\d+)+)")
_TREES = re.compile(r"Trees ((?:\[\d+\] \S+\s*)+)|Tree (\d+) : .*")
_CONNECTION = re.compile(
    r"Channel \d+(?:/\d+)? : (?P<source>\d+)\[\w+\] -> (?P<target>\d+)\[\w+\](?: \[(?:send|receive)\])?"
    r" via (?P<via>\S.*)"
)
_RING_PATTERN = re.compile(r"Pattern 4, .*\btype (\w+)/\w+,.*")


@dataclass(frozen=True)
class NcclReport:
    """What NCCL chose for a run; empty where unknown.

    ``cards`` are those of ``network``, the plugin that it uses between nodes. ``channels``: how many rings there are;
    ``rings``: their different orders of ranks. ``connections``: how many pairs of ranks each transport connects,
    without the number of the card. ``path``: the slowest between two GPUs of a machine.
    """

    version: str
    network: str
    cards: tuple[str, ...]
    channels: int
    rings: tuple[str, ...]
    trees: int
    connections: Mapping[str, int]
    path: str


def read_nccl_report(paths: RunPaths) -> NcclReport:
    """Return the report of NCCL; raises RecordError without one."""
    logs = [file.read_text(encoding="utf-8", errors="replace") for file in sorted(paths.folder.glob(FILES))]
    if not "".join(logs).strip():
        raise RecordError(f"{paths.folder}: NCCL wrote no report ({FILES}): the library may not communicate with NCCL")
    return nccl_report(logs)


def nccl_report(logs: Iterable[str]) -> NcclReport:
    """Return what NCCL says in the files of the ranks."""
    lines = [line for log in logs for line in _MESSAGE.findall(log)]
    network = _first(_NETWORK, lines)
    channels = 0
    orders: dict[str, None] = {}
    for match in map(_RING.fullmatch, lines):
        if match:
            channels = max(channels, int(match[1]))
            orders[" ".join(match[2].split())] = None
    paths = {match[1] for match in map(_RING_PATTERN.fullmatch, lines) if match and match[1] in PATHS}
    # Each card once: mlx5_0:1/IB; of sockets the interface without its address.
    cards: dict[str, None] = {}
    for match in map(_CARDS.fullmatch, lines):
        if match and match[1] == network:
            names = _CARD.findall(match[2])
            cards |= dict.fromkeys(name.partition(":")[0] if network == SOCKET else name for name in names)
    trees: set[str] = set()
    for match in map(_TREES.fullmatch, lines):
        if match:
            # Older versions have all trees of a rank in a line, newer ones a line for each.
            trees |= {match[2]} if match[2] else {*re.findall(r"\[(\d+)\]", match[1])}
    return NcclReport(
        version=_first(_VERSION, lines),
        network=network,
        cards=tuple(cards),
        channels=channels,
        rings=tuple(orders),
        trees=len(trees),
        connections=_connections(lines),
        path=max(paths, key=PATHS.index, default=""),
    )


def link_contradictions(report: NcclReport, link: str, nodes: int) -> Iterator[str]:
    """Yield where NCCL contradicts what a cluster file says connects the devices."""
    lower_case_link = link.casefold()
    if nodes == 1 and "nvlink" in lower_case_link:
        if PATHS.index(report.path or "LOC") > PATHS.index("C2C"):
            yield f"NCCL's slowest path between GPUs is {report.path}, but the cluster file has interconnect: {link}"
        if shared := report.connections.get("SHM"):
            pairs = f"NCCL connects {counted(shared, 'pair')} of ranks by SHM, through the host"
            yield f"{pairs}, but the cluster file has interconnect: {link}"
    if nodes > 1 and report.network == SOCKET and ("infiniband" in lower_case_link or "roce" in lower_case_link):
        cards = f" over {', '.join(report.cards)}" if report.cards else ""
        yield f"NCCL communicates by TCP{cards} between nodes, but the cluster file has interconnect: {link}"


def _first(pattern: re.Pattern[str], lines: Iterable[str]) -> str:
    return next((match[1] for match in map(pattern.search, lines) if match), "")


def _connections(lines: Iterable[str]) -> dict[str, int]:
    pairs: dict[str, set[tuple[str, str]]] = {}
    for match in map(_CONNECTION.fullmatch, lines):
        if match:
            kind, *details = match["via"].split("/")
            if kind == "NET":
                # Without the number of the card: NET/IB/GDRDMA.
                kind = "/".join([kind, *(detail for detail in details if not detail.isdecimal())])
            pairs.setdefault(kind, set()).add((match["source"], match["target"]))
    return {transport: len(pairs[transport]) for transport in sorted(pairs)}
