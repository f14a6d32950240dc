"""What a library says of the GPUs that it can train on. Standard library only."""

from dataclasses import dataclass

#: What exchanges gradients between CPUs; it is a part of the library, and has no version of its own.
GLOO = "gloo"


@dataclass(frozen=True)
class GpuSupport:
    """What the library of a framework can use, asked in a process with the Python and the variables of a run.

    ``cuda``, ``cudnn`` and ``nccl`` are the versions that the library is built with; empty: it is built without.
    ``gpus`` are the names of the GPUs that it sees, in its order. ``obstacle``: why it sees none although it is built
    with CUDA, in its own words.
    """

    cuda: str = ""
    cudnn: str = ""
    nccl: str = ""
    gpus: tuple[str, ...] = ()
    obstacle: str = ""

    @property
    def build(self) -> str:
        """The versions in one line: ``CUDA 12.6, cuDNN 9.5.1, NCCL 2.25.1``."""
        if not self.cuda:
            return "without CUDA"
        versions = {"CUDA": self.cuda, "cuDNN": self.cudnn, "NCCL": self.nccl}
        return ", ".join(f"{name} {version}" if version else f"no {name}" for name, version in versions.items())


def exchange_library(support: GpuSupport | None, between_cpus: str = GLOO) -> str:
    """Return what exchanges gradients, as the rank log names it.

    ``support`` is that of a rank on a GPU; a library without NCCL exchanges there as between CPUs.
    """
    return f"NCCL {support.nccl}" if support and support.nccl else between_cpus


def nccl_version(code: int) -> str:
    """Return an ``NCCL_VERSION_CODE`` as a version: 22501 is 2.25.1, and 2804, of the scheme before 2.9, is 2.8.4."""
    if not code:
        return ""
    thousands = 10_000 if code >= 10_000 else 1_000
    return f"{code // thousands}.{code % thousands // 100}.{code % 100}"


def cudnn_version(code: int) -> str:
    """Return a ``CUDNN_VERSION`` as a version: 90501 is 9.5.1, and 8902, of the scheme before 9, is 8.9.2."""
    thousands = 10_000 if code >= 10_000 else 1_000
    return f"{code // thousands}.{code % thousands // 100}.{code % 100}"


def obstacle_of(error: Exception) -> str:
    """Return the line of an exception that names the error: libraries add call stacks and hints."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else type(error).__name__)
