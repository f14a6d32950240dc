import json

import pytest

from dlperf_study.audit.published import load_source
from dlperf_study.core.errors import RecordError
from dlperf_study.dataset.ingestion.like_dlperf import (
    THROUGHPUT,
    defects,
    dlperf_results,
    runs_by_case,
    write_like_dlperf,
)
from tests.logs.ingest.conftest import declare, write_docs_format, write_docs_log


def results(paths, name="bz128_result.json"):
    return json.loads((paths.like_dlperf / name).read_text())


def constant(log, seconds):
    lines = [line.partition("elapse ")[0] + f"elapse {seconds:.4f} sec" for line in log.read_text().splitlines()]
    log.write_text("\n".join(lines) + "\n")


def test_the_results_are_those_of_its_rules(ingested, write_log, paths):
    for repetition, seconds in ((1, 0.5), (2, 0.4), (3, 0.32)):
        constant(write_log(f"1n1g/r50_b128_fp32_{repetition}.log"), seconds)
        constant(write_log(f"1n2g/r50_b128_fp32_{repetition}.log", 2, seed=repetition + 9), seconds * 1.2)
    ingested()
    messages = write_like_dlperf(paths)
    assert results(paths) == {
        "r50": {
            "1n1g": {"average_speed": 325.33, "batch_size_per_device": 128, "median_speed": 320.0, "speedup": 1.0},
            "1n2g": {"average_speed": 542.22, "batch_size_per_device": 128, "median_speed": 533.33, "speedup": 1.67},
        }
    }
    assert messages == [f"as DLPerf would write it: {paths.like_dlperf / 'bz128_result.json'}"]


@pytest.mark.parametrize("name", ["dlperf_paddle_plsc", "dlperf_paddle_resnet50"])
def test_the_runs_it_printed_make_the_results_it_printed(name):
    cells = load_source(name)
    runs = cells[(cells["table"] == "runs") & cells["row"].str.contains("b128_fp32")]
    cases = runs["nodes"].map("{:.0f}".format) + "n" + runs["devices_per_node"].map("{:.0f}".format) + "g"
    results_by_model = dlperf_results(runs.assign(case=cases, counted=True, **{THROUGHPUT: runs["value"]}))
    [cases_of_model] = results_by_model.values()
    printed = cells[cells["table"] == "result"]
    assert len(cases_of_model) == printed["row"].nunique()
    for cell in printed.itertuples():
        assert cases_of_model[cell.row][cell.column] == cell.value, f"{cell.row} {cell.column}"


def test_each_run_is_rounded_before_the_median(ingested, write_log, paths):
    for repetition, seconds in ((1, 0.3), (2, 0.3003)):
        constant(write_log(f"1n1g/r50_b128_fp32_{repetition}.log"), seconds)
    ingested()
    write_like_dlperf(paths)
    # The median of 426.6667 and 426.2404 is 426.4535, that of 426.67 and 426.24 is 426.455.
    assert results(paths)["r50"]["1n1g"]["median_speed"] == 426.46


def test_without_a_baseline_the_speedup_is_null_with_a_message(ingested, write_log, paths, snapshot):
    write_log("1n8g/r50_b128_fp32_1.log", 8)
    ingested()
    messages = write_like_dlperf(paths)
    assert results(paths)["r50"]["1n8g"]["speedup"] is None
    assert messages[1:] == snapshot


def test_runs_that_share_a_key_have_a_file_each(ingested, write_log, paths, snapshot):
    write_log("1n1g/r50_b128_fp32_1.log")
    write_log("1n1g/r50_b128_fp16_1.log")
    ingested()
    messages = write_like_dlperf(paths)
    assert len(list(paths.like_dlperf.glob("*/bz128_result.json"))) == 2
    assert messages[2:] == snapshot


@pytest.mark.usefixtures("small_archive")
def test_a_run_that_stopped_early_and_ten_nodes_are_named(ingested, write_log):
    write_log("1n1g/r50_b128_fp32_4.log", seed=4, steps=60)
    write_log("1n1g/r50_b128_fp32_5.log", seed=5, steps=60)
    write_log("1n1g/r50_b128_fp32_6.log", seed=6, steps=60)
    messages = list(defects(runs_by_case(ingested())))
    assert any("10n8g" in line for line in messages)
    [early] = [line for line in messages if "not counted" in line]
    assert "repetition 4, 5, 6;" in early
    assert 160 < float(early.rpartition(" ")[2]) < 190


#: Lines of a run of TensorFlow 2's official models, as DLPerf published its log: the first includes the start-up.
TIME_HISTORY = (
    "116.24 seconds, 110.12 examples/second between steps 0 and 100",
    "39.13 seconds, 327.08 examples/second between steps 100 and 200",
    "39.40 seconds, 324.90 examples/second between steps 200 and 300",
    "39.10 seconds, 327.40 examples/second between steps 300 and 400",
    "40.18 seconds, 318.56 examples/second between steps 400 and 500",
    "39.81 seconds, 321.57 examples/second between steps 500 and 600",
)


def test_logs_of_tensorflow_2_have_the_window_of_their_own_extractor(ingested, folder, paths):
    """Warm-up 100 of 600: the mean of the five lines after the first, 323.90, and not the first one, 110.12."""
    log = folder / "1n1g" / "r50_b128_fp32_1.log"
    log.parent.mkdir(parents=True)
    prefix = "I0826 15:12:50.113950 140405777909504 keras_utils.py:133] TimeHistory: "
    log.write_text("".join(f"{prefix}{line}\n" for line in TIME_HISTORY))
    dataset = ingested()
    assert set(dataset.runs["fixed_window"]) == {"101 to 600"}
    messages = write_like_dlperf(paths)
    assert results(paths)["r50"]["1n1g"]["average_speed"] == 323.9
    assert not [message for message in messages if "mean of throughputs" in message]


def test_logs_that_dlperf_has_no_extractor_for_are_refused(ingested, folder, paths):
    write_docs_format(folder)
    write_docs_log(folder / "logs" / "run_1.log")
    declare(folder / "logs", framework="mine", model="r50")
    dataset = ingested()
    assert dataset.runs[THROUGHPUT].isna().all()
    assert not dataset.diagnostics["subject"].str.startswith("fixed_window").any()
    with pytest.raises(RecordError, match=r"--like-dlperf: .*: DLPerf has no extractor for such logs"):
        write_like_dlperf(paths)
    assert not paths.like_dlperf.exists()
