import pytest

from dlperf_study.core.errors import RecordError
from dlperf_study.records.rank_log import read_rank_log
from tests.evidence_factory import GRADIENT_BYTES, Recipe, configuration, rank_lines, write_lines

ASKED = configuration(devices_per_node=2)
#: The lines of a log: the rank, nine windows, of which the third is training, and the end.
RANK, WARMUP, TRAINING, AFTER, PART, COMMUNICATION_ALONE, END = 0, 1, 3, 4, 5, 9, 10
NO_STEPS = {"steps": 0, "seconds": 0.0, "step_seconds": [], "losses": []}


@pytest.fixture
def lines():
    return rank_lines(ASKED, 0, 1, Recipe())


@pytest.fixture
def log(tmp_path):
    return tmp_path / "rank-00000.jsonl"


def test_a_window_holds_the_numbers_of_its_line(log, lines):
    # A log from before memory was counted is read, and the smallest part of a communication is one byte.
    del lines[END]["peak_memory"]
    lines[PART] |= {"bytes": 1, "name": "communication_1"}
    write_lines(log, lines)
    read = read_rank_log(log)
    window = read.windows["training"]
    assert window.step_seconds.tolist() == lines[TRAINING]["step_seconds"]
    assert window.losses.tolist() == lines[TRAINING]["losses"]
    assert window.mean_seconds == pytest.approx(sum(lines[TRAINING]["step_seconds"]) / ASKED.measured_steps)
    assert read.process == ("host-a", 4000, lines[RANK]["wall_anchor"]["unix_ns"])
    assert "peak_memory" not in read.end
    assert read.windows["communication_1"].bytes == 1


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (range(RANK, END), "truncated, it has no end line"),
        ((), "truncated, it has no end line"),
        ((RANK, WARMUP, *range(TRAINING, END + 1)), "has 8 of 9 windows"),
        (range(WARMUP, END + 1), "its lines are window"),
        ((RANK, *[WARMUP] * 9, END), "no window twice"),
        ((RANK, WARMUP, *range(TRAINING, END), TRAINING, END), "no window twice"),
        ((RANK, RANK, *range(TRAINING, END), END), "its lines are rank, rank, window"),
        ((RANK, WARMUP, *range(TRAINING, END), RANK, END), "its lines are rank, window, .*, not rank, window"),
    ],
)
def test_a_rank_log_with_other_lines_is_refused(log, lines, kept, message):
    write_lines(log, [lines[index] for index in kept])
    with pytest.raises(RecordError, match=message):
        read_rank_log(log)


@pytest.mark.parametrize(
    ("line", "values", "message"),
    [
        (TRAINING, {"step_seconds": [0.1]}, "one time and one loss"),
        (TRAINING, {"seconds": 0.5}, "lasts 0.5 s but its steps"),
        (
            TRAINING,
            {"step_seconds": [0.1] + [0.0] * 19},
            r"line 4: step_seconds\[1\] is 0.0; it must be at least 1e-09",
        ),
        (COMMUNICATION_ALONE, {"bytes": 5}, "window communication transferred 5 bytes, but the gradients have 4000000"),
        (PART, {"bytes": None}, "window communication_4096 transferred None bytes"),
        (PART, {"bytes": GRADIENT_BYTES + 1, "name": f"communication_{GRADIENT_BYTES + 1}"}, "but the gradients have"),
        (PART, {"bytes": 0, "name": "communication_0"}, "window communication_0 transferred 0 bytes"),
        (WARMUP, {"ended_by": "luck"}, "ended_by is 'luck'; the choices are 'steady', 'limit' or 'steps'"),
        (WARMUP, {"ended_by": None}, "window warmup: ended_by is missing; each warmup has that"),
        (TRAINING, {"ended_by": "steady"}, "window training: ended_by is steady; each warmup has that"),
        (TRAINING, {"input_seconds": [0.0] * 20}, "missing in warmup, computation_before, computation_after, but"),
        (
            COMMUNICATION_ALONE,
            {"input_seconds": [0.0] * 10},
            "window communication has input_seconds, but its steps take",
        ),
        (AFTER, NO_STEPS, "window computation_after has no step"),
        (TRAINING, {"losses": ["x"] * 20}, r"losses\[0\] is 'x', which is not a number; 19 more"),
        (TRAINING, {"seconds": 10**400}, "line 4: seconds is 1000.*which is not a"),
        (TRAINING, {"kind": ["window"]}, r"its lines are rank, window, window, \['window'\], "),
        (RANK, {"host": None}, "line 1: host is null, which is not a string"),
        (RANK, {"pid": 10**30}, "line 1: pid is 10+; it must be at most"),
        (
            RANK,
            {"communication": "gossip"},
            "communication is 'gossip'; the choices are 'none', 'all_reduce', 'push_pull', 'synchronous_push_pull' or ",
        ),
        (END, {"drain_seconds": "0"}, "line 11: drain_seconds is '0', which is not a number"),
        (END, {"drain_seconds": -1.5}, "drain_seconds is -1.5; it must be at least 0"),
        (END, {"drain_seconds": float("nan")}, "drain_seconds is nan, which is not a finite number"),
        (END, {"peak_memory": {"process_bytes": -1}}, "peak_memory.process_bytes is -1; it must be at least 1"),
        (RANK, {"flops_per_sample": 0}, "flops_per_sample is 0; it must be at least 1"),
        (RANK, {"rank": False}, "rank is false, which is not an integer"),
        (RANK, {"format": 9}, "format is 9; a later version of this package wrote it"),
    ],
)
def test_a_damaged_rank_log_is_refused(log, lines, line, values, message):
    lines[line] |= values
    write_lines(log, lines)
    with pytest.raises(RecordError, match=message):
        read_rank_log(log)


@pytest.mark.parametrize(
    ("input_seconds", "message"),
    [
        ([0.0] * 19, "training does not have one of input_seconds for each step"),
        ([-1e-9] + [0.0] * 19, r"input_seconds\[0\] is -1e-09; it must be at least 0"),
        ([0.0, 9.0] * 10, "step 1 of window training waited 9.0 s for its batch, but took"),
    ],
)
def test_steps_that_can_not_have_waited_so_long_are_refused(log, input_seconds, message):
    lines = rank_lines(ASKED, 0, 1, Recipe(input_seconds=0.001))
    lines[TRAINING]["input_seconds"] = input_seconds
    write_lines(log, lines)
    with pytest.raises(RecordError, match=message):
        read_rank_log(log)


def test_a_log_has_the_time_for_which_each_step_waited_and_in_older_ones_none_did(log, lines):
    write_lines(log, lines)
    windows = read_rank_log(log).windows
    assert "input_seconds" not in lines[TRAINING]
    assert not windows["training"].input_seconds.any()
    assert windows["training"].work_seconds.tolist() == lines[TRAINING]["step_seconds"]
    waiting = rank_lines(ASKED, 0, 1, Recipe(input_seconds=0.001, batch_seconds=0.02))
    write_lines(log, waiting)
    windows = read_rank_log(log).windows
    assert windows["training"].input_seconds.tolist() == waiting[TRAINING]["input_seconds"]
    assert windows["training"].work_seconds == pytest.approx(windows["training"].step_seconds - 0.001, rel=1e-3)
    assert windows["input"].steps == ASKED.input_only_steps


def test_a_log_cut_off_within_a_line_is_refused(log, lines, refused):
    write_lines(log, lines)
    log.write_text(log.read_text()[:-30])
    with refused(RecordError):
        read_rank_log(log)


def test_a_log_of_an_older_format_is_refused_as_that_and_not_for_what_it_lacks(log, lines, refused):
    del lines[RANK]["communication_threads"]
    lines[RANK]["format"] = 1
    write_lines(log, lines)
    with refused(RecordError):
        read_rank_log(log)


@pytest.mark.parametrize(("seconds", "is_possible"), [(99.0, True), (101.0, True), (98.9, False), (101.1, False)])
def test_the_steps_of_a_window_last_as_long_as_it_but_for_a_hundredth(log, lines, seconds, is_possible, refused):
    lines[TRAINING] |= {"seconds": 100.0, "steps": 2, "step_seconds": [1.0, seconds - 1.0], "losses": [1.0, 1.0]}
    write_lines(log, lines)
    if is_possible:
        assert read_rank_log(log).windows["training"].seconds == 100.0
        return
    with refused(RecordError):
        read_rank_log(log)
