"""Which format a log has, and lines of another one wherever they are in it."""

import pytest

from dlperf_study.logs.blocks import Block
from dlperf_study.logs.format_detection import other_formats_later
from dlperf_study.logs.formats import load
from dlperf_study.logs.log_reader import read_log
from tests.logs.small_logs import elapse, ips


@pytest.mark.parametrize("lines_before", [0, 1, 100, 5000])
def test_a_line_of_another_format_at_the_end_of_a_block_is_found(lines_before):
    lines = "".join(elapse(step) for step in range(lines_before)) + ips(1, "ips: 1186.57 images/sec")
    found_formats = other_formats_later(Block(lines.encode(), 1), load("paddle_resnet50"))
    assert [format_.name for format_ in found_formats] == ["plsc_2_4"]


def test_a_row_without_a_position_has_none(tmp_path):
    """A position that a program does not print is -1 in every format."""
    path = tmp_path / "log_history.jsonl"
    path.write_text("".join(f'{{"train_samples_per_second": 35{step}.0, "loss": 1.5}}\n' for step in range(3)))
    records = read_log(path, "huggingface_trainer").records
    assert {*records.epoch.tolist(), *records.step.tolist(), *records.rank.tolist()} == {-1}
