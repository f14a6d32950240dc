"""The current folder and the user's home: what lies there is neither executed nor changes a result."""

import json
import os
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

from dlperf_study.core.paths import OUTPUTS_VARIABLE
from dlperf_study.report.figures.style import publication_style
from tests.command_line import shared_machine, workplace
from tests.core.test_streams import PROGRAM, STUDY
from tests.logs.ingest.conftest import REQUIRED_METADATA, elapse_lines

pytestmark = pytest.mark.timeout(240)

#: Modules that Python processes import early, and what a downloaded file of such a name would do.
DECOYS = ("socket", "signal", "json", "threading", "numpy", "random", "tempfile", "typing")
DECOY = """
import os
with open(os.environ["EXECUTED"], "a") as file:
    file.write(f"{__file__}\\n")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of downloaded logs, with modules of Python beside them."""
    downloaded = tmp_path / "downloaded"
    downloaded.mkdir()
    for name in DECOYS:
        (downloaded / f"{name}.py").write_text(DECOY)
    (downloaded / "configuration.json").write_text(json.dumps(REQUIRED_METADATA))
    for repetition in (1, 2):
        lines = elapse_lines(1, 128, repetition)
        (downloaded / f"run_{repetition}.log").write_text("\n".join(lines) + "\n")
    return downloaded


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home in which every kernel of IPython starts with a file."""
    startup = tmp_path / "home" / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text(DECOY.replace("__file__", '"startup"'))
    return tmp_path / "home"


def executed_by(folder: Path, home: Path, *arguments: str) -> str:
    """Return which of the files a command executed that was called in a folder."""
    log, temporary = home / "executed", home / ("t" * 80)
    log.touch()
    # Beside a long path of temporary files, in which no socket can be.
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "dlperf_study", *arguments],
        cwd=folder,
        env={**os.environ, **shared_machine(), "HOME": str(home), "EXECUTED": str(log), "TMPDIR": str(temporary)}
        | {OUTPUTS_VARIABLE: str(home / "outputs")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return log.read_text()


def test_nothing_beside_logs_and_nothing_at_home_is_executed_for_a_report(folder, home):
    assert executed_by(folder, home, "ingest", ".", "--yes") == ""
    assert list((home / "outputs").glob("*/report/index.html"))


def test_nothing_there_is_executed_while_a_study_is_measured(folder, home, tmp_path):
    (tmp_path / "study").mkdir()
    place = workplace(tmp_path / "study", STUDY)
    (place.folder / "train.py").write_text(PROGRAM)
    arguments = ("run", str(place.study_file), "--cluster", str(place.cluster_file), "--no-report")
    assert executed_by(folder, home, *arguments) == ""


def test_figures_have_their_own_style_whatever_the_reader_s_is():
    with mpl.rc_context({"axes.facecolor": "red", "font.size": 40}):
        with publication_style():
            assert (mpl.rcParams["axes.facecolor"], mpl.rcParams["font.size"]) == ("white", 7)
        assert (mpl.rcParams["axes.facecolor"], mpl.rcParams["font.size"]) == ("red", 40)
