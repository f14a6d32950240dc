"""The page of what was measured on a GPU says what its runs say."""

import pandas as pd
import pytest

from tools.measured_page import PAGE, RUNS, over_gpus, page, ratios_to_fp32


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return pd.read_csv(RUNS)


def test_the_page_is_made_from_the_runs(runs: pd.DataFrame) -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(written, runs), "write it again: python -m tools.measured_page"
    doubled = runs.assign(throughput=2 * runs["throughput"])
    assert page(written, doubled) != written


def test_two_gpus_have_no_interval() -> None:
    rates, gpus = pd.Series([100.0, 102.0, 104.0, 103.0]), pd.Series([1, 1, 2, 2])
    assert over_gpus(rates, gpus) == "102"
    assert over_gpus(rates, pd.Series([1, 1, 2, 3])) == "102.7 [98.9, 106.5]"


def test_a_ratio_is_taken_within_a_measurement_and_a_batch(runs: pd.DataFrame) -> None:
    ratios = ratios_to_fp32(runs)
    fp32 = runs["precision"] == "fp32"
    of_each = ratios[fp32].groupby([runs["measurement"], runs["batch_per_device"]]).mean()
    assert of_each.to_numpy() == pytest.approx(1)
    assert ratios[~fp32].min() > 2
