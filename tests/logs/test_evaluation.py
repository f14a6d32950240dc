"""Lines of evaluation are not lines of training."""

import numpy as np
import pytest

from dlperf_study.logs.formats import load
from dlperf_study.logs.parsed_log import mark_evaluation
from dlperf_study.logs.records import make_records
from tests.logs.small_logs import read_text

GLUON = load("gluonnlp_bert")
RISING = [(9, 1e-7), (19, 2e-7), (29, 3e-7)]


def rows(*printed):
    steps, learning_rates = zip(*printed, strict=True)
    values = {"learning_rate": np.array(learning_rates), "throughput": np.full(len(steps), 100.0)}
    return make_records(np.arange(1, len(steps) + 1), values, step=np.array(steps))


@pytest.mark.parametrize(
    ("printed", "training"),
    [
        (RISING, 3),
        ([*RISING, (9, 0), (19, 0), (29, 0), (39, 0)], 3),
        ([(9, 0), (19, 0), *((step + 20, throughput) for step, throughput in RISING)], 5),
        ([*RISING, (39, 0)], 4),
        ([*RISING, (39, 0), (39, 0), (9, 0), (19, 0)], 5),
        ([(9, 0), (19, 0)], 0),
    ],
    ids=["none", "after training", "a rate that grows", "a rate that falls", "both", "alone"],
)
def test_rows_that_go_back_and_have_no_learning_rate_are_evaluation(printed, training):
    marked = mark_evaluation(rows(*printed), GLUON)
    assert marked.training.tolist() == [True] * training + [False] * (len(printed) - training)


def test_training_continues_after_an_evaluation_and_other_formats_have_none():
    marked = mark_evaluation(rows(*RISING, (9, 0), (19, 0), (39, 4e-7), (49, 5e-7)), GLUON)
    assert marked.training.tolist() == [True] * 3 + [False] * 2 + [True] * 2
    records = rows(*RISING, (9, 0))
    assert mark_evaluation(records, load("paddle_resnet50")) is records


def test_a_log_that_ends_in_an_evaluation_is_one_of_training(tmp_path):
    line = "INFO:root:[step {}]\tmlm_loss=10.38000\tthroughput={}K tks/s\tlr={:.7f} time=2.40, latency=239.6 ms/batch\n"
    trained = "".join(line.format(step, 17.1, 1e-4) for step in range(9, 400, 10))
    log = read_text(tmp_path, trained + "".join(line.format(step, 40.2, 0) for step in range(9, 200, 10)))
    assert log.diagnostics == ()
    assert list(log.series("throughput").step) == list(range(9, 400, 10))
    assert set(log.records.select(~log.records.training).values["throughput"]) == {40200.0}
