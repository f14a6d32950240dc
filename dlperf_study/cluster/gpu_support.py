"""What the library of a framework can do with the GPUs here, asked in the very Python that trains.

``python -m dlperf_study.cluster.gpu_support FRAMEWORK`` imports the library and prints it as one line of JSON: null if
the library is not installed. That takes seconds, so ask only where there is a GPU. Standard library only.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dlperf_study import frameworks
from dlperf_study.cluster.library_answer import library_answer
from dlperf_study.errors import RunError
from dlperf_study.frameworks._base import Framework
from dlperf_study.frameworks._gpu_support import GpuSupport
from dlperf_study.study.job import DEVICE_ORDER, PCI_BUS_ORDER
from dlperf_study.wording import counted

MODULE = "dlperf_study.cluster.gpu_support"
#: Words that drivers say of a device or leave out, by their version.
MAKER_WORDS = frozenset(("nvidia", "tesla"))


def gpu_support(python: Sequence[str], framework: str, environment: Mapping[str, str]) -> GpuSupport | None:
    """Return what a framework's library can do with GPUs in a Python, given by its argv; None: it is not installed.

    ``environment`` is that of the run: its ``CUDA_VISIBLE_DEVICES`` decides which GPUs there are.
    Raises RunError when the Python does not run, or the library can't be imported.
    """
    ordered = dict(environment) | {DEVICE_ORDER: PCI_BUS_ORDER}
    return support_of(library_answer((*python, "-m", MODULE, _first_with_the_library_of(framework)), ordered))


def _first_with_the_library_of(name: str) -> str:
    """Return the first framework that asks the same of its library, whose import takes seconds: it is asked once."""
    asks = frameworks.load(name).gpu_support
    return next(framework.name for framework in frameworks.all_frameworks() if framework.gpu_support is asks)


def gpu_answer(python: Sequence[str], framework: str, environment: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what ``gpu_support`` does, as JSON has it."""
    return answer_of(gpu_support(python, framework, environment))


def all_gpu_answers(environment: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the answers for this Python by framework, of those that are installed; with ``error`` where one fails."""
    answers: dict[str, dict[str, Any]] = {}
    for name in frameworks.names():
        try:
            answer = gpu_answer((sys.executable,), name, environment)
        except RunError as error:
            answer = {"error": str(error)}
        if answer:
            answers[name] = answer
    return answers


def support_of(answer: Mapping[str, Any] | None) -> GpuSupport | None:
    """Return the support that JSON describes."""
    return GpuSupport(**{**answer, "gpus": tuple(answer["gpus"])}) if answer else None


def answer_of(support: GpuSupport | None) -> dict[str, Any] | None:
    """Return the support as JSON has it; None if the library is not installed."""
    return asdict(support) if support else None


def gpu_obstacle(framework: Framework, support: GpuSupport | None, wanted: int = 1) -> str:
    """Return why a framework can't train on this many GPUs with what its library says, and the remedy; else nothing."""
    if framework.gpu_support is None:
        return f"{framework.name} trains on CPUs only"
    if support is None:
        return f"{framework.library} is not installed"
    if not support.cuda:
        remedy = f"`{framework.gpu_remedy}` installs a build with it: docs/gpu.md"
        return f"{framework.library} is built without CUDA ({remedy})"
    if len(support.gpus) < wanted:
        reason = f": {support.obstacle}" if support.obstacle else ""
        seen = counted(len(support.gpus), "GPU")
        return f"{framework.library} ({support.build}) sees {seen}, but the run needs {wanted}{reason}"
    return ""


def gpu_contradictions(
    name: str, supports: Mapping[str, GpuSupport | None], wanted: int, device_name: str
) -> Iterator[str]:
    """Yield why a framework can't train on these nodes, or where they contradict the cluster file or each other.

    ``supports`` are by node: what the library of framework ``name`` says there. ``wanted`` is the number of GPUs on
    each node, and ``device_name`` the one of the cluster file.
    """
    framework = frameworks.load(name)
    first, *_ = supports
    reference = supports[first]
    for node, support in supports.items():
        if obstacle := gpu_obstacle(framework, support, wanted):
            yield f"{node}: {obstacle}"
        if not support or not reference:
            continue
        if support.build != reference.build:
            yield f"{framework.library} on {node} has {support.build}, but on {first} {reference.build}"
        for gpu in dict.fromkeys(support.gpus):
            if not is_named(device_name, gpu):
                yield f"{node} has {gpu}, but the cluster file says {device_name!r}; write device_name: {gpu}"


def is_named(device_name: str, measured: str) -> bool:
    """Return whether a device may be called so: every word of the name is one of what the device says of itself.

    A name may be shorter, as ``A100`` for ``NVIDIA A100-SXM4-80GB``. Where a machine has several kinds of devices,
    commas separate their names.
    """
    return any(_words(name) <= _words(measured) for name in device_name.split(","))


def _words(name: str) -> set[str]:
    letters = [letter if letter.isalnum() else " " for letter in name.casefold()]
    return {*"".join(letters).split()} - MAKER_WORDS


def main() -> None:
    """Print what the library of the framework that is named by the argument can do with GPUs."""
    framework = frameworks.load(sys.argv[1])
    support = framework.gpu_support() if framework.gpu_support and _is_installed(framework) else None
    print(json.dumps(answer_of(support)))


def _is_installed(framework: Framework) -> bool:
    for package in framework.packages:
        try:
            return bool(version(package))
        except PackageNotFoundError:
            continue
    return False


if __name__ == "__main__":
    main()
