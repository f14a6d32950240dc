"""The table of where the missing speed of a published study went, from the stages and shares that it printed."""

from dlperf_study.audit.published.points import Published
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.printed_waterfall import PRINTED_CAUSES, PrintedWaterfall, printed_waterfalls
from dlperf_study.metrics.statistics import Estimate
from dlperf_study.metrics.waterfall import Waterfall
from dlperf_study.report.context import NO_SOURCES
from dlperf_study.report.formatting import plain
from dlperf_study.report.series import published_of
from dlperf_study.report.tables.table import Cell, Heading, Table

TITLE = "From ideal to measured, as printed"
#: What the first and the last number of a printed waterfall are called.
ONE_WORKER, SEVERAL_WORKERS = "One worker", "Measured"
_COMMUNICATION, _WAIT = "Exchange and copy as printed", "Of it wait for the device"
_CAPTION = (
    "The task of one worker, what each cause adds to it, and the task of several workers; of shares of communication, "
    "a step. Seconds of one worker, each printed once: no intervals."
)
_NOTES = (
    f"{_WAIT}: a device computes while the program goes on, and the wait for it counts in the stage that first needs a "
    "result. With one worker that is the update; with several it is the copy of the gradients, and is printed as "
    "exchange. By as much the update of the same parameters is faster than with one worker.",
    "Copy off the device: the printed time of the copy without that wait.",
    "Exchange between workers: the printed time of the exchange without the copy, where it begins with one; of a "
    "share, that share of a step.",
    "Computation: the rest, on several workers − on one. Outside of batches: what a task takes besides its batches.",
)
_NO_WAIT = "none is recognised: the copy and the update are not printed apart"
_NOTHING = "Its sources print neither stages of a task nor shares of communication with throughputs, on one worker too."


def printed_steps(steps: PrintedWaterfall) -> Waterfall:
    """Return what was printed as a waterfall without intervals."""
    causes = {name: Estimate(seconds) for name, seconds in steps.causes.items()}
    return Waterfall(Estimate(steps.ideal), causes, Estimate(steps.measured))


def panel_title(published: Published, steps: PrintedWaterfall) -> str:
    """Return what a printed waterfall is called: its table and its row."""
    table = published.sources[steps.source].tables[steps.table]
    return f"{table.title} · {steps.row} {'' if 'worker' in steps.row else 'workers'}".strip()


def printed_causes(dataset: Dataset) -> Table:
    """Return what each cause adds to the task of one worker, for each printed one of several."""
    published = published_of(dataset)
    waterfalls = printed_waterfalls(published.cells)
    names = [name for name in PRINTED_CAUSES if any(name in steps.causes for steps in waterfalls)]
    labels = [ONE_WORKER, *(PRINTED_CAUSES[name] for name in names), SEVERAL_WORKERS, _COMMUNICATION, _WAIT]
    headings = (Heading("Workers", numeric=True), *(Heading(label, "s", numeric=True) for label in labels))
    rows = tuple(_row(steps, names) for steps in waterfalls)
    groups = tuple(published.title_of(steps.source, steps.table) for steps in waterfalls)
    empty = _NOTHING if published.sources else NO_SOURCES
    return Table("printed-causes", TITLE, _CAPTION, headings, rows, _NOTES, empty, groups)


def _row(steps: PrintedWaterfall, names: list[str]) -> tuple[Cell, ...]:
    cells = []
    for name in names:
        is_printed = name in steps.causes
        cells.append(Cell(plain(steps.causes[name])) if is_printed else Cell.missing("its source does not print it"))
    wait = Cell(plain(steps.wait)) if steps.wait else Cell.missing(_NO_WAIT)
    task = (Cell(plain(steps.measured)), Cell(plain(steps.communication)), wait)
    return (Cell(str(steps.world_size)), Cell(plain(steps.ideal)), *cells, *task)
