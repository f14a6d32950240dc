"""The golden study prints a number alike wherever it prints it: tables, pages, figures, LaTeX and macros are read."""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from dlperf_study.metrics.columns import Summary, summarised
from dlperf_study.metrics.metric import WITH_INTERVAL

#: Tables with a row for each configuration: in files, on a page and in a paper.
TABLES = {"measured": "summary", "scaling": "scaling", "communication": "communication"}
#: Of what is 1 or 0 by definition tables print nothing else, and pages have the marks of footnotes.
_MARKS = re.compile(r"(?<![a-z])(?<![a-z] )[a-z]{1,2}(?:,[a-z]{1,2})*$")
#: The limits of what may be negative.
SIGNED = (-math.inf, math.inf)
_MACRO = re.compile(r"\\@namedef\{dlperf@[^}/]*/[^}/]*/\w+\}\{(.*)\} % (.*)")
#: As in ``4 of 14 configurations train slower than their reference``.
_IN_ALT = re.compile(r"([\d.,\u202f\u2212]+(?: \[[^\]]*\])?)")

Cells = dict[tuple[str, str], str]


def in_macros(text: str) -> Cells:
    """Return each value with its interval, by the label of the configuration and that of the column."""
    printed, label = {}, ""
    for line in text.splitlines():
        if line.startswith("% "):
            label = line.removeprefix("% ").rpartition(": ")[0]
        elif macro := _MACRO.match(line):
            content = plain(macro[1]).replace(r"$\times$", "").split("~")
            printed[label, macro[2]] = " ".join(
                part for position, part in enumerate(content) if position == 0 or part.startswith("[")
            )
    return printed


def plain(latex: str) -> str:
    """Return the numbers of LaTeX as pages have them."""
    text = latex.replace("$-$", "\u2212").replace("--", "\u2013").replace(r"\,", "\u202f")
    text = re.sub(r"\\textsuperscript\{[^}]*\}", "", text)
    text = re.sub(r"\\begin\{tabular\}\[t\]\{@\{\}r@\{\}\}(.*?)\\\\\{(.*?)\}\\end\{tabular\}", r"\1 & \2", text)
    return text.replace("{", "").replace("}", "")


def in_table(text: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the group, the headings and the cells of each row of a table, with neither group nor notes."""
    headings, *rows = csv.reader(io.StringIO(text))
    for group, *cells, _ in rows:
        yield group, headings[1:-1], cells


def without_dashes(cells: Iterable[str]) -> tuple[str, ...]:
    """Return the cells that hold something: a paper has no column of dashes."""
    return tuple(cell for cell in cells if cell not in ("", "\u2013"))


def is_of(label: str, group: str, devices: str) -> bool:
    """Return whether a label is that of the row of a table."""
    return bool(re.fullmatch(rf"{re.escape(group)} · {devices} devices?( \+ \d+ servers?)?", label))


@pytest.mark.parametrize("name", TABLES)
def test_a_table_prints_what_macros_print(golden, name):
    printed = in_macros(golden["paper"]["macros"])
    labels, compared = {label for label, _ in printed}, 0
    for group, headings, cells in in_table(golden["tables"][name]):
        row = dict(zip(headings, cells, strict=True))
        for label in (label for label in labels if is_of(label, group, row["Devices"])):
            for heading in headings:
                column = heading.partition(" (")[0]
                if (label, column) in printed and row[heading] != "\u2013":
                    interval = row.get(f"{column}, interval", "")
                    assert f"{row[heading]} {interval}".strip() == printed[label, column]
                    compared += 1
    assert compared > 50


@pytest.mark.parametrize(("name", "page"), TABLES.items())
def test_a_page_prints_what_its_table_prints(golden, name, page):
    on_page = set()
    for line in golden["pages"][page].splitlines():
        cells = [_MARKS.sub("", cell.strip()) for cell in line.split("|")]
        on_page.add(tuple(filter(None, cells)))
    for _, _, cells in in_table(golden["tables"][name]):
        assert tuple(filter(None, cells)) in on_page


@pytest.mark.parametrize("name", TABLES)
def test_latex_prints_what_its_table_prints(golden, name):
    in_latex = set()
    for line in golden["paper"][name].splitlines():
        in_latex.add(without_dashes(cell.strip() for cell in plain(line).removesuffix(r"\\").split("&")))
    for _, _, cells in in_table(golden["tables"][name]):
        assert without_dashes(cells) in in_latex


def test_an_alternative_text_prints_what_macros_print(golden):
    """As in ``… 1 device: step in parts 19.4 [16.3, 23.0] ms, …``, which leaves out the model of the figure."""
    printed = in_macros(golden["paper"]["macros"])
    values: dict[str, dict[str, str]] = {}
    for (label, column), value in printed.items():
        values.setdefault(label.replace("MobileNetV2 · ", ""), {})[column.lower()] = value
    compared = 0
    for text in re.findall(r"\[MobileNetV2: one step\. (.*)\.\]", golden["pages"]["communication"]):
        for part in text.split("; "):
            label, _, numbers = part.rpartition(": ")
            for column in ("step in parts", "computation", "exposed communication"):
                match = re.search(rf"(?:^|, ){column} {_IN_ALT.pattern}", numbers)
                assert match
                assert match[1] == values[label][column]
                compared += 1
    assert compared > 50


def test_the_results_of_a_paper_count_what_the_pages_count(golden):
    counted = [line for line in golden["paper"]["results"].splitlines() if " comparisons with the " in line]
    assert len(counted) >= 2
    for line in counted:
        assert any(line in golden["pages"][page] for page in ("comparison", "scaling"))


def test_no_interval_is_outside_what_its_quantity_can_be(golden):
    """That of a rate or a time is above 0, that of a share within 0 and 1."""
    metrics = summarised(*WITH_INTERVAL).values()
    positive = {metric.label for metric in metrics if metric.summary not in (Summary.MEAN, Summary.SHARE)}
    limits = {metric.label: metric.limits for metric in metrics if metric.limits != SIGNED}
    compared: Counter[str] = Counter()
    # What a cause adds to a step is a difference.
    for text in (text for name, text in golden["tables"].items() if name != "causes"):
        for label, low, high in intervals_in(text):
            assert low <= high
            if label in positive:
                assert low > 0
            if label in limits:
                assert limits[label][0] <= low <= high <= limits[label][1]
            compared[label] += label in positive or label in limits
    assert compared.total() > 200
    assert all(
        compared[label]
        for label in ("MFU", "Data-loading stall", "Exposed share", "Communication latency", "Step", "Throughput")
    )


def intervals_in(text: str) -> Iterator[tuple[str, float, float]]:
    """Yield the intervals of a table with the label of their column."""
    for row in csv.DictReader(io.StringIO(text)):
        for heading, interval in row.items():
            label, is_interval, _ = heading.partition(", interval")
            if is_interval and interval:
                low, high = interval.replace("\u202f", "").replace("\u2212", "-")[1:-1].split(", ")
                yield label, float(low), float(high)
