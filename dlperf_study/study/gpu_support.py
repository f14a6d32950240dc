"""What a library says of the GPUs that it can train on, and whether a run can use them. Standard library only."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from dlperf_study.core import restoring, wording

#: Words that drivers say of a device or leave out, by their version.
MAKER_WORDS = frozenset(("nvidia", "tesla"))


@dataclass(frozen=True)
class GpuSupport:
    """The GPUs and libraries that a framework can use on a node.

    ``cuda``, ``cudnn`` and ``nccl`` are the versions that the library is built with; empty: it is built without.
    ``gpus`` are the names of the GPUs that it sees, in its order. ``obstacle``: why it sees none although it is built
    with CUDA, in its own words.
    """

    cuda: str = ""
    cudnn: str = ""
    nccl: str = ""
    gpus: tuple[str, ...] = ()
    obstacle: str = ""

    @classmethod
    def of(cls, answer: Mapping[str, Any] | None) -> Self | None:
        """Return the support in an answer; None without the library."""
        if not answer:
            return None
        return restoring.restored(cls, answer)

    @property
    def build(self) -> str:
        """The versions in one line: ``CUDA 12.6, cuDNN 9.5.1, NCCL 2.25.1``."""
        if not self.cuda:
            return "without CUDA"
        versions = {"CUDA": self.cuda, "cuDNN": self.cudnn, "NCCL": self.nccl}
        return ", ".join(f"{name} {version}" if version else f"no {name}" for name, version in versions.items())


@dataclass(frozen=True)
class GpuQuestion:
    """The question for a framework's ``GpuSupport``, and its names in messages.

    ``arguments`` are those of the Python that trains, which prints the answer as one line of JSON: null if the library
    is not installed. Without them the framework trains on CPUs only. ``remedy`` is the command that installs a build
    for GPUs in this project's own environment.
    """

    framework: str
    library: str
    arguments: tuple[str, ...] = ()
    remedy: str = ""

    def obstacle(self, support: GpuSupport | None, wanted: int = 1) -> str:
        """Return why a framework can't train on these GPUs, with the remedy."""
        if not self.arguments:
            return f"{self.framework} trains on CPUs only"
        if support is None:
            return f"{self.library} is not installed"
        if not support.cuda:
            remedy = f"`{self.remedy}` installs a build with it: docs/gpu.md"
            return f"{self.library} is built without CUDA ({remedy})"
        if len(support.gpus) < wanted:
            seen = f"{self.library} ({support.build}) sees {wording.counted(len(support.gpus), 'GPU')}"
            return ": ".join(filter(None, (f"{seen}, but the run needs {wanted}", support.obstacle)))
        return ""

    def contradictions(self, supports: Mapping[str, GpuSupport | None], wanted: int, device_name: str) -> Iterator[str]:
        """Yield why a framework can't train on these nodes.

        ``supports`` are by node. ``wanted`` is the number of GPUs on each, and ``device_name`` the one of the cluster
        file.
        """
        first, *_ = supports
        reference = supports[first]
        for node, support in supports.items():
            if obstacle := self.obstacle(support, wanted):
                yield f"{node}: {obstacle}"
            if not support or not reference:
                continue
            if support.build != reference.build:
                yield f"{self.library} on {node} has {support.build}, but on {first} {reference.build}"
            for gpu in dict.fromkeys(support.gpus):
                if not is_named(device_name, gpu):
                    yield f"{node} has {gpu}, but the cluster file has {device_name!r}; write device_name: {gpu}"


def is_named(device_name: str, measured: str) -> bool:
    """Return whether a device has every word of a name.

    A name may be shorter, as ``A100`` for ``NVIDIA A100-SXM4-80GB``. Where a machine has several kinds of devices,
    commas separate their names.
    """
    return any(_words(name) <= _words(measured) for name in device_name.split(","))


def _words(name: str) -> set[str]:
    return {*re.findall(r"[^\W_]+", name.casefold())} - MAKER_WORDS
