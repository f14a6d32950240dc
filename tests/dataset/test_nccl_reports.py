"""From what NCCL wrote in an unmeasured run to the page on communication."""

import shutil
from pathlib import Path

from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.uncounted_runs import read_nccl_reports
from dlperf_study.report.tables import page_tables
from dlperf_study.study.plan import Plan
from tests.evidence_factory import Planned, Recipe, configuration, write_plan, write_run
from tests.report.conftest import write_titled

SAMPLES = Path(__file__).parents[1] / "records" / "nccl"
TWO = configuration(devices_per_node=2)
GPUS = Recipe(device="gpu", link="NVLink")


def write_report(paths: StudyPaths, sample: str) -> None:
    """Write the unmeasured run of ``TWO``, with what NCCL printed elsewhere."""
    reported = TWO.reported
    home = paths.configuration(TWO.configuration_id)
    written = write_run(paths, reported, 1, GPUS)
    target = home.nccl_report(reported.configuration_id).folder
    target.parent.mkdir(parents=True)
    shutil.move(written.folder, target)
    if sample:
        shutil.copy(SAMPLES / f"{sample}.log", target / "nccl-host-1.log")


def reports_of(paths: StudyPaths, sample: str) -> tuple[Plan, dict[str, dict[str, object]], list[str]]:
    plan = write_plan(paths, [Planned(TWO, GPUS)])
    write_report(paths, sample)
    reports = read_nccl_reports(plan, paths)
    return plan, reports.columns, [diagnostic.message for diagnostic in reports.diagnostics]


def test_what_nccl_chose_is_in_the_configurations_and_on_the_page(paths, snapshot):
    write_report(paths, "sixteen_ranks")
    dataset: Dataset = write_titled(paths, [Planned(TWO, GPUS)])
    [row] = dataset.configurations.itertuples()
    assert row.nccl_transports == "NET/IB (2), P2P (1)"
    assert (row.nccl_channels, row.nccl_trees) == (8, 8)
    assert row.nccl_rings.startswith("0→5→4→7→6→3→2→1→8→13")
    table = page_tables.nccl(dataset)
    assert table.notes == snapshot
    assert [heading.text for heading in table.headings][-2:] == ["Rings", "Trees"]


def test_nvlink_in_the_cluster_file_and_shared_memory_in_fact_is_a_warning(paths, snapshot):
    _, columns, messages = reports_of(paths, "shared_memory")
    assert columns[TWO.configuration_id]["nccl_transports"] == "SHM (4)"
    assert messages == snapshot


def test_a_run_without_a_report_is_said(paths):
    _, columns, messages = reports_of(paths, "")
    assert not columns
    assert "NCCL wrote no report" in messages[0]


def test_a_study_without_nccl_has_no_such_table(paths):
    dataset = write_titled(paths, [Planned(TWO)])
    assert page_tables.nccl(dataset).is_empty
