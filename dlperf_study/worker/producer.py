"""One producer of batches, for one rank: ``python -m dlperf_study.worker.producer RANK HOST:PORT``."""

import json
import os
import socket
import sys
from pathlib import Path

from dlperf_study import data_sources
from dlperf_study.cluster.software import require_code_of_driver
from dlperf_study.data_sources._base import Consumer
from dlperf_study.errors import StudyFileError
from dlperf_study.frameworks._base import CONFIGURATION_VARIABLE
from dlperf_study.lifeline import die_with_parent
from dlperf_study.study.configuration import Configuration


def main() -> None:
    """Serve the batches of the rank until this process is ended, at the address that the host's name has here."""
    die_with_parent()
    require_code_of_driver()
    file = Path(os.environ[CONFIGURATION_VARIABLE])
    configuration = Configuration.from_mapping(json.loads(file.read_text()), str(file))
    source = data_sources.load(configuration.data_source)
    if not source.produce:
        raise StudyFileError(f"{file}: data_source {source.name} has no producer")
    rank, endpoint = int(sys.argv[1]), sys.argv[2]
    host, _, port = endpoint.rpartition(":")
    consumer = Consumer(rank, configuration.world_size, "numpy")
    source.produce(configuration, consumer, f"{socket.gethostbyname(host)}:{port}")


if __name__ == "__main__":
    main()
