"""The twelve rules of Hoefler and Belli, in this project's words, and their checks.

T. Hoefler and R. Belli, "Scientific benchmarking of parallel computing systems", SC'15, doi:10.1145/2807591.2807644.
"""

import numpy as np
import pandas as pd

from dlperf_study.core.wording import counted
from dlperf_study.dataset.configuration_table import VERDICTS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.comparison import FASTER, RATIOS, SLOWER
from dlperf_study.metrics.statistics import MINIMUM_RUNS, are_equal
from dlperf_study.report import context
from dlperf_study.report.compliance.rule import (
    NOT_MEASURED_HERE,
    NOTHING_MEASURED,
    Rule,
    RuleResult,
    at_most,
    of_all,
    rates,
    unknown_facts,
    with_speedup,
)
from dlperf_study.report.formatting import is_missing, listed_columns
from dlperf_study.report.series import all_series, varying_factors

#: What a reader needs to know of where runs took place, by its column of the runs.
SETUP = (
    *("device", "device_name", "cpu_model", "cores", "memory_bytes", "link", "host", "launcher"),
    *("library", "library_version", "python_version", "library_settings", "git_commit"),
)
_PERCENTILES = ("step_p50_seconds", "step_p95_seconds", "step_p99_seconds")
_OF_LOGS, _SHORT_WINDOWS = "logs print rates over several steps", "windows of too few steps have none"
#: The share of tests of true hypotheses that are rejected.
_LEVEL = 0.05


def _base_case(dataset: Dataset) -> RuleResult:
    rows = with_speedup(dataset)
    if rows.empty:
        return RuleResult.not_applicable("there is no speedup")
    baselines = [dataset.configuration_rows[identity] for identity in rows["baseline_identity"]]
    has_rate = pd.Series([not is_missing(getattr(row, dataset.rate)) for row in baselines])
    devices = sorted({int(row.world_size) for row in baselines})
    sizes = f"baselines have {' or '.join(map(str, devices))} device{'s' * (devices != [1])}"
    is_same = [
        (row.framework, row.model) == (baseline.framework, baseline.model)
        for row, baseline in zip(rows.itertuples(), baselines, strict=True)
    ]
    return RuleResult.of(
        bool(has_rate.all()),
        of_all("speedups with the rate of their baseline", has_rate),
        sizes,
        of_all("baselines of the same program", pd.Series(is_same)),
        "whether a serial one is faster was not measured",
    )


def _subsets(dataset: Dataset) -> RuleResult:
    rows = dataset.configurations
    has_run = rows["runs_completed"] > 0
    failed = set(dataset.runs.loc[dataset.runs["reason"].fillna("") != "", "identity"])
    has_reason = rows["unsupported_reason"].notna() | rows["identity"].isin(failed)
    missing = rows[~has_run]
    reasons = of_all("others with their reason", has_reason[~has_run]) if len(missing) else ""
    measured = of_all("planned configurations with a completed run", has_run)
    return RuleResult.of(bool((has_run | has_reason).all()), measured, reasons)


def _means_of_rates(dataset: Dataset) -> RuleResult:
    runs = context.completed_runs(dataset).dropna(subset=[dataset.rate])
    identities, values = runs["identity"], runs[dataset.rate].astype(float)
    several = identities.groupby(identities).size() > 1
    if not several.any():
        return RuleResult.not_applicable("no configuration has two runs")
    harmonic = 1 / (1 / values).groupby(identities).mean()
    geometric = np.exp(np.log(values).groupby(identities).mean())
    apart = float((1 - harmonic / geometric)[several].max())
    is_met = round(apart, 6) == 0
    return RuleResult.of(
        is_met,
        f"over runs {int(several.sum())} rates are geometric means, whose logarithms have the intervals",
        f"harmonic means are lower {at_most(apart)}",
        "within a run a rate is samples / time",
    )


def _ratios(dataset: Dataset) -> RuleResult:
    rows = with_speedup(dataset)
    if rows.empty:
        return RuleResult.not_applicable("there is no ratio")
    of_baselines = [
        getattr(dataset.configuration_rows[identity], dataset.rate) for identity in rows["baseline_identity"]
    ]
    of_means = rows[dataset.rate].to_numpy(float) / np.array(of_baselines, dtype=float)
    measured, low, high = rows[["speedup", "speedup_low", "speedup_high"]].to_numpy(float).T
    apart = float(np.abs(measured / of_means - 1).max())
    in_rounds = 0 if dataset.plan.ingested_from else int((~np.isnan(low)).sum())
    of_rounds = f"{in_rounds} of them geometric means of ratios within common rounds" if in_rounds else ""
    of_means_alone = f"{counted(len(rows) - in_rounds, 'ratio')} of geometric means" if in_rounds < len(rows) else ""
    # Without an interval a speedup is that ratio.
    is_inside = np.where(np.isnan(low), np.isclose(measured, of_means), (low <= of_means) & (of_means <= high))
    return RuleResult.of(
        bool(is_inside.all()),
        f"{counted(len(rows), 'speedup')} of single configurations",
        of_rounds,
        of_means_alone,
        f"they differ from the ratios of the mean rates {at_most(apart)}",
        _of_some("ratios of mean rates in the interval of their speedup", is_inside[~np.isnan(low)]),
        _of_some("speedups without an interval that are that ratio", is_inside[np.isnan(low)]),
    )


def _of_some(phrase: str, has: np.ndarray) -> str:
    """Return how many are what a phrase says; empty where there is none at all."""
    return of_all(phrase, pd.Series(has)) if has.size else ""


def _intervals(dataset: Dataset) -> RuleResult:
    rows = rates(dataset)
    if rows.empty:
        return RuleResult.not_applicable(NOTHING_MEASURED)
    has_interval = rows["low"].notna()
    few = int((rows["runs_completed"] < MINIMUM_RUNS).sum())
    reason = f"{counted(few, 'configuration')} with fewer than {MINIMUM_RUNS} runs" if few else ""
    return RuleResult.of(bool(has_interval.all()), of_all("rates with a 95 % interval", has_interval), reason)


def _normality(dataset: Dataset) -> RuleResult:
    """Test normality of the logarithms of rates: Shapiro and Wilk's test of each configuration, after Fisher."""
    runs = context.completed_runs(dataset).dropna(subset=[dataset.rate])
    samples = [np.log(values.to_numpy(float)) for _, values in runs.groupby("identity")[dataset.rate]]
    tested = [values for values in samples if values.size >= MINIMUM_RUNS and not are_equal(values)]
    if not tested:
        return RuleResult.not_applicable(f"no configuration has {MINIMUM_RUNS} runs that differ")
    # Importing it takes a second.
    from scipy.stats import combine_pvalues, shapiro

    p_value = float(combine_pvalues([shapiro(values).pvalue for values in tested], method="fisher").pvalue)
    sizes = sorted({values.size for values in tested})
    of_runs = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else str(sizes[0])
    test = f"logarithms of the rates of {counted(len(tested), 'configuration')} with {of_runs} runs"
    result = "normality is not rejected" if p_value >= _LEVEL else "normality is rejected"
    power = "so few runs show large departures only" if sizes[0] < 10 else ""
    return RuleResult.of(p_value >= _LEVEL, f"Shapiro and Wilk's test of {test}: {result}, p = {p_value:.2g}", power)


def _comparisons(dataset: Dataset) -> RuleResult:
    rows, verdicts, pairs = dataset.configurations, [], set[tuple[str, str]]()
    for role, ratio in RATIOS.items():
        column = VERDICTS[role]
        with_verdict = rows[rows[column].notna()]
        # A configuration whose baseline is its reference too has one ratio, which is judged once.
        pairs |= set(zip(with_verdict["identity"], with_verdict[f"{role}_identity"], strict=True))
        of_ratio = rows[rows[column].isin([FASTER, SLOWER])]
        verdicts.append((of_ratio[f"{ratio}_low"] > 1) | (of_ratio[f"{ratio}_high"] < 1))
    claimed = pd.concat(verdicts).astype(bool)
    if not pairs:
        return RuleResult.not_applicable("no ratio has a verdict, so nothing is called faster, slower or equal")
    tests = f"{counted(len(pairs), 'ratio')} judged together by t tests after Holm"
    intervals = of_all("verdicts of faster or slower with an interval without 1", claimed) if len(claimed) else ""
    return RuleResult.of(bool(claimed.all()), tests, intervals or "none is called faster or slower")


def _percentiles(dataset: Dataset) -> RuleResult:
    rows = rates(dataset)
    if rows.empty:
        return RuleResult.not_applicable(NOTHING_MEASURED)
    has_all = rows[list(_PERCENTILES)].notna().all(axis="columns")
    reason = _OF_LOGS if dataset.plan.ingested_from else _SHORT_WINDOWS
    percentiles = of_all("configurations with the 50th, 95th and 99th percentile of steps", has_all)
    return RuleResult.of(bool(has_all.all()), percentiles, "" if has_all.all() else reason)


def _documented(dataset: Dataset) -> RuleResult:
    if context.completed_runs(dataset).empty:
        return RuleResult.not_applicable(NOTHING_MEASURED)
    unknown, factors = unknown_facts(dataset, SETUP), varying_factors(dataset)
    setup = f"{len(SETUP) - len(unknown)} of {len(SETUP)} facts of the setup are known of every run"
    missing = f"not known: {listed_columns(unknown)}" if unknown else ""
    varied = f"series differ in {listed_columns(factors)}" if factors else "there is one series"
    return RuleResult.of(not unknown, setup, missing, varied)


def _parallel_time(dataset: Dataset) -> RuleResult:
    runs = context.completed_runs(dataset)
    if runs.empty:
        return RuleResult.not_applicable(NOTHING_MEASURED)
    if dataset.plan.ingested_from:
        return RuleResult.of(False, NOT_MEASURED_HERE)
    has_ranks = runs["ranks_seen"].astype(float) == runs["ranks_expected"].astype(float)
    has_steps = runs["steps_measured"].notna()
    return RuleResult.of(
        bool((has_ranks & has_steps).all()),
        of_all("runs with the log of each of their ranks", has_ranks),
        "a run takes as long as its slowest rank, and runs are averaged by the rules above",
        "" if has_steps.all() else of_all("runs that say how many steps were measured", has_steps),
    )


def _bounds(dataset: Dataset) -> RuleResult:
    rows = rates(dataset)
    rows = rows[rows["world_size"] > 1]
    if rows.empty:
        return RuleResult.not_applicable("no configuration with a rate has several devices")
    has_ideal = rows["speedup"].notna()
    has_bound = rows[["computation_seconds", "exchange_seconds"]].notna().all(axis="columns")
    has_share = rows["mfu"].notna()
    return RuleResult.of(
        bool((has_ideal & (has_bound | has_share)).all()),
        of_all("configurations of several devices with a speedup, beside its ideal", has_ideal),
        of_all("with the bound of computation and exchange", has_bound),
        of_all("with their share of the peak", has_share),
    )


def _lines(dataset: Dataset) -> RuleResult:
    rows, all_devices = dataset.configuration_rows, list[list[int]]()
    for line in all_series(dataset):
        all_devices.append([rows[identity].world_size for identity in line.measured_identities])
    lines = [devices for devices in all_devices if len(set(devices)) > 1]
    if not lines:
        return RuleResult.not_applicable("no line connects two numbers of devices")
    is_single = pd.Series([len(set(devices)) == len(devices) for devices in lines])
    runs = counted(len(context.completed_runs(dataset)), "run")
    connected = of_all("lines of one configuration on each number of devices", is_single)
    return RuleResult.of(bool(is_single.all()), connected, f"{runs} are single dots of the first figure")


PUBLISHED_RULES = (
    Rule("1", "A speedup says what its base case is, and the absolute performance of that.", _base_case),
    Rule("2", "Say why only a part of the configurations or of the machine is shown.", _subsets),
    Rule("3", "Arithmetic means are for costs alone; the mean of rates is the harmonic one.", _means_of_rates),
    Rule("4", "Summarise costs or rates and not their ratios; of ratios alone, the geometric mean.", _ratios),
    Rule("5", "Say whether values are deterministic; if not, give confidence intervals.", _intervals),
    Rule("6", "Normality is tested, not assumed.", _normality),
    Rule("7", "Values that are not deterministic are compared by a sound statistical method.", _comparisons),
    Rule("8", "Ask whether mean or median is what matters; else give other percentiles.", _percentiles),
    Rule("9", "Name all factors with their levels, and the complete setup.", _documented),
    Rule("10", "Say how times of parallel processes were measured, synchronised and summarised.", _parallel_time),
    Rule("11", "Show upper bounds of the performance where possible.", _bounds),
    Rule("12", "Plot as much as the results need; connect by lines only what may be interpolated.", _lines),
)
