"""What a compiler takes of the first steps."""

import pytest

from dlperf_study.metrics.tuning import compile_seconds
from dlperf_study.records.run import read_run
from tests.evidence_factory import configuration, edit_log, write_run


@pytest.mark.parametrize(("compiler", "seconds"), [("torch_compile", 2.5), ("none", None)])
def test_what_compiled_first_steps_take_is_that_of_the_slowest_rank(paths, compiler, seconds):
    asked = configuration(compiler=compiler, devices_per_node=2)
    run = write_run(paths, asked, 1)
    edit_log(run.rank_log(1), lambda lines: lines[0].update(first_steps_seconds=2.5))
    assert compile_seconds(read_run(run)) == seconds
