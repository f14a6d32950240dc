"""The page of what was measured on a GPU says what its runs say."""

import re

import pandas as pd
import pytest

from tools.measured_page import PAGE, RUNS, over_gpus, page, ratios_to_fp32


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return pd.read_csv(RUNS)


def test_the_page_is_made_from_the_runs(runs):
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(written, runs), "write it again: python -m tools.measured_page"
    doubled = runs.assign(throughput=2 * runs["throughput"])
    assert page(written, doubled) != written


def test_two_gpus_have_no_interval():
    throughputs, gpus = pd.Series([100.0, 102.0, 104.0, 103.0]), pd.Series([1, 1, 2, 2])
    assert over_gpus(throughputs, gpus) == "102"
    assert over_gpus(throughputs, pd.Series([1, 1, 2, 3])) == "102.7 [98.9, 106.5]"


def test_a_ratio_is_taken_within_a_measurement_and_a_batch(runs):
    ratios = ratios_to_fp32(runs)
    fp32 = runs["precision"] == "fp32"
    of_each = ratios[fp32].groupby([runs["measurement"], runs["batch_per_device"]]).mean()
    assert of_each.to_numpy() == pytest.approx(1)
    assert ratios[~fp32].min() > 2


@pytest.fixture(scope="module")
def tuned(runs: pd.DataFrame) -> pd.DataFrame:
    """The mean of each measurement of bf16 with channels last, a row for each measurement, a column for each tuning."""
    rows = runs[(runs["precision"] == "amp_bf16") & (runs["memory_format"] == "nhwc")]
    tuning = rows["compiler"].where(rows["compiler"] != "none", rows["fused_optimizer"])
    rows = rows.assign(tuning=tuning)[rows["cudnn_autotune"] == "default"]
    return rows.pivot_table(index="measurement", columns="tuning", values=["throughput", "step_seconds"])


def test_the_page_says_how_far_the_fused_update_is_from_the_default(tuned):
    ratios = (tuned["throughput"]["fused"] / tuned["throughput"]["default"]).dropna()
    [percent] = re.findall(r"fused update is within\s+([\d.]+) %", PAGE.read_text(encoding="utf-8"))
    assert float(percent) == pytest.approx(100 * (ratios - 1).abs().max(), abs=0.05)


def test_the_pages_say_how_much_shorter_the_compiler_makes_a_step(tuned):
    shorter = 100 * (1 - tuned["step_seconds"]["torch_compile"] / tuned["step_seconds"]["default"])
    stated = f"{shorter.min():.0f} to {shorter.max():.0f} % shorter"
    assert stated in PAGE.read_text(encoding="utf-8")
    assert stated in (PAGE.parent.parent / "gpu.md").read_text(encoding="utf-8")


def test_the_page_on_gpus_has_values_of_the_page():
    page = (PAGE.parent.parent / "gpu.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:fp32|TF32|amp)[, ].*) \|$", page.partition("## ")[0], re.MULTILINE)
    measured = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    assert len(rows) >= 3
    for label, *values in (row.split(" | ") for row in rows):
        assert any(cells[0] == f"| {label}" and cells[1] == "128" and cells[4:6] == values for cells in measured), label


def test_the_page_says_how_far_other_configurations_differ(runs):
    others = runs[(runs["compiler"] == "none") & (runs["fused_optimizer"] != "fused")]
    others = others[~others["precision"].eq("amp_fp16")]
    configuration = ["precision", "memory_format", "cudnn_autotune", "fused_optimizer", "batch_per_device"]
    means = others.groupby([*configuration, "measurement"])["throughput"].mean().groupby(configuration)
    [percent] = re.findall(r"Other configurations vary by at most\s+([\d.]+) %", PAGE.read_text(encoding="utf-8"))
    assert float(percent) == pytest.approx(100 * (means.max() / means.min() - 1).max(), abs=0.05)
