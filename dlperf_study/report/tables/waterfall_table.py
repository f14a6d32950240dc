"""Why configurations are slower than ideal: what each cause adds to a step, and where a published study lost speed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from dlperf_study.audit.published.points import Published
from dlperf_study.dataset.cells import bounded_value, is_missing
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.findings.published import read_published
from dlperf_study.metrics import collectives, comparison, statistics, waterfall
from dlperf_study.metrics.pipeline_bubble import bubble_seconds
from dlperf_study.metrics.printed_waterfall import PRINTED_CAUSES, PrintedWaterfall, printed_waterfalls
from dlperf_study.report import context, series
from dlperf_study.report.formatting import Unit, fitting_unit, format_bounded, plain, text_if
from dlperf_study.report.say import caption, captions
from dlperf_study.report.tables.missing import explain_missing, explain_missing_interval
from dlperf_study.report.tables.table import Cell, Heading, Table, make_table

IDEAL, MEASURED = "Ideal step", "Measured step"


@dataclass(frozen=True)
class Waterfalls:
    """The breakdowns by identity; ``hidden``: the reasons for hidden ones."""

    shown: Mapping[str, waterfall.Waterfall]
    hidden: Mapping[str, str]


@kept_with_dataset
def waterfalls(dataset: Dataset) -> Waterfalls:
    """Return the breakdowns; those that contradict the throughput are hidden."""
    runs = dataset.counted_runs
    rounds = comparison.assign_rounds(runs, dataset.plan)
    samples = waterfall.StepSamples.from_runs(
        runs, rounds, bubble_seconds(dataset.plan.entries, runs, rounds), dataset.looks
    )
    rows, by_throughput = dataset.configuration_rows, _steps_by_throughput(dataset)
    shown, hidden = {}, {}
    for configuration_id in dataset.configurations["configuration_id"]:
        row = rows[configuration_id]
        baseline = rows.get(row.baseline_id)
        if row.is_baseline or baseline is None or not _work(baseline):
            continue
        work = _work(row) / _work(baseline)
        steps = samples.waterfall(configuration_id, row.baseline_id, work)
        if steps is None:
            continue
        shown[configuration_id] = steps
        ends = {
            row.baseline_id: ("its baseline", steps.ideal.mean / work),
            configuration_id: ("it", steps.measured.mean),
        }
        for name, (side, seconds) in ends.items():
            expected = by_throughput.get(name)
            if expected and waterfall.contradicts(seconds, expected):
                hidden[configuration_id] = _contradiction(dataset, side, seconds, expected)
    return Waterfalls({name: steps for name, steps in shown.items() if name not in hidden}, hidden)


def _steps_by_throughput(dataset: Dataset) -> dict[str, statistics.Bounded]:
    """Return each configuration's step time by throughput, with its interval."""
    runs, column = (dataset.whole or dataset).completed_runs, dataset.throughput_column
    work = (runs[column].astype(float) * runs["step_seconds"].astype(float)).groupby(runs["configuration_id"]).mean()
    steps: dict[str, statistics.Bounded] = {}
    for configuration_id, amount in work.dropna().items():
        throughput, low, high = bounded_value(dataset.configuration_rows[str(configuration_id)], column)
        if low is None or high is None or is_missing(low):
            steps[str(configuration_id)] = (amount / throughput, None, None)
        else:
            steps[str(configuration_id)] = (amount / throughput, amount / high, amount / low)
    return steps


def _contradiction(dataset: Dataset, side: str, seconds: float, by_throughput: statistics.Bounded) -> str:
    unit = step_unit(dataset)
    expected = f"{' '.join(filter(None, format_bounded(*by_throughput, size=unit.size)))} {unit.symbol}"
    step = f"{plain(seconds / unit.size)} {unit.symbol}"
    return caption("causes", "contradiction", side=side, step=step, expected=expected)


def _work(row: Any) -> float:
    """Return the samples of a device in a step."""
    return float(row.global_batch / row.world_size)


def causes(dataset: Dataset) -> Table:
    """Return each configuration's ideal step, causes and measured step."""
    unit, labels, breakdowns = step_unit(dataset), series.configuration_labels(dataset), waterfalls(dataset)
    measured_causes = set[str]().union(*(steps.causes for steps in breakdowns.shown.values()))
    names = list(filter(measured_causes.__contains__, waterfall.CAUSES))
    step_names = (IDEAL, *map(waterfall.CAUSES.__getitem__, names), MEASURED)
    headings = [Heading.number(name, unit.symbol, interval=True) for name in step_names]
    is_of_logs = bool(dataset.plan.ingested_from)
    no_interval = caption("causes", "no_interval_of_logs" if is_of_logs else "no_interval")
    rows = []
    for configuration_id in dataset.configurations["configuration_id"]:
        if configuration_id in breakdowns.hidden:
            rows.append(
                (labels[configuration_id], *[Cell.missing(breakdowns.hidden[configuration_id])] * len(headings))
            )
        if configuration_id not in breakdowns.shown:
            continue
        steps = breakdowns.shown[configuration_id]
        of_steps = (steps.ideal, steps.measured)
        ideal, measured = (_cell(step, step.positive_interval(), unit, no_interval) for step in of_steps)
        cells = []
        for name in names:
            if name in steps.causes:
                cause = steps.causes[name]
                cells.append(_cell(cause, cause.interval(), unit, no_interval))
            else:
                cells.append(Cell.missing(_why_not_apart(dataset, configuration_id, name)))
        rows.append((labels[configuration_id], ideal, *cells, measured))
    noted = filter(captions()["causes"].__contains__, map("note_{}".format, ("ideal", *names, "sum")))
    notes = map(partial(caption, "causes"), noted)
    about = caption("causes", is_of_logs=is_of_logs)
    return make_table("causes", ("Configuration", *headings), rows, about, notes=notes)


def step_unit(dataset: Dataset) -> Unit:
    """Return the unit in which steps and their parts are printed."""
    return fitting_unit("step_seconds", dataset.configurations["step_seconds"])


def _why_not_apart(dataset: Dataset, configuration_id: str, name: str) -> str:
    row = dataset.configuration_rows[configuration_id]
    column = {waterfall.BUBBLE: "bubble_share", waterfall.INPUT: "input_seconds"}.get(name, "compute_seconds")
    if name == waterfall.TOGETHER:
        return caption("causes", "apart")
    if name == waterfall.JITTER and not is_missing(row.compute_seconds):
        return explain_missing(dataset, row, "jitter_seconds")
    if dataset.plan.ingested_from:
        return caption("causes", "no_parts")
    baseline = dataset.configuration_rows[row.baseline_id]
    for side in (row, baseline):
        if is_missing(getattr(side, column)):
            return explain_missing(dataset, side, column)
    return caption("causes", "apart")


def _cell(estimate: statistics.Estimate, interval: statistics.Interval | None, unit: Unit, no_interval: str) -> Cell:
    if interval is None:
        # What no run has at all is nothing, and needs no interval.
        return Cell.of((estimate.mean / unit.size, None, None), text_if(estimate.mean, no_interval))
    return Cell.of((estimate.mean / unit.size, interval.low / unit.size, interval.high / unit.size), "")


def exposed_kinds(dataset: Dataset) -> Table:
    """Return each collective's time alone and bounds of its exposed part."""
    labels, rows, groups = series.configuration_labels(dataset), [], []
    unit = fitting_unit("communication_seconds", dataset.configurations["communication_seconds"])
    for row in dataset.configurations.itertuples():
        collective_operations = _step_communications(row)
        rows += _rows_of_communications(dataset, row, collective_operations, unit)
        groups += [labels[row.configuration_id]] * len(collective_operations)
    alone = Heading.number("Alone", unit.symbol, interval=True)
    ends = Heading.number("Exposed at least", unit.symbol), Heading.number("Exposed at most", unit.symbol)
    notes = (caption("exposed-kinds", "bounds"), caption("exposed-kinds", "hidden"))
    about = caption("exposed-kinds")
    return make_table("exposed-kinds", ("Communication", alone, *ends), rows, about, notes=notes, groups=groups)


def _step_communications(row: Any) -> dict[str, str]:
    """Return a step's transfers by column: by group, else by kind."""
    for names in (collectives.SECONDS_OF_GROUPS, collectives.SECONDS_OF_KINDS):
        measured = {}
        for column, label in names.items():
            if not is_missing(getattr(row, column)):
                measured[column] = label
        if len(measured) > 1:
            return measured
    return {}


def _rows_of_communications(
    dataset: Dataset, row: Any, collective_operations: Mapping[str, str], unit: Unit
) -> list[tuple[Cell, ...]]:
    alone = {column: _interval(row, column) for column in collective_operations}
    exposed, jitter = _interval(row, "exposed_communication_seconds"), _interval(row, "jitter_seconds")
    if exposed:
        # A small one has no interval.
        largest = (
            jitter.high if jitter else dataset.select_runs(row.configuration_id)["jitter_seconds"].fillna(0.0).max()
        )
        exposed = statistics.Interval(exposed.low - max(0.0, largest), exposed.high)
    measured = {column: interval for column, interval in alone.items() if interval}
    has_bounds = len(measured) == len(collective_operations) and (
        exposed or is_missing(row.exposed_communication_seconds)
    )
    bounds = waterfall.exposed_of_kinds(exposed, measured) if has_bounds else {}
    rows = []
    for column, label in collective_operations.items():
        value, interval = format_bounded(*bounded_value(row, column), size=unit.size)
        reason = "" if interval else explain_missing_interval(dataset, row, column)
        ends = [Cell.missing("no interval, so no bounds")] * 2
        if column in bounds:
            ends = [Cell(plain(bounds[column].low / unit.size)), Cell(plain(bounds[column].high / unit.size))]
        elif has_bounds:
            ends = [Cell.missing(caption("exposed-kinds", "longer"))] * 2
        rows.append((Cell(label), Cell(value, interval, reason), *ends))
    return rows


def _interval(row: Any, column: str) -> statistics.Interval | None:
    _, low, high = bounded_value(row, column)
    if low is None or high is None or is_missing(low):
        return None
    return statistics.Interval(low, high)


ONE_WORKER, SEVERAL_WORKERS = "One worker", "Measured"


def printed_steps(steps: PrintedWaterfall) -> waterfall.Waterfall:
    """Return what was printed as a waterfall without intervals."""
    causes = {name: statistics.Estimate(seconds) for name, seconds in steps.causes.items()}
    return waterfall.Waterfall(statistics.Estimate(steps.ideal), causes, statistics.Estimate(steps.measured))


def panel_title(published: Published, steps: PrintedWaterfall) -> str:
    """Return the title of a printed waterfall: table and row."""
    table = published.sources[steps.source].tables[steps.table]
    return f"{table.title} · {steps.row} {'' if 'worker' in steps.row else 'workers'}".strip()


def printed_causes(dataset: Dataset) -> Table:
    """Return what each cause adds to the printed single-worker task."""
    published = read_published(dataset)
    printed = printed_waterfalls(published.cells)
    printed_names = set[str]().union(*(steps.causes for steps in printed))
    names = list(filter(printed_names.__contains__, PRINTED_CAUSES))
    labels = [ONE_WORKER, *map(PRINTED_CAUSES.__getitem__, names), SEVERAL_WORKERS]
    labels += ["Communication and copy as printed", "Of it wait for the device"]
    rows, groups = [], []
    for steps in printed:
        cells = []
        for name in names:
            seconds = steps.causes.get(name)
            missing = Cell.missing("its source does not print it")
            cells.append(missing if seconds is None else plain(seconds))
        wait = Cell(plain(steps.wait)) if steps.wait else Cell.missing(caption("printed-causes", "no_wait"))
        task = (plain(steps.measured), plain(steps.communication), wait)
        rows.append((str(steps.world_size), plain(steps.ideal), *cells, *task))
        groups.append(published.full_title(steps.source, steps.table))
    headings = (Heading.number("Workers"), *(Heading.number(label, "s") for label in labels))
    notes = map(partial(caption, "printed-causes"), ("wait", "copy", "communication", "rest"))
    empty, about = context.no_sources(dataset), caption("printed-causes")
    return make_table("printed-causes", headings, rows, about, empty=empty, notes=notes, groups=groups)
