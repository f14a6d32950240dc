import re
from dataclasses import replace

import pytest

from dlperf_study.audit.published import load_source
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.published import STAGES, stage_rows
from dlperf_study.report.formatting import MISSING
from dlperf_study.report.tables.printed_tables import stages
from dlperf_study.report.tables.table import Cell, Table
from tests.evidence_factory import Planned, configuration
from tests.report.conftest import ALONE, TOGETHER, study

#: As Minikube's workers in ElasticDL, with fewer samples in a batch.
MINIKUBE = {
    **{"model": "mobilenet_v2", "strategy": "all_reduce", "image_size": 32, "classes": 10},
    **{"batch_per_device": 8, "threads_per_device": 1, "nodes": 1},
}
SAMPLES_OF_A_TASK = 3200
TASK, BATCHES, MODEL, GRADIENT, COPY, UPDATE, PASSES = (stage.label for stage in STAGES)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    one, two = (configuration(devices_per_node=devices, **MINIKUBE) for devices in (1, 2))
    waiting = configuration(devices_per_node=3, data_loader="synthetic_host", **MINIKUBE)
    other_images = configuration(**MINIKUBE | {"image_size": 64})
    planned = [
        Planned(one, ALONE),
        Planned(two, TOGETHER, baseline=one),
        Planned(waiting, replace(TOGETHER, input_seconds=0.01), baseline=waiting),
        Planned(other_images, ALONE, baseline=other_images),
    ]
    return study(*planned, published=("elasticdl_allreduce_wiki",))


def cells_of(table: Table, group: str, devices: str, *, ours: bool) -> dict[str, Cell]:
    grouped = zip(table.groups, table.rows, strict=True)
    [cells] = [
        cells
        for name, cells in grouped
        if group in name and cells[1].text == devices and cells[0].text.startswith("Measured here: ") == ours
    ]
    return {heading.label: cell for heading, cell in zip(table.headings, cells, strict=True)}


def test_every_published_task_has_its_stages_as_printed(dataset):
    table = stages(dataset)
    published = [cells for cells in table.rows if not cells[0].text.startswith("Measured here: ")]
    assert len(published) == 2 + 3 + 3 + 3
    printed = cells_of(table, "MobileNetV2: time profiling", "2", ours=False)
    assert (printed[TASK].text, printed[MODEL].text, printed[GRADIENT].text) == ("143.789", "0.000886917", "33.6484")
    assert printed[COPY].text == MISSING
    assert cells_of(table, "GPU: Resnet50", "4", ours=False)[UPDATE].text == "1.30"
    assert cells_of(table, "GPU: MobileNetV2", "1", ours=False)[GRADIENT].text == MISSING


def test_ours_are_steps_of_our_windows_times_the_steps_of_a_task(dataset):
    ours = cells_of(stages(dataset), "MobileNetV2: time profiling", "2", ours=True)
    configurations = dataset.configurations
    [row] = configurations[configurations["world_size"] == 2].itertuples()
    steps = SAMPLES_OF_A_TASK / 8
    for label, column in (
        (TASK, "step_seconds"),
        (GRADIENT, "exposed_communication_seconds"),
        (PASSES, "compute_seconds"),
    ):
        assert float(ours[label].text) == pytest.approx(getattr(row, column) * steps, rel=0.01)
        low, high = (float(end) for end in re.findall(r"[-\d.]+", ours[label].interval))
        assert low == pytest.approx(getattr(row, f"{column}_low") * steps, rel=0.05)
        assert high == pytest.approx(getattr(row, f"{column}_high") * steps, rel=0.05)
    assert ours[BATCHES].text == ours[TASK].text


def test_batches_are_a_task_without_what_its_steps_wait_for_them(dataset):
    ours = cells_of(stages(dataset), "MobileNetV2: time profiling", "3", ours=True)
    waiting = float(ours[TASK].text) - float(ours[BATCHES].text)
    assert waiting == pytest.approx(0.01 * SAMPLES_OF_A_TASK / 8, rel=0.1)
    assert (ours[BATCHES].interval, ours[BATCHES].footnote != "") == ("", True)


def test_a_stage_that_our_windows_do_not_measure_says_so(dataset, snapshot):
    table = stages(dataset)
    two_workers = cells_of(table, "MobileNetV2: time profiling", "2", ours=True)
    assert {two_workers[label].text for label in (MODEL, COPY, UPDATE)} == {MISSING}
    one_worker = cells_of(table, "MobileNetV2: time profiling", "1", ours=True)
    assert one_worker[GRADIENT].text == MISSING
    assert [two_workers[UPDATE].footnote, one_worker[GRADIENT].footnote] == snapshot


def test_a_task_of_which_only_the_whole_is_printed_has_no_row():
    cells = load_source("elasticdl_allreduce_wiki")
    whole = cells[cells["metric"] == "task_process_seconds"]
    assert len(stage_rows(cells)) == 11
    assert stage_rows(whole).empty
