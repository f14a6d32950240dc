"""The audit of all published figures: every diagnostic was read, and is in a snapshot."""

from fractions import Fraction

import pytest

from dlperf_study.audit.audit import audit, cited_cells
from dlperf_study.audit.checks import list_diagnostics
from dlperf_study.audit.published import load
from dlperf_study.audit.result_frames import read_results_frame

SEEDS = (
    *("paddle_vgg16_cluster", "dlperf_paddle_plsc", "dlperf_paddle_resnet50"),
    *("elasticdl_allreduce_wiki", "tensorpack_multigpu"),
)


@pytest.fixture(scope="module")
def cells():
    return load()


@pytest.fixture(scope="module")
def checked(cells):
    return {one.name: one for one in audit(read_results_frame(cells), each_number=True)}


def test_the_diagnostics_are_those_that_were_read(checked, snapshot):
    diagnostics = list_diagnostics(checked.values())
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
        throughputs = same.loc[same["estimator"] == ratio.estimator, "value"]
        exact = Fraction(throughputs.iloc[0]) / Fraction(values[ratio.baseline])
        off = abs(exact - Fraction(ratio.value))
        assert off <= Fraction(ratio.resolution) * Fraction("1.0001") or ratio.cell in reported, ratio.cell
