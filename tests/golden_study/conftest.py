"""The golden study, built once: its evidence unpacked, collected, and every page, table and figure of it as text."""

import tarfile
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from tests.golden_study.study import GoldenStudy, build

EVIDENCE = Path(__file__).with_name("evidence.tar.xz")
#: The default study, measured in six rounds on an idle machine.
QUICKSTART = Path(__file__).with_name("quickstart.tar.xz")


class TextFile(SingleFileSnapshotExtension):
    """One text file for each snapshot, so that a change is read as a diff."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


@pytest.fixture
def snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(TextFile)


@pytest.fixture(scope="session")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of outputs with the evidence of both golden studies."""
    folder = tmp_path_factory.mktemp("golden")
    for evidence in (EVIDENCE, QUICKSTART):
        with tarfile.open(evidence) as archive:
            archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="session")
def golden(outputs: Path) -> GoldenStudy:
    with pytest.MonkeyPatch.context() as patch:
        return build(outputs, patch)


@pytest.fixture(scope="session")
def exported(outputs: Path, golden: GoldenStudy) -> Path:
    """Return the folder of outputs after the pages and papers of both studies were made."""
    with pytest.MonkeyPatch.context() as patch:
        build(outputs, patch, "quickstart", ("summary", "scaling", "communication", "quality", "resources", "runs"))
    return outputs
