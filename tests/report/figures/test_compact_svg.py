import io
import re
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure as Drawing

from dlperf_study.report.figures.style import FAINT, INK, SOFT, compact_svg, data_uri, publication_style

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def svg() -> str:
    """A line and labels, as matplotlib writes them."""
    buffer = io.BytesIO()
    with publication_style():
        drawing = Drawing(figsize=(3, 3))
        axes = drawing.subplots()
        axes.plot([0, 1, 2.123456], [0.1, 0.3, 0.212345])
        axes.set_yticks([0.1, 0.2, 0.3], ["PaddlePaddle · 1 device", "Horovod (PyTorch) · 2 devices", "<&> – “x”"])
        axes.set_title("bold")
        # Of marks that are all missing there is an empty group.
        axes.vlines([], [], [])
        drawing.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue().decode()


@pytest.fixture(scope="module")
def address(svg: str) -> str:
    """The drawing in the address of an image."""
    return data_uri(compact_svg(svg))


def numbers(path: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?[0-9.]+", path)]


def test_it_has_the_same_elements_and_lines_are_where_they_were(svg):
    before, after = ElementTree.fromstring(svg), ElementTree.fromstring(compact_svg(svg))
    for old, new in zip(before.iter(), after.iter(), strict=True):
        assert old.tag == new.tag
        if old.get("d"):
            differences = zip(numbers(str(old.get("d"))), numbers(str(new.get("d"))), strict=True)
            assert all(abs(first - second) <= 0.005001 for first, second in differences)


def test_text_is_text_in_a_font_that_every_system_has_as_wide(svg):
    drawing = ElementTree.fromstring(compact_svg(svg))
    texts = {str(element.text): str(element.get("style")) for element in drawing.iter(f"{SVG}text")}
    assert {"bold", "PaddlePaddle · 1 device", "<&> – “x”"} <= texts.keys()
    assert all("DejaVu Sans, Bitstream Vera Sans, Verdana, sans-serif" in style for style in texts.values())


def test_on_a_dark_page_no_ink_stays_dark_and_a_file_keeps_its_colours(svg, address):
    on_page = unquote(address)
    drawing = on_page.partition("</style>")[2]
    assert "prefers-color-scheme:dark" in on_page
    assert not {INK, SOFT, FAINT, "#ffffff"} & {*re.findall("#[0-9a-f]{6}", drawing)}
    assert "var(" not in compact_svg(svg)


def test_the_address_holds_the_drawing_and_names_nothing_outside_of_it(svg, address):
    scheme, data = address.split(",", 1)
    assert scheme == "data:image/svg+xml"
    assert not {'"', "#", "&", "\n"} & {*data}
    before, after = ElementTree.fromstring(compact_svg(svg)), ElementTree.fromstring(unquote(data))
    [rules] = after.findall("{*}style")
    after.remove(rules)
    for tag in ("path", "use", "text", "clipPath"):
        drawn = [[(element.text or "").strip() for element in part.iter(f"{SVG}{tag}")] for part in (before, after)]
        assert drawn[0] == drawn[1] != []
    assert "purl.org" not in data


def test_on_a_page_every_style_and_marker_is_still_there(svg, address):
    before, after = ElementTree.fromstring(compact_svg(svg)), ElementTree.fromstring(unquote(address.split(",", 1)[1]))
    rules = dict(re.findall(r"\.(s\d+){([^}]*)}", str(after.findall("{*}style")[0].text)))
    widths = []
    for drawing in (before, after):
        styles = [rules.get(str(path.get("class")), str(path.get("style"))) for path in drawing.iter(f"{SVG}path")]
        widths.append([re.findall(r"stroke-width: ?([\d.]+)", style) for style in styles])
    assert widths[0] == widths[1]
    names = {str(element.get("id")) for element in after.iter() if element.get("id")}
    used = {str(use.get("href")).removeprefix("#") for use in after.iter(f"{SVG}use")}
    assert used <= names
    assert used
    assert len(unquote(address)) < 0.75 * len(compact_svg(svg))
