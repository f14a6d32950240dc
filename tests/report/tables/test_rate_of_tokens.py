"""A study that counts tokens says so of its references: with sequences of two lengths a ratio of samples differs."""

import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.tables import answers, comparison
from dlperf_study.study.configuration import DEFAULTS, Configuration
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import study


def sequences(length: int) -> Configuration:
    """Return a configuration of sequences of so many tokens."""
    no_images = {name: DEFAULTS[name] for name in ("image_size", "classes")}
    names = {"framework": "torch_ddp", "strategy": "all_reduce", "model": "gpt_tiny", "data_source": "synthetic_host"}
    return configuration(sequence_length=length, **names | no_images)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """A step of twice as many tokens that takes as long."""
    short, long = sequences(64), sequences(128)
    planned = [Planned(each, Recipe(noise=0.001), baseline=short, reference=short) for each in (short, long)]
    return study(*planned, rate="tokens")


def test_ratio_reference_and_sentence_are_of_tokens(dataset):
    short, long = dataset.configurations.itertuples()
    assert long.relative_throughput == pytest.approx(2, rel=0.01)
    assert long.throughput == pytest.approx(short.throughput, rel=0.01)
    assert long.reference_token_throughput == short.token_throughput == pytest.approx(64 * short.throughput)
    assert dataset.configurations["reference_throughput"].isna().all()
    labels = [heading.label for heading in comparison(dataset).headings]
    assert "Reference token throughput" in labels
    assert "Reference throughput" not in labels
    [(_, sentence)] = answers.comparison(dataset).verdicts
    assert "tokens/s" in sentence
    assert "samples/s" not in sentence
