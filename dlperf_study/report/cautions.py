"""What the intervals can't show, and a reader must know before believing a ratio."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from dlperf_study.analysis.dataset import Dataset
from dlperf_study.report.context import completed_runs, measured
from dlperf_study.report.names import human, listed
from dlperf_study.report.numbers import plain
from dlperf_study.study.configuration import FIELD_NAMES

ALONE = "Every verdict stands alone: the more there are, the more of them are wrong by chance."
_IN_BLOCKS = (
    "The runs of one configuration were measured one right after another: a machine that slowly changes its speed "
    "sets configurations apart, and no interval shows it."
)
#: Frameworks whose programs are the same where there is no other device to exchange with.
_SAME_ALONE = ("torch_ddp", "horovod_torch")


def cautions(dataset: Dataset) -> tuple[str, ...]:
    """Return what holds for every comparison of two configurations of the study."""
    return tuple(filter(None, (_drift(dataset), _same_program(dataset))))


def same_program(row: Any, other: Any) -> bool:
    """Say whether two rows of the configurations train with one program: there is nobody to exchange with."""
    return {row.framework, other.framework} == set(_SAME_ALONE) and row.world_size == other.world_size == 1


def _drift(dataset: Dataset) -> str:
    """Return the warning about drift where the runs of some configuration lie in one block of time."""
    runs = completed_runs(dataset).dropna(subset=["started"]).sort_values("started", kind="stable")
    identities = runs["identity"].reset_index(drop=True)
    blocks = pd.DataFrame({"identity": identities, "block": (identities != identities.shift()).cumsum()})
    several = blocks.groupby("identity")["block"].agg(["size", "nunique"])
    alone = len(several) < 2
    return "" if alone or not ((several["size"] > 1) & (several["nunique"] == 1)).any() else _IN_BLOCKS


def _same_program(dataset: Dataset) -> str:
    """Return that two frameworks run one program on one device, and how far apart it was measured."""
    ratios = list(_apart(measured(dataset)))
    if not ratios:
        return ""
    names = listed(list(map(human, _SAME_ALONE)))
    return (
        f"On one device {names} run the same program. What differs there ({', '.join(ratios)}) is not theirs, but how "
        "far apart one program is measured twice here; believe no smaller difference between other configurations."
    )


def _apart(rows: pd.DataFrame) -> Iterator[str]:
    """Yield the model and the larger rate over the smaller of each pair that differs in its framework alone."""
    single = rows[(rows["world_size"] == 1) & rows["framework"].isin(_SAME_ALONE)]
    alike = [name for name in FIELD_NAMES if name != "framework"]
    for _, pair in single.groupby(alike, sort=False, dropna=False):
        if len(pair) == len(_SAME_ALONE):
            yield f"{human(pair['model'].iloc[0])}: {plain(pair['throughput'].max() / pair['throughput'].min())}×"
