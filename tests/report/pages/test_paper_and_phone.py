"""Every page of the golden study on paper and on a phone: nothing is cut off, and no interval is on two lines."""

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.report import pages
from tests.golden_study.conftest import EVIDENCE
from tests.golden_study.study import STUDY

pytestmark = pytest.mark.timeout(300)
#: A4 without the margins of the page's style, and a phone, in pixels.
PAPER, PHONE = 688, 390
#: How far each table that is wider than the page goes beyond it, by its name.
_CUT_OFF = """() => [...document.querySelectorAll("figure.table")].map(figure =>
  [figure.id, figure.querySelector("table")?.getBoundingClientRect().right - document.documentElement.clientWidth])
  .filter(([, beyond]) => beyond > 1)"""
#: The intervals on more than one line.
_BROKEN = """() => [...document.querySelectorAll("td.interval")].filter(cell => cell.firstChild).filter(cell => {
  const range = document.createRange();
  range.selectNodeContents(cell.firstChild);
  return range.getClientRects().length > 1;
}).map(cell => cell.innerText)"""


@pytest.fixture(scope="module")
def golden_report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    outputs = tmp_path_factory.mktemp("outputs")
    with tarfile.open(EVIDENCE) as archive:
        archive.extractall(outputs, filter="data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OUTPUTS_VARIABLE, str(outputs))
        pages.build(STUDY)
        yield StudyPaths.of(STUDY).report


def test_paper_cuts_no_column_off_and_breaks_no_interval(chromium: Any, golden_report: Path) -> None:
    with chromium.new_context(offline=True, viewport={"width": PAPER, "height": 1000}) as context:
        page, intervals = context.new_page(), 0
        page.emulate_media(media="print")
        for file in sorted(golden_report.glob("*.html")):
            page.goto(file.as_uri())
            page.evaluate("dispatchEvent(new Event('beforeprint'))")
            assert (file.name, page.evaluate(_CUT_OFF), page.evaluate(_BROKEN)) == (file.name, [], [])
            assert page.locator("details:not([open])").count() == 0
            intervals += page.locator("td.interval", has_text="[").count()
        assert intervals > 300


def test_a_phone_scrolls_no_page_sideways_and_shows_speedups_first(chromium: Any, golden_report: Path) -> None:
    with chromium.new_context(offline=True, viewport={"width": PHONE, "height": 800}) as context:
        page = context.new_page()
        for file in sorted(golden_report.glob("*.html")):
            page.goto(file.as_uri())
            assert (file.name, page.evaluate("document.documentElement.scrollWidth")) == (file.name, PHONE)
            assert page.evaluate(_BROKEN) == []
        page.goto((golden_report / "index.html").as_uri())
        speedup = page.locator("#table-measured th", has_text="Speedup").bounding_box()
        assert speedup["x"] + speedup["width"] <= PHONE
