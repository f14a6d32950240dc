from dataclasses import fields

from dlperf_study.core.errors import Diagnostic, RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.run_table import run_row
from dlperf_study.metrics import energy, gpu_state, ingested, network, throughput
from dlperf_study.metrics.collectives import COLLECTIVE_COLUMNS, GROUP_COLUMNS, SECONDS_OF_KINDS
from dlperf_study.metrics.columns import COLUMNS, Dtype, TableName, columns_by_name, list_columns
from dlperf_study.metrics.process_resources import HELD_COLUMNS
from dlperf_study.records.run import read_run
from dlperf_study.study.configuration import FIELD_NAMES, Configuration
from tests.evidence_factory import configuration, write_run

#: A parameter that nobody stated, of ingested logs, is missing.
DTYPES = {
    str: {Dtype.STRING},
    int: {Dtype.INTEGER, Dtype.OPTIONAL_INTEGER},
    float: {Dtype.FLOAT},
    bool: {Dtype.FLAG, Dtype.OPTIONAL_FLAG},
}
ONLY_INGESTED = {metric.name for metric in ingested.METRICS}


def test_parameters_are_columns_of_their_types_in_order_of_declaration():
    for field in fields(Configuration):
        column = COLUMNS[field.name]
        assert column.dtype in DTYPES[field.type]
        assert {TableName.RUNS, TableName.CONFIGURATIONS} <= set(column.tables)
    names = [column.name for column in list_columns(TableName.RUNS)]
    assert tuple(name for name in names if name in FIELD_NAMES) == FIELD_NAMES


def test_a_column_is_keyed_by_its_name_and_says_what_it_is():
    for name, column in COLUMNS.items():
        assert name == column.name
        assert column.label
        assert column.definition
        assert column.tables


def test_labels_tell_the_columns_of_a_table_apart():
    for table in TableName:
        labels = [column.label for column in list_columns(table)]
        repeated = {label for label in labels if labels.count(label) > 1}
        assert not repeated


def test_a_completed_run_fills_exactly_the_columns_of_runs(tmp_path):
    run = read_run(write_run(StudyPaths(tmp_path), configuration(devices_per_node=2, measured_steps=200), 1))
    row = run_row(run)
    assert set(row) == {column.name for column in list_columns(TableName.RUNS)} - ONLY_INGESTED
    # Only programs of users have tokens and commands, asynchronous trainers throughputs of their own, and sources that
    # make batches one; only libraries on GPUs count all memory, only ranks with a limit wait for it, only scaled losses
    # have a scale, only compilers take time, only GPUs have cuDNN and controllers, and the update of the constructed
    # run was left to the library; images are no sequences. It has one kind of communication and computes nothing again.
    # Without telemetry nothing is known of resources but why.
    telemetry = (*energy.METRICS, *gpu_state.METRICS, *network.METRICS)
    of_telemetry = {metric.name for metric in telemetry} - {"energy_obstacle"}
    assert {name for name, value in row.items() if value is None} == of_telemetry | {
        *(
            "token_file",
            "sequence_length",
            "masked_positions",
            "token_throughput",
            "device_token_throughput",
            "sum_of_rank_throughputs",
            "input_throughput",
            "peak_allocated_bytes",
            "peak_reserved_bytes",
        ),
        *("used_cores", "throttled_share", "loss_scale", "skipped_steps", "compile_seconds"),
        *("observed_cudnn_autotune", "observed_fused_optimizer"),
        *("cpu_mhz", "cpu_cache_bytes", "gpu_driver", "cuda_version", "cudnn_version", "communication_library"),
        *("program_command", "program_commit", "program_remote", "steps_from"),
        *("hardware_flops_per_sample", "hfu"),
        *(*COLLECTIVE_COLUMNS, *SECONDS_OF_KINDS, *GROUP_COLUMNS, *HELD_COLUMNS),
    }


def test_the_columns_of_diagnostics_are_the_fields_of_a_diagnostic():
    assert {column.name for column in list_columns(TableName.DIAGNOSTICS)} == {
        field.name for field in fields(Diagnostic)
    }


def test_two_columns_of_one_name_are_refused_with_both_files(refused):
    declared = throughput.METRICS[:1]
    with refused(RecordError):
        columns_by_name([("throughput.py", declared), ("mine.py", declared)])
