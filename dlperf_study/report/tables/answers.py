"""The answer of the comparison page in sentences: no sentence claims more than its interval."""

from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset import cells
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.comparison import (
    BACKGROUND_LOAD,
    COMPUTATION,
    EQUAL,
    EXCHANGE,
    INPUT,
    NOT_DISTINGUISHABLE,
    SEVERAL,
    TOO_FEW_RUNS,
    UNCLEAR,
)
from dlperf_study.metrics.statistics import log_ratio
from dlperf_study.report import context, formatting
from dlperf_study.report.series import Group, all_groups, joined
from dlperf_study.report.tables.missing import explain_missing, explain_missing_interval, explain_unmeasured
from dlperf_study.study.configuration import FIELD_NAMES
from dlperf_study.study.job import ROUNDS
from dlperf_study.training.part_names import same_alone

VERDICTS_TOGETHER = (
    "All verdicts of a study are made together (Holm): with a probability of at least 95 % none of them "
    "wrongly says faster or slower. So an interval that barely excludes 1 may belong to no such verdict."
)
#: What is said of a difference, by the part of a step in which it is.
EXPLANATIONS = {
    COMPUTATION: "The largest part of the difference is in the computation.",
    INPUT: "The largest part of the difference is in the waiting for batches.",
    EXCHANGE: "The largest part of the difference is in the exposed exchange.",
    SEVERAL: "The difference is in several parts of the step.",
    UNCLEAR: "Inconclusive: no part of the step explains the difference.",
}
_ORDER_UNKNOWN = (
    "Logs do not say in which order the runs were made: intervals of ratios take them as independent, and hold nothing "
    "that a machine changed between the runs of one configuration and those of the next."
)
_IN_BLOCKS = (
    "Runs that were not measured in rounds, but in blocks or by hand, have no ratio with an interval and no verdict: a "
    "machine that slowly changes its speed sets configurations apart, and nothing tells that from a difference between "
    "them."
)


@dataclass(frozen=True)
class Verdicts:
    """Verdicts, each with what it is about; ``preface`` says how far to believe them, ``note`` applies to all.

    ``empty`` is shown instead when there is none.
    """

    verdicts: tuple[tuple[str, str], ...]
    preface: str
    note: str
    empty: str

    @property
    def is_empty(self) -> bool:
        """Whether there is no verdict."""
        return not self.verdicts

    def save(self, paths: StudyPaths) -> "Verdicts":
        """Return the answer, to be shown: it has no file, because the tables have its numbers."""
        return self

    def _repr_html_(self) -> str:
        if not self.verdicts:
            return f'<p class="nothing">{escape(self.empty)}</p>'
        items = "".join(f"<li><b>{escape(label)}:</b> {escape(verdict)}</li>" for label, verdict in self.verdicts)
        preface = f"<p>{escape(self.preface)}</p>" if self.preface else ""
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return f'<div class="answer">{preface}<ul>{items}</ul>{note}</div>'


def comparison(dataset: Dataset) -> Verdicts:
    """Return which configurations are faster or slower than their reference, by how much and in which part."""
    verdicts = []
    for group in all_groups(dataset):
        shared = joined(formatting.model_name(group.reference), group.shared)
        verdicts.append((f"{shared}, against {group.reference.label}", _verdict(dataset, group)))
    preface = (context.repetition(dataset, ratios=True), VERDICTS_TOGETHER, *comparison_notes(dataset))
    notes = (context.input_note(dataset), context.quick_label(dataset).strip())
    return Verdicts(tuple(verdicts), " ".join(preface), " ".join(filter(None, notes)), nothing_compared(dataset))


def nothing_compared(dataset: Dataset) -> str:
    """Return why nothing is compared: no reference is declared, or a selection is without those of its configurations.

    It is said where a study has no groups.
    """
    if dataset.configurations["reference_identity"].notna().any():
        return "The references of these configurations are not selected, so nothing is compared."
    return "The study declares no reference, so nothing is compared."


def _verdict(dataset: Dataset, group: Group) -> str:
    reference = group.reference
    if cells.is_missing(getattr(reference, dataset.rate)):
        return f"No comparison, because the reference has no value: {explain_unmeasured(dataset, reference)}."
    if not group.compared:
        return "Nothing else is compared with it."
    unit = formatting.unit_of(dataset.rate, [getattr(reference, dataset.rate)])
    throughput = formatting.column_text(reference, dataset.rate, size=unit.size)
    sentences = [_sentence(dataset, row, reference) for row in group.compared]
    return " ".join([f"It reaches {throughput} {unit.symbol}.", *sentences])


def _sentence(dataset: Dataset, row: Any, reference: Any) -> str:
    if cells.is_missing(getattr(row, dataset.rate)):
        return f"{row.label} has no value: {explain_unmeasured(dataset, row)}."
    if cells.is_missing(row.verdict):
        reason = explain_missing_interval(dataset, row, "relative_throughput", "reference")
        return f"{row.label} reaches {formatting.plain(row.relative_throughput)}× that, but is not ranked: {reason}."
    times = formatting.column_text(row, "relative_throughput", "×")
    if row.verdict == EQUAL:
        equality = formatting.percent_at_most(row.relative_throughput_equal_within)
        return f"{row.label} is as fast, within {equality} ({times})."
    if row.verdict == NOT_DISTINGUISHABLE:
        return f"{row.label} is {NOT_DISTINGUISHABLE} from it ({times})."
    if row.verdict == TOO_FEW_RUNS:
        missing = int(row.relative_throughput_rounds_missing)
        return f"{row.label} is {times} as fast; {missing} more {'round is' if missing == 1 else 'rounds are'} needed."
    if row.verdict == BACKGROUND_LOAD:
        return f"{row.label} is {times} as fast; no outcome, because of background load."
    if same_program(row, reference):
        explanation = "Both run the same program on one device, so this is no difference between the two."
    elif cells.is_missing(row.difference_lies_in):
        reason = explain_missing(dataset, row, "difference_lies_in")
        explanation = f"Where the difference is, is unknown: {reason}."
    else:
        explanation = EXPLANATIONS[row.difference_lies_in]
    return f"{row.label} is {times} as fast. {explanation}"


def same_program(row: Any, reference: Any) -> bool:
    """Return whether two configurations train with one program, because there is no device to exchange with."""
    frameworks = {row.framework, reference.framework}
    is_same = len(frameworks) > 1 and any(frameworks <= {*group} for group in same_alone())
    return is_same and row.world_size == reference.world_size == 1


def comparison_notes(dataset: Dataset) -> tuple[str, ...]:
    """Return what no interval shows, and a reader must know before believing a ratio of two configurations."""
    runs = dataset.completed_runs
    is_in_blocks = (runs["order"] != ROUNDS).any() and runs["identity"].nunique() > 1
    order_note = (_ORDER_UNKNOWN if dataset.plan.ingested_from else _IN_BLOCKS) if is_in_blocks else ""
    rows = dataset.measured
    notes = [_note_of_same_program(dataset, rows[rows["world_size"] == 1], group) for group in same_alone()]
    return tuple(filter(None, (order_note, " ".join(filter(None, notes)))))


def _note_of_same_program(dataset: Dataset, rows: pd.DataFrame, frameworks: tuple[str, ...]) -> str:
    """Return that frameworks run one program on one device, and how many times as fast the faster of each pair is.

    ``rows``: the configurations on one device.
    """
    on_one_device = rows[rows["framework"].isin(frameworks)]
    common = [name for name in FIELD_NAMES if name != "framework"]
    throughputs = dataset.throughputs
    ratios = []
    for _, pair in on_one_device.groupby(common, sort=False, dropna=False):
        if len(pair) == 2:
            first, second = (throughputs[identity] for identity in pair["identity"])
            ratio = max(log_ratio(first, second), log_ratio(second, first), key=lambda estimate: estimate.mean)
            times = formatting.value_text(ratio.bounded_factor, "×", decision=1, no_interval=", without an interval")
            ratios.append(f"{formatting.model_name(pair.iloc[0])}: {times}")
    if not ratios:
        return ""
    names = formatting.listed(map(formatting.display_name, frameworks))
    return (
        f"On one device {names} run the same program. What differs there ({', '.join(ratios)}) is not theirs, but how "
        "far apart one program is measured twice here; believe no smaller difference between other configurations."
    )
