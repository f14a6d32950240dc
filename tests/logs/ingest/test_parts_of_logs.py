"""Several runs in one log, one after the other: the identity file says which part is which run."""

import pytest

from dlperf_study.core.errors import MetadataError
from tests.logs.ingest.conftest import THROUGHPUT, elapse_lines, refusals, slow_down, write_identity

LOG = "all.log"


def write(folder, parts, text):
    """Write a log, and an identity file with a repetition for each of these parts."""
    runs = [{"repetition": number, "logs": [LOG]} for number in range(1, len(parts) + 1)]
    for run, part in zip(runs, parts, strict=True):
        if part:
            run["part"] = part
    write_identity(folder / "metadata.yaml", runs)
    (folder / LOG).write_text(text)


def run_of(throughput, seed):
    """Return the lines of a run, whose head states a batch."""
    head, *lines = elapse_lines(1, 128, seed, head=("batch_size: 128",))
    slowed = [slow_down(line, THROUGHPUT / throughput) for line in lines]
    return "\n".join([head, *slowed, ""])


def test_each_part_is_a_run_of_its_own(folder, ingested):
    write(folder, (1, 3), run_of(350, 1) + run_of(175, 2) + run_of(300, 3))
    dataset = ingested()
    assert refusals(dataset) == {}
    assert dataset.runs["throughput"].tolist() == pytest.approx([350, 300], rel=0.002)
    assert dataset.runs["printed_lines"].tolist() == [121, 121]
    assert not dataset.diagnostics["message"].str.contains("start over").any()


def test_ranks_of_one_stream_start_over_together(folder, ingested):
    """The second rank of a run starts over one line after the first."""
    runs = []
    for seed, throughput in ((1, 350), (2, 175)):
        first, second = run_of(throughput, seed).splitlines()[1:], run_of(throughput, seed + 5).splitlines()[1:]
        runs += [
            f"[1,{rank}]<stdout>:{line}\n" for pair in zip(first, second, strict=True) for rank, line in enumerate(pair)
        ]
    write(folder, (1, 2), "".join(runs))
    configuration_id = folder / "metadata.yaml"
    configuration_id.write_text(configuration_id.read_text().replace("devices_per_node: 1", "devices_per_node: 2"))
    dataset = ingested()
    assert refusals(dataset) == {}
    assert dataset.runs["throughput"].tolist() == pytest.approx([700, 350], rel=0.01)


def test_a_part_that_a_log_does_not_have_is_refused(folder, ingested):
    write(folder, (1, 3), run_of(350, 1) + run_of(300, 2))
    assert refusals(ingested()) == {"1n1g 2": f"{LOG}: has 2 runs, but no part 3"}


@pytest.mark.parametrize("parts", [(1, 1), (0, 1), (0, 0)])
def test_a_part_belongs_to_one_run(folder, ingested, parts):
    write(folder, parts, run_of(350, 1) + run_of(300, 2))
    with pytest.raises(MetadataError, match=f"{LOG}: named 2 times, but a log belongs to one run"):
        ingested()


def test_a_log_of_several_runs_without_parts_is_refused_with_the_remedy(folder, ingested, snapshot):
    write(folder, (0,), run_of(350, 1) + run_of(300, 2))
    [reason] = refusals(ingested()).values()
    assert reason == snapshot
