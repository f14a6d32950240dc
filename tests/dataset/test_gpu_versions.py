"""Versions of the driver, CUDA, cuDNN and NCCL: from the nodes' reports to the dataset, captions and comparisons."""

from dataclasses import replace

import pytest

from dlperf_study.dataset.run_table import run_row
from dlperf_study.dataset.study_diagnostics import mixed_environments
from dlperf_study.report import context
from dlperf_study.report.tables import about_tables
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import write_titled

BUILD = {"cuda": "12.8", "cudnn": "9.10.2", "nccl": "2.27.5", "gpus": ["NVIDIA H100 80GB HBM3"]}
NODE = {"name": "h1", "hardware": {"gpu_driver": "570.86.15"}, "gpu_support": BUILD}
ON_GPUS = Recipe(device="gpu", communication_library="NCCL 2.27.5", nodes=(NODE,))
VERSIONS = {
    "gpu_driver": "570.86.15",
    "cuda_version": "12.8",
    "cudnn_version": "9.10.2",
    "communication_library": "NCCL 2.27.5",
}


def test_a_run_on_gpus_has_the_versions_that_its_nodes_report_and_one_on_cpus_none(make_run):
    row = run_row(make_run(recipe=ON_GPUS))
    assert {name: row[name] for name in VERSIONS} == VERSIONS
    cpu_node = {"name": "", "hardware": {"gpu_driver": "570.86.15"}}
    row = run_row(make_run(recipe=Recipe(nodes=(cpu_node,)), seed=1))
    assert {row[name] for name in VERSIONS} == {None}


def test_nodes_with_different_drivers_have_both(make_run, snapshot):
    other = NODE | {"name": "h2", "hardware": {"gpu_driver": "550.54.15"}}
    run = make_run(recipe=Recipe(device="gpu", nodes=(NODE, other)), nodes=2)
    assert run_row(run)["gpu_driver"] == "570.86.15, 550.54.15"
    messages = [diagnostic.message for diagnostic in run.diagnostics]
    assert messages == snapshot


def test_captions_and_the_table_of_the_environment_show_them(paths):
    dataset = write_titled(paths, [Planned(configuration(devices_per_node=2), ON_GPUS)])
    shown = {row[0].text: row[1].text for row in about_tables.environments(dataset).rows}
    assert (shown["GPU driver"], shown["CUDA"], shown["cuDNN"]) == ("570.86.15", "12.8", "9.10.2")
    versions = "Paddle 3.0.0 (NCCL 2.27.5), CUDA 12.8, cuDNN 9.10.2 and GPU driver 570.86.15"
    assert versions in context.conditions(dataset)


def test_runs_of_one_machine_are_in_one_column_whatever_their_devices_and_precisions(paths):
    alone = replace(ON_GPUS, communication_library="", peak_flops=None, device_name="NVIDIA H100 80GB HBM3")
    together = replace(alone, communication_library="NCCL 2.27.5")
    half = configuration(precision="amp_bf16", devices_per_node=2)
    dataset = write_titled(paths, [Planned(configuration(), alone), Planned(half, together)])
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in about_tables.environments(dataset).rows}
    assert rows["Communication library"] == ["NCCL 2.27.5"]
    assert rows["Device peak"] == ["67.0 TFLOP/s, 989 TFLOP/s"]


@pytest.mark.parametrize("name", ["gpu_driver", "communication_library"])
def test_runs_with_different_versions_are_diagnosed(paths, name):
    dataset = write_titled(paths, [Planned(configuration(devices_per_node=2), ON_GPUS)])
    runs = dataset.runs.copy()
    runs.loc[runs.index[0], name] = "another"
    [diagnostic] = mixed_environments(runs)
    assert diagnostic.subject == name
