"""Write the back-test of ``docs/prediction.md`` and its figure: ``python -m tools.prediction_page``."""

import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlperf_study.core.paths import PROJECT
from dlperf_study.generated import between_markers
from dlperf_study.prediction.back_test import errors_of, held_shares, is_of_dlperf, largest_left_out
from dlperf_study.prediction.curves import Unit, published_curves
from dlperf_study.prediction.intervals import Case, is_testable
from dlperf_study.report.figures.style import INK, PAGE, PALETTE, SOFT, publication_style, quantity_axes

DOCS_PAGE = PROJECT / "docs" / "prediction.md"
FIGURE = PROJECT / "docs" / "images" / "prediction-back-test.svg"
#: The nominal shares of intervals that are printed, and those that are drawn.
PRINTED, DRAWN = (0.5, 0.8, 0.9), tuple(np.arange(0.1, 0.96, 0.05).round(2).tolist())
#: The largest error that is drawn.
_LARGEST_ERROR = 0.5


def groups() -> dict[str, list[Case]]:
    """Return the published series with three sizes in groups, by what each is called; a series may be in two."""
    cases = largest_left_out(published_curves())
    return {
        "DLPerf, 32 devices": list(filter(is_of_dlperf, cases)),
        "all over nodes": [case for case in cases if case.curve.unit == Unit.NODE and is_testable(case.curve)],
        "GPUs of one node": [case for case in cases if case.curve.unit == Unit.DEVICE and is_testable(case.curve)],
        "all others": [case for case in cases if not is_testable(case.curve)],
    }


def page(text: str) -> str:
    """Return the page with its tables made again; the rest is unchanged."""
    text = between_markers(text, "back_test", "\n".join(error_table()))
    return between_markers(text, "calibration", "\n".join(calibration_table()))


def error_table() -> Iterator[str]:
    """Yield the lines of a table in Markdown: each method, with its median error and 90th percentile in each group."""
    errors = {name: errors_of(cases) for name, cases in groups().items()}
    counts = [f"{name} ({len(of_group[0].errors)})" for name, of_group in errors.items()]
    yield f"| method | {' | '.join(counts)} |"
    yield f"|---|{'--:|' * len(counts)}"
    for position, method in enumerate(next(iter(errors.values()))):
        of_method = [of_group[position] for of_group in errors.values()]
        cells = [f"{100 * entry.median:.1f} / {100 * entry.ninth_tenth:.1f}" for entry in of_method]
        yield f"| {method.method} | {' | '.join(cells)} |"


def calibration_table() -> Iterator[str]:
    """Yield the lines of a table in Markdown: which share of a group intervals of each nominal share hold."""
    yield f"| series | {' | '.join(f'{share * 100:.0f} %' for share in PRINTED)} |"
    yield f"|---|{'--:|' * len(PRINTED)}"
    for name, cases in groups().items():
        held = held_shares(cases, PRINTED)
        if not any(map(math.isnan, held)):
            yield f"| {name} | {' | '.join(f'{share * 100:.0f} %' for share in held)} |"


def draw() -> Figure:
    """Return the figure: the errors of each method over DLPerf's series, and what intervals hold."""
    with publication_style():
        drawing = Figure(figsize=(PAGE.inches, 2.7), layout="constrained")
        errors, calibration = drawing.subplots(1, 2)
        _draw_errors(errors, groups()["DLPerf, 32 devices"])
        _draw_calibration(calibration)
        drawing.draw_without_rendering()
    return drawing


def _draw_errors(axes: Axes, cases: Sequence[Case]) -> None:
    for entry, colour in zip(errors_of(cases), PALETTE, strict=True):
        ordered = np.sort(entry.errors)
        shares = np.arange(1, ordered.size + 1) / ordered.size
        width = 1.8 if entry.method == "node ring" else 0.9
        line_colour = INK if entry.method == "node ring" else colour
        axes.step(100 * ordered, shares, where="post", color=line_colour, linewidth=width, label=entry.method)
    axes.set_xlim(0, 100 * _LARGEST_ERROR)
    axes.set_ylim(0, 1)
    axes.set_xlabel("Error of the predicted throughput (%)")
    axes.set_ylabel("Share of series with at most this error")
    axes.set_title(f"32 devices from at most 16, {len(cases)} series")
    axes.legend(loc="lower right")
    quantity_axes(axes)


def _draw_calibration(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], color=SOFT, linestyle=(0, (1, 1.5)), label="as stated")
    for (name, cases), colour in zip(list(groups().items())[:3], PALETTE, strict=False):
        axes.plot(DRAWN, held_shares(cases, DRAWN), color=colour, marker="o", markersize=2.5, label=name)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("Nominal share of an interval")
    axes.set_ylabel("Share of series that it holds")
    axes.set_title("Intervals, the source of a series left out")
    axes.legend(loc="upper left")
    quantity_axes(axes)


def write_figure(file: Path) -> None:
    """Write the figure as SVG: the same bytes for the same series."""
    drawing, content = draw(), io.StringIO()
    with publication_style():
        drawing.savefig(content, format="svg", metadata={"Date": None, "Creator": "dlperf_study"}, facecolor="white")
    _, _, picture = content.getvalue().partition("<svg ")
    file.write_text(f"<svg {picture}", encoding="utf-8")


def main() -> None:
    """Write the tables of the page and the figure."""
    DOCS_PAGE.write_text(page(DOCS_PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    write_figure(FIGURE)


if __name__ == "__main__":
    main()
