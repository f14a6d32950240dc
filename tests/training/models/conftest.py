"""Networks are computed by one thread: several spin while they wait, and take the cores from other tests."""

import ctypes
import re
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

from tests.training.models.networks import LIBRARIES

#: Where the kernel lists the implementations of OpenMP that this process has loaded.
LOADED = Path("/proc/self/maps")
OPEN_MP = re.compile(r"/\S*lib[gi]omp\S*")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Limit this process alone: a variable of the environment would reach the trainings of other tests."""
    for library in LIBRARIES:
        with suppress(ImportError):
            import_module(library)
    for path in {*OPEN_MP.findall(LOADED.read_text())}:
        ctypes.CDLL(path).omp_set_num_threads(1)
