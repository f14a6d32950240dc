"""The figures of the report, as SVG and PDF: each function takes the dataset and yields one figure per model."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial

import pandas as pd
from matplotlib.figure import Figure as Drawing

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.run_status import select_counted
from dlperf_study.report import context
from dlperf_study.report.figures import drawings
from dlperf_study.report.figures.factor_figure import factors as factors
from dlperf_study.report.figures.figure import Figure, alt_text
from dlperf_study.report.figures.page_figures import drift as drift
from dlperf_study.report.figures.page_figures import history as history
from dlperf_study.report.figures.page_figures import memory as memory
from dlperf_study.report.figures.page_figures import prediction as prediction
from dlperf_study.report.figures.style import Width
from dlperf_study.report.figures.waterfall_figure import waterfall as waterfall
from dlperf_study.report.formatting import model_name, text_if
from dlperf_study.report.say import caption
from dlperf_study.report.series import Series, all_groups, all_series

#: Draws the series of one model.
Draw = Callable[[Dataset, list[Series], Width], Drawing | None]
#: Returns how many lines or configurations of a model there are, and how many are shown.
Counts = Callable[[list[Series], pd.DataFrame], tuple[int, int]]
_ON_COMPUTATION = ("communication", "comparison", "stragglers")


def overview(dataset: Dataset) -> Iterator[Figure]:
    """Yield the throughput of every measured configuration, with runs and interval."""
    explanation = caption("figure-overview", has_open_dots=_has_open_dots(dataset))
    counts, title = (
        _count_values(dataset.throughput_column, drawings.most_rows(dataset)),
        COLUMNS[dataset.throughput_column].words,
    )
    sentences, drawn = (explanation, _summary(dataset)), partial(drawings.overview_rows, dataset)
    return _per_model(
        dataset, "overview", sentences, drawings.overview, drawn, (dataset.throughput_column,), counts, title
    )


def _has_open_dots(dataset: Dataset) -> bool:
    return len(select_counted(dataset.runs)) < len(dataset.completed_runs)


def scaling(dataset: Dataset) -> Iterator[Figure]:
    """Yield throughput, speedup and efficiency against devices, with ideal lines."""
    explanation = caption("figure-scaling", has_bound=dataset.configurations["communication_seconds"].notna().any())
    sentences, columns = (
        (explanation, _summary(dataset, ratios=True)),
        (dataset.throughput_column, "speedup", "efficiency"),
    )

    def counts(lines: list[Series], _: pd.DataFrame) -> tuple[int, int]:
        return sum(bool(line.measured_identities) for line in lines), drawings.most_lines(dataset)

    drawn = partial(drawings.scaling_rows, dataset)
    return _per_model(dataset, "scaling", sentences, drawings.scaling, drawn, columns, counts)


def communication(dataset: Dataset) -> Iterator[Figure]:
    """Yield the components of a step beside its communication-only time."""
    is_whole = (
        dataset.configurations["step_seconds"].notna() & dataset.configurations["exposed_communication_seconds"].isna()
    )
    longer = context.longer_than_alone(dataset)
    explanation = caption("figure-communication", longer=longer, has_whole=is_whole.any())
    sentences = explanation, f"{context.MEANS} {context.merging(dataset)}".strip()
    columns = ("broken_down_step_seconds", "compute_seconds", "exposed_communication_seconds", "communication_seconds")
    most, drawn = drawings.most_rows(dataset), partial(drawings.communication_rows, dataset)
    counts = _count_values("exposed_communication_seconds", most)
    return _per_model(dataset, "communication", sentences, drawings.communication, drawn, columns, counts)


def comparison(dataset: Dataset) -> Iterator[Figure]:
    """Yield throughputs and steps of each reference and its compared configurations."""
    rows = dataset.configurations
    is_whole = rows["step_seconds"].notna() & rows["broken_down_step_seconds"].isna()
    without_reference = [group for group in all_groups(dataset) if not drawings.has_reference(group)]
    has_unmeasured_reference = any(len(group.measured) for group in without_reference)
    facts = {
        "has_open_dots": _has_open_dots(dataset),
        "has_whole": is_whole.any(),
        "has_unmeasured_reference": has_unmeasured_reference,
    }
    sentences = caption("figure-comparison", **facts), _summary(dataset)
    columns = (dataset.throughput_column, "relative_throughput", "step_seconds")

    def counts(lines: list[Series], _: pd.DataFrame) -> tuple[int, int]:
        groups = list(filter(drawings.has_reference, drawings.model_groups(dataset, lines)))
        shown = drawings.most_different(dataset, groups)
        return sum(len(group.measured) for group in groups), sum(len(group.measured) for group in shown)

    drawn = partial(drawings.comparison_rows, dataset)
    return _per_model(dataset, "comparison", sentences, drawings.comparison, drawn, columns, counts)


def steps(dataset: Dataset) -> Iterator[Figure]:
    """Yield every step of warm-up and measured window, of each run."""
    sentences = (caption("figure-steps", step=context.by_origin(dataset, "step")),)
    most, drawn = drawings.most_of_model(dataset, drawings.MOST_PANELS), partial(drawings.steps_rows, dataset)
    counts = _count_values("step_seconds", most)
    return _per_model(dataset, "steps", sentences, drawings.steps, drawn, ("step_seconds",), counts)


def stragglers(dataset: Dataset) -> Iterator[Figure]:
    """Yield the computation time of each rank relative to the slowest."""
    sentences = (caption("figure-stragglers"),)
    drawn = partial(drawings.straggler_rows, dataset)

    def counts(_: list[Series], rows: pd.DataFrame) -> tuple[int, int]:
        return (rows["world_size"] > 1).sum(), drawings.most_of_model(dataset, drawings.MOST_ROWS)

    return _per_model(dataset, "stragglers", sentences, drawings.stragglers, drawn, ("load_balance",), counts)


def _count_values(column: str, most: int) -> Counts:
    return lambda _, rows: (rows[column].count(), most)


def _summary(dataset: Dataset, ratios: bool = False) -> str:
    return f"{context.repetition(dataset, ratios)} {context.merging(dataset)}".strip()


def _per_model(
    dataset: Dataset,
    name: str,
    sentences: tuple[str, ...],
    draw: Draw,
    drawn: Callable[[list[Series]], pd.DataFrame],
    columns: tuple[str, ...],
    counts: Counts,
    title: str = "",
) -> Iterator[Figure]:
    """Yield a figure per model; ``columns``: what its alternative text has of each configuration."""
    of_model, rows, measured = defaultdict[str, list[Series]](list), dataset.configuration_rows, dataset.measured
    for line in all_series(dataset):
        of_model[rows[line.configuration_ids[0]].model].append(line)
    for model, lines in of_model.items():
        count, shown = counts(lines, measured[measured["model"] == model])
        omission = text_if(count > shown, caption(f"figure-{name}", "omission", count=count, shown=shown))
        note = text_if(name in _ON_COMPUTATION, context.computation_note(dataset, model))
        in_file = " ".join(filter(None, (*sentences, omission, note, context.conditions(dataset, model))))
        on_page = f"{sentences[0]} {omission}".strip()
        heading = f"{model_name(rows[lines[0].configuration_ids[0]])}: {title or caption(f'figure-{name}', 'title')}"
        alt = alt_text(dataset, columns, heading, lines, set(drawn(lines)["configuration_id"]))
        file_name, empty = f"{name}-{model}".replace("_", "-"), caption(f"figure-{name}", "empty")
        yield Figure(file_name, heading, in_file, partial(draw, dataset, lines), empty, on_page, alt)
