"""A study that counts tokens says so of its references: with sequences of two lengths a ratio of samples differs."""

import re
from dataclasses import replace

import numpy as np
import pytest

from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.findings import scaling
from dlperf_study.report import figures
from dlperf_study.report.say import say_one
from dlperf_study.report.tables import comparison
from dlperf_study.report.tables.missing import explain_missing
from dlperf_study.report.tables.table_builders import run_column
from dlperf_study.study.configuration import DEFAULTS, Configuration
from tests.evidence_factory import Planned, Recipe, configuration
from tests.programs.measured_ways import LOG, NO_SYNC, RECORDER, write_way
from tests.report.conftest import study


def sequences(length: int) -> Configuration:
    """Return a configuration of sequences of so many tokens."""
    no_images = {name: DEFAULTS[name] for name in ("image_size", "classes")}
    names = {"framework": "torch_ddp", "strategy": "all_reduce", "model": "gpt_tiny", "data_loader": "synthetic_host"}
    return configuration(sequence_length=length, **names | no_images)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """A step of twice as many tokens that takes as long."""
    short, long = sequences(64), sequences(128)
    planned = [Planned(each, Recipe(noise=0.001), baseline=short, reference=short) for each in (short, long)]
    return study(*planned, throughput_unit="tokens")


def test_ratio_reference_and_sentence_are_of_tokens(dataset):
    short, long = dataset.configurations.itertuples()
    assert long.relative_throughput == pytest.approx(2, rel=0.01)
    assert long.throughput == pytest.approx(short.throughput, rel=0.01)
    assert long.reference_token_throughput == short.token_throughput == pytest.approx(64 * short.throughput)
    assert dataset.configurations["reference_throughput"].isna().all()
    labels = [heading.label for heading in comparison(dataset).headings]
    assert "Reference token throughput" in labels
    assert "Reference throughput" not in labels
    sentence = say_one(scaling.throughputs(dataset)[0], dataset)
    assert "tokens/s" in sentence
    assert "samples/s" not in sentence


def test_steps_of_different_work_are_not_compared_part_by_part(dataset):
    """Their batches are equal: a sequence of twice as many tokens is twice the work."""
    rows = dataset.configurations
    assert rows["global_batch"].nunique() == 1
    assert rows.loc[~rows["is_reference"], ["compute_difference_seconds", "largest_difference"]].isna().all(axis=None)
    long = dataset.configuration_rows[sequences(128).configuration_id]
    assert "another number of tokens in a step" in explain_missing(dataset, long, "compute_difference_seconds")


@pytest.mark.parametrize("way", [LOG, RECORDER, NO_SYNC])
def test_a_program_that_counts_tokens_and_states_no_batch_has_its_speedup(way, paths):
    write_way(paths, way, batch_per_device=0)
    of_program = collect(paths)
    assert of_program.throughput_column == "token_throughput"
    speedup = of_program.configurations.set_index("world_size")["speedup"]
    assert speedup[1] == 1
    assert speedup[2] > 0


def test_tokens_alone_have_the_figure_of_comparisons_and_the_digits_of_a_throughput(dataset):
    """A user's program may not say what a sample is."""
    rows, runs = dataset.configurations.assign(throughput=np.nan), dataset.runs.assign(throughput=np.nan)
    [figure] = figures.comparison(replace(dataset, configurations=rows, runs=runs))
    assert not figure.is_empty
    cells = run_column(runs, "token_throughput").cell(next(runs.itertuples()))
    assert len(re.sub(r"\D", "", cells.text)) >= 4
