"""The paragraph on results of a paper: the findings of the report as LaTeX."""

from collections.abc import Iterator

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings import quality, scaling
from dlperf_study.report.say import LATEX, say
from dlperf_study.study.grid import Denominator

MAX_THROUGHPUTS = 8


def results(dataset: Dataset) -> str:
    """Return the paragraph: the declared comparisons, or the throughputs."""
    study = dataset.plan.study
    counts = f"Configurations measured: \\studyfact{{{study}}}{{configurations}}; runs: \\studyfact{{{study}}}{{runs}}."
    return "\n".join([counts, *say(_findings(dataset), LATEX, dataset)]) + "\n"


def _findings(dataset: Dataset) -> Iterator[object]:
    yield from quality.implausible(dataset)
    yield from quality.remedies(dataset)
    nothing = list(quality.no_conclusion(dataset))
    yield from nothing
    compared: list[tuple[Denominator, list[scaling.Compared]]] = []
    for question in dataset.plan.questions:
        if question == "scaling":
            compared.append(("baseline", scaling.speedups(dataset)))
        elif question == "comparison":
            compared.append(("reference", scaling.references(dataset)))
    if nothing or not any(comparisons for _, comparisons in compared):
        yield from scaling.throughputs(dataset)[:MAX_THROUGHPUTS]
        return
    for role, comparisons in compared:
        if comparisons:
            yield from scaling.lines(comparisons, dataset, role)
