"""A log against itself: what it states twice must be one rate, by its clock, its other numbers and other programs."""

import pytest

from tests.logs.ingest.conftest import SAMPLES, declare, refusals

HEAD = "[2024-05-01 10:{:02d}:{:02d},000] [INFO] "


def timer(step, throughput, seconds, mean=None):
    """Return a line of DeepSpeed's timer, printed so many seconds after the start."""
    head = HEAD.format(*divmod(seconds, 60))
    numbers = f"RunningAvgSamplesPerSec={mean or throughput}, CurrSamplesPerSec={throughput}"
    return f"{head}[timer.py:260:stop] epoch=0/micro_step={step}/global_step={step}, {numbers}, MemAllocated=3.9GB\n"


def pipeline(step, throughput):
    return f"steps: {step} loss: 6.9123 iter time (s): {1024 / throughput:.3f} samples/sec: {throughput:.3f}\n"


def megatron(step, milliseconds):
    times = f"elapsed time per iteration (ms): {milliseconds:.1f}"
    return f" iteration {step:8d}/     400 | consumed samples: 9 | {times} | global batch size: 1024 | lm loss: 6.9 |\n"


def diagnostics_of(folder, ingested, text, **declared):
    """Return the diagnostics about the throughput of a run of 1024 samples per step, by their severity, and its row."""
    declare(folder, **{"devices_per_node": 8, "framework": "deepspeed", **declared})
    (folder / "run_1.log").write_text(text)
    dataset = ingested()
    messages = [(str(row.severity), row.message) for row in dataset.diagnostics.itertuples()]
    return [message for message in messages if "contradicts itself" in message[1]], dataset


def lines_of_timer(seconds_per_line, throughput=2577.0):
    """Return lines of 10 steps each, in which 2577 samples/s need 3.97 s."""
    return "".join(timer(10 * line, throughput, round(seconds_per_line * line)) for line in range(1, 121))


@pytest.mark.parametrize(("seconds", "severity"), [(4, ""), (5, "warning"), (21, "error")])
def test_the_clock_is_compared_with_the_printed_throughputs(folder, ingested, snapshot, seconds, severity):
    """Within 10 % nothing is said; up to 1.5 times a warning; a timer that leaves out most of a step is refused."""
    found, dataset = diagnostics_of(folder, ingested, lines_of_timer(seconds))
    assert [found_severity for found_severity, _ in found] == [severity] * bool(severity)
    assert found == snapshot
    assert bool(refusals(dataset)) == (severity == "error")
    if severity:
        assert f"{10240 / seconds:.6g}" in found[0][1]
        assert "2577" in found[0][1]
        notes = dataset.diagnostics["message"].str.contains("no rate by the clock").sum()
        assert notes == 0


def test_iterations_of_a_pipeline_are_used_and_compared_with_the_timer(folder, ingested):
    """The timer prints 2577 samples/s, whole iterations 1799."""
    both = "".join(timer(10 * line, 2577.0, 6 * line) + pipeline(10 * line, 1799.0) for line in range(1, 101))
    found, dataset = diagnostics_of(folder, ingested, both)
    assert [severity for severity, _ in found] == ["warning"]
    assert "2577" in found[0][1]
    assert "1799" in found[0][1]
    assert dataset.runs["throughput"].tolist() == pytest.approx([1799.0])


@pytest.mark.parametrize(("milliseconds", "severity"), [(400.0, ""), (569.2, "warning"), (2000.0, "error")])
def test_lines_of_a_second_program_are_compared_where_the_format_is_named(folder, ingested, milliseconds, severity):
    lines = ("".join((timer(step, 2577.0, 0), megatron(step, milliseconds))) for step in range(1, 41))
    text = "".join(lines).replace(HEAD.format(0, 0), "")
    found, dataset = diagnostics_of(folder, ingested, text, format="deepspeed")
    assert [found_severity for found_severity, _ in found] == [severity] * bool(severity)
    assert bool(refusals(dataset)) == (severity == "error")
    if severity:
        assert f"{1024 / milliseconds * 1000:.6g}" in found[0][1]


def test_a_total_is_compared_with_the_throughputs_of_ranks(folder, ingested):
    text = (SAMPLES / "horovod_synthetic_real.log").read_text()
    declared = {"devices_per_node": 4, "batch_per_device": 32, "framework": "horovod", "data_loader": "synthetic"}
    assert diagnostics_of(folder, ingested, text, **declared)[0] == []
    wrong = text.replace("432.8", "332.8")
    assert wrong != text
    found, _ = diagnostics_of(folder, ingested, wrong, **declared)
    assert [severity for severity, _ in found] == ["warning"]


def test_what_start_up_and_stalls_explain_is_no_contradiction(folder, ingested):
    """The first ten of 100 lines are five times as slow: the mean of all is 28 % below the last lines."""
    throughputs = [500.0 if line < 10 else 2500.0 for line in range(100)]
    text = ""
    for line, throughput in enumerate(throughputs):
        mean = (line + 1) / sum(1 / earlier for earlier in throughputs[: line + 1])
        text += timer(10 * (line + 1), throughput, 0, mean).replace(HEAD.format(0, 0), "")
    found, dataset = diagnostics_of(folder, ingested, text)
    assert found == []
    assert dataset.runs["throughput"].tolist() == pytest.approx([2500.0])


@pytest.mark.parametrize("factor", [1, 2048])
def test_samples_by_the_clock_tell_whether_a_throughput_of_mlperf_counts_samples(folder, ingested, factor):
    """NeMo states how many samples there were at each time: 16 samples/s, without its evaluations."""
    text = (SAMPLES / "today" / "mllog_nemo_throughput_constructed.log").read_text()
    text = text.replace('{"throughput": 16.0}', f'{{"throughput": {16.0 * factor}}}')
    declared = {"framework": "nemo", "batch_per_device": 1, "tokens_per_sample": 1}
    found, dataset = diagnostics_of(folder, ingested, text, **declared)
    assert [severity for severity, _ in found] == ["error"] * (factor > 1)
    assert bool(refusals(dataset)) == (factor > 1)
    if factor == 1:
        assert dataset.runs["throughput"].tolist() == pytest.approx([16.0])


def test_a_log_of_mlperf_without_throughput_has_that_of_its_samples(folder, ingested):
    text = (SAMPLES / "today" / "mllog_nemo_constructed.log").read_text()
    found, dataset = diagnostics_of(folder, ingested, text, framework="nemo", batch_per_device=1)
    assert (found, refusals(dataset)) == ([], {})
    assert dataset.runs["throughput"].tolist() == pytest.approx([16.0], rel=1e-3)
    # With the seven evaluations of 20 s between 48 lines of 2 s.
    assert dataset.runs["wall_throughput"].tolist() == pytest.approx([47 * 32 / (47 * 2 + 7 * 20)], rel=0.02)
    assert dataset.runs["final_loss"].tolist() == pytest.approx([2 - 1536 / 2000])
