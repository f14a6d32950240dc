import re
from pathlib import Path

import pytest

from dlperf_study.errors import LogError
from dlperf_study.logs import formats
from dlperf_study.logs.format import Format, Line, Merge, MetricScope
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.text_lines import compile_line

SAMPLES = Path(__file__).parent / "samples"
FORMATS = formats.all_formats()
#: A run of MLflow is a folder: test_mlflow_runs.py has one.
FILE_FORMATS = [format_ for format_ in FORMATS if format_.name != "mlflow"]
every_format = pytest.mark.parametrize("format_", FORMATS, ids=lambda format_: format_.name)
every_line = pytest.mark.parametrize(
    "line",
    [line for format_ in FORMATS for line in format_.lines if isinstance(line, Line)],
    ids=lambda line: line.head[:40],
)


def test_a_format_is_named_as_its_file() -> None:
    assert [format_.name for format_ in FORMATS] == list(formats.names())


def test_an_unknown_format_is_refused_with_those_there_are() -> None:
    with pytest.raises(LogError, match=r"'plsc'.*plsc_2020, plsc_2_2, plsc_2_4"):
        formats.load("plsc")


@every_format
def test_ranks_merge_as_the_format_declares(format_: Format) -> None:
    """What merges them is the scope of its best rate, and whether that is a time of ranks that step together."""
    if not format_.rates:
        return
    best = format_.metrics[format_.rates[0]]
    if best.scope is not MetricScope.RANK:
        assert format_.merge not in (Merge.SUM, Merge.SLOWEST)
    else:
        slowest = format_.synchronous and best.name == "step_seconds"
        assert format_.merge is (Merge.SLOWEST if slowest else Merge.SUM)


@every_format
def test_a_format_declares_what_its_numbers_mean(format_: Format) -> None:
    assert all((format_.title, format_.program, format_.steps, format_.traps))
    assert set(format_.rates) <= set(format_.metrics) or not format_.metrics


@pytest.mark.parametrize("format_", FILE_FORMATS, ids=lambda format_: format_.name)
def test_every_format_has_a_sample_that_is_recognised(format_: Format) -> None:
    samples = sorted(SAMPLES.rglob(f"{format_.name}_*")) or [SAMPLES / "two_formats_real.log"]
    name = format_.name if "two_formats" in samples[0].name else ""
    assert read_log(samples[0], name).format.name == format_.name


@every_line
def test_no_pattern_asks_for_particular_digits(line: Line) -> None:
    """Lines that differ in digits only are read by one match."""
    without_counts = re.sub(r"\{\d+(?:,\d*)?\}", "", compile_line(line).expression.pattern.decode())
    without_names = re.sub(r"\(\?P<\w+>", "", without_counts)
    assert not re.search(r"\d", without_names.replace("[-+.\\dEeNnAaIiFf]", ""))
    assert not re.search(r"\d", "".join(line.needles))


@every_line
def test_only_positions_and_metrics_are_captured(line: Line) -> None:
    allowed = {"epoch", "step", "rank", "count"} | {metric.name for metric in line.captured}
    assert set(re.compile(line.head).groupindex) <= allowed


@every_format
def test_the_metrics_of_one_name_have_one_meaning(format_: Format) -> None:
    lines = [line for line in format_.lines if isinstance(line, Line)]
    for metric in (metric for line in lines for metric in line.metrics):
        assert (metric.unit, metric.scope) == (format_.metrics[metric.name].unit, format_.metrics[metric.name].scope)
