"""The pace of a run, from the pieces of arithmetic between its steps."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dlperf_study.core.arrays import Floats
from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.configuration_table import configurations_table, throughputs_of
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.evidence.run import read_run
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.pace import pace_state, piece_seconds
from dlperf_study.metrics.statistics import Estimate
from dlperf_study.report.methods import methods
from dlperf_study.report.sentences.ratio_sentences import speedup_claims
from dlperf_study.report.tables import answers, study_tables
from dlperf_study.report.tables.latex import latex_escaped
from tests.evidence_factory import Planned, Recipe, configuration, write_plan, write_run


def test_the_pace_is_the_geometric_mean_of_ranks_and_pieces(tmp_path):
    two_ranks = configuration(devices_per_node=2)
    run = read_run(write_run(StudyPaths(tmp_path), two_ranks, 1, Recipe(piece_seconds=0.003)))
    assert piece_seconds(run) == pytest.approx(0.003)


def test_a_run_without_pieces_has_no_pace(tmp_path):
    run = read_run(write_run(StudyPaths(tmp_path), configuration(), 1))
    assert (piece_seconds(run), pace_state(run)) == (None, None)


def test_states_differ_by_busy_processes_and_threads(tmp_path):
    changes = ({}, {"devices_per_node": 2}, {"servers": 1}, {"threads_per_device": 2}, {"model": "vgg16"})
    states = []
    for repetition, change in enumerate(changes, 1):
        changed = configuration(**change)
        run = write_run(StudyPaths(tmp_path), changed, repetition, Recipe(piece_seconds=1))
        states.append(pace_state(read_run(run)))
    assert states[4] == states[0]
    assert states[2] == states[1]
    assert len(set(states)) == 3


#: The logarithm of the pace of each run, by configuration and round: one on one process is as fast as the first.
PACES = np.random.default_rng(5).normal(0.0, 0.1, (4, 8))
ONE, SAME, FASTER, TWO = (configuration(seed=seed, devices_per_node=1 + (seed == 3)) for seed in range(4))


def paced_study(folder: Path, rounds: int = 8, exponent: float = 1.0, paces: Floats = PACES) -> Dataset:
    """Collect runs whose steps and pieces follow the pace of the machine, with a little noise of their own."""
    paths = StudyPaths(folder)
    planned = [Planned(ONE), Planned(SAME, reference=ONE), Planned(FASTER, reference=ONE), Planned(TWO, reference=ONE)]
    for position, (item, seconds) in enumerate(zip(planned, (0.1, 0.1, 0.09, 0.12), strict=True)):
        for repetition in range(1, rounds + 1):
            pace = np.exp(paces[position, repetition - 1])
            recipe = Recipe(seconds * pace**exponent, 0.0, piece_seconds=0.003 * pace, noise=0.01)
            write_run(paths, item.configuration, repetition, recipe)
    write_plan(paths, planned)
    return collect(paths)


def ratios(dataset: Dataset) -> pd.DataFrame:
    return dataset.configurations.set_index("identity").filter(like="relative_throughput")


def test_what_a_piece_feels_is_taken_from_ratios(tmp_path):
    table = ratios(paced_study(tmp_path))
    faster = table.loc[FASTER.identity]
    assert faster["relative_throughput_low"] <= 0.1 / 0.09 <= faster["relative_throughput_high"]
    width = np.log(faster["relative_throughput_high"] / faster["relative_throughput_low"])
    width_as_measured = np.log(
        faster["relative_throughput_as_measured_high"] / faster["relative_throughput_as_measured_low"]
    )
    assert width < width_as_measured / 5


def test_a_ratio_as_measured_is_what_it_was_without_pieces(tmp_path):
    with_pieces, without = paced_study(tmp_path / "with"), paced_study(tmp_path / "without", rounds=3)
    assert ratios(without).filter(like="as_measured").isna().all(axis=None)
    rates = throughputs_of(with_pieces.runs, with_pieces.plan)
    expected = Estimate.of(np.log(rates[SAME.identity].values / rates[ONE.identity].values))
    columns = ["relative_throughput_as_measured", *map("relative_throughput_as_measured_{}".format, ("low", "high"))]
    assert ratios(with_pieces).loc[SAME.identity, columns].tolist() == pytest.approx(expected.bounded_factor)


def test_a_configuration_alone_in_its_state_is_not_adjusted_itself(tmp_path):
    """Its ratio to another one is, for the pace of that: the two states do not share theirs."""
    dataset = paced_study(tmp_path)
    rates = {identity: np.log(sample.values) for identity, sample in throughputs_of(dataset.runs, dataset.plan).items()}
    identities = [ONE.identity, SAME.identity, FASTER.identity]
    pieces = {identity: np.log(dataset.runs_of(identity)["piece_seconds"].to_numpy()) for identity in rates}
    within = [np.concatenate([values[each] - values[each].mean() for each in rates]) for values in (rates, pieces)]
    slope_within = np.polyfit(within[1], within[0], 1)[0]
    expected_pace = np.mean([pieces[each] for each in identities])
    adjusted = rates[ONE.identity].mean() - slope_within * (pieces[ONE.identity].mean() - expected_pace)
    ratio = ratios(dataset).loc[TWO.identity, "relative_throughput"]
    assert np.log(ratio) == pytest.approx(rates[TWO.identity].mean() - adjusted)


def test_a_pace_that_hardly_differs_changes_nothing(tmp_path):
    assert ratios(paced_study(tmp_path, paces=PACES / 20)).filter(like="as_measured").isna().all(axis=None)


def test_one_run_without_a_piece_leaves_its_configuration_as_measured(tmp_path):
    dataset = paced_study(tmp_path)
    is_first_of_same = (dataset.runs["identity"] == SAME.identity) & (dataset.runs["repetition"] == 1)
    runs = dataset.runs.assign(piece_seconds=dataset.runs["piece_seconds"].mask(is_first_of_same))
    as_measured = configurations_table(dataset.plan, runs, {})[0].set_index("identity")[
        "relative_throughput_as_measured"
    ]
    assert as_measured.notna().to_dict() == {
        ONE.identity: False, SAME.identity: False, FASTER.identity: True, TWO.identity: True
    }  # fmt: skip


def test_a_selection_is_judged_at_the_pace_of_the_whole_study(tmp_path):
    dataset = paced_study(tmp_path)
    selected = dataset.only(
        dataset.configurations[dataset.configurations["identity"].isin([ONE.identity, SAME.identity])]
    )
    assert selected.throughputs is dataset.throughputs


def test_pages_show_a_ratio_as_measured_beside_it_and_say_what_was_adjusted(tmp_path, snapshot):
    dataset = paced_study(tmp_path)
    table = study_tables.comparison(dataset)
    labels = [heading.label for heading in table.headings]
    label = COLUMNS["relative_throughput"].label
    assert labels[labels.index(label) + 1] == COLUMNS["relative_throughput_as_measured"].label
    assert answers.pace_note(dataset) == snapshot
    assert latex_escaped(answers.pace_note(dataset)) in methods(dataset)
    assert not answers.pace_note(paced_study(tmp_path / "few", rounds=3))


def test_a_sentence_on_a_ratio_at_one_pace_says_what_it_was_as_measured(tmp_path, snapshot):
    """Otherwise the two rates of the sentence contradict it."""
    assert [claim.sentence for claim in speedup_claims(paced_study(tmp_path))] == snapshot
