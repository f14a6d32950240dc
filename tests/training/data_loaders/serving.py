"""The producer of a rank, as a run starts it: a process of its own."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dlperf_study.study.configuration import Configuration
from dlperf_study.training import data_loaders
from dlperf_study.training.data_loaders._producers import ENDPOINTS_VARIABLE, MODULE
from dlperf_study.training.frameworks._base import CONFIGURATION_VARIABLE


@contextmanager
def producer(configuration: Configuration, rank: int = 0) -> Iterator["subprocess.Popen[bytes] | None"]:
    """Start the producer of a rank, and tell this process where it sends; nothing for a source that has none."""
    if not data_loaders.load(configuration.data_loader).produce:
        yield None
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "configuration.json"
        file.write_text(json.dumps(configuration.as_dict()))
        environment = {**os.environ, CONFIGURATION_VARIABLE: str(file)}
        os.environ[ENDPOINTS_VARIABLE] = ",".join([endpoint] * (rank + 1))
        with subprocess.Popen([sys.executable, "-m", MODULE, str(rank), endpoint], env=environment) as process:
            try:
                yield process
            finally:
                process.kill()
                del os.environ[ENDPOINTS_VARIABLE]
