"""The callback of the recorder in the real training loops of other libraries."""

import pytest

from dlperf_study.records.rank_log import read_rank_log
from tests.programs.recorder.programs import run

TRANSFORMERS = """
import torch
from record import Recorder
from transformers import Trainer, TrainingArguments


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x=None, labels=None):
        return {"loss": (self.layer(x).squeeze() - labels).square().mean()}


samples = [{"x": torch.rand(4), "labels": torch.tensor(1.0)} for _ in range(400)]
arguments = TrainingArguments("out", max_steps=100, gradient_accumulation_steps=2, report_to=[], use_cpu=True)
trainer = Trainer(Network(), arguments, train_dataset=samples, callbacks=[Recorder().callback()])
trainer.train()
print("steps", trainer.state.global_step)
"""
LIGHTNING = """
import lightning.pytorch as lightning
import torch
from record import Recorder


class Network(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        return self.layer(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


trainer = lightning.Trainer(
    max_steps=100,
    accumulate_grad_batches=2,
    callbacks=[Recorder().callback()],
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
)
trainer.fit(Network(), torch.utils.data.DataLoader(torch.rand(1000, 4), batch_size=2))
print("steps", trainer.global_step)
"""
KERAS = """
import keras
import numpy as np
from record import Recorder

model = keras.Sequential([keras.layers.Dense(1)])
model.compile("adam", "mse")
samples = np.random.rand(400, 4)
model.fit(samples, samples[:, 0], batch_size=4, epochs=2, callbacks=[Recorder().callback()], verbose=0)
print("steps", int(model.optimizer.iterations))
"""
#: The program of each library, the library whose version is recorded, and whether it tells the loss of a step.
PROGRAMS = {
    "transformers": (TRANSFORMERS, "torch", False),
    "lightning": (LIGHTNING, "torch", True),
    "tensorflow": (KERAS, "tensorflow", True),
}


@pytest.mark.matrix
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_training_loop_is_recorded_and_ended(tmp_path, name):
    source, library, tells_losses = PROGRAMS[name]
    done = run(tmp_path, source)
    assert "steps 9" in done.stdout, done.stderr
    log = read_rank_log(tmp_path / "rank-00000.jsonl")
    assert [window.steps for window in log.windows.values()] == [2, 6]
    assert (log.facts["library"], log.facts["parameters"]) == (library, 5)
    assert log.end["initial_checksum"] != log.end["parameter_checksum"]
    assert log.windows["training"].losses.size == (6 if tells_losses else 0)
