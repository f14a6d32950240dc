"""Write the tables of ``docs/prediction.md``: ``python -m tools.prediction_page``."""

import math
import statistics
from collections.abc import Iterator, Mapping

from dlperf_study.core.paths import PROJECT
from dlperf_study.generated import between_markers
from dlperf_study.prediction.curves import Unit, published_curves
from dlperf_study.prediction.intervals import Case, is_tested, largest_left_out
from tools.back_test import by_laboratory, errors_of, held_by_intervals

DOCS_PAGE = PROJECT / "docs" / "prediction.md"


def groups() -> dict[str, list[Case]]:
    """Return the published series with three sizes: those over nodes, and those over devices of one node."""
    cases = [case for case in largest_left_out(published_curves()) if is_tested(case.curve)]
    return {
        "nodes": [case for case in cases if case.curve.unit == Unit.NODE],
        "devices of one node": [case for case in cases if case.curve.unit == Unit.DEVICE],
    }


def page(text: str) -> str:
    """Return the page with its tables made again; the rest is unchanged."""
    text = between_markers(text, "methods", "\n".join(method_table(groups())))
    return between_markers(text, "laboratories", "\n".join(laboratory_table(groups())))


def method_table(cases_by_group: Mapping[str, list[Case]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown: each method, with its median error and 90th percentile in each group."""
    headings = []
    for name, cases in cases_by_group.items():
        headings.append(f"{name}: {len(cases)} series of {len(by_laboratory(cases))} laboratories")
    yield f"| method | {' | '.join(headings)} |"
    yield f"|---|{'--:|' * len(headings)}"
    for of_method in zip(*map(errors_of, cases_by_group.values()), strict=True):
        cells = [f"{100 * errors.median:.1f} / {100 * errors.ninth_tenth:.1f}" for errors in of_method]
        yield f"| {of_method[0].method} | {' | '.join(cells)} |"


def laboratory_table(cases_by_group: Mapping[str, list[Case]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown: the errors at each laboratory, and what intervals without it hold."""
    yield "| over | laboratory | series | median error | largest error | intervals | median width | they hold |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    for name, cases in cases_by_group.items():
        for laboratory, of_laboratory in by_laboratory(cases).items():
            errors = [abs(math.expm1(case.log_error)) for case in of_laboratory]
            held = held_by_intervals(of_laboratory)
            cells = [name, laboratory, str(len(errors)), _percent(statistics.median(errors)), _percent(max(errors))]
            if held.cases:
                cells += [str(held.cases), f"+{100 * held.half_width:.0f} %", f"{100 * held.share:.0f} %"]
            else:
                cells += ["0", "–", "–"]
            yield f"| {' | '.join(cells)} |"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def main() -> None:
    """Write the tables of the page."""
    DOCS_PAGE.write_text(page(DOCS_PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
