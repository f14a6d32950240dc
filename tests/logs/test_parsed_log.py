from pathlib import Path

import pytest

from tests.logs.small_logs import elapse, read_text


@pytest.mark.parametrize(
    ("printed", "expected"), [("True", True), ("1", True), ("on", True), ("no", False), ("None", False), ("O2", None)]
)
def test_programs_write_yes_and_no_in_many_ways(tmp_path: Path, printed: str, expected: bool | None) -> None:
    log = read_text(tmp_path, f"use_fp16 : {printed}\n" + "".join(map(elapse, range(0, 100, 10))))
    assert (log.facts["use_fp16"], log.switch("use_fp16"), log.switch("use_dali")) == (printed, expected, None)
