"""Programs that use the recorder as a user would, and how a test runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from dlperf_study.core.paths import PROJECT
from dlperf_study.record import REQUEST_VARIABLE, Request

PLAIN = """
import sys, time
from record import Recorder

recorder = Recorder()
for step, batch in enumerate(recorder.input(range(1000))):
    time.sleep(0.001)
    if step == int(sys.argv[1]):
        sys.exit(0)
    if not recorder.step(1.0 / (step + 1), samples=3, tokens=step):
        break
print(step + 1)
"""

DDP = """
import os
import sys
import torch
from torch.nn.parallel import DistributedDataParallel
from record import Recorder

mode = sys.argv[1]
torch.manual_seed(0)
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.Adam(model.parameters())
recorder = Recorder(None if mode == "no model" else model)
generator = torch.Generator().manual_seed(rank)
for step in range(1000):
    loss = model(torch.rand(8, 64, generator=generator)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if mode == "crash" and rank == 1 and step == 5:
        raise ValueError("a secret")
    if mode == "switches":
        model.require_backward_grad_sync = True
    if not recorder.step(loss):
        break
sums = [torch.zeros(1) for _ in range(2)]
torch.distributed.all_gather(sums, sum(parameter.sum() for parameter in model.parameters()).reshape(1).detach())
assert sums[0] == sums[1]
torch.distributed.barrier()
# PyTorch's threads may abort a process that ends while they run.
os._exit(0)
"""

PADDLE = """
import paddle
from record import Recorder

model = paddle.nn.Linear(8, 4)
optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
recorder = Recorder(model)
for step in range(1000):
    loss = model(paddle.ones([2, 8])).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    if not recorder.step(loss):
        break
"""


def run(
    folder: Path, source: str, *arguments: str, ranks: int = 1, **requested: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program beside a copy of the recorder, its logs in ``folder``; with more ranks, by torchrun."""
    program = folder / "program" / "train.py"
    program.parent.mkdir(exist_ok=True)
    program.write_text(source)
    (program.parent / "record.py").write_text((PROJECT / "dlperf_study" / "record.py").read_text())
    values = {"warmup_steps": 2, "measured_steps": 6, "devices_per_node": ranks, **requested}
    request = Request(**{"run": "example/1", "code": "code", "folder": str(folder), **values})
    environment = {**os.environ, "OMP_NUM_THREADS": "1", REQUEST_VARIABLE: request.as_json()}
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
    command = [sys.executable, *launcher, str(program), *arguments]
    return subprocess.run(command, env=environment, cwd=program.parent, capture_output=True, text=True, timeout=120)


def lines(folder: Path, rank: int = 0) -> list[dict[str, Any]]:
    """Return the lines of a rank log."""
    return [json.loads(line) for line in (folder / f"rank-{rank:05d}.jsonl").read_text().splitlines()]
