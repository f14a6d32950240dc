import pytest

from dlperf_study.errors import PublishedError, StudyFileError
from dlperf_study.published.source import PublishedSource
from dlperf_study.published.source_lines import read_lines
from dlperf_study.study.validation import validate

KNOWN = {
    "title": "A page",
    "authors": "Somebody",
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


MISTAKES = [
    (("column,metric", "column,metrik"), r"page.csv: metrik is unknown or missing; the columns are table, row"),
    (
        ("throughput,10", "speed,10"),
        r"page.csv, line 2: metric is 'speed'; did you mean speedup\? the metrics are throughput, speedup",
    ),
    (("rates,1", "rate,1"), r"page.csv, line 2: table is 'rate'; did you mean rates\? the tables are rates"),
    (("throughput,19.0", "throughput,"), r"page.csv, line 3: printed is empty"),
    (("throughput,19.0", "throughput,19.0 img"), r"page.csv, line 3: '19.0 img' is neither a number nor a ratio"),
    ((",2,64,\n", ",two,64,\n"), r"page.csv, line 3: world_size is 'two', which is not a number"),
]


@pytest.mark.parametrize(("change", "message"), MISTAKES)
def test_an_error_names_the_line_and_the_choices(tmp_path, change, message):
    assert change[0] in LINES
    with pytest.raises(PublishedError, match=message):
        read(tmp_path, LINES.replace(*change, 1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"facts": {"batch_size": 32}},
            r"facts is .*; unknown fact 'batch_size'; .*the facts are scope, role, estimator",
        ),
        ({"facts": {"image_size": "large"}}, r"image_size is 'large'; it must be a number"),
        ({"facts": {"model": 50}}, r"model is 50; it must be a string"),
        ({"author": "Somebody"}, r"unknown key author; did you mean authors\?"),
        ({"url": ""}, r"url is empty"),
    ],
)
def test_an_error_in_the_metadata_of_a_source_is_reported(changes, message):
    with pytest.raises(StudyFileError, match=message):
        source(**changes)
