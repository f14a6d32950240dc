"""The golden study, built once: its evidence unpacked, collected, and every page, table and figure of it as text."""

import tarfile
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from tests.golden_study.study import GoldenStudy, build

EVIDENCE = Path(__file__).with_name("evidence.tar.xz")


class TextFile(SingleFileSnapshotExtension):
    """One text file for each snapshot, so that a change is read as a diff."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


@pytest.fixture
def snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(TextFile)


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> GoldenStudy:
    outputs = tmp_path_factory.mktemp("golden")
    with tarfile.open(EVIDENCE) as archive:
        archive.extractall(outputs, filter="data")
    with pytest.MonkeyPatch.context() as patch:
        return build(outputs, patch)
