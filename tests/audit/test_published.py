"""The audit of all published figures: every diagnostic was read, and is in a snapshot."""

from fractions import Fraction

import pytest

from dlperf_study.audit.audit import audit, cited_cells
from dlperf_study.audit.checks import diagnostics_of, most_severe_first
from dlperf_study.audit.published import load
from dlperf_study.audit.result_frames import results_of_frame

SEEDS = (
    *("paddle_vgg16_cluster", "dlperf_paddle_plsc", "dlperf_paddle_resnet50"),
    *("elasticdl_allreduce_wiki", "tensorpack_multigpu"),
)


@pytest.fixture(scope="module")
def cells():
    return load()


@pytest.fixture(scope="module")
def checked(cells):
    return {one.name: one for one in audit(results_of_frame(cells), each_number=True)}


def test_the_diagnostics_are_those_that_were_read(checked, snapshot):
    diagnostics = most_severe_first(diagnostic for one in checked.values() for diagnostic in one.diagnostics)
    lines = [f"{one.severity} | {one.check} | {one.computation} | {cited_cells(one)}" for one in diagnostics]
    assert "\n".join(lines) == snapshot


def test_every_ratio_is_examined(cells, checked):
    ratios = cells["metric"].isin(["speedup", "efficiency"]) & cells["value"].notna()
    assert checked["ratios"].examined == ratios.sum() > 600


def test_every_ratio_of_the_five_studies_is_right_within_a_unit_or_reported(cells, checked):
    """Reckoned here once more, in another way: with the values alone, to within one unit of the last digit."""
    values = cells.set_index("cell")["value"]
    reported = {diagnostic.cells[0].key for diagnostic in checked["ratios"].diagnostics}
    ours = cells[cells["source"].isin(SEEDS) & (cells["metric"] == "speedup") & cells["value"].notna()]
    points = cells[(cells["metric"] == "throughput") & (cells["estimator"] != "run")]
    for ratio in ours.itertuples():
        same = points[(points["series"] == ratio.series) & (points["world_size"] == ratio.world_size)]
        rates = same.loc[same["estimator"] == ratio.estimator, "value"]
        exact = Fraction(rates.iloc[0]) / Fraction(values[ratio.baseline])
        off = abs(exact - Fraction(ratio.value))
        assert off <= Fraction(ratio.resolution) * Fraction("1.0001") or ratio.cell in reported, ratio.cell


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("ratios", "elasticdl_allreduce_wiki/cpu_resnet50/2/Speedup Ratio"),
        ("above_linear", "dlperf_paddle_plsc/fp32_b128/2 | 16/samples/s"),
        ("above_linear", "dlperf_paddle_resnet50/fp32_b128/1 | 4/samples/s"),
        ("falling", "dlperf_paddle_resnet50/fp16_b196_dali/2 | 16/samples/s"),
        ("falling", "elasticdl_allreduce_wiki/cpu_mobilenet_v2/8/Speed"),
        ("task_rates", "elasticdl_allreduce_wiki/minikube_mobilenet_v2/2/Speed"),
        ("stages", "elasticdl_allreduce_wiki/gpu_mobilenet_v2/1 (local)/apply_gradients"),
        ("instances", "tensorpack_multigpu/v100_tf2/--fake-location=gpu --variable-update=replicated/Results"),
        ("input_sizes", "paddle_vgg16_cluster/single_node_single_thread/PaddlePaddle v2/256"),
    ],
)
def test_errors_of_the_five_studies_are_diagnosed(checked, name, cell):
    assert cell in {one.key for diagnostic in checked[name].diagnostics for one in diagnostic.cells}


def test_the_tables_of_the_two_seeds_with_runs_follow_from_them(checked):
    wrong = {diagnostic.cells[0].get("source") for diagnostic in checked["run_lists"].diagnostics}
    assert not wrong & set(SEEDS)


def test_shares_of_a_peak_that_count_recomputation_are_found_where_they_are_called_mfu(cells):
    gpt = cells[cells["source"] == "dlperf_oneflow_gpt"]
    as_stored, as_mfu = (audit(results_of_frame(gpt.replace({"metric": names}))) for names in ({}, {"hfu": "mfu"}))
    cell_counts = [
        [len(each.cells) for each in diagnostics_of(one) if each.check == "recomputation"]
        for one in (as_stored, as_mfu)
    ]
    assert cell_counts == [[], [18]]
