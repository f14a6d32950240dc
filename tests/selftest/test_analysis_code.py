"""The digest of the code that makes verdicts: a change of that code, and of no other, is another digest."""

import shutil

import pytest

from dlperf_study.core import code_identity
from dlperf_study.core.paths import PROJECT
from dlperf_study.selftest.evaluation import analysis_code


@pytest.mark.parametrize(
    ("file", "is_other"),
    [
        ("metrics/statistics.py", True),
        ("dataset/dataset.py", True),
        ("records/run.py", True),
        ("report/formatting.py", False),
        ("training/worker/planted.py", False),
    ],
)
def test_the_code_that_makes_verdicts(tmp_path, monkeypatch, file, is_other):
    shutil.copytree(PROJECT / "dlperf_study", tmp_path / "dlperf_study", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code_identity, "PACKAGE_FOLDER", tmp_path / "dlperf_study")
    assert analysis_code.__wrapped__() == analysis_code()
    with open(tmp_path / "dlperf_study" / file, "a", encoding="utf-8") as source:
        source.write("# changed")
    assert (analysis_code.__wrapped__() != analysis_code()) == is_other
