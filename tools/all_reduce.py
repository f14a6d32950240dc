"""What each process of the check runs: an all-reduce whose sum is known. Started by horovodrun.

`horovodrun --check-build` can name a framework that was not built; only a transfer proves one.
"""

import signal
import sys

SECONDS = 60
ELEMENTS = 1000


def main(processes: int) -> None:
    """Add a tensor over the processes and check every element; exit 1 with the reason if it is wrong."""
    signal.alarm(SECONDS)
    import horovod.torch as hvd
    import torch

    hvd.init()
    if hvd.size() != processes:
        sys.exit(f"{processes} processes were started, and this one knows of {hvd.size()}")
    one_gpu_each = hvd.nccl_built() and torch.cuda.device_count() >= hvd.local_size()
    device = torch.device("cuda", hvd.local_rank()) if one_gpu_each else torch.device("cpu")
    total = hvd.allreduce(torch.full((ELEMENTS,), hvd.rank() + 1.0, device=device), op=hvd.Sum)
    expected = processes * (processes + 1) / 2
    if not bool((total == expected).all()):
        sys.exit(f"the sum over the processes is {total[0].item()}, not {expected}")
    if hvd.rank() == 0:
        print(f"the all-reduce of {processes} processes on {device.type} is right", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
