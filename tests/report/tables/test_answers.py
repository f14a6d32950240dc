"""The answer of the comparison page, and what no interval shows, against the studies they are made from."""

import re
from dataclasses import replace
from typing import Any

import pytest

from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.report import figures, tables
from dlperf_study.report.tables import answers
from dlperf_study.report.tables.answers import comparison_notes
from tests.evidence_factory import Planned, Recipe, change, configuration
from tests.report.conftest import on_devices, study, write_titled
from tests.report.tables.cells import labelled

LABEL = "ResNet-50 · 2 devices, against PaddlePaddle collective"
SLOW, FASTER = Recipe(0.080, 0.020), Recipe(0.060, 0.020)
RATIO = re.compile(r"(\d\.\d+)× \[(\d\.\d+), (\d\.\d+)\]")


def answer_of(torch: Recipe = SLOW, runs: int = 3, paddle: Recipe = SLOW, **changes: Any) -> answers.Verdicts:
    """Return the answer of a study that compares DDP with Paddle on two devices."""
    reference = configuration(devices_per_node=2)
    other = configuration(framework="torch_ddp", devices_per_node=2)
    planned = [Planned(reference, paddle, reference=reference), Planned(other, torch, runs, reference=reference)]
    return answers.comparison(study(*planned, **changes))


@pytest.mark.parametrize(
    ("arguments", "ratio"),
    [
        ({"torch": FASTER}, 1.25),
        ({"torch": Recipe(0.080, 0.060)}, 0.71),
        ({"torch": Recipe(0.100, 0.040)}, 0.71),
        ({"precision": 0.001}, 1.0),
        ({}, 1.0),
        ({"torch": FASTER, "runs": 2}, None),
        ({"runs": 0}, None),
        ({"paddle": Recipe(outcome="timeout", reason="no end after 600 s")}, None),
    ],
    ids=["computation", "exchange", "several", "undecided", "equal", "few-runs", "no-runs", "no-reference"],
)
def test_an_answer_claims_what_its_interval_holds(arguments, ratio, snapshot):
    [(label, sentences)] = answer_of(**arguments).verdicts
    assert label == LABEL
    assert sentences == snapshot
    found = RATIO.search(sentences)
    assert (found is None) == (ratio is None)
    if found and ratio:
        value, low, high = map(float, found.groups())
        assert value == pytest.approx(ratio, rel=0.02)
        assert low <= value <= high


def test_what_holds_for_all_verdicts_is_above_and_below_them(snapshot):
    answer = answer_of(quick=True)
    assert [answer.preface, answer.note] == snapshot
    shown = answer._repr_html_()
    assert shown.index(answer.preface[:9]) < shown.index(LABEL) < shown.index(answer.note[:9])
    assert answers.comparison(on_devices(1))._repr_html_() == snapshot
    failed = Recipe(outcome="failed", reason="<b>&")
    assert "&lt;b&gt;&amp;" in answer_of(paddle=failed)._repr_html_()


def both(order: str = "rounds", devices: int = 1, noise: float = 0.001) -> Dataset:
    """Return two frameworks that run one program on one device, one a quarter slower than the other."""
    rates = {"torch_ddp": 0.080, "horovod_torch": 0.080 * 1.25}
    planned = [
        Planned(configuration(framework=name, devices_per_node=devices), Recipe(seconds, noise=noise, order=order))
        for name, seconds in rates.items()
    ]
    return study(*planned)


@pytest.mark.parametrize("order", ["rounds", "blocks", "by hand"])
def test_what_no_interval_shows_is_noted_below_the_tables_of_ratios(order, snapshot):
    dataset = both(order=order)
    notes = comparison_notes(dataset)
    assert len(notes) == (1 if order == "rounds" else 2)
    assert notes == snapshot
    for build in (tables.scaling, tables.comparison):
        assert set(notes) <= set(build(dataset).notes)


def test_one_run_after_its_round_does_not_make_a_study_one_in_blocks(paths):
    planned = [Planned(configuration(framework=name)) for name in ("torch_ddp", "horovod_torch")]
    write_titled(paths, planned)
    change(paths.configuration(planned[0].configuration.identity).run(1), round=None, position=None)
    assert len(comparison_notes(collect(paths))) == 1


def test_a_study_in_blocks_has_rates_with_intervals_and_ratios_without(snapshot):
    dataset = both(order="blocks")
    planned = replace(dataset, plan=replace(dataset.plan, order="blocks"))
    for blocks in (dataset, planned):
        table = tables.scaling(blocks)
        cells = labelled(table, 1)
        assert (cells["Throughput"].interval != "", cells["Speedup"].interval) == (True, "")
        assert [cells[label].footnote for label in ("Speedup", "Against baseline")] == snapshot
    captions = [table.caption, *(figure.caption for figure in figures.drift(dataset))]
    assert captions == snapshot
    assert not any("same round" in caption or "within rounds" in caption for caption in captions)


def test_the_difference_of_one_program_is_its_ratio_and_explained_as_none(snapshot):
    [(ratio, low, high)] = re.findall(
        r"ResNet-50: ([\d.]+)× \[([\d.]+), ([\d.]+)\]", " ".join(comparison_notes(both()))
    )
    assert 1.24 < float(low) < float(ratio) < float(high) < 1.26
    ddp, horovod = (configuration(framework=name) for name in ("torch_ddp", "horovod_torch"))
    planned = [Planned(ddp, Recipe(0.080), reference=ddp), Planned(horovod, Recipe(0.060), reference=ddp)]
    [(_, verdict)] = answers.comparison(study(*planned)).verdicts
    assert verdict == snapshot
    assert comparison_notes(both(devices=2)) == ()
