"""Constructed runs in rounds, with and without a drift of the machine."""

import numpy as np
import pandas as pd
import pytest

from dlperf_study.metrics.drift import relative_throughputs, round_effects

CONFIGURATIONS, ROUNDS = 8, 5


def runs_of(effects: np.ndarray, seed: int = 0, noise: float = 0.005) -> pd.DataFrame:
    """Return runs of configurations at very different throughputs; ``effects``: of each round, a share."""
    generator = np.random.default_rng(seed)
    rows = []
    for index, effect in enumerate(effects):
        for configuration in range(CONFIGURATIONS):
            error = noise * (1 + configuration % 3) * generator.standard_normal()
            rows.append(
                {
                    "configuration_id": f"configuration-{configuration}",
                    "round": index + 1,
                    "throughput": 10.0 * 2**configuration * np.exp(effect + error),
                    "started": f"2024-05-01T{8 + index:02d}:{configuration:02d}:00+00:00",
                }
            )
    return pd.DataFrame(rows).astype({"round": "Int64"})


def test_every_run_is_relative_to_its_configuration():
    throughputs = relative_throughputs(runs_of(np.zeros(ROUNDS)), "throughput")
    assert len(throughputs) == CONFIGURATIONS * ROUNDS
    assert throughputs["begun"].is_monotonic_increasing
    assert throughputs["relative"].abs().max() < 0.05
    assert throughputs["relative"].mean() == pytest.approx(0, abs=0.001)


def test_what_has_nothing_to_be_compared_with_is_left_out():
    none = runs_of(np.zeros(ROUNDS)).astype({"configuration_id": "str"}).iloc[:0]
    assert relative_throughputs(none, "throughput").empty
    assert round_effects(none, "throughput") == []
    runs = runs_of(np.zeros(ROUNDS))
    alone = runs.iloc[:1].assign(configuration_id="alone")
    assert len(relative_throughputs(pd.concat([runs, alone], ignore_index=True), "throughput")) == len(runs)
    runs = runs_of(np.zeros(ROUNDS))
    assert round_effects(runs[runs["round"] == 1], "throughput") == []
    assert round_effects(runs.assign(round=pd.NA).astype({"round": "Int64"}), "throughput") == []


def test_the_drift_of_a_machine_is_the_effect_of_its_rounds():
    injected = np.array([0.04, 0.02, 0.0, -0.02, -0.04])
    effects = round_effects(runs_of(injected), "throughput")
    assert [effect.round for effect in effects] == [1, 2, 3, 4, 5]
    assert {effect.configurations for effect in effects} == {CONFIGURATIONS}
    assert [effect.log_throughput.mean for effect in effects] == pytest.approx(injected, abs=0.008)
    percent = [effect.percent_change[0] for effect in effects]
    assert percent == pytest.approx(100 * np.expm1([effect.log_throughput.mean for effect in effects]), abs=1e-9)
    assert effects[1].begun == pd.Timestamp("2024-05-01T09:00:00Z")


def test_without_drift_intervals_cover():
    covered = []
    for seed in range(300):
        effects = round_effects(runs_of(np.zeros(ROUNDS), seed), "throughput")
        for effect in effects:
            interval = effect.log_throughput.interval()
            assert interval
            covered.append(interval.low <= 0 <= interval.high)
    assert 0.93 <= np.mean(covered) <= 0.98


def test_only_configurations_of_all_rounds_count_and_rounds_of_few_are_left_out():
    runs = runs_of(np.zeros(ROUNDS))
    missed = runs.drop(runs.index[(runs["configuration_id"] == "configuration-0") & (runs["round"] == 2)])
    added = runs[runs["round"] == 5].iloc[:3].assign(round=6)
    effects = round_effects(pd.concat([missed, added], ignore_index=True), "throughput")
    assert [effect.round for effect in effects] == [1, 2, 3, 4, 5]
    assert {effect.configurations for effect in effects} == {CONFIGURATIONS - 1}


def test_runs_are_relative_to_the_same_mean_as_their_rounds():
    """A round that few configurations had moves neither."""
    runs = runs_of(np.zeros(ROUNDS))
    added = runs[runs["round"] == 5].iloc[:3].assign(round=6, started="2024-05-02T08:00:00+00:00")
    added["throughput"] *= 0.9
    runs = pd.concat([runs, added], ignore_index=True)
    by_round = np.log1p(relative_throughputs(runs, "throughput").set_index("round")["relative"]).groupby("round").mean()
    effects = {effect.round: effect.log_throughput.mean for effect in round_effects(runs, "throughput")}
    assert by_round.loc[[*effects]].tolist() == pytest.approx([*effects.values()], abs=1e-12)
    assert set(by_round.index) - set(effects) == {6}
