"""Tables in everyday wording: the ten real ones of ``everyday``, and small ones that were made up for this test."""

from pathlib import Path

import pytest

from dlperf_study.audit.audit import audit, count_compared, describe_columns
from dlperf_study.audit.reading.files import TableFormat
from dlperf_study.audit.reading.table_file import read_tables
from dlperf_study.core.errors import Severity

REAL = Path(__file__).parent / "everyday"
#: Checks that examine numbers by themselves.
_SINGLE = ("above_zero", "copied_rows", "durations", "shares_up_to_one", "known_names", "roundings", "scopes")


@pytest.mark.parametrize("name", sorted(path.name for path in REAL.iterdir() if path.name != "SOURCES.md"))
def test_the_columns_of_a_real_table_are_understood(name, snapshot):
    tables = read_tables(REAL / name)
    assert describe_columns(tables, audit(tables.results)) == snapshot


#: The right number in each real table, a wrong one in its stead, and the check that must find it.
DAMAGED = [
    ("torchtitan_asyncTP_h100.md", "| 1.16 |", "| 1.26 |", "ratios"),
    ("timm_benchmark_train_amp_nchw_rtx3090.csv", "10001.12", "11001.12", "task_throughputs"),
    ("megatron_bridge_performance_summary.md", "| 1635 |", "| 1735 |", "utilisation"),
    ("ezpz_hf_trainer_polaris_aurora.md", "250.61", "260.61", "device_throughputs"),
    ("ezpz_hf_trainer_polaris_aurora.md", "8.021", "9.021", "token_throughputs"),
    ("colossalai_benchmark.md", "17.13 samp/s", "18.13 samp/s", "utilisation"),
    ("jax_toolbox_maxtext.md", "22.19", "23.19", "task_throughputs"),
    ("tpu_recipes_ironwood.md", "2,425.75", "2,725.75", "task_throughputs"),
    ("llm_foundry_mpt.md", "42.57", "44.57", "utilisation"),
    ("llm_foundry_mpt.md", "| 42.57 | 56.76", "| 42.57 | 76.56", "recomputation"),
    ("llm_foundry_mpt.md", "66523 | 1039", "66523 | 1139", "device_throughputs"),
    ("flagperf_efficientnet.md", "4686", "46860", "above_linear"),
]


@pytest.mark.parametrize(("name", "right", "wrong", "check"), DAMAGED)
def test_a_wrong_number_in_a_real_table_is_an_error(read_table, name, right, wrong, check):
    text = (REAL / name).read_text(encoding="utf-8")
    assert right in text
    results = read_table(text.replace(right, wrong, 1), name=name).results
    [checked] = [one for one in audit(results) if one.name == check]
    assert checked.count(Severity.ERROR) > 0


#: Made up: a header, a row, and what each column of it is read as; columns that are not used are in no list.
HEADERS = [
    ("GPUs,Images/sec,Speed-up", "8,2840.5,7.6", ["world_size", "throughput", "speedup"]),
    ("num_gpus,tokens_per_second_per_gpu", "64,3890.1", ["world_size", "tokens_per_second_per_device"]),
    ("Number of devices,Scaling efficiency (%)", "16,91.2%", ["world_size", "efficiency"]),
    (
        "# Chips,GBS,Seq Len,TPS",
        "16,512,4096,1677",
        ["world_size", "global_batch", "sequence_length", "tokens_per_second"],
    ),
    ("Nodes,GPUs per node,samples/s/GPU", "2,8,310.5", ["nodes", "devices_per_node", "samples_per_second_per_device"]),
    ("Device,Precision,Images/sec", "Tesla V100,amp,1280", ["device_name", "precision", "throughput"]),
    # A name of this package whose column has other fields.
    ("gpus,device,img/s", "2,H100,850.0", ["world_size", "device_name", "throughput"]),
    ("nnodes,ngpus,img/s", "1,2,850.0", ["nodes", "world_size", "throughput"]),
    ("GPUs,Scaling Eff. (%)", "16,91.2%", ["world_size", "efficiency"]),
    ("device,img/s", "2,850.0", ["world_size", "throughput"]),
    ("World Size,Local Batch Size,it/s", "4,32,2.31", ["world_size", "batch_per_device", "steps_per_second"]),
    (
        "gpu_count,Total Throughput (img/s),Throughput per GPU (img/s)",
        "8,2400.0,300.0",
        ["world_size", "throughput", "samples_per_second_per_device"],
    ),
    ("卡数,吞吐 (imgs/s),加速比", "8,2400.0,7.5", ["world_size", "throughput", "speedup"]),
    ("workers,seq/s,peak mem (GiB),infer_samples_per_sec", "4,512.0,38.2,900.0", ["world_size", "throughput"]),
]


@pytest.mark.parametrize(("header", "row", "names"), HEADERS, ids=[header for header, *_ in HEADERS])
def test_names_in_everyday_wording(read_table, header, row, names):
    tables = read_table(f"{header}\n{row}\n")
    read = {cell.metric: cell.text for cell in tables.results.cells}
    facts = tables.results.cells[0].facts
    for name, text in zip(names, row.split(","), strict=False):
        value = str(read.get(name, facts.get(name)))
        assert value.removesuffix(".0") == text.removesuffix(".0")
    assert {column.meaning.name for column in tables.columns if column.meaning.name} == {*names}


def test_a_unit_in_a_header_or_in_a_cell_is_that_of_its_numbers(read_table):
    header = "GPUs,tflops_per_gpu,MFU (%),Step time (ms),Throughput"
    cells = read_table(f"{header}\n64,412.5,41.2,1250.5,1.28k img/s\n").results.cells
    assert {cell.text for cell in cells} == {"412.5 TFLOP/s", "41.2%", "1250.5 ms", "1.28 k"}


#: Made up: tables as people write them, how they are declared, and the only errors and warnings the checks may give.
MADE_UP = {
    "run columns": (
        "GPUs;run1;run2;run3;mean;std|4;100,1;101,3;99,8;100,4;0,8|8;190,5;191,2;196,0;192,6;3,0",
        TableFormat(";", ","),
        [],
    ),
    "a mean that is none of its runs": ("GPUs,run1,run2,run3,mean|4,100.1,101.3,99.8,104.0", None, ["run_lists"]),
    "a ratio to another precision": (
        "precision,GPUs,Images/sec,Speedup|fp32,1,352.7,1.00|fp32,8,2630.5,7.46|amp,8,8800.0,24.95",
        None,
        [],
    ),
    "a wrong ratio to another precision": (
        "precision,GPUs,Images/sec,Speedup|fp32,1,352.7,1.00|fp32,8,2630.5,7.46|amp,8,8800.0,22.95",
        None,
        ["ratios"],
    ),
    "two precisions as columns": (
        "GPUs,fp32 img/s,amp img/s,speedup|1,352.7,1380.1,3.91|8,2630.5,9712.0,3.69",
        None,
        [],
    ),
    "two precisions as columns, one ratio wrong": (
        "GPUs,fp32 img/s,amp img/s,speedup|1,352.7,1380.1,3.91|8,2630.5,9712.0,3.96",
        None,
        ["ratios"],
    ),
    "efficiency from the throughput of a device": ("GPUs,img/s/GPU,Efficiency|1,352.7,100%|8,328.8,93.2%", None, []),
    "a step time in a wrong unit": (
        "GPUs,GBS,Step time (s),img/s|8,256,101.0,2534.7",
        None,
        ["task_throughputs"],
    ),
    "a wrong share of the peak": ("GPU,GPUs,Precision,TFLOPS/GPU,MFU|A100,8,bf16,156.3,55.1%", None, ["utilisation"]),
    "metrics as rows below the devices": (
        "# GPUs,1,2,4|images/sec,352.7,690.1,1361.2|speedup,1.00x,1.96x,3.96x",
        None,
        ["ratios"],
    ),
    "a ratio of the first of two columns to the second": (
        "GPUs,Mixed precision throughput (img/s),FP32 throughput (img/s),Speedup (FP32 - mixed precision)"
        "|1,1028.0,380.0,2.71x|8,8100.0,2995.0,2.70x",
        None,
        [],
    ),
    "a ratio of each of two columns to its own first row": (
        "GPUs,amp img/s,fp32 img/s,Speedup,amp weak scaling,fp32 weak scaling"
        "|1,1028.0,380.0,2.71,1.00,1.00|8,8100.0,2995.0,2.70,7.88,7.38",
        None,
        ["ratios"],
    ),
    "batches on one device": ("batch_size,samples/s,step_time|32,2560.0,12.5|64,2655.6,24.1", None, []),
    "devices in the label of a row": (
        "config,tokens/s,tokens/s/GPU|8xH100,98304.0,12388.0",
        None,
        ["device_throughputs"],
    ),
    "comments above the header": (
        "# DALI, on V100|# in March|GPUs,img/s,speedup|1,100.0,1.00|2,190.0,1.80",
        None,
        ["ratios"],
    ),
    "a header that begins with #": ("# GPUs,img/s,speedup|1,100.0,1.00|2,190.0,1.80", None, ["ratios"]),
    "speedups with words": (
        "GPUs,img/s,Speedup|1,100.0,1x (baseline)|2,190.0,1.9x|4,380.0,3.0x faster",
        None,
        ["ratios"],
    ),
    "devices with a sign": ("GPUs,img/s,Speedup|1×,100.0,1.00|2×,190.0,1.80", None, ["ratios"]),
    "an efficiency of a rounded speedup": (
        "GPUs,img/s,Speedup,Efficiency|1,30.77,1.00x,100%|2,60.57,1.97x,98.5%",
        None,
        [],
    ),
    "a throughput in thousands": ("GPUs,GBS,Step time (ms),img/s|8,2048,160.0,12.8k", None, []),
}


@pytest.mark.parametrize(("text", "table_format", "checks"), MADE_UP.values(), ids=MADE_UP)
def test_tables_as_people_write_them(read_table, text, table_format, checks):
    checked = audit(read_table(text.replace("|", "\n"), table_format).results)
    assert [one.name for one in checked if one.count(Severity.ERROR) or one.count(Severity.WARNING)] == checks
    assert any(one.examined for one in checked if one.name not in _SINGLE)


def test_a_column_of_decimals_with_commas_separates_no_rows(read_table):
    tables = read_table("GPUs;Zeit;img/s\n1;370,8;100,0\n2;376,4;195,0\n", TableFormat(";", ","))
    assert [column.meaning.name for column in tables.columns] == ["world_size", "", "throughput"]


def test_a_throughput_next_to_its_runs_and_their_mean_is_a_number_of_its_own(read_table):
    results = read_table("GPUs,img/s,run 1,run 2,run 3,mean\n1,100,99,100,101,100\n2,195,193,195,197,190\n").results
    [run_lists] = [check for check in audit(results) if check.name == "run_lists"]
    assert [diagnostic.cells[0].key for diagnostic in run_lists.diagnostics] == ["table.csv/row 2/throughput/mean"]


@pytest.mark.parametrize(
    ("times", "is_wrong"),
    [
        (("45:00", "10:32"), True),
        (("0:45:00", "0:10:24"), False),
        (("1h 30m", "20m 50s"), False),
        (("1 h 30 min", "25 min 0 s"), True),
    ],
)
def test_durations_in_any_form_are_compared_with_their_speedup(read_table, times, is_wrong):
    first, second = times
    results = read_table(f"GPUs,Training time,Speedup\n1,{first},1.00\n4,{second},4.32\n").results
    assert [bool(one.count(Severity.ERROR)) for one in audit(results) if one.name == "time_ratios"] == [is_wrong]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ("10,6 min,15 sec,24\u00d7;38,24 min,36 sec,40x", []),
        ("10,6 min,15 sec,24\u00d7;500,315 min,475 sec,44x", ["315 min / 475 s = 39.79, printed 44"]),
        ("128,14.36 ms,1.65 ms,8.72;256,15.41 ms,1.68 ms,9.28", ["15.41 ms / 1.68 ms = 9.173, printed 9.28"]),
    ],
)
def test_times_before_and_after_are_compared_with_their_speedup(read_table, rows, found):
    tables = read_table("Genes,Before,After,Speedup\n" + rows.replace(";", "\n"))
    results = audit(tables.results, each_number=True)
    assert [diagnostic.computation for one in results for diagnostic in one.diagnostics] == found
    assert count_compared(tables, results) == {"Before, After": (4, 4), "Speedup": (2, 2)}
