"""Every benchmark can be imported, and those by simulation go through the package as it is now."""

import importlib

import numpy as np
import pytest

from dlperf_study.core.paths import PROJECT

MODULES = sorted(path.stem for path in (PROJECT / "benchmarks").glob("*.py"))


def test_there_are_benchmarks():
    assert "reading_logs" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_every_module_of_the_benchmarks_can_be_imported(name):
    importlib.import_module(f"benchmarks.{name}")


@pytest.mark.slow
def test_a_simulated_study_is_what_its_evidence_would_be():
    from benchmarks.coverage import NOISES, check_evidence, simulated

    check_evidence(simulated(NOISES["linear fall of 3 %"], 6, 4, np.random.default_rng(0)))


@pytest.mark.slow
def test_simulated_measurements_are_compared():
    from benchmarks.measurements import EARLIER_SESSIONS, SESSION_SPREADS, rows_of

    rows = list(rows_of(studies=2))
    assert len(rows) == len(SESSION_SPREADS) * len(EARLIER_SESSIONS)
    # With fewer than five earlier measurements there is no outcome.
    assert {share for line, share in rows if line.split(" | ")[1] == "4"} == {0.0}


@pytest.mark.slow
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
