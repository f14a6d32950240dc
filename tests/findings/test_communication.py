"""Stalls against the constructed studies that they are computed from."""

from dataclasses import replace

import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings import communication, number, scaling
from dlperf_study.findings.communication import Included, Loss, NoCommunication, Stall, StallCounts
from dlperf_study.metrics.statistics import Estimate
from dlperf_study.report import tables
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, study

ONE, TWO = (configuration(devices_per_node=count) for count in (1, 2))
NOISY = Recipe(0.08, 0.0001, noise=0.2)


def waiting(*input_seconds: float) -> Dataset:
    """Return a study of configurations on one device that wait so long for each batch."""
    planned = []
    for seed, seconds in enumerate(input_seconds):
        queued = configuration(data_loader="python_queue", seed=seed)
        planned.append(Planned(queued, Recipe(0.1, 0.0, input_seconds=seconds)))
    return study(*planned)


def test_exposed_communication_has_its_share_of_the_step():
    [stall] = communication.page(study(Planned(ONE, ALONE), Planned(TWO, TOGETHER)))
    assert isinstance(stall, Stall)
    assert (stall.subject, stall.loss) == (TWO.configuration_id, Loss.COMMUNICATION)
    assert stall.share.low < stall.share.value < stall.share.high
    assert stall.share.value == pytest.approx(0.024 / 0.104, rel=0.05)


def test_what_can_be_0_is_too_uncertain_for_a_value():
    dataset = study(Planned(ONE, ALONE), Planned(TWO, NOISY))
    [stall] = communication.page(dataset)
    assert stall.share.is_uncertain
    [comparison] = scaling.speedups(dataset)
    assert comparison.exposed is None


def test_no_communication_is_not_confused_with_none_that_was_measured():
    assert list(communication.page(study(Planned(ONE, ALONE)))) == [NoCommunication(is_none=True)]
    dataset = study(Planned(ONE, ALONE), Planned(TWO, TOGETHER))
    of_one = dataset.configurations["world_size"] == 1
    rows = dataset.configurations.assign(
        exposed_communication_seconds=dataset.configurations["exposed_communication_seconds"].where(of_one)
    )
    runs = dataset.runs.assign(
        exposed_communication_share=dataset.runs["exposed_communication_share"].where(dataset.runs["world_size"] == 1)
    )
    unmeasured = replace(dataset, configurations=rows, runs=runs)
    assert NoCommunication(is_none=False) in list(communication.page(unmeasured))


@pytest.mark.parametrize("recipe", [TOGETHER, NOISY, Recipe(0.08, 0.002, noise=0.02)])
def test_a_share_is_that_of_the_table(recipe):
    dataset = study(Planned(ONE, ALONE), Planned(TWO, recipe))
    [stall] = communication.page(dataset)
    table = tables.communication(dataset)
    position = [heading.label for heading in table.headings].index("Exposed share")
    high = float(table.rows[-1][position].interval.strip("[]").split(", ")[1])
    assert stall.share.high == pytest.approx(high, rel=0.05)


def test_many_stalls_are_counted_with_correction():
    dataset = waiting(0.02, 0.0002, 0.0003, 0.02)
    [_, counts] = sorted(communication.page(dataset), key=lambda finding: isinstance(finding, StallCounts))
    assert counts == StallCounts(Loss.INPUT, 4, above=2, below=2, limit=0.01, only_uncorrected=())


@pytest.mark.parametrize(
    ("recipe", "included"),
    [
        (TOGETHER, ()),
        (replace(TOGETHER, noise=0.1), (Included.JITTER,)),
        (replace(TOGETHER, noise=0.1, cores=2, communication_threads=1), (Included.JITTER, Included.CONTENTION)),
        (replace(TOGETHER, communication="push_pull"), ()),
        (replace(TOGETHER, communication="push_pull", cores=2), (Included.CONTENTION,)),
    ],
)
def test_a_stall_names_what_else_is_in_it(recipe, included):
    [stall] = communication.page(study(Planned(ONE, ALONE), Planned(TWO, recipe)))
    assert stall.included == included


@pytest.mark.parametrize("mean", [0.02, 0.3, 0.9, 0.99])
@pytest.mark.parametrize("error", [0.005, 0.1, 0.5])
def test_no_share_of_a_step_is_more_than_the_whole(mean, error):
    """Also where the bounds of a t interval of three runs would be, of one configuration and of several."""
    for confidence in (0.95, 0.975):
        assert 0 < number.share(Estimate(mean, error, 2), confidence).high <= 1
