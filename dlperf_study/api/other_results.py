"""Results that others made: their logs as a study, and the published numbers as frames."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from dlperf_study.audit.published import load_source
from dlperf_study.audit.published.points import Published
from dlperf_study.core.errors import MetadataError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.terminal import progress_display
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.history import Measurement
from dlperf_study.dataset.ingestion.ingestion import ingest as ingest_logs
from dlperf_study.dataset.ingestion.ingestion import refuse_others
from dlperf_study.logs.identification import IdentifiedLogs, describe, identify_logs
from dlperf_study.machines.supervision.locks import lock

if TYPE_CHECKING:
    from dlperf_study.api.study_results import StudyResults


def ingest(logs: str | Path, name: str = "", *, confirm: bool = False) -> "StudyResults":
    """Import logs of other programs, write their tables, return the results.

    Args:
        logs: a folder of logs, or an archive
        name: of the study; without one, as the identity file of the logs or their folder says
        confirm: confirm the inferred metadata: which run each log is of

    Raises MetadataError, with what was inferred, until it is confirmed; and as ``identify_logs`` does.
    """
    # A command that only writes tables must not import what draws.
    from dlperf_study.api.study_results import StudyResults

    identified = identify_logs(Path(logs), name, confirm)
    if not identified.confirmed:
        raise MetadataError(f"{describe(identified)}\nIn Python: ingest({str(logs)!r}, confirm=True)")
    paths = read_identified_logs(identified)
    return StudyResults(Measurement(identified.study.name, Dataset.load(paths)))


def read_identified_logs(logs: IdentifiedLogs) -> StudyPaths:
    """Write a study's tables from identified logs; return its paths."""
    paths = StudyPaths.of(logs.study.name)
    refuse_others(paths, logs.folder)
    size = sum(file.bytes for file in logs.files)
    with (
        lock(paths.ingestion_lock, f"ingesting logs into study {paths.folder.name}", "would mix their tables"),
        progress_display("bytes") as display,
    ):
        task = display.add_task("reading", total=size)
        ingest_logs(logs.study, logs.files, logs.folder, paths, partial(display.advance, task))
    return paths


def published(source: str, *, points: bool = False) -> pd.DataFrame:
    """Return the numbers of a published source, a row each.

    ``points``: only its throughputs, with ``speedup`` and ``efficiency`` computed from them, in the columns of a
    study's configurations.

    Raises PublishedError, with the names there are, for an unknown source.
    """
    if points:
        return Published.read((source,)).points
    return load_source(source)
