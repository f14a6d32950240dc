"""The pages for people: their links, pictures and words, and that nothing there is is left out."""

import re
import struct
from dataclasses import fields
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dlperf_study.audit.checks import AuditDiagnostic, Check
from dlperf_study.core.paths import PROJECT
from dlperf_study.logs.format import Format
from dlperf_study.machines.launchers._base import Launcher
from dlperf_study.report.pages import SUMMARY, Page
from dlperf_study.study.job import RunStatus
from dlperf_study.study.parameter import Parameter
from dlperf_study.study.study import SECTIONS
from dlperf_study.training.frameworks._base import Framework, Trainer
from dlperf_study.training.models._base import Model
from tests.docs import DOCS, PAGES, first_cells, words

FORBIDDEN = {
    "a path of one machine": r"/(work|root|home|tmp|opt|mnt|srv)/",
    "the host of a package registry": r"pypi\.org|pythonhosted|anaconda\.(org|com)|conda\.io|/simple\b|\bmirrors?\b",
    "how the project is made": r"(?i)\bissue\b|\bpull request\b|\bhelpers?\b|(?<![\w-])AI\b(?!-)|#\d+\b",
}
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_every_link_leads_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    for link in links:
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.is_file(), f"{link} is not there"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


@every_page
@pytest.mark.parametrize("what", FORBIDDEN)
def test_pages_say_nothing_of(page, what):
    """The two pages on how to contribute and report are about GitHub."""
    if page.name in ("CONTRIBUTING.md", "SECURITY.md") and what == "how the project is made":
        return
    text = page.read_text(encoding="utf-8")
    if what == "how the project is made":
        # A plan numbers its rows: #1.
        text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert re.findall(FORBIDDEN[what], text) == []


#: Drawings by hand, which are no pictures of a page.
DRAWN = {"idea.svg"}


def test_the_images_are_shown_and_are_pictures_of_a_page():
    shown = set()
    for page in PAGES:
        shown.update(re.findall(r"!\[[^\]]+\]\((?:docs/)?images/([^)]+)\)", page.read_text(encoding="utf-8")))
    assert shown == {image.name for image in (DOCS / "images").iterdir()}
    for name in shown - DRAWN:
        head = (DOCS / "images" / name).read_bytes()[:24]
        assert head.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", head[16:])
        assert min(width, height) >= 400


def test_the_picture_of_the_idea_is_described_has_two_themes_and_no_text_beyond_its_boxes():
    picture = ElementTree.parse(DOCS / "images" / "idea.svg").getroot()
    assert picture.find("{*}title").text
    assert "evidence becomes a dataset" in " ".join(picture.find("{*}desc").text.split())
    light, dark = re.findall(r":root {([^}]*)}", picture.find("{*}style").text)
    assert re.findall(r"--\w+", light) == re.findall(r"--\w+", dark)
    boxes = []
    for box in picture.iter("{*}rect"):
        boxes.append([float(box.get(name, 0)) for name in ("x", "y", "width", "height")])
    for text in picture.iter("{*}text"):
        x, y, letters = float(text.get("x")), float(text.get("y")), len(text.text)
        around = [box for box in boxes if box[0] <= x <= box[0] + box[2] and box[1] <= y <= box[1] + box[3]]
        # Letters of 12 px are a little more than 6 px wide on average.
        assert letters * 6.3 <= min(width for _, _, width, _ in around), text.text


def test_the_table_of_studies_is_complete():
    studies = sorted(path.stem for path in (PROJECT / "params" / "studies").glob("*.yaml"))
    assert sorted(first_cells("docs/published.md", "## All studies")) == studies


def test_every_published_study_has_a_section():
    unpublished = {"quickstart", "frameworks", "precision", "data_loaders", "one_gpu", "bert", "gpt", "llama"}
    studies = {path.stem for path in (PROJECT / "params" / "studies").glob("*.yaml")} - unpublished
    assert (
        set(re.findall(r"^## `(\w+)`$", (DOCS / "published.md").read_text(encoding="utf-8"), re.MULTILINE)) == studies
    )


def test_every_status_is_explained():
    assert set(RunStatus) <= words("docs/troubleshooting.md")


def test_every_page_of_the_report_is_explained():
    page = (DOCS / "report.md").read_text(encoding="utf-8")
    titles = [SUMMARY.title, *(Page.answering(question).title for question in SECTIONS)]
    assert [title for title in titles if f"## {title}\n" not in page] == []


def members(kind: type) -> set[str]:
    """Return the attributes and methods a protocol or dataclass asks for."""
    return {name for name in [*vars(kind), *kind.__annotations__] if not name.startswith("_")}


@pytest.mark.parametrize("kind", [Model, Framework, Launcher, Format, Check, AuditDiagnostic])
def test_every_field_of_a_plugin_is_explained(kind):
    assert {field.name for field in fields(kind)} <= words("docs/plugins.md")


def test_every_argument_of_a_declared_parameter_is_explained():
    of_the_field = {"name", "type", "default", "label", "meaning"}
    assert {field.name for field in fields(Parameter)} - of_the_field <= words("docs/plugins.md")


def test_every_member_of_a_trainer_is_explained():
    assert members(Trainer) <= words("docs/plugins.md")
