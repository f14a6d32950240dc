import math

import pytest

from dlperf_study.audit.published import load
from dlperf_study.audit.published.source import PublishedSource, parse_resolution, parse_value, read_lines
from dlperf_study.core.errors import PublishedError, StudyFileError
from dlperf_study.study.validation import validate

KNOWN = {
    "title": "A page",
    "authors": "Somebody",
    "laboratory": "Some laboratory",
    "url": "https://example.org/page",
    "licence": "none stated",
    "retrieved": "typed in",
    "facts": {"scope": "job", "role": "result", "estimator": "one value", "batch_per_device": 32},
    "tables": {"rates": {"title": "Rates", "rows": "GPUs", "facts": {"program": "a program"}}},
}
LINES = """\
table,row,column,metric,printed,printed_unit,world_size,batch_per_device,baseline
rates,1,speed,throughput,10,,1,,
rates,2,speed,throughput,19.0,,2,64,
rates,2,share,efficiency,95,%,2,64,rates/1/speed
"""


def source(**changes):
    return validate(PublishedSource, {**KNOWN, **changes}, "page.yaml", {"": tuple(PublishedSource.model_fields)})


def read(folder, text=LINES):
    path = folder / "page.csv"
    path.write_text(text, encoding="utf-8")
    return list(read_lines(source(), path))


def test_the_nearest_fact_counts(tmp_path):
    first, second, share = read(tmp_path)
    assert (first["batch_per_device"], second["batch_per_device"]) == (32, 64)
    assert (first["global_batch"], second["global_batch"]) == (32, 128)
    assert {line["program"] for line in (first, second, share)} == {"a program"}


def test_a_number_has_the_unit_of_its_metric(tmp_path):
    _, second, share = read(tmp_path)
    assert (second["value"], second["unit"], second["resolution"]) == (19, "samples/s", pytest.approx(0.1))
    assert (share["value"], share["unit"], share["resolution"]) == (0.95, "", 0.01)


def test_tokens_of_a_device_are_samples_of_all(tmp_path):
    lines = "table,row,column,metric,printed,printed_unit,world_size,sequence_length\nrates,8,TPS,throughput,5762,"
    [line] = read(tmp_path, f"{lines}tokens/s/GPU,8,8192\n")
    assert (line["value"], line["unit"]) == (pytest.approx(5762 * 8 / 8192), "samples/s")
    assert line["resolution"] == pytest.approx(8 / 8192)
    with pytest.raises(PublishedError, match="tokens/s/GPU need sequence_length"):
        read(tmp_path, f"{lines}tokens/s/GPU,8,\n")


def before_choices(raised):
    """Return a message without the columns, metrics and facts there are, which new parts add to."""
    return str(raised.value).partition(" are ")[0]


#: What replaces what in the lines.
MISTAKES = {
    "an unknown column": ("column,metric", "column,metrik"),
    "an unknown metric": ("throughput,10", "speed,10"),
    "an unknown table": ("rates,1", "rate,1"),
    "nothing printed": ("throughput,19.0", "throughput,"),
    "a unit in the number": ("throughput,19.0", "throughput,19.0 img"),
    "a word as a fact": (",2,64,\n", ",two,64,\n"),
    "unknown images": ("metric,printed,", "metric,images,printed,"),
}


@pytest.mark.parametrize("change", MISTAKES.values(), ids=MISTAKES)
def test_an_error_names_the_line(tmp_path, change, snapshot):
    text = LINES.replace(*change, 1)
    if "images" in change[1]:
        text = text.replace("throughput,10", "throughput,drawn,10")
    with pytest.raises(PublishedError) as raised:
        read(tmp_path, text)
    assert before_choices(raised) == snapshot


@pytest.mark.parametrize(
    "changes",
    [
        {"facts": {"batch_size": 32}},
        {"facts": {"image_size": "large"}},
        {"facts": {"model": 50}},
        {"author": "Somebody"},
        {"url": ""},
    ],
    ids=["unknown fact", "string", "number", "unknown key", "empty"],
)
def test_an_error_in_the_metadata_of_a_source_is_reported(changes, snapshot):
    with pytest.raises(StudyFileError) as raised:
        source(**changes)
    assert before_choices(raised) == snapshot


def test_a_dash_is_no_number_and_an_unknown_source_is_answered_with_the_ones_there_are():
    with pytest.raises(PublishedError, match="tensorpack_multigpu"):
        load(["tensorpack"])
    assert math.isnan(parse_value("-"))
    assert math.isnan(parse_resolution("-"))


@pytest.mark.parametrize(
    ("printed", "unit", "value", "resolution"),
    [
        ("263.29", "", 263.29, 0.01),
        ("1", "", 1, 1),
        ("26.50", "", 26.5, 0.01),
        ("78.64", "%", 0.7864, 0.0001),
        ("406.16", "ms", 0.40616, 0.00001),
        ("10: 3", "", 10 / 3, 10 / 9),
        ("10 : 1", "", 10, 10),
    ],
)
def test_a_printed_number_has_a_value_and_a_last_digit(printed, unit, value, resolution):
    assert parse_value(printed, unit) == pytest.approx(value)
    assert parse_resolution(printed, unit) == pytest.approx(resolution)


@pytest.mark.parametrize("printed", ["", "about 3", "1,024", "3.", "-5", "10:", "10 : 0", "1e3", "nan"])
def test_anything_else_is_refused(printed):
    with pytest.raises(PublishedError, match="neither a number"):
        parse_value(printed)
