"""Slow lines of a log: stalls are left out and said to be, and lines that are training stay in the throughput."""

import pytest

from tests.logs.ingest.conftest import declare, elapse_lines, slow_down

STEPS = 400
SLOW = (14, 19, 20, 52, 61, 98, 101, 130, 166, 171, 190, 214, 233, 235, 280, 301, 312, 344, 370, 399)


def measured(folder, ingested, factors):
    """Return the row of a run whose steps take so many times as long as others, and the warnings on its throughput."""
    lines = elapse_lines(1, 128, seed=3, steps=STEPS)
    for step, factor in factors.items():
        lines[step] = slow_down(lines[step], factor)
    declare(folder)
    (folder / "run_1.log").write_text("\n".join(lines) + "\n")
    dataset = ingested()
    [run] = dataset.runs.itertuples()
    on_throughput = dataset.diagnostics[dataset.diagnostics["subject"] == "throughput"]
    return run, list(on_throughput["message"])


#: Steps with how many times as long they take; the throughput, what is said of the lines, and how many warnings there
#: are.
LINES = {
    "slow without a period": (
        dict.fromkeys(SLOW, 2.0),
        350 / 1.05,
        f"slow: {len(SLOW)} lines at no regular distance, which count",
        0,
    ),
    "slow with a period": (dict.fromkeys(range(25, STEPS, 25), 2.0), 350, "", 1),
    "above and below three times the median": ({100: 40.0, 233: 2.9}, 350 / (1 + 1.9 / STEPS), "stalls: 1 line", 1),
    "a stall of less than 1 per cent": ({100: 3.5}, 350, "stalls: 1 line", 0),
    "fast, and three times as fast": ({**dict.fromkeys(SLOW, 0.5), 350: 0.1}, 350 / 0.975, "too fast: 1 line", 0),
}


@pytest.mark.parametrize(("factors", "throughput", "phrase", "count"), LINES.values(), ids=LINES)
def test_stalls_are_left_out_and_both_throughputs_are_printed(
    folder, ingested, snapshot, factors, throughput, phrase, count
):
    run, warnings = measured(folder, ingested, factors)
    assert run.throughput == pytest.approx(throughput, rel=0.003)
    assert phrase in run.steady_window
    assert len(warnings) == count
    assert warnings == snapshot
