"""What a study ends with in a terminal, and as Markdown in a comment: the sentences and the numbers of its report."""

import re
from dataclasses import replace

import pytest

from dlperf_study.cli.reading import print_answer
from dlperf_study.dataset.dataset import collect
from dlperf_study.report.formatting import format_column
from dlperf_study.report.page_findings import page_findings
from dlperf_study.report.terminal_answer import BAR_WIDTH, CERTAIN, MOST_ROWS, UNCERTAIN, in_markdown, in_terminal
from tests.evidence_factory import Planned, Recipe, configuration, example_study
from tests.report.conftest import study


def bars(text: str) -> list[str]:
    """Return the bar of each line that has one."""
    found = [re.search(f"[{CERTAIN}{UNCERTAIN}]{{2,}}", line) for line in text.splitlines()]
    return [match[0] for match in found if match]


def unescaped(markdown: str) -> str:
    return re.sub(r"\\(.)", r"\1", markdown)


def test_it_says_what_the_first_page_says(paths):
    example_study(paths, recipe=Recipe(noise=0.05))
    dataset = collect(paths)
    text, markdown = in_terminal(dataset), unescaped(in_markdown(dataset))
    opening = page_findings(dataset, "summary").sentences
    assert opening
    # Of what the table can't list, there is a sentence in both.
    for printed in (text, markdown):
        assert "no throughput; not supported here (precision fp16 is not built)." in printed
    for sentence in opening:
        assert f"- {sentence}" in text.splitlines()
    for row in dataset.configurations.dropna(subset="throughput").itertuples():
        throughput = " ".join(format_column(row, "throughput"))
        assert any(throughput in line for line in text.splitlines())
        assert any(throughput in line for line in markdown.splitlines() if line.startswith("| "))


def test_bars_are_to_scale_and_show_the_intervals():
    slow, fast = (Recipe(compute_seconds=seconds, noise=0.02) for seconds in (0.2, 0.1))
    dataset = study(Planned(configuration(), slow), Planned(configuration(seed=1), fast))
    rows = dataset.configurations.dropna(subset="throughput").sort_values("throughput")
    first, second = sorted(bars(in_terminal(dataset)), key=len)
    scale = BAR_WIDTH / (1.25 * rows["throughput"].max())
    for bar, row in zip((first, second), rows.itertuples(), strict=True):
        assert bar.count(CERTAIN) == round(scale * row.throughput_low)
        assert len(bar) == min(BAR_WIDTH, round(scale * row.throughput_high))


@pytest.mark.parametrize("repetitions", [1, 3])
def test_a_quick_study_says_so_first_and_how_it_is_measured_in_full(repetitions, snapshot):
    planned = Planned(configuration(quick=True, repetitions=repetitions), Recipe(noise=0.05), runs=repetitions)
    dataset = study(planned, quick=True)
    first = page_findings(dataset, "summary").sentences[0]
    assert first == snapshot
    assert in_terminal(dataset).splitlines()[2] == f"- {first}"
    assert unescaped(in_markdown(dataset)).splitlines()[2] == f"- {first}"


def test_a_study_without_a_throughput_has_its_sentence_and_no_table():
    dataset = study(Planned(configuration(), Recipe(status="failed", reason="rank-0 exited with code 1")))
    assert "0 of 3 runs completed (3 failed)." in in_terminal(dataset)
    assert bars(in_terminal(dataset)) == []
    assert "| " not in in_markdown(dataset)


def test_of_many_configurations_some_are_listed_and_the_others_counted():
    text = in_terminal(study(*(Planned(configuration(seed=seed)) for seed in range(MOST_ROWS + 3))))
    assert len(bars(text)) == MOST_ROWS
    assert "3 further configurations: see the report" in text


@pytest.mark.parametrize("title", ["a | b", "*bold* [link](x) `code` <b>"])
def test_markdown_takes_nothing_of_a_text_for_its_own(mixed, title):
    dataset = replace(mixed, plan=mixed.plan.changed(title=title))
    heading = in_markdown(dataset).splitlines()[0]
    assert unescaped(heading) == f"### {title}"
    assert not re.search(r"(?<!\\)[|*_<>`\[\]]", heading)


def test_the_command_prints_it_and_writes_the_markdown(paths, tmp_path, capsys):
    example_study(paths)
    file = tmp_path / "comments" / "answer.md"
    print_answer(paths, file)
    dataset = collect(paths)
    assert in_terminal(dataset) in capsys.readouterr().out
    assert file.read_text() == in_markdown(dataset)
