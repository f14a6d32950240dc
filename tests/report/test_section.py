"""Sections leave out what is empty, and tables show on a page what the page does not say itself."""

from pathlib import Path

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.paths import StudyPaths
from dlperf_study.report import figures
from dlperf_study.report.section import Section
from dlperf_study.report.tables.table import Cell, Heading, Table

HEADINGS = (Heading("A"),)
FULL = Table("full", "Full", "All of it.", HEADINGS, ((Cell("1"),),), notes=("A: a letter.",), page_caption="A part.")
EMPTY = Table("empty", "Empty", "", HEADINGS, (), empty="Nothing was measured.")


def test_an_empty_table_is_not_shown_and_its_file_is_written(tmp_path: Path) -> None:
    paths = StudyPaths(tmp_path)
    shown = Section.of("Both", FULL, [EMPTY]).save(paths)._repr_html_()
    assert '<h2 id="both">Both<a class="anchor-link" href="#both"' in shown
    assert "Nothing was measured." not in shown
    assert "Nothing was measured." in (paths.tables / "empty.html").read_text()


def test_a_section_of_nothing_has_no_heading() -> None:
    assert Section.of("Nothing", EMPTY)._repr_html_() == ""


def test_a_page_shows_its_part_of_the_caption_and_the_file_all(tmp_path: Path) -> None:
    shown = FULL._repr_html_()
    assert "A part." in shown
    assert "All of it." not in shown
    assert "<details" in shown
    file = (FULL.save(StudyPaths(tmp_path)) and tmp_path / "tables/full.html").read_text()
    assert "All of it." in file
    assert "<details" not in file


def test_a_figures_text_alternative_has_the_numbers_and_its_file_the_whole_caption(mixed: Dataset) -> None:
    [figure] = figures.scaling(mixed)
    assert "2 devices: throughput " in figure.alt
    assert "speedup 1.5" in figure.alt
    assert figure.alt in figure._repr_html_()
    assert "Constructed CPU" not in figure._repr_html_().partition("<figcaption>")[2]
    assert "Constructed CPU" in figure.svg().decode()


def test_the_drift_of_the_machine_is_told_in_words(mixed: Dataset) -> None:
    [figure] = figures.drift(mixed)
    assert figure.alt.startswith("Drift of the machine. round 1, ")
    assert figure.alt.count("change of throughput") == 3
