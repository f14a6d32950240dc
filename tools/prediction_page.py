"""Write the tables of ``docs/predict.md``: ``python -m tools.prediction_page``."""

from collections.abc import Iterator, Mapping

from dlperf_study.core.paths import PROJECT
from dlperf_study.generated import between_markers
from dlperf_study.prediction.curves import Unit, published_curves
from dlperf_study.prediction.intervals import Case, is_tested, largest_left_out
from tools.back_test import by_laboratory, errors_of, held_by_intervals

DOCS_PAGE = PROJECT / "docs" / "predict.md"


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
    return between_markers(text, "coverage", "\n".join(coverage_table(groups())))


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


def coverage_table(cases_by_group: Mapping[str, list[Case]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown: how many series the intervals of other laboratories contain."""
    yield "| over | laboratories | series with an interval | coverage | lowest laboratory | upper margin |"
    yield "|---|--:|--:|--:|--:|--:|"
    for name, cases in cases_by_group.items():
        tested = [held for held in map(held_by_intervals, by_laboratory(cases).values()) if held.cases]
        series = sum(held.cases for held in tested)
        coverage = sum(held.cases * held.share for held in tested) / series
        margins = [held.half_width for held in tested]
        cells = [name, str(len(tested)), str(series), f"{100 * coverage:.1f} %"]
        cells += [f"{100 * min(held.share for held in tested):.0f} %"]
        cells += [f"+{100 * min(margins):.0f} % to +{100 * max(margins):.0f} %"]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the tables of the page."""
    DOCS_PAGE.write_text(page(DOCS_PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
