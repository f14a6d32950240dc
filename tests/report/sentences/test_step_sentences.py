"""Sentences on waiting and on the quality of runs, against the constructed studies they are made from."""

import re
from dataclasses import replace

import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.statistics import Estimate
from dlperf_study.report import sentences, tables
from dlperf_study.report.sentences.names import percent_text
from dlperf_study.report.sentences.step_sentences import Wait, _counted
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, study

ONE, TWO = (configuration(devices_per_node=count) for count in (1, 2))


def waiting(*input_seconds: float) -> Dataset:
    """Return a study of configurations on one device that wait so long for each batch."""
    planned = []
    for seed, seconds in enumerate(input_seconds):
        queued = configuration(data_source="python_queue", seed=seed)
        planned.append(Planned(queued, Recipe(0.1, 0.0, input_seconds=seconds)))
    return study(*planned)


def test_what_is_exposed_is_told_from_nothing(snapshot):
    first = sentences.communication(study(Planned(ONE, ALONE), Planned(TWO, TOGETHER))).sentences[0]
    share, low, high = map(float, re.findall(r"(\d+\.?\d*)\u202f% \[(\S+), (\S+)\] of a step", first)[0])
    assert low < share < high
    assert share == pytest.approx(100 * 0.024 / 0.104, rel=0.05)
    dataset = study(Planned(ONE, ALONE), Planned(TWO, Recipe(0.08, 0.0001, noise=0.2)))
    assert sentences.communication(dataset).sentences == snapshot
    assert sentences.communication(study(Planned(ONE, ALONE))).sentences == snapshot
    assert not any("waiting for gradients" in text for text in sentences.scaling(dataset).sentences)


def test_what_exchanges_and_was_not_measured_is_not_called_alone():
    dataset = study(Planned(ONE, ALONE), Planned(TWO, TOGETHER))
    of_one = dataset.configurations["world_size"] == 1
    rows = dataset.configurations.assign(exposed_seconds=dataset.configurations["exposed_seconds"].where(of_one))
    runs = dataset.runs.assign(exposed_share=dataset.runs["exposed_share"].where(dataset.runs["world_size"] == 1))
    unmeasured = sentences.communication(replace(dataset, configurations=rows, runs=runs)).sentences
    assert not any("No configuration exchanges" in text for text in unmeasured)


@pytest.mark.parametrize("recipe", [TOGETHER, Recipe(0.08, 0.0001, noise=0.2), Recipe(0.08, 0.002, noise=0.02)])
def test_a_share_in_a_sentence_is_that_of_the_table(recipe):
    dataset = study(Planned(ONE, ALONE), Planned(TWO, recipe))
    first = sentences.communication(dataset).sentences[0]
    table = tables.communication(dataset)
    position = [heading.label for heading in table.headings].index("Exposed share")
    end = float(table.rows[-1][position].interval.strip("[]").split(", ")[1])
    printed = re.search(r"at most (\S+)\u202f%|% \[.*?, (\S+?)\] of a step", first)
    assert [float(number) for number in printed.groups() if number] == [pytest.approx(100 * end)]


def test_what_waits_for_batches_is_told_from_what_hardly_does(snapshot):
    assert sentences.communication(waiting(0.02, 0.0002, 0.0003)).sentences == snapshot
    shares = (Estimate(0.2, 0.001, 9), Estimate(0.01, 0.005, 9))
    waits = [Wait(None, f"c{number}", "input_seconds", share) for number, share in enumerate(shares)]
    assert list(_counted(waits, "batches")) == snapshot


@pytest.mark.parametrize(
    ("recipe", "included"),
    [
        (TOGETHER, ""),
        (replace(TOGETHER, noise=0.1), "jitter"),
        (replace(TOGETHER, noise=0.1, cores=2, exchange_threads=1), "jitter and what shared cores cost"),
        (replace(TOGETHER, exchange="push_pull"), ""),
        (replace(TOGETHER, exchange="push_pull", cores=2), "what shared cores cost"),
    ],
)
def test_waiting_for_gradients_says_what_else_is_in_it(recipe, included):
    dataset = study(Planned(ONE, ALONE), Planned(TWO, recipe))
    sentence = next(text for text in sentences.communication(dataset).sentences if "waits for gradients" in text)
    assert re.findall(r" of a step(?:, (.*?) included)?\.$", sentence) == [included]
    [speedup] = [text for text in sentences.scaling(dataset).sentences if "step is waiting" in text]
    assert re.findall(r"is waiting for gradients(?:, (.*?) included)?\.$", speedup) == [included]


@pytest.mark.parametrize("mean", [0.02, 0.3, 0.9, 0.99])
@pytest.mark.parametrize("error", [0.005, 0.1, 0.5])
def test_no_share_of_a_step_is_more_than_the_whole(mean, error):
    """Also where the bounds of a t interval of three runs would be, of one configuration and of several."""
    share = Estimate(mean, error, 2)
    printed = [percent_text(share), *_counted([Wait(None, "it", "exposed_seconds", share)] * 2, "gradients")]
    highs = [number for text in printed for number in re.findall(r"\[.*, (\S+)\]", text)]
    assert highs
    assert all(0 < float(high) <= 100 for high in highs)


def test_runs_that_failed_and_configurations_without_a_number_are_counted(mixed, snapshot):
    """Of many in the plural, of one in the singular, and of rounds."""
    one_run = study(Planned(ONE, ALONE, 1), Planned(TWO, TOGETHER, 0))
    rounds = study(*(Planned(configuration(seed=seed), Recipe(0.08)) for seed in range(4)))
    assert [sentences.quality(dataset).sentences for dataset in (mixed, one_run, rounds)] == snapshot
