"""No module but its own contains the name of a part: what others need to know of a part, they ask it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from dlperf_study.core.paths import PROJECT
from dlperf_study.logs import formats as log_formats
from dlperf_study.machines import launchers
from dlperf_study.study.communication import STRATEGIES
from dlperf_study.training import data_loaders, frameworks, image_datasets, models
from dlperf_study.training.parts import display_names, same_alone

PACKAGE = PROJECT / "dlperf_study"
#: Names of parts that are words of other things as well, so that a literal says nothing.
WORDS = {
    "tensor": "a dimension of a layout",
    "pipeline": "a dimension of a layout",
    "files": "a key of requests to nodes",
    "local": "the cluster file that is used by default",
    "ssh": "the program of that name",
}
#: Modules, below the package, that may contain a name, each with the reason.
EXCEPTIONS = {
    ("core/user_commands.py", "dali"): "the extra",
    ("core/user_commands.py", "kubernetes"): "the extra and its module",
    ("core/user_commands.py", "zmq"): "the module of an extra",
    ("machines/kubernetes/api.py", "kubernetes"): "the module of Kubernetes' client",
    ("programs/guesses.py", "deepspeed"): "the launcher of that name, which scripts import",
    ("generated.py", "paddle_collective"): "the example in the parameters cell of the run notebook",
    ("generated.py", "all_reduce"): "the example in the parameters cell of the run notebook",
    ("generated.py", "mobilenet_v2"): "the example in the parameters cell of the run notebook",
    ("logs/log_checks.py", "dali"): "what NVIDIA's own logs call their data",
    (
        "record.py",
        "all_reduce",
    ): "the kind of communication of a program, in a file that imports nothing of the package",
    ("report/formatting.py", "cifar10"): "the data set of published sources and logs, not the format of its files",
    ("training/libraries/_torch_collectives.py", "all_reduce"): "the kind of collective",
    ("study/training_parameters.py", "synthetic_device"): "the default of the parameter",
}


def names_with_homes() -> Iterator[tuple[str, str]]:
    """Yield each part with the file or the folder, below the package, that may contain its name."""
    for registry in (frameworks, models, data_loaders, image_datasets, launchers):
        folder = Path(registry.__file__).parent.relative_to(PACKAGE)
        yield from ((name, f"{folder}/{name}.py") for name in registry.names())
    yield from ((name, "logs/formats/") for name in log_formats.names())
    for framework in frameworks.all_frameworks():
        yield from ((strategy, "training/frameworks/") for strategy in framework.strategies)
    yield from ((strategy, "study/communication.py") for strategy in STRATEGIES)


def test_no_other_module_contains_the_name_of_a_part():
    homes: dict[str, list[str]] = {}
    for name, home in names_with_homes():
        homes.setdefault(name, []).append(home)
    strangers = set()
    for file in PACKAGE.rglob("*.py"):
        module = str(file.relative_to(PACKAGE))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if name in homes and name not in WORDS and not module.startswith(tuple(homes[name])):
                strangers.add((module, name))
    assert strangers == {*EXCEPTIONS}


@pytest.mark.parametrize(("name", "expected"), [("torch_ddp", "PyTorch DDP"), ("all_reduce", "all-reduce")])
def test_pages_call_a_part_as_it_calls_itself(name, expected):
    assert display_names()[name] == expected


def test_pages_ask_parts_what_differs_between_them():
    assert same_alone() == (("torch_ddp", "horovod_torch"),)
