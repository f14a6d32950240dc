"""What each process of the check of Horovod runs: an all-reduce with a known sum. Started by horovodrun.

`horovodrun --check-build` can name a framework that was not built; only a transfer proves one.
"""

import signal
import sys

SECONDS = 60
ELEMENTS = 1000


def main(framework: str, processes: int) -> None:
    """Add a tensor over the processes and check every element; exit 1 with the reason if it is wrong."""
    signal.alarm(SECONDS)
    if framework == "torch":
        rank, size, device, total = torch_sum()
    else:
        rank, size, device, total = tensorflow_sum()
    if size != processes:
        sys.exit(f"{processes} processes were started, and this one knows of {size}")
    expected = processes * (processes + 1) / 2
    if total != [expected] * ELEMENTS:
        sys.exit(f"the sum over the processes is {total[0]}, not {expected}")
    if rank == 0:
        print(f"the all-reduce of {processes} processes on {device} is right", flush=True)


def torch_sum() -> tuple[int, int, str, list[float]]:
    """Return rank, number of processes, device and the summed tensor."""
    import horovod.torch as hvd
    import torch

    hvd.init()
    one_gpu_each = hvd.nccl_built() and torch.cuda.device_count() >= hvd.local_size()
    device = torch.device("cuda", hvd.local_rank()) if one_gpu_each else torch.device("cpu")
    total = hvd.allreduce(torch.full((ELEMENTS,), hvd.rank() + 1.0, device=device), op=hvd.Sum)
    return hvd.rank(), hvd.size(), device.type, total.tolist()


def tensorflow_sum() -> tuple[int, int, str, list[float]]:
    """Return rank, number of processes, device and the summed tensor."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()
    total = hvd.allreduce(tf.fill([ELEMENTS], hvd.rank() + 1.0), op=hvd.Sum)
    device = "gpu" if "GPU" in total.device else "cpu"
    return hvd.rank(), hvd.size(), device, total.numpy().tolist()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
