"""The rules of measuring: each is kept by a study that keeps it, and missed by one that breaks it alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import sentences, tables
from dlperf_study.report.compliance import RULE_SETS, Compliance, RuleResult, checked_rules
from dlperf_study.report.tables.compliance_tables import compliance_counts
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import study

MET, NOT_MET, IDLE = Compliance.MET, Compliance.NOT_MET, Compliance.NOT_APPLICABLE
ONE, TWO = (configuration(devices_per_node=count, measured_steps=120) for count in (1, 2))


def careful() -> Dataset:
    """Return a study of steady runs on a quiet machine."""
    alone = Recipe(exposed_seconds=0.0, noise=0.01)
    return study(Planned(ONE, alone, runs=5), Planned(TWO, Recipe(noise=0.01), runs=5, baseline=ONE))


def result(dataset: Dataset, name: str) -> RuleResult:
    [checked] = [checked for checked in checked_rules(dataset) if checked.rule.name == name]
    return checked.result


def changed(**columns: Any) -> Callable[[Dataset], Dataset]:
    """Return what makes a study with other values in columns of its tables; several are those of the runs."""

    def change(dataset: Dataset) -> Dataset:
        frames = {}
        for name in ("runs", "configurations"):
            frame = getattr(dataset, name)
            fitting = {column: value for column, value in columns.items() if column in frame}
            if name == "configurations":
                fitting = {column: value for column, value in fitting.items() if not isinstance(value, list)}
            frames[name] = frame.assign(**fitting)
        return replace(dataset, **frames)

    return change


def with_diagnostic(
    subject: str, severity: str = "warning", repetition: float = np.nan
) -> Callable[[Dataset], Dataset]:
    """Return what makes a study with one more diagnostic, about a run of its second configuration."""

    def change(dataset: Dataset) -> Dataset:
        values = {"subject": subject, "severity": severity, "message": "made up", "repetition": repetition}
        row = dataset.diagnostics.reindex([0]).assign(**values, identity=TWO.identity)
        return replace(dataset, diagnostics=pd.concat([dataset.diagnostics, row.astype(dataset.diagnostics.dtypes)]))

    return change


#: What breaks a rule, and a part of what is said of it then.
_BROKEN = [
    ("2", lambda dataset: replace(dataset, configurations=dataset.configurations.assign(runs_completed=0)), "0 of 2"),
    ("5", changed(throughput_low=np.nan), "0 of 2"),
    ("7", changed(baseline_verdict="slower", speedup_low=0.9, speedup_high=1.1), "0 of 2"),
    ("8", changed(step_p99_seconds=np.nan), "0 of 2"),
    ("9", changed(cpu_model=pd.NA), "not known: CPU"),
    ("10", changed(ranks_seen=1), "5 of 10"),
    ("11", changed(exchange_seconds=np.nan, mfu=np.nan), "0 of 1"),
    ("Baseline", changed(speedup=np.nan), "0 of 1"),
    ("Rounds", changed(round=pd.NA), "0 of 10"),
    ("Runs", changed(runs_completed=2), "0 of 2"),
    ("Steady state", changed(steadiness="not steady"), "10 not steady"),
    ("Window", changed(steps_measured=10), "0 of 10"),
    ("Quiet machine", changed(disturbed=[True, *[False] * 9]), "1 of 10"),
    ("Environment", changed(library_version=["3.0.0", "3.0.1"] * 5), "library version"),
    ("Commit", changed(git_dirty=True), "0 of 10"),
    ("Every run", changed(outcome="failed", reason="it died"), "0 of 10"),
    ("Physics", with_diagnostic("mfu", severity="error"), "1 of these"),
]


@pytest.mark.parametrize(("name", "change", "evidence"), _BROKEN, ids=[name for name, *_ in _BROKEN])
def test_a_rule_is_met_until_it_is_broken(name, change, evidence):
    assert result(careful(), name).compliance == MET
    broken = result(change(careful()), name)
    assert (broken.compliance, evidence in broken.evidence) == (NOT_MET, True), broken.evidence


def test_rates_and_ratios_are_compared_with_other_means():
    dataset = careful()
    assert result(dataset, "3").compliance == MET
    # Rates of 1 to 3: the harmonic mean of each configuration is 6 % below the geometric one.
    spread = [1.0, 1.5, 2.0, 2.5, 3.0] * 2
    apart = 1 - 5 / sum(1 / rate for rate in spread[:5]) / np.prod(spread[:5]) ** 0.2
    rates = result(changed(throughput=spread)(dataset), "3")
    assert (rates.compliance, f"{100 * apart:.0f}" in rates.evidence) == (NOT_MET, True), rates.evidence
    assert result(dataset, "4").compliance == MET
    doubled = dataset.configurations.assign(throughput=dataset.configurations["throughput"] * [1.0, 2.0])
    assert result(replace(dataset, configurations=doubled), "4").compliance == NOT_MET


def test_normality_is_rejected_where_runs_are_far_from_it():
    dataset = careful()
    assert result(dataset, "6").compliance == MET
    skewed = [1.0, 1.001, 1.002, 1.003, 9.0] * 2
    assert result(changed(throughput=skewed)(dataset), "6").compliance == NOT_MET
    assert result(changed(throughput=5.0)(dataset), "6").compliance == IDLE


def test_nothing_is_claimed_of_a_study_without_runs():
    unmeasured = study(Planned(ONE, unsupported="no such device"))
    compliances = {checked.rule.name: checked.result.compliance for checked in checked_rules(unmeasured)}
    assert {name for name, compliance in compliances.items() if compliance == MET} == {"2"}
    assert {name for name, compliance in compliances.items() if compliance == NOT_MET} == set()


def test_the_self_test_and_the_precision_are_checked_where_there_are_some():
    dataset = careful()
    assert result(dataset, "Self-test").compliance == NOT_MET
    assert result(dataset, "Precision").compliance == IDLE
    asking = replace(dataset, plan=replace(dataset.plan, precision=0.5, max_repeats=9))
    assert result(asking, "Precision").compliance == MET
    too_much = replace(dataset, plan=replace(dataset.plan, precision=0.0002, max_repeats=9))
    assert result(too_much, "Precision").evidence.startswith("0 of 2")
    partly = study(Planned(ONE, Recipe(), runs=5), Planned(TWO, Recipe(outcome="failed"), runs=5), precision=0.5)
    assert (result(partly, "Precision").compliance, result(partly, "Precision").evidence[:6]) == (NOT_MET, "1 of 2")
    nothing = study(Planned(ONE, Recipe(outcome="failed"), runs=5), precision=0.5)
    assert result(nothing, "Precision").compliance == IDLE


def test_a_ratio_to_what_is_baseline_and_reference_is_one_comparison():
    dataset = study(Planned(ONE, Recipe(), runs=5), Planned(TWO, Recipe(), runs=5, baseline=ONE, reference=ONE))
    assert result(dataset, "7").evidence.startswith("1 ratio judged")
    other = Planned(replace(TWO, framework="torch_ddp"), Recipe(), runs=5, baseline=ONE)
    compared = result(study(Planned(ONE, Recipe(), runs=5), other), "1")
    assert "baselines of the same program: 0 of 1" in compared.evidence


def test_the_page_has_every_rule_and_counts_them():
    dataset = careful()
    table = tables.compliance(dataset)
    assert len(table.rows) == sum(map(len, RULE_SETS.values())) == 25
    results = [row[2].text for row in table.rows]
    assert compliance_counts(dataset).startswith(f"{results.count(MET)} of 25 rules")
    missed = [row[0].text for row in table.rows if row[2].text == NOT_MET]
    summary = " ".join(sentences.compliance(dataset).sentences)
    assert all(name.lower() in summary for name in missed)
