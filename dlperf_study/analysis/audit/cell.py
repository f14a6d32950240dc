"""One number of a table of results, and what the table says of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dlperf_study.analysis.audit.printed import Printed
from dlperf_study.study.configuration import FIELD_NAMES

THROUGHPUT, SPEEDUP, EFFICIENCY, RELATIVE = "throughput", "speedup", "efficiency", "relative_throughput"

#: What must be the same for two numbers of one metric to answer the same question: every parameter of ours, and what
#: a publication says besides.
CONFIGURATION = (
    *FIELD_NAMES,
    *("program", "extra", "mode", "sequence_length", "world_size", "parameters"),
    *("device", "device_name", "link", "instance", "hardware", "software"),
)
#: What differs along a curve, and so parts none.
SIZES = ("world_size", "nodes", "devices_per_node", "global_batch")


@dataclass(frozen=True, eq=False)
class Cell:
    """One number of a table of results.

    ``key`` names it uniquely. ``text`` is what was printed. ``series`` names the line of points that differ only in
    nodes and devices. ``facts`` holds everything else the table says of it, by column; what is missing is not there.
    ``own_conditions``: its conditions in columns of its own, which ours know nothing of.
    """

    key: str
    metric: str
    value: float
    text: str
    printed: Printed
    series: str
    world_size: int | None
    facts: Mapping[str, Any]
    own_conditions: tuple[str, ...] = ()

    def get(self, name: str) -> Any:
        """Return what the table says of the cell in a column, or None."""
        return self.facts.get(name)

    @property
    def baseline(self) -> str:
        """The key of the cell a ratio is relative to; empty if the table names none."""
        return str(self.facts.get("baseline", ""))

    @property
    def estimator(self) -> str:
        """How it summarises its runs, as far as the table says."""
        return str(self.facts.get("estimator", ""))

    @property
    def point(self) -> tuple[Any, ...]:
        """Its place on its series."""
        return self.series, self.world_size, self.get("nodes")

    @property
    def table(self) -> tuple[Any, Any]:
        """The source and table it stands in."""
        return self.get("source"), self.get("table")

    @property
    def configuration(self) -> tuple[str, ...]:
        """What it was measured with, as far as the table says."""
        return tuple(str(self.facts.get(name, "")) for name in (*CONFIGURATION, *self.own_conditions))

    @property
    def inferred(self) -> tuple[str, ...]:
        """The columns whose values the table itself does not print."""
        return tuple(str(self.facts.get("inferred", "")).split(", "))

    @property
    def is_run(self) -> bool:
        """Whether it is one repetition, and not a summary of them."""
        return self.estimator == "run"
