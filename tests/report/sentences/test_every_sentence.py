"""Every maker of sentences, on studies of which a part of the numbers is missing: no sentence has a hole in it."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dlperf_study.api.explorer import printed_rows
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.metric import Dtype
from dlperf_study.report import sentences
from dlperf_study.report.macros import macros
from dlperf_study.report.methods import methods
from dlperf_study.report.tables.answers import comparison
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, study

#: Those of one dataset.
MAKERS = tuple(name for name in sentences.__all__ if name not in ("history", "selftest"))
HOLE = re.compile(r"\bNone\b|\bnan\b|\bNaN\b|\bNaT\b|<NA>|\binf\b|\b\[\]|\(\)")
ONE, TWO = (configuration(devices_per_node=count) for count in (1, 2))


#: The columns that have no value at once, by the ends of their names.
NO_INTERVAL = ("_low", "_high", "verdict", "_equal_within")
NO_RATIO = (*NO_INTERVAL, "speedup", "efficiency", "relative_throughput")


def without(dataset: Dataset, endings: tuple[str, ...]) -> Dataset:
    """Return a dataset in which the columns with these endings are missing."""
    tables = {}
    for name in ("runs", "configurations"):
        table = getattr(dataset, name).copy()
        for column in table:
            if column.endswith(endings) and COLUMNS[column].dtype in (Dtype.FLOAT, Dtype.STRING):
                table[column] = np.nan if COLUMNS[column].dtype is Dtype.FLOAT else None
        # In one block: pandas warns of tables that were assembled column by column.
        tables[name] = table.copy()
    return replace(dataset, **tables)


def made(dataset: Dataset) -> str:
    return "\n".join(sentence for name in MAKERS for sentence in getattr(sentences, name)(dataset).sentences)


@pytest.mark.parametrize(
    "endings",
    [NO_INTERVAL, NO_RATIO, ("_seconds",), ("energy_per_sample",), ("step_seconds", "energy_of")],
)
def test_no_sentence_has_a_hole_where_numbers_are_missing(mixed, endings):
    text = made(without(mixed, endings))
    assert len(text.splitlines()) > len(MAKERS)
    assert not HOLE.findall(text)


@pytest.mark.parametrize(
    "planned",
    [
        (Planned(ONE, ALONE, runs=0),),
        (Planned(ONE, ALONE, runs=1),),
        (Planned(ONE, ALONE), Planned(TWO, TOGETHER, runs=1)),
        (Planned(ONE, Recipe(outcome="failed", reason="it"), runs=3), Planned(TWO, TOGETHER)),
    ],
    ids=["no run", "one run", "one run of two devices", "no baseline"],
)
def test_no_sentence_has_a_hole_where_runs_are_missing(planned):
    dataset = study(*planned)
    assert not HOLE.findall(made(dataset))
    if planned[0].runs:
        assert not HOLE.findall(methods(dataset) + macros(dataset))


def test_sentences_menus_and_macros_print_a_number_alike():
    dataset = study(Planned(ONE, ALONE), Planned(TWO, TOGETHER))
    printed = re.findall(r"\{([^{}]*)\} % ", macros(dataset).replace("~", " ").replace(r"$\times$", " "))
    pairs = {re.sub(r"^(\S+) .*(\[)", r"\1 \2", number) for number in printed}
    text = " ".join((*sentences.scaling(dataset).sentences, *sentences.communication(dataset).sentences))
    with_interval = re.findall(r"([\d.]+)(?: times| ms)? (\[[^\]]+\])", text)
    rates = re.findall(r"([\d.]+) instead of ([\d.]+) samples/s", text)
    assert with_interval
    assert {" ".join(pair) for pair in with_interval} <= pairs
    assert rates
    assert {*rates[0]} <= {pair.partition(" ")[0] for pair in pairs}
    for metric in ("throughput", "speedup", "efficiency"):
        for row in printed_rows(dataset.configurations, metric).itertuples(index=False):
            assert " ".join(row[-2:]).strip() in {pair.removesuffix(" $\\times$") for pair in pairs}


def test_completed_runs_without_a_rate_are_not_called_failed():
    dataset = study(Planned(ONE, ALONE), Planned(TWO, ALONE))
    rateless = replace(dataset, configurations=dataset.configurations.assign(throughput=np.nan))
    [sentence] = [text for text in sentences.quality(rateless).sentences if "no number" in text]
    assert "the completed runs of 2 have no rate" in sentence
    assert "no completed run" not in sentence
    both = study(Planned(ONE, ALONE, reference=ONE), Planned(TWO, ALONE, reference=ONE))
    for position in range(2):
        rates = both.configurations["throughput"].where(np.arange(2) != position)
        rateless = replace(both, configurations=both.configurations.assign(throughput=rates, verdict=pd.NA))
        [(_, verdict)] = comparison(rateless).verdicts
        assert "have no rate" in verdict


def test_runs_that_an_interrupted_study_did_not_begin_are_not_counted_as_completed():
    dataset = study(Planned(ONE, ALONE), Planned(TWO, ALONE, runs=1))
    expected = "4 of 6 runs completed (2 not measured)."
    assert sentences.runs(dataset).sentences == (expected,)
    assert expected in sentences.quality(dataset).sentences
