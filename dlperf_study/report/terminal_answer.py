"""The answer of a study outside its pages: in a terminal, with a bar per configuration, and as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from dlperf_study.core.terminal import text_table
from dlperf_study.core.wording import counted
from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings import quality
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.comparison import RATIOS
from dlperf_study.report.formatting import DOUBTFUL, MISSING, format_column, marked, text_if, unit_in
from dlperf_study.report.labels import Labels
from dlperf_study.report.page_findings import page_findings
from dlperf_study.report.say import MARKDOWN, TERMINAL, Medium, markdown_escaped, say
from dlperf_study.report.tables.table_builders import labelled_series

BAR_WIDTH, MOST_ROWS = 24, 20
#: Up to the lower end of an interval, and from there to its upper bound; of a throughput without an interval all is
#: certain.
CERTAIN, UNCERTAIN = "█", "░"
_LEGEND = f"{CERTAIN} up to the lower bound of the 95 % CI, {UNCERTAIN} from there to its upper bound"


@dataclass(frozen=True)
class Throughputs:
    """The throughputs and ratios of the configurations, with a bar each."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    bars: Sequence[str]
    left_out: str

    @property
    def with_bars(self) -> list[Sequence[str]]:
        """The rows, each bar next to its throughput, below the headings."""
        rows = [[*row[:2], bar, *row[2:]] for row, bar in zip(self.rows, self.bars, strict=True)]
        return [[*self.headings[:2], "", *self.headings[2:]], *rows]

    @property
    def notes(self) -> list[str]:
        """The omitted rows, the mark's meaning, and the bars' legend."""
        legend = text_if(UNCERTAIN in "".join(self.bars), _LEGEND)
        return [*filter(None, (self.left_out, self.mark_note, legend))]

    @property
    def mark_note(self) -> str:
        """What the mark of doubtful numbers means; empty without such numbers."""
        is_marked = any(DOUBTFUL in "".join(row) for row in self.rows)
        return text_if(is_marked, f"{DOUBTFUL} do not trust this number: see above")

    def in_terminal(self) -> str:
        """Return the table as text; empty without rows."""
        headings, *rows = self.with_bars
        return text_if(rows, "\n".join([text_table(headings, rows), *self.notes]))


def in_terminal(dataset: Dataset) -> str:
    """Return the answer as text."""
    lines = list(map("- {}".format, _findings(dataset, TERMINAL)))
    if table := configuration_throughputs(dataset).in_terminal():
        lines += ["", table]
    return "\n".join(["", dataset.plan.title, *lines, ""])


def _findings(dataset: Dataset, medium: Medium) -> list[str]:
    """Return the findings of the summary, and the unmeasured configurations."""
    findings = page_findings(dataset, "summary").findings
    missing = [finding for finding in quality.unmeasured(dataset) if finding not in findings]
    return say([*findings, *missing], medium, dataset)


def in_markdown(dataset: Dataset) -> str:
    """Return the answer as Markdown, for a review comment."""
    lines = [f"### {markdown_escaped(dataset.plan.title)}", ""]
    lines += map("- {}".format, _findings(dataset, MARKDOWN))
    throughputs = configuration_throughputs(dataset)
    if throughputs.rows:
        alignments = ["---", *["--:"] * (len(throughputs.headings) - 1)]
        table = [throughputs.headings, alignments, *(list(map(markdown_escaped, row)) for row in throughputs.rows)]
        lines += ["", *(f"| {' | '.join(row)} |" for row in table)]
        # Without an empty line a note would be a row of the table.
        for note in filter(None, (throughputs.left_out, throughputs.mark_note)):
            lines += ["", markdown_escaped(note)]
    return "\n".join(lines) + "\n"


def configuration_throughputs(dataset: Dataset) -> Throughputs:
    """Return throughputs and ratios of measured configurations, by series."""
    measured, names = set(dataset.measured["configuration_id"]), Labels(dataset)
    rows = []
    for _, configuration_ids in labelled_series(dataset):
        rows += [
            dataset.configuration_rows[configuration_id]
            for configuration_id in configuration_ids
            if configuration_id in measured
        ]
    unit = unit_in(dataset.configurations, dataset.throughput_column)
    ratios = [name for name in RATIOS.values() if not all(is_missing(getattr(row, name)) for row in rows)]
    headings = ["", unit.symbol, *(COLUMNS[name].label for name in ratios)]
    cells = []
    for row in rows[:MOST_ROWS]:
        printed = [
            _printed(dataset, row, dataset.throughput_column, unit.size),
            *(_printed(dataset, row, name) for name in ratios),
        ]
        cells.append([names.configuration(row.configuration_id), *printed])
    further = len(rows) - MOST_ROWS
    left_out = text_if(further > 0, f"{counted(further, 'further configuration')}: see the report")
    return Throughputs(headings, cells, _bars(rows[:MOST_ROWS], dataset.throughput_column), left_out)


def _printed(dataset: Dataset, row: Any, name: str, size: float = 1.0) -> str:
    if is_missing(getattr(row, name)):
        return MISSING
    value, interval = format_column(row, name, size)
    printed = marked(value, (row.configuration_id, name) in dataset.doubtful_numbers)
    return printed + text_if(interval, f" {interval}")


def _bars(rows: Sequence[Any], name: str) -> list[str]:
    ends = []
    for row in rows:
        value, low, high = attrgetter(name, f"{name}_low", f"{name}_high")(row)
        ends.append((value, value) if is_missing(low) else (low, high))
    # An interval that is much wider than the others would leave no room for them.
    largest = max(map(attrgetter(name), rows), default=0.0) * 1.25
    bars = []
    for low, high in ends:
        certain, end = (min(round(BAR_WIDTH * bound / largest), BAR_WIDTH) if largest else 0 for bound in (low, high))
        bars.append(CERTAIN * certain + UNCERTAIN * (end - certain))
    return bars
