"""How messages stay readable, whatever a file holds."""

import pytest

from dlperf_study.core.errors import StudyFileError
from dlperf_study.study.study_file import load_study
from dlperf_study.study.validation import MAX_ERRORS
from tests.study.examples import STUDY, write


def test_a_long_value_is_cut(tmp_path):
    with pytest.raises(StudyFileError) as caught:
        load_study(write(tmp_path, STUDY.replace("scaling: weak", f"scaling: {'weak' * 1000}")))
    assert str(caught.value).endswith("weakweakwea…; the choices are 'weak' or 'strong'")
    assert len(str(caught.value)) < 400


def test_many_errors_are_counted(tmp_path, snapshot):
    levels = ", ".join(["x"] * 50)
    with pytest.raises(StudyFileError) as caught:
        load_study(file := write(tmp_path, STUDY.replace("[1, 2]", f"[{levels}]")))
    lines = str(caught.value).splitlines()
    assert len(lines) == MAX_ERRORS + 1
    assert lines[0] == snapshot
    assert lines[-1] == f"{file}: and 30 more"
