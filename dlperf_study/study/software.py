"""The code and the libraries that a Python brings to a run. Standard library only: asked in training images too.

``python -m dlperf_study.study.software`` prints both as one line of JSON.
"""

import hashlib
import json
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dlperf_study.paths import PROJECT

PACKAGES = (
    *("dlperf_study", "paddlepaddle", "paddlepaddle-gpu", "protobuf", "torch", "horovod", "numpy"),
    *("papermill", "nbclient", "ipykernel", "jupyterlab", "pandas"),
)
#: The code that measures. Reports may change without a new measurement.
MEASURING = ("worker", "frameworks", "models", "launchers")


@cache
def measuring_code() -> str:
    """Return a digest of the source of all measuring code."""
    digest = hashlib.sha256()
    for room in MEASURING:
        for file in sorted((PROJECT / "dlperf_study" / room).rglob("*.py")):
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


@cache
def software() -> dict[str, Any]:
    """Return the versions of Python, the system and the packages that take part."""
    system = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "executable": Path(sys.executable).name,
    }
    return system | {name: found for name in PACKAGES if (found := _version(name))}


def main() -> None:
    """Print what this Python brings."""
    print(json.dumps({"code": measuring_code(), "software": software()}))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
