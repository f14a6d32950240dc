import io
import re
from urllib.parse import unquote
from xml.etree import ElementTree

from matplotlib.figure import Figure as Drawing

from dlperf_study.report.figures.compact_svg import compact_svg, data_uri
from dlperf_study.report.figures.style import publication_style

LINK = "{http://www.w3.org/1999/xlink}href"


def svg_of_a_line_and_labels() -> str:
    buffer = io.BytesIO()
    with publication_style():
        drawing = Drawing(figsize=(3, 3))
        axes = drawing.subplots()
        axes.plot([0, 1, 2.123456], [0.1, 0.3, 0.212345])
        axes.set_yticks([0.1, 0.2, 0.3], ["PaddlePaddle · 1 device", "Horovod (PyTorch) · 2 devices", "<&> – “x”"])
        axes.set_title("bold")
        drawing.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue().decode()


def numbers(path: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?[0-9.]+", path)]


def test_it_has_the_same_elements_and_every_letter_its_outline() -> None:
    svg = svg_of_a_line_and_labels()
    before, after = ElementTree.fromstring(svg), ElementTree.fromstring(compact_svg(svg))
    assert [element.tag for element in after.iter()] == [element.tag for element in before.iter()]
    names = {element.get("id") for element in after.iter()}
    links = [element.get(LINK) for element in after.iter() if element.get(LINK)]
    assert links
    assert {link.removeprefix("#") for link in links if link} <= names
    assert outlines(after, "g") >= outlines(before, "DejaVu")


def outlines(drawing: ElementTree.Element, prefix: str) -> set[tuple[str, ...]]:
    """Return the outlines of letters, which have names that begin so."""
    named = (element for element in drawing.iter() if str(element.get("id")).startswith(prefix))
    return {tuple(str(element.get("d")).split()) for element in named if element.get("d")}


def test_lines_and_letters_are_where_they_were() -> None:
    svg = svg_of_a_line_and_labels()
    before, after = ElementTree.fromstring(svg), ElementTree.fromstring(compact_svg(svg))
    for old, new in zip(before.iter(), after.iter(), strict=True):
        if old.get("d"):
            differences = zip(numbers(str(old.get("d"))), numbers(str(new.get("d"))), strict=True)
            assert all(abs(first - second) <= 0.005001 for first, second in differences)
        if old.get(LINK, "").startswith("#DejaVu") and old.get("transform"):
            x, y = numbers(str(old.get("transform")))
            assert abs(float(new.get("x", 0)) - x) <= 0.0501
            assert abs(float(new.get("y", 0)) - y) <= 0.0501


def test_text_takes_three_fifths_of_the_bytes() -> None:
    svg = svg_of_a_line_and_labels()
    letters = re.compile("<use xlink:href=.*?/>", re.DOTALL)
    before, after = (sum(map(len, letters.findall(text))) for text in (svg, compact_svg(svg)))
    assert after < 0.6 * before


def test_the_address_holds_the_drawing_and_names_nothing_outside_of_it() -> None:
    svg = compact_svg(svg_of_a_line_and_labels())
    scheme, data = data_uri(svg).split(",", 1)
    assert scheme == "data:image/svg+xml"
    assert not {'"', "#", "&", "\n"} & {*data}
    before, after = ElementTree.fromstring(svg), ElementTree.fromstring(unquote(data))
    described = {element for element in before.findall("{*}metadata") for element in element.iter()}
    kept = [element for element in before.iter() if element not in described]
    assert [(element.tag, element.attrib.keys()) for element in after.iter()] == [
        (element.tag, element.attrib.keys()) for element in kept
    ]
    assert "purl.org" not in data
