"""Why configurations are slower than ideal: what each cause adds to a step, and where a published study lost speed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dlperf_study.audit.published.points import Published
from dlperf_study.dataset.cells import bounded_value, is_missing
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.findings.published import read_published
from dlperf_study.metrics import collectives, comparison, statistics, waterfall
from dlperf_study.metrics.pipeline_bubble import bubble_seconds
from dlperf_study.metrics.printed_waterfall import PRINTED_CAUSES, PrintedWaterfall, printed_waterfalls
from dlperf_study.report import context, series
from dlperf_study.report.formatting import Unit, fitting_unit, format_bounded, plain
from dlperf_study.report.tables.missing import explain_missing, explain_missing_interval
from dlperf_study.report.tables.table import Cell, Heading, Table

TITLE = "Scaling-loss breakdown"
IDEAL, MEASURED = "Ideal step", "Measured step"
_CAPTION = "The ideal step and what each cause adds to it, with 95 % intervals; together they are the measured step."
_NOTES = {
    "ideal": "Ideal step: the step of the baseline, for as much work of a device; in the runs that measured the parts "
    "of both.",
    "computation": "Scaling of computation: mean over ranks − that of the baseline, as where devices share memory or "
    "power.",
    "imbalance": "Load imbalance: by how much the slowest rank computes longer than the mean.",
    "exchange": "Exposed exchange: the exposed communication without late updates, and without a waiting for jitter of "
    "2 ms or more, − that of the baseline.",
    waterfall.TOGETHER: "Unattributed: computation, load imbalance, waiting and exchange that no measurement "
    "separates; a dash says why.",
    waterfall.BUBBLE: "Pipeline bubble: what does not grow with the number of micro-batches, exchange of gradients and "
    "update included.",
    "sum": "The ideal step and all causes add up to the measured step.",
}
NOTHING = "Of no configuration and its baseline the step was measured."
_NO_INTERVAL = "fewer than three common rounds: no interval"
_NO_INTERVAL_OF_LOGS = "fewer than three runs of it or of its baseline, or equal ones: no interval"
_ALL_APART = "all parts of its step are separate"
_NO_PARTS = "logs print rates, and no part of a step"
_ONLY_RATES = " Logs print rates: they do not say which part of a step makes it longer."


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
    for identity in dataset.configurations["identity"]:
        row = rows[identity]
        baseline = rows.get(row.baseline_identity)
        if row.is_baseline or baseline is None or not _work(baseline):
            continue
        work = _work(row) / _work(baseline)
        steps = samples.waterfall(identity, row.baseline_identity, work)
        if steps is None:
            continue
        ends = {identity: steps.measured.mean, row.baseline_identity: steps.ideal.mean / work}
        compared = by_throughput.keys() & ends.keys()
        contradicted = [
            name for name in ends if name in compared and waterfall.contradicts(ends[name], by_throughput[name])
        ]
        if contradicted:
            name = contradicted[0]
            side = "its baseline"
            if name == identity:
                side = "it"
            hidden[identity] = _contradiction(dataset, side, ends[name], by_throughput[name])
        else:
            shown[identity] = steps
    return Waterfalls(shown, hidden)


def _steps_by_throughput(dataset: Dataset) -> dict[str, statistics.Bounded]:
    """Return each configuration's step time by throughput, with its interval."""
    runs, rate = (dataset.whole or dataset).completed_runs, dataset.rate
    work = (runs[rate].astype(float) * runs["step_seconds"].astype(float)).groupby(runs["identity"]).mean()
    steps: dict[str, statistics.Bounded] = {}
    for identity, amount in work.dropna().items():
        throughput, low, high = bounded_value(dataset.configuration_rows[str(identity)], rate)
        if low is None or high is None or is_missing(low):
            steps[str(identity)] = (amount / throughput, None, None)
        else:
            steps[str(identity)] = (amount / throughput, amount / high, amount / low)
    return steps


def _contradiction(dataset: Dataset, side: str, seconds: float, by_throughput: statistics.Bounded) -> str:
    unit = step_unit(dataset)
    expected = " ".join(filter(None, format_bounded(*by_throughput, size=unit.size)))
    step = f"{plain(seconds / unit.size)} {unit.symbol}"
    return (
        f"not shown: a step of {side} takes {step} in the runs that measured its parts, and {expected} {unit.symbol} "
        "by the throughput"
    )


def _work(row: Any) -> float:
    """Return the samples of a device in a step."""
    return float(row.global_batch / row.world_size)


def causes(dataset: Dataset) -> Table:
    """Return each configuration's ideal step, causes and measured step."""
    unit, labels, breakdowns = step_unit(dataset), series.configuration_labels(dataset), waterfalls(dataset)
    names = [name for name in waterfall.CAUSES if any(name in steps.causes for steps in breakdowns.shown.values())]
    step_names = (IDEAL, *(waterfall.CAUSES[name] for name in names), MEASURED)
    headings = [Heading(name, unit.symbol, numeric=True, interval=True) for name in step_names]
    no_interval = _NO_INTERVAL
    if dataset.plan.ingested_from:
        no_interval = _NO_INTERVAL_OF_LOGS
    rows = []
    for identity in dataset.configurations["identity"]:
        if identity in breakdowns.hidden:
            rows.append((Cell(labels[identity]), *[Cell.missing(breakdowns.hidden[identity])] * len(headings)))
        if identity not in breakdowns.shown:
            continue
        steps = breakdowns.shown[identity]
        of_steps = (steps.ideal, steps.measured)
        ideal, measured = (_cell(step, step.positive_interval(), unit, no_interval) for step in of_steps)
        cells = []
        for name in names:
            if name in steps.causes:
                cause = steps.causes[name]
                cells.append(_cell(cause, cause.interval(), unit, no_interval))
            else:
                cells.append(Cell.missing(_why_not_apart(dataset, identity, name)))
        rows.append((Cell(labels[identity]), ideal, *cells, measured))
    notes = tuple(_NOTES[name] for name in ("ideal", *names, "sum") if name in _NOTES)
    caption = f"{_CAPTION}{_ONLY_RATES if dataset.plan.ingested_from else ''}"
    return Table("causes", TITLE, caption, (Heading("Configuration"), *headings), tuple(rows), notes, NOTHING)


def step_unit(dataset: Dataset) -> Unit:
    """Return the unit in which steps and their parts are printed."""
    return fitting_unit("step_seconds", dataset.configurations["step_seconds"])


def _why_not_apart(dataset: Dataset, identity: str, name: str) -> str:
    row = dataset.configuration_rows[identity]
    column = {waterfall.BUBBLE: "bubble_share", waterfall.INPUT: "input_seconds"}.get(name, "computation_seconds")
    if name == waterfall.TOGETHER:
        return _ALL_APART
    if name == waterfall.JITTER and not is_missing(row.computation_seconds):
        return explain_missing(dataset, row, "jitter_seconds")
    if dataset.plan.ingested_from:
        return _NO_PARTS
    baseline = dataset.configuration_rows[row.baseline_identity]
    missing = next((of for of in (row, baseline) if is_missing(getattr(of, column))), None)
    if missing is None:
        return _ALL_APART
    return explain_missing(dataset, missing, column)


def _cell(estimate: statistics.Estimate, interval: statistics.Interval | None, unit: Unit, no_interval: str) -> Cell:
    if interval is None:
        # What no run has at all is nothing, and needs no interval.
        return Cell.of((estimate.mean / unit.size, None, None), no_interval if estimate.mean else "")
    return Cell.of((estimate.mean / unit.size, interval.low / unit.size, interval.high / unit.size), "")


_KINDS_CAPTION = "Of steps with several exchanges: how long each takes alone, and within which bounds it is exposed."
_KINDS_NOTES = (
    "Exposed at least, at most: from the ends of the 95 % intervals, and as if no exchange were exposed for longer "
    "than it takes alone. At least: what is exposed and the other exchanges can't explain.",
    "Where no step can be done without its exchange, nothing says how much of it is hidden: from nothing to all of it.",
)
_NO_KINDS = "No step has exchanges of several kinds, or they were not measured alone."
_LONGER_EXPOSED = "the step waits for longer than all its exchanges take alone: nothing says for which"


def exposed_kinds(dataset: Dataset) -> Table:
    """Return each collective's time alone and bounds of its exposed part."""
    labels, rows, groups = series.configuration_labels(dataset), [], []
    unit = fitting_unit("exchange_seconds", dataset.configurations["exchange_seconds"])
    for row in dataset.configurations.itertuples():
        exchanges = _step_exchanges(row)
        rows += _rows_of_exchanges(dataset, row, exchanges, unit)
        groups += [labels[row.identity]] * len(exchanges)
    ends = []
    for label in ("Exposed at least", "Exposed at most"):
        ends.append(Heading(label, unit.symbol, numeric=True))
    headings = (Heading("Exchange"), Heading("Alone", unit.symbol, numeric=True, interval=True), *ends)
    name, title = "exposed-kinds", "Exposed exchange by kind"
    return Table(name, title, _KINDS_CAPTION, headings, tuple(rows), _KINDS_NOTES, _NO_KINDS, tuple(groups))


def _step_exchanges(row: Any) -> dict[str, str]:
    """Return a step's exchanges by column: by group, else by kind."""
    for names in (collectives.SECONDS_OF_GROUPS, collectives.SECONDS_OF_KINDS):
        measured = {}
        for column, label in names.items():
            if not is_missing(getattr(row, column)):
                measured[column] = label
        if len(measured) > 1:
            return measured
    return {}


def _rows_of_exchanges(dataset: Dataset, row: Any, exchanges: Mapping[str, str], unit: Unit) -> list[tuple[Cell, ...]]:
    alone = {column: _interval(row, column) for column in exchanges}
    exposed, jitter = _interval(row, "exposed_seconds"), _interval(row, "jitter_seconds")
    if exposed:
        # A small one has no interval.
        largest = jitter.high if jitter else dataset.select_runs(row.identity)["jitter_seconds"].fillna(0.0).max()
        exposed = statistics.Interval(exposed.low - max(0.0, largest), exposed.high)
    measured = {column: interval for column, interval in alone.items() if interval}
    has_bounds = len(measured) == len(exchanges) and (exposed or is_missing(row.exposed_seconds))
    bounds = waterfall.exposed_of_kinds(exposed, measured) if has_bounds else {}
    rows = []
    for column, label in exchanges.items():
        value, interval = format_bounded(*bounded_value(row, column), size=unit.size)
        reason = ""
        if not interval:
            reason = explain_missing_interval(dataset, row, column)
        if column in bounds:
            ends = [Cell(plain(end / unit.size)) for end in (bounds[column].low, bounds[column].high)]
        else:
            ends = [Cell.missing(_LONGER_EXPOSED if has_bounds else "no interval, so no bounds")] * 2
        rows.append((Cell(label), Cell(value, interval, reason), *ends))
    return rows


def _interval(row: Any, column: str) -> statistics.Interval | None:
    _, low, high = bounded_value(row, column)
    if low is None or high is None or is_missing(low):
        return None
    return statistics.Interval(low, high)


PRINTED_TITLE = "Scaling-loss breakdown, as printed"
ONE_WORKER, SEVERAL_WORKERS = "One worker", "Measured"
_COMMUNICATION, _WAIT = "Exchange and copy as printed", "Of it wait for the device"
_PRINTED_CAPTION = (
    "The task of one worker, what each cause adds to it, and the task of several workers; of shares of communication, "
    "a step. Seconds of one worker, each printed once: no intervals."
)
_PRINTED_NOTES = (
    f"{_WAIT}: a device computes while the program goes on, and the wait for it counts in the stage that first needs a "
    "result. With one worker that is the update; with several it is the copy of the gradients, and is printed as "
    "exchange. By as much the update of the same parameters is faster than with one worker.",
    "Copy off the device: the printed time of the copy without that wait.",
    "Exchange between workers: the printed time of the exchange without the copy, where it begins with one; of a "
    "share, that share of a step.",
    "Computation: the rest, on several workers − on one. Outside of batches: what a task takes besides its batches.",
)
_NO_WAIT = "none is recognised: the copy and the update are not printed apart"
_NOTHING_PRINTED = (
    "Its sources print neither stages of a task nor shares of communication with throughputs, on one worker too."
)


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
    names = [name for name in PRINTED_CAUSES if any(name in steps.causes for steps in printed)]
    labels = [ONE_WORKER, *(PRINTED_CAUSES[name] for name in names), SEVERAL_WORKERS, _COMMUNICATION, _WAIT]
    headings = (Heading("Workers", numeric=True), *(Heading(label, "s", numeric=True) for label in labels))
    rows = []
    for steps in printed:
        cells = []
        for name in names:
            seconds = steps.causes.get(name)
            missing = Cell.missing("its source does not print it")
            cells.append(missing if seconds is None else Cell(plain(seconds)))
        wait = Cell(plain(steps.wait)) if steps.wait else Cell.missing(_NO_WAIT)
        task = (Cell(plain(steps.measured)), Cell(plain(steps.communication)), wait)
        rows.append((Cell(str(steps.world_size)), Cell(plain(steps.ideal)), *cells, *task))
    groups = tuple(published.full_title(steps.source, steps.table) for steps in printed)
    empty = _NOTHING_PRINTED
    if not published.sources:
        empty = context.NO_SOURCES
    return Table(
        "printed-causes", PRINTED_TITLE, _PRINTED_CAPTION, headings, tuple(rows), _PRINTED_NOTES, empty, groups
    )
