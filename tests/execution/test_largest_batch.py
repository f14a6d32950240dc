"""The largest batch that fits in memory, found by training."""

import json
import shutil

import pytest

from dlperf_study.dataset.dataset import collect
from dlperf_study.report import tables
from tests.command_line import LIMIT_SECONDS, Workplace, workplace
from tests.conftest import left_over

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)

STUDY = """\
title: Largest batch
about: Made for tests.
sections: [quality]
scaling: weak
constants: {framework: paddle_collective, strategy: all_reduce, model: mobilenet_v2, image_size: 160, classes: 10}
factors: {batch_per_device: [1], memory_limit_mib: [416]}
baseline: {}
measurement: {warmup_steps: 1, max_warmup_seconds: 0, measured_steps: 1, repetitions: 1, timeout_seconds: 120}
largest_batch: {at_most: 8}
"""


def statuses(place: Workplace) -> dict[int, str]:
    """Return how the run of each batch ended that was tried, by the records."""
    ended = {}
    for file in place.study.configurations.glob("*/runs/1/run.json"):
        facts = json.loads(file.read_text())
        if facts["configuration"]["warmup_steps"] == 2:
            ended[facts["configuration"]["batch_per_device"]] = facts["status"]
    return ended


def test_the_largest_batch_that_trains_is_found_and_a_search_goes_on_where_it_stopped(tmp_path):
    place = workplace(tmp_path, STUDY, shares_machine=True)
    assert "1  at most 4 short runs left" in place.command("plan").stdout
    done = place.command("run --no-report")
    assert (done.returncode, done.stderr) == (0, "")
    assert not left_over()
    ended = statuses(place)
    largest = max(batch for batch, status in ended.items() if status == "completed")
    assert 1 <= largest < 8
    assert (ended[8], ended[largest + 1]) == ("out_of_memory", "out_of_memory")
    assert set(ended.values()) == {"completed", "out_of_memory"}
    assert f"    largest batch per device: {largest}, out of memory at {largest + 1}\n" in done.stdout
    assert "out of memory: paddle" not in done.stdout

    dataset = collect(place.study)
    [row] = dataset.configurations.itertuples()
    assert (row.largest_batch, row.too_large_batch, row.batch_probes) == (largest, largest + 1, len(ended))
    assert len(dataset.runs) == 1
    assert not any("not in the plan" in message for message in dataset.diagnostics["message"])
    memory = tables.memory(dataset)
    assert (memory.column("Largest batch"), memory.column("Probes")) == ([str(largest)], [str(len(ended))])

    assert f"1  {largest}, out of memory at {largest + 1}" in place.command("plan").stdout
    shutil.rmtree(place.configuration("-b8-").folder)
    again = place.command("run --no-report")
    assert again.stdout.count("run 1 …") == 1
    assert statuses(place) == ended
