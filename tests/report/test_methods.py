"""What the methods of a paper say was done, against the files of the runs."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import column_named
from dlperf_study.report.formatting import value_with_unit
from dlperf_study.report.methods import methods
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, study, write_titled

ONE, TWO, FOUR = (configuration(devices_per_node=count) for count in (1, 2, 4))
FAILED = Recipe(status="failed", reason="exit 1")


def records(folder: Path) -> list[dict[str, Any]]:
    """Return the files of the runs that completed."""
    runs = [json.loads(file.read_text()) for file in folder.glob("**/run.json")]
    return [run for run in runs if run["status"] == "completed"]


def narrow(dataset: Dataset, wanted: float) -> int:
    """Return of how many configurations the throughput and the speedup are known to a share, from what tables print."""
    count = 0
    for row in dataset.configurations.dropna(subset="throughput").itertuples():
        bounds = [(row.throughput, row.throughput_high)]
        bounds += [] if row.is_baseline else [(row.speedup, row.speedup_high)]
        count += all(high / value - 1 <= wanted for value, high in bounds)
    return count


@pytest.mark.parametrize("busy", [0.0, 1.5])
@pytest.mark.parametrize("precision", [None, 0.004, 0.5])
def test_methods_say_what_the_files_of_the_runs_say(busy, precision, tmp_path):
    quiet, disturbed = Recipe(0.08, noise=0.001), Recipe(0.08, 0.02, noise=0.1, busy_cores=busy)
    planned = [Planned(ONE, quiet, 4), Planned(TWO, disturbed, 4), Planned(FOUR, FAILED, 3)]
    dataset = write_titled(StudyPaths(tmp_path / "example"), planned, target_ci=precision)
    text, runs = methods(dataset), records(tmp_path)
    measured = {run["configuration_id"] for run in runs}
    assert f"We measured {len(measured)} configurations in {len(runs)} completed runs" in text
    assert f"Each configuration has {len(runs) // len(measured)} completed runs." in text
    busy_runs = sum(run["load"]["busy_cores_during"] > 1 for run in runs)
    assert ("Background load" in text) == bool(busy_runs)
    assert not busy_runs or f"Background load was detected during {busy_runs} of these runs" in text
    reached = re.findall(r"The target CI of \S+ was reached by (\w+) of (\d+) configurations", text)
    expected = [] if precision is None else [(str(narrow(dataset, precision) or "none"), str(len(measured)))]
    assert reached == expected


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (
            {"max_repetitions": 3, "time_budget_minutes": 60.0},
            " within 3 runs per configuration, the maximum of the study.",
        ),
        ({"max_repetitions": 8, "time_budget_minutes": 6.0}, " within the time budget of 6\\,min."),
        # It was interrupted long before that.
        ({"max_repetitions": 8, "time_budget_minutes": 600.0}, "."),
        ({"max_repetitions": 8, "time_budget_minutes": None}, "."),
    ],
)
def test_methods_say_what_ended_measuring_before_it_was_precise(limits, expected, tmp_path):
    noisy = [Planned(asked, Recipe(0.08, 0.02, noise=0.1)) for asked in (ONE, TWO)]
    text = methods(write_titled(StudyPaths(tmp_path / "example"), noisy, target_ci=0.001, **limits))
    assert f"was reached by none of 2 configurations{expected}" in text


@pytest.mark.parametrize(
    ("steady", "unsteady", "short", "expected"),
    [
        (0, 0, 6, ""),
        (4, 0, 2, ""),
        (6, 0, 0, "The window of all runs is in a steady state ("),
        (0, 2, 4, "The window of 2 of 6 runs is not in a steady state ("),
    ],
)
def test_methods_say_of_how_many_runs_the_window_is_steady(steady, unsteady, short, expected):
    dataset = study(Planned(ONE, ALONE), Planned(TWO, TOGETHER))
    answers = ["steady"] * steady + ["not steady"] * unsteady + [None] * short
    runs = dataset.runs.assign(steadiness=pd.Series(answers, dataset.runs.index).astype("string"))
    sentences = re.findall(r"The window of [^(]*\(", methods(replace(dataset, runs=runs)))
    assert sentences == ([expected] if expected else [])


def test_ratios_without_intervals_have_no_method():
    blocks = Recipe(0.080, order="sequential")
    dataset = study(Planned(ONE, blocks), Planned(TWO, blocks))
    text = methods(replace(dataset, plan=dataset.plan.changed(order="sequential")))
    assert "so ratios have no CI" in text
    assert "Welch" not in text


def test_a_framework_that_trained_some_of_the_models_has_their_names():
    small = configuration(model="mobilenet_v2")
    local = configuration(model="mobilenet_v2", framework="paddle_ps", strategy="local")
    text = methods(study(*(Planned(asked, ALONE, baseline=asked) for asked in (ONE, small, local))))
    assert "PaddlePaddle parameter server (local; MobileNetV2 only)" in text
    assert text.count(" only)") == 1


def test_methods_name_what_was_compared_and_what_goes_without_saying(mixed):
    text = methods(mixed)
    assert "PaddlePaddle collective (data parallel)" in text
    assert "PaddlePaddle parameter server (asynchronous)" in text
    assert " only)" not in text
    assert re.search(r"with [^.;]*\bclasses \d+\b[^.;]*\boptimizer SGD\b", text)


@pytest.mark.parametrize("changes", [{"compiler": "cinn"}, {"sample_ratio": 0.5}, {"seed": 7}])
def test_methods_name_each_setting_that_is_not_the_default(changes):
    text = methods(study(Planned(configuration(**changes), ALONE)))
    [name] = changes
    assert f"{column_named(name).words} {value_with_unit(name, changes[name])}" in text


def test_settings_that_are_the_same_are_apart_from_those_that_vary(tmp_path):
    planned = [Planned(ONE, ALONE), Planned(TWO, TOGETHER), Planned(configuration(precision="fp16"), ALONE)]
    text = methods(write_titled(StudyPaths(tmp_path / "example"), planned))
    assert re.search(r"Scaling was weak, with image size \d+[^.;]*\. We varied precision \(fp32 and fp16\)\.", text)
