"""The cluster that is meant, with a launcher that there is."""

from pathlib import Path

from dlperf_study import launchers
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.cluster_file import read_cluster


def load_cluster(name_or_path: str | Path) -> Cluster:
    """Return a cluster by its name in ``params/clusters`` or by the path of its file.

    Raises StudyFileError for any mistake in the file.
    """
    return read_cluster(name_or_path, launchers.names())
