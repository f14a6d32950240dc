"""Perform faults for real, and write what was seen into performed.md: ``python -m tools.faults [local ssh slurm]``.

It needs root, and for two of the clusters ssh and Slurm: see tests/requirements.py. Rows of faults that were not
performed stay as they are.
"""

import argparse
import fcntl
import signal
import tempfile
from collections.abc import Iterable
from pathlib import Path

from dlperf_study.core.writing import write_atomically
from tools.faults.clusters import CLUSTERS
from tools.faults.fault import FAULTS, Fault
from tools.faults.performance import HEADING, performed

PAGE = Path(__file__).with_name("performed.md")
BEGIN, END = "<!-- python -m tools.faults -->\n", "<!-- end of the faults performed -->\n"


def main() -> None:
    """Perform the faults of some clusters, or those whose titles contain a text, and write their rows at once."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__)
    parser.add_argument("clusters", nargs="*", help=f"of {', '.join(CLUSTERS)}; without any, all")
    parser.add_argument("--title", default="", help="only faults whose title contains this")
    parser.add_argument("--missing", action="store_true", help="only faults that have no row yet")
    options = parser.parse_args()
    for number in (signal.SIGHUP, signal.SIGQUIT):
        # What was started by nohup, or in the background, ignores them.
        signal.signal(number, signal.SIG_DFL)
    for name in options.clusters or CLUSTERS:
        faults = [fault for fault in FAULTS if fault.cluster == name and options.title in fault.title]
        if options.missing:
            rows = rows_of_page()
            faults = [fault for fault in faults if row_key(fault) not in rows]
        perform(name, faults)


def perform(name: str, faults: Iterable[Fault]) -> None:
    """Perform faults on a cluster; write the row of each when it is over."""
    with tempfile.TemporaryDirectory(prefix="faults") as folder, CLUSTERS[name](Path(folder)) as make_scene:
        for number, fault in enumerate(faults):
            row = performed(fault, make_scene, Path(folder) / f"study-{number}")
            print(row, flush=True)
            add_row(fault, row)


def add_row(fault: Fault, row: str) -> None:
    """Write the row of a fault into the page; faults of several clusters may be performed at once."""
    with open(__file__) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write_rows(rows_of_page() | {row_key(fault): row})


def row_key(fault: Fault) -> str:
    """Return how the row of a fault begins."""
    return f"| {fault.title} | {fault.cluster} |"


def rows_of_page() -> dict[str, str]:
    """Return the rows of the page, by how they begin."""
    table = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = {}
    for line in table.splitlines()[2:]:
        title, cluster = line.split(" | ")[:2]
        rows[f"{title} | {cluster} |"] = line
    return rows


def write_rows(rows: dict[str, str]) -> None:
    """Write rows into the page, in the order in which the faults are declared."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    ordered = [rows[row_key(fault)] for fault in FAULTS if row_key(fault) in rows]
    table = "\n".join([*HEADING, *ordered])
    write_atomically(PAGE, f"{before}{BEGIN}{table}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
