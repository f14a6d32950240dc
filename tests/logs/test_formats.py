"""What holds for every format of log: its declaration, its samples with their numbers, what is refused of it."""

import re
from contextlib import suppress

import numpy as np
import pytest

from dlperf_study.core.errors import LogError
from dlperf_study.core.part_search import PARTS_VARIABLE
from dlperf_study.dataset.ingestion.job_throughputs import usable_throughputs
from dlperf_study.logs import formats
from dlperf_study.logs.format import Line, Merge
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.metadata import Extras
from dlperf_study.logs.printed import MetricScope
from dlperf_study.logs.rank_checks import JobSize
from dlperf_study.logs.rank_merge import job_series
from dlperf_study.logs.text_lines import compile_line
from tests.logs.sample_numbers import FACTS, NUMBERS, SAMPLES, THROUGHPUTS, TODAY, TOKENS
from tests.logs.small_logs import described, read_text

FORMATS = formats.all_formats()
LINES = [line for format_ in FORMATS for line in format_.lines if isinstance(line, Line)]
#: A log of no training, one of two formats; logs of today without a true throughput.
NO_LOG, TWO_FORMATS = "no_training_real", "two_formats_real"
WITHOUT_THROUGHPUT = (
    *("lightning_metrics_real.csv", "llm_c_real.log", "first_steps_of_maxtext_real.log"),
    *("mmengine_two_runs_real.log", "torchtitan_two_runs_real.log"),
)
every_format = pytest.mark.parametrize("format_", FORMATS, ids=lambda format_: format_.name)
every_line = pytest.mark.parametrize("line", LINES, ids=lambda line: line.head[:40])


def sample(name):
    return next(SAMPLES.glob(f"{name}.log*"))


def job_throughputs(name, size=(4, 8, 1), samples_per_epoch=1000):
    logs, job = [read_log(TODAY / name)], JobSize(*size)
    extras = Extras(tokens_per_sample=TOKENS.get(name), samples_per_epoch=samples_per_epoch)
    return usable_throughputs(logs, job_series(logs, job), extras, int(job.batch_per_device * job.world_size))


def test_formats_are_found_by_name_whichever_file_provides_them(tmp_path, monkeypatch, refused):
    assert [format_.name for format_ in FORMATS] == sorted(formats.names())
    assert [formats.load(name) for name in formats.names()] == list(FORMATS)
    with pytest.raises(LogError, match=r"'plsc'.*plsc_2020 or plsc_2_2 or plsc_2_4"):
        formats.load("plsc")
    (tmp_path / "formats").mkdir()
    again = tmp_path / "formats" / "again.py"
    again.write_text("from dlperf_study.logs.formats.frameworks import MINDSPORE as FORMAT\n")
    monkeypatch.setenv(PARTS_VARIABLE, str(tmp_path))
    with refused(LogError):
        formats.names()


@every_format
def test_a_format_declares_what_its_numbers_mean_and_how_ranks_merge(format_):
    """What merges them is the scope of its best throughput, and whether that is a time of ranks that step together."""
    assert all((format_.title, format_.program, format_.steps, format_.traps))
    assert set(format_.throughput_metrics) <= set(format_.metrics) or not format_.metrics
    for metric in (metric for line in format_.lines if isinstance(line, Line) for metric in line.metrics):
        assert (metric.unit, metric.scope) == (format_.metrics[metric.name].unit, format_.metrics[metric.name].scope)
    best = format_.metrics[format_.throughput_metrics[0]] if format_.throughput_metrics else None
    if best and best.scope is MetricScope.RANK:
        slowest = format_.synchronous and best.name == "step_seconds"
        assert format_.merge is (Merge.SLOWEST if slowest else Merge.SUM)
    elif best:
        assert format_.merge not in (Merge.SUM, Merge.SLOWEST)


def test_the_fixed_window_of_dlperf_has_100_steps_or_those_of_tensorflow_1():
    windows = {format_.name: format_.dlperf_steps for format_ in FORMATS if format_.dlperf_steps}
    counts = {name: last - first for name, (first, last) in windows.items()}
    assert set(counts.values()) == {100, 500}


@every_line
def test_a_pattern_asks_for_no_particular_digits_and_captures_positions_and_metrics_only(line):
    """Lines that differ in digits only are read by one match."""
    without_counts = re.sub(r"\{\d+(?:,\d*)?\}", "", compile_line(line).expression.pattern.decode())
    without_names = re.sub(r"\(\?P<\w+>", "", without_counts)
    assert not re.search(r"\d", without_names.replace("[-+.\\dEeNnAaIiFf]", ""))
    assert not re.search(r"\d", "".join(line.needles))
    allowed = {"epoch", "step", "rank", "count"} | {metric.name for metric in line.captured}
    assert set(re.compile(line.head).groupindex) <= allowed


# A run of MLflow is a folder: test_mlflow_runs.py has one.
@pytest.mark.parametrize("name", sorted({*formats.names()} - {"mlflow"}))
def test_every_format_has_a_sample_that_is_recognised_and_when_it_is_cut_no_number_loses_digits(name, tmp_path):
    samples = sorted(SAMPLES.rglob(f"{name}_*"))
    path, read_as = (samples[0], "") if samples else (sample(TWO_FORMATS), name)
    log = read_log(path, read_as)
    assert log.format.name == name
    if path.suffix != ".log" or not log.throughput_metric:
        return
    throughputs = log.series(log.throughput_metric)
    lines = path.read_bytes().splitlines(keepends=True)
    last = int(throughputs.line[-1]) - 1
    for share in np.linspace(0.3, 0.99, 12):
        kept = lines[last][: int(share * len(lines[last]))]
        with suppress(LogError):
            cut = read_text(tmp_path, b"".join([*lines[:last], kept]), read_as).series(log.throughput_metric)
            assert {*cut.values.get(log.throughput_metric, [])} <= {*throughputs.values[log.throughput_metric]}, kept


def test_every_sample_has_expected_numbers():
    names = {path.name.partition(".")[0] for path in SAMPLES.glob("*.log*")}
    assert names == {*NUMBERS, NO_LOG, TWO_FORMATS}
    assert {path.name for path in TODAY.iterdir()} - {"README.md"} >= {*THROUGHPUTS, *WITHOUT_THROUGHPUT}


@pytest.mark.parametrize("name", NUMBERS)
def test_the_numbers_are_those_that_are_printed(name):
    metric, count, first, last = NUMBERS[name]
    rows = read_log(sample(name)).series(metric)
    assert len(rows) == count
    assert (rows.step[0], rows.values[metric][0]) == (first[0], pytest.approx(first[1], rel=1e-15))
    assert rows.step[-1] == last[0]
    assert last[1] is None or rows.values[metric][-1] == pytest.approx(last[1], rel=1e-15)


@pytest.mark.parametrize("name", THROUGHPUTS)
def test_the_throughput_of_the_job_is_as_stated(name):
    size, expected, tolerance, printed = THROUGHPUTS[name]
    throughputs = job_throughputs(name, size)
    assert throughputs.steady.window.wall_throughput == pytest.approx(expected, rel=tolerance)
    assert throughputs.printed == printed


@pytest.mark.parametrize("name", FACTS)
def test_a_log_states_facts_about_its_run(name):
    assert FACTS[name].items() <= read_log(sample(name)).facts.items()


@pytest.mark.parametrize("name", [NO_LOG, TWO_FORMATS])
def test_a_log_of_no_format_or_of_several_is_refused(name, refused):
    with refused(LogError):
        read_log(sample(name))


@pytest.mark.parametrize("name", WITHOUT_THROUGHPUT)
def test_a_log_without_a_true_throughput_is_refused_with_the_reason(name, refused):
    with refused(LogError):
        job_throughputs(name)


def test_what_a_log_does_not_state_or_contradicts_is_asked_for(refused):
    with refused(LogError):
        job_throughputs("ultralytics_results_real.csv", (1, 1, 16), samples_per_epoch=None)
    with refused(LogError):
        job_throughputs("megatron_lm_real.log", (1, 8, 4))


def test_a_log_of_several_formats_can_be_read_by_name(snapshot):
    log = read_log(sample(TWO_FORMATS), "oneflow_bert")
    assert log.series("throughput").step.tolist() == [19, 119]
    # Facts that contradict each other are not used.
    assert "batch_per_device" not in log.facts
    assert described(log) == snapshot


def test_validation_is_kept_apart():
    log = read_log(sample("oneflow_resnet50_real"))
    validation = log.records.select(~log.records.training)
    assert validation.values["throughput"].tolist() == [2173.505, 2896.833]
    assert not set(validation.line) & set(log.series("throughput").line)


def test_other_numbers_and_the_time_of_a_line_are_read_too():
    rows = read_log(sample("paddle_resnet50_ips_real")).records
    assert rows.values["loss"].tolist() == [53.09683, 21.68535, 16.28334, 11.11287]
    assert rows.values["reader_seconds"].tolist() == [0.00002, 0.00069, 0.00103, 0.00064]
    rows = read_log(sample("paddle_resnet50_timestamped_constructed")).records
    seconds = rows.values["step_seconds"]
    assert rows.time_seconds[0] == pytest.approx(1598350277.498)
    assert rows.time_seconds[-1] - rows.time_seconds[19] == pytest.approx(seconds[20:].sum(), abs=0.01)
    assert read_log(sample("oneflow_resnet50_real")).records.time_seconds[1] == pytest.approx(1599761677.6515865)
    # A number after a step belongs to it.
    rows = read_log(sample("tensorpack_constructed")).series("throughput")
    assert list(zip(rows.epoch, rows.step, strict=True))[:2] == [(1, 50), (2, 100)]


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("paddle_resnet50_ips_real", "step_seconds"),
        ("tf_cnn_benchmarks_real", "overall_throughput"),
        ("elasticdl_real", ""),
    ],
)
def test_the_throughput_that_is_used_is_the_best_of_the_format(name, metric):
    assert read_log(sample(name)).throughput_metric == metric


@pytest.mark.parametrize("where", [0, 150, 300], ids=["before", "inside", "after"])
def test_a_second_program_in_a_short_log_is_detected_wherever_it_is(tmp_path, where):
    lines = [f"[Pass 0, train batch {step}] \tloss 1.0, lr 0.1, elapse 0.36{step % 9} sec\n" for step in range(300)]
    lines.insert(where, sample("tf_cnn_benchmarks_real").read_text())
    with pytest.raises(LogError, match=r"\(paddle_resnet50, tf_cnn_benchmarks\)"):
        read_text(tmp_path, "".join(lines))


@pytest.mark.parametrize("name", ["keras_fit_real.log", "lightning_real.log", "ultralytics_constructed.log"])
@pytest.mark.parametrize("prefix", ["0: ", "[rank0]:", "[1,0]<stdout>:", "(train, pid=4112) ", "\x1b[36m"])
def test_what_launchers_and_terminals_add_changes_no_throughput(name, prefix, tmp_path):
    """Bars are rewritten after a carriage return, with colours."""
    lines = (TODAY / name).read_text().splitlines()
    printed = "".join(f"{prefix}{line}\x1b[0m\r" for line in lines) + "\n"
    job = JobSize(*THROUGHPUTS[name][0])
    expected = job_series([read_log(TODAY / name)], job)
    assert job_series([read_text(tmp_path, printed.encode())], job).throughput.tolist() == expected.throughput.tolist()


def test_throughputs_of_devices_are_copies_of_one_number():
    """Two of four ranks print; the first has a throughput with two commas. A batch, of the clock, is in samples."""
    throughputs = job_throughputs("torchtitan_two_ranks_constructed.log", (1, 4, 1))
    assert (throughputs.unit, throughputs.throughput.tolist(), throughputs.wall) == (
        "tokens/s",
        [4 * 1034697, 4 * 34880],
        None,
    )


def test_of_means_of_epochs_all_complete_ones_but_the_first_count_by_their_steps(tmp_path):
    """Of timm's log one epoch of three is complete and has no start-up, then one more; the last has just begun."""
    text = (TODAY / "timm_constructed.log").read_text()
    window = job_throughputs("timm_constructed.log", (1, 8, 128)).steady.window
    assert np.flatnonzero(window.kept).tolist() == [1]
    assert window.reasons[0].endswith("1 epoch of these: 3200, 4000, 512")
    further = text.splitlines()[3].replace("Train: 1 ", "Train: 2 ").replace("4000.00/s", "2000.00/s")
    log = read_text(tmp_path, f"{text}{further}\n{text.splitlines()[4].replace('Train: 2 ', 'Train: 3 ')}\n")
    throughputs = usable_throughputs([log], job_series([log], JobSize(1, 8, 128)), Extras(), 1024)
    assert np.flatnonzero(throughputs.steady.window.kept).tolist() == [1, 2]
    # 1250 steps at 4000, then 1250 at 2000, in samples/s.
    assert throughputs.steady.window.wall_throughput == pytest.approx(2 / (1 / 4000 + 1 / 2000))
    assert throughputs.step.tolist() == [1250, 2500, 3750, 3750]


def test_ranks_that_all_print_the_throughput_of_the_job_are_not_summed(tmp_path):
    """A training that did not end has the tokens of the job so far: the last line counts, and not those of one rank."""
    text = (TODAY / "huggingface_trainer_real.log").read_text()
    copies = read_text(tmp_path, "".join(f"{line}\n" * 24 for line in text.splitlines()))
    assert job_series([copies], JobSize(2, 12, 1)).throughput.tolist() == [5.641]
    assert "'train_tokens_per_second': 1925.584" in text
    series = job_series([read_text(tmp_path, text[: text.index("{'train_runtime'")])], JobSize(2, 12, 1))
    assert (series.throughput.tolist(), series.unit) == ([50512.468], "tokens/s")


def test_epochs_that_count_no_step_are_equally_long(tmp_path):
    text = re.sub(r"\[ *\d+/", "[   0/", (TODAY / "timm_constructed.log").read_text())
    log = read_text(tmp_path, text)
    throughputs = usable_throughputs([log], job_series([log], JobSize(1, 8, 128)), Extras(), 1024)
    assert np.flatnonzero(throughputs.steady.window.kept).tolist() == [1, 2]
