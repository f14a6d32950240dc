"""The figures of the report, as SVG and PDF: each function takes the dataset and yields one figure per model."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from matplotlib.figure import Figure as Drawing

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.outcome import select_counted
from dlperf_study.report import context
from dlperf_study.report.figures import drawings, step_drawing
from dlperf_study.report.figures.factor_figure import factors as factors
from dlperf_study.report.figures.figure import Figure, alt_text
from dlperf_study.report.figures.page_figures import drift as drift
from dlperf_study.report.figures.page_figures import history as history
from dlperf_study.report.figures.page_figures import memory as memory
from dlperf_study.report.figures.prediction_figure import prediction as prediction
from dlperf_study.report.figures.style import Width
from dlperf_study.report.figures.waterfall_figure import waterfall as waterfall
from dlperf_study.report.formatting import model_name
from dlperf_study.report.series import Series, all_groups, all_series

Draw = Callable[[Dataset, list[Series], Width], Drawing | None]

_NOTHING_MEASURED = "No configuration of this model has a completed run."
_NO_STEPS = "No completed run of this model has times of its steps."
_ONE_SIZE = "Fewer than two numbers of devices were measured, so there is no scaling to show."
_NO_EXCHANGE = "No exchange was measured for this model."
_NOT_COMPARED = "No configuration of this model was measured that has a reference or is one."
_NO_RANKS = "No configuration of this model has a measured computation of several ranks."
_LEFT_OUT = {
    "steps": (step_drawing.MOST_PANELS, "whose steps vary most"),
    "stragglers": (drawings.MOST_ROWS, "whose ranks differ most"),
}
_ENDS = {
    "overview": "that are the fastest and the slowest",
    "communication": "that wait for the largest and the smallest share of a step",
}
_DRAWN: dict[str, Callable[[Dataset, list[Series]], Iterable[str]]] = {
    "overview": lambda dataset, lines: drawings.overview_rows(dataset, lines)["identity"],
    "scaling": drawings.scaling_identities,
    "communication": lambda dataset, lines: drawings.communication_rows(dataset, lines)["identity"],
    "comparison": drawings.comparison_identities,
    "steps": lambda dataset, lines: step_drawing.steps_rows(dataset, lines)["identity"],
    "stragglers": lambda dataset, lines: drawings.straggler_rows(dataset, lines)["identity"],
}
_EXTREME_EFFICIENCIES = "whose last efficiencies are the largest and the smallest"
_ON_COMPUTATION = ("communication", "comparison", "stragglers")


def overview(dataset: Dataset) -> Iterator[Figure]:
    """Yield the throughput of every measured configuration, with runs and interval."""
    explanation = f"Dots: runs. Mark: their mean. Bar: its interval.{_open_dots(dataset)}"
    shared = _summary(dataset)
    title = COLUMNS[dataset.rate].words
    return _per_model(dataset, "overview", title, explanation, shared, drawings.overview, _NOTHING_MEASURED)


def _open_dots(dataset: Dataset) -> str:
    if len(select_counted(dataset.runs)) < len(dataset.completed_runs):
        return " Open dots: runs with background load, in no mean."
    return ""


def scaling(dataset: Dataset) -> Iterator[Figure]:
    """Yield throughput, speedup and efficiency against devices, with ideal lines."""
    explanation = "Dotted: ideal scaling from the declared baseline, whose throughput is given."
    if dataset.configurations["exchange_seconds"].notna().any():
        explanation += " Dashed: the bound, a step as long as its computation or, if longer, its exchange."
    explanation += " Bars: intervals; an open marker has none."
    shared = _summary(dataset, ratios=True)
    return _per_model(dataset, "scaling", "scaling", explanation, shared, drawings.scaling, _ONE_SIZE)


def communication(dataset: Dataset) -> Iterator[Figure]:
    """Yield the components of a step beside its pure communication time."""
    explanation = "Bars: the step in its parts. Thin line: the pure communication, as long as if nothing hid it."
    explanation = f"{explanation} {context.longer_than_alone(dataset)}".strip()
    is_whole = dataset.configurations["step_seconds"].notna() & dataset.configurations["exposed_seconds"].isna()
    if is_whole.any():
        explanation += " Steps whose parts were not measured are left out; the table says why."
    shared = f"{context.MEANS} {context.merging(dataset)}".strip()
    draw = drawings.communication
    return _per_model(dataset, "communication", "one step", explanation, shared, draw, _NO_EXCHANGE)


def comparison(dataset: Dataset) -> Iterator[Figure]:
    """Yield throughputs and steps of each reference and its compared configurations."""
    groups, rows = all_groups(dataset), dataset.configurations
    explanation = (
        "Of each group the first is the reference. Left, dots: runs; mark: their mean; bar: its interval. Right: the "
        f"step, its parts in the order of the legend, each a mean over runs.{_open_dots(dataset)}"
    )
    if (rows["step_seconds"].notna() & rows["broken_down_step_seconds"].isna()).any():
        explanation += " Steps whose parts were not measured have no bar."
    if any(len(group.measured) and not drawings.has_reference(group) for group in groups):
        explanation += " Groups whose reference was not measured are left out."
    shared, draw = _summary(dataset), drawings.comparison
    return _per_model(dataset, "comparison", "side by side", explanation, shared, draw, _NOT_COMPARED)


def steps(dataset: Dataset) -> Iterator[Figure]:
    """Yield every step of warm-up and measured window, of each run."""
    step = context.page_wording(dataset).step
    explanation = (
        f"One line per run. {step}, relative to the median of the run's steps that count. Grey: warm-up, not counted."
    )
    return _per_model(dataset, "steps", "step by step", explanation, "", step_drawing.steps, _NO_STEPS)


def stragglers(dataset: Dataset) -> Iterator[Figure]:
    """Yield the computation time of each rank relative to the slowest."""
    explanation = (
        "One dot per rank and run: the rank's mean computation-only step, relative to that of the run's slowest rank. "
        "The further left, the longer a rank waits for the others; with an asynchronous server none waits."
    )
    return _per_model(dataset, "stragglers", "ranks", explanation, "", drawings.stragglers, _NO_RANKS)


def _summary(dataset: Dataset, ratios: bool = False) -> str:
    return f"{context.repetition(dataset, ratios)} {context.merging(dataset)}".strip()


def _per_model(
    dataset: Dataset, name: str, title: str, explanation: str, shared: str, draw: Draw, empty: str
) -> Iterator[Figure]:
    """Yield a figure per model; ``shared``: caption text common to several figures."""
    of_model, rows = defaultdict[str, list[Series]](list), dataset.configuration_rows
    for line in all_series(dataset):
        of_model[rows[line.identities[0]].model].append(line)
    for model, lines in of_model.items():
        omission = _omission(dataset, name, lines, model)
        sentences = [explanation, shared, omission]
        if name in _ON_COMPUTATION:
            sentences.append(context.computation_note(dataset, model))
        sentences.append(context.conditions(dataset, model))
        caption, page_caption = " ".join(filter(None, sentences)), f"{explanation} {omission}".strip()
        file_name, heading = f"{name}-{model}".replace("_", "-"), f"{model_name(rows[lines[0].identities[0]])}: {title}"
        alt = alt_text(dataset, name, heading, lines, set(_DRAWN[name](dataset, lines)))
        yield Figure(file_name, heading, caption, partial(draw, dataset, lines), empty, page_caption, alt)


def _omission(dataset: Dataset, name: str, series: list[Series], model: str) -> str:
    measured = dataset.measured
    rows = measured[measured["model"] == model]
    if name == "scaling":
        count, criterion = sum(bool(line.measured_identities) for line in series), _EXTREME_EFFICIENCIES
        return _shown_sentence(count, "lines", drawings.most_lines(dataset), criterion)
    if name == "comparison":
        groups = [group for group in all_groups(dataset, model) if drawings.has_reference(group)]
        count = sum(len(group.measured) for group in groups)
        shown = sum(len(group.measured) for group in drawings.most_different(dataset, groups))
        return _shown_sentence(count, "configurations", shown, "that differ most from their references, with these,")
    if name in _LEFT_OUT:
        most, criterion = _LEFT_OUT[name]
        is_shown = rows["world_size"] > 1 if name == "stragglers" else rows["step_seconds"].notna()
        shown = drawings.most_of_model(dataset, most)
        return _shown_sentence(int(is_shown.sum()), "configurations", shown, criterion)
    if name in _ENDS:
        count = int(rows["exposed_seconds" if name == "communication" else dataset.rate].notna().sum())
        return _shown_sentence(count, "configurations", drawings.most_rows(dataset), _ENDS[name])
    return ""


def _shown_sentence(count: int, nouns: str, shown: int, criterion: str) -> str:
    if count > shown:
        return f"Of {count} {nouns} the {shown} {criterion} are shown."
    return ""
