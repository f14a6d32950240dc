"""What is said otherwise of a measured study and of ingested logs, side by side: pages claim no more than was done."""

from dataclasses import dataclass

from dlperf_study.analysis.dataset import Dataset


@dataclass(frozen=True)
class Words:
    """Sentences of the pages. ``runs`` and ``place`` have room for a number of runs.

    ``is_ours``: the machine, and the time a run took, were seen from here. ``absent`` is about planned configurations
    without any run; ``unknown`` precedes conditions that nobody stated; ``step`` says whose time a step is.
    """

    is_ours: bool
    began: str
    unknown: str
    step: str
    runs: str
    place_title: str
    place: str
    no_place: str
    absent_title: str
    absent: str
    none_absent: str
    failures_title: str
    no_failure: str


_MEASURED = Words(
    is_ours=True,
    began="Measured",
    unknown="not recorded",
    step="A step's time is that of its slowest rank",
    runs="{} planned",
    place_title="Where it was measured",
    place="Hardware and software of the {}.",
    no_place="",
    absent_title="Unsupported configurations",
    absent="Planned, but not possible here; they were not replaced by anything.",
    none_absent="Every planned configuration can run here.",
    failures_title="Runs that did not complete",
    no_failure="Every run completed.",
)
_INGESTED = Words(
    is_ours=False,
    began="Printed by other programs",
    unknown="not stated",
    step="A step's time is that of the whole job, as printed",
    runs="{} among the logs",
    place_title="Where the programs ran",
    place="As stated with the logs of the {}; nothing of it was seen here.",
    no_place="Nobody stated on which devices, over which link and with which library these programs ran.",
    absent_title="Configurations without logs",
    absent="Declared, but no log of them is there; nothing stands in for them.",
    none_absent="There are logs of every declared configuration.",
    failures_title="Runs that do not count",
    no_failure="Every run counts.",
)


def words(dataset: Dataset) -> Words:
    """Return the words for where the numbers of a study come from."""
    return _INGESTED if dataset.plan.ingested_from else _MEASURED
