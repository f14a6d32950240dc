"""Every benchmark can be imported, and a bare training step computes what the worker's does."""

import importlib

import pytest

from dlperf_study.core.paths import PROJECT

MODULES = sorted(path.stem for path in (PROJECT / "benchmarks").glob("*.py"))


def test_there_are_benchmarks():
    assert "reading_logs" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_every_module_of_the_benchmarks_can_be_imported(name):
    importlib.import_module(f"benchmarks.{name}")


@pytest.mark.matrix
@pytest.mark.needs("torch")
def test_the_bare_step_computes_what_that_of_the_worker_does(monkeypatch):
    import torch

    from benchmarks.training_step import ENVIRONMENT, bare_step, trainer_of

    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    (trainer, feed), (bare_trainer, bare_feed) = trainer_of("torch_ddp"), trainer_of("torch_ddp")
    initial = [parameter.clone() for parameter in trainer.layer.parameters()]
    for step in (feed.train, bare_step("torch_ddp", bare_trainer, bare_feed)):
        torch.manual_seed(0)  # of dropout
        step()
    trained = list(trainer.layer.parameters())
    assert all(map(torch.equal, trained, bare_trainer.layer.parameters()))
    assert not all(map(torch.equal, trained, initial))
