import json
from dataclasses import replace

import pytest

from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.paths import StudyPaths
from dlperf_study.report import tables
from dlperf_study.report.formatting import MISSING
from dlperf_study.report.tables.study_tables import MOST_PAIRS
from dlperf_study.study.study import question_names
from tests.evidence_factory import Planned, Recipe, configuration, write_lines
from tests.report.conftest import ALONE, TOGETHER, write_titled
from tests.report.tables.cells import cell_of

CONFIGURATION_TABLES = (
    tables.measured,
    tables.scaling,
    tables.communication,
    tables.comparison,
    tables.differences,
)

LATENCY_AND_RATE = ("exchange_latency_seconds", "exchange_bandwidth")


@pytest.mark.parametrize("build", CONFIGURATION_TABLES)
def test_every_planned_configuration_has_a_row(mixed: Dataset, build: object) -> None:
    assert len(build(mixed).rows) == len(mixed.plan.entries)


@pytest.mark.parametrize("build", CONFIGURATION_TABLES)
def test_captions_give_the_conditions_of_the_numbers(mixed: Dataset, build: object) -> None:
    caption = build(mixed).caption
    owed = ("Constructed CPU", "devices: 1, 2 and 4", "nodes: 1", "loopback", "fp32", "batch per device: 32")
    owed += ("image size: 224", "synthetic", "PaddlePaddle 3.0.0", "weak scaling", "merged by the slowest")
    owed += ("95 % t intervals over runs",)
    assert [word for word in owed if word not in caption] == []


@pytest.mark.parametrize("build", [*CONFIGURATION_TABLES, tables.memory])
def test_every_dash_has_a_reason_and_nothing_prints_as_nan(mixed: Dataset, build: object) -> None:
    cells = [cell for row in build(mixed).rows for cell in row]
    assert [cell for cell in cells if cell.text == MISSING and not cell.footnote] == []
    assert [cell for cell in cells if "nan" in cell.text.lower() or "<NA>" in cell.text] == []


def test_peaks_of_memory_are_those_that_were_counted(mixed: Dataset) -> None:
    """No library of the study counts what its tensors take, so the table has no such column."""
    table = tables.memory(mixed)
    assert len(table.rows) == len(mixed.plan.entries)
    peaks = [heading.label for heading in table.headings if "Peak" in heading.label]
    assert peaks == ["Peak of the process"]
    assert cell_of(table, "4", "Peak of the process", "PaddlePaddle").text == "315"
    assert "asked for 100 % of it" in cell_of(table, "8", "Peak of the process", "PaddlePaddle").footnote


def test_a_speedup_is_next_to_its_baselines_throughput(mixed: Dataset) -> None:
    labels = [heading.label for heading in tables.scaling(mixed).headings]
    assert {COLUMNS["baseline_throughput"].label, COLUMNS["speedup"].label} <= set(labels)
    speedups, baselines = (tables.scaling(mixed).column(COLUMNS[n].label) for n in ("speedup", "baseline_throughput"))
    assert [s for s, b in zip(speedups, baselines, strict=True) if s != MISSING and b == MISSING] == []


def test_three_runs_have_an_interval_and_two_say_why_not(mixed: Dataset) -> None:
    throughput = COLUMNS["throughput"].label
    assert cell_of(tables.measured(mixed), "2", throughput, "collective").interval.startswith("[")
    bare = cell_of(tables.measured(mixed), "4", throughput, "collective")
    assert (bare.interval, bare.footnote) == ("", "2 completed runs: an interval needs 3")


def test_without_a_baseline_there_is_no_speedup(mixed: Dataset) -> None:
    speedup = cell_of(tables.scaling(mixed), "2", COLUMNS["speedup"].label, "asynchronous")
    assert speedup.text == MISSING
    assert "timeout (no end after 600 s)" in speedup.footnote


def test_failures_and_unsupported_give_their_reasons(mixed: Dataset) -> None:
    throughput = COLUMNS["throughput"].label
    assert (
        "does not fit in memory: trainer-0 asked"
        in cell_of(tables.measured(mixed), "8", throughput, "collective").footnote
    )
    assert "unsupported: precision fp16" in cell_of(tables.measured(mixed), "1", throughput, "fp16").footnote
    assert len(tables.failures(mixed).rows) == 1
    assert tables.unsupported(mixed).column(COLUMNS["unsupported_reason"].label) == ["precision fp16 is not built"]


def test_servers_are_shown(mixed: Dataset) -> None:
    assert cell_of(tables.scaling(mixed), "2", COLUMNS["servers"].label, "asynchronous").text == "1"


def test_every_diagnostic_is_on_the_summary_and_on_a_page(mixed: Dataset) -> None:
    everything = set(tables.diagnostics(mixed).rows)
    assert (
        everything
        == {row for question in question_names() for row in tables.diagnostics(mixed, question).rows}
        != set()
    )


def test_a_page_without_diagnostics_does_not_speak_for_all(paths: StudyPaths) -> None:
    clean = write_titled(paths, [Planned(configuration())])
    assert clean.diagnostics.empty
    assert "own runs has a diagnostic." in tables.diagnostics(clean, "scaling")._repr_html_()
    diagnostic = {"subject": "trace", "message": "it is cut", "severity": "error"}
    odd = replace(clean, diagnostics=clean.diagnostics.reindex([0]).assign(**diagnostic))
    assert (
        "No diagnostic is about what this page shows; the summary" in tables.diagnostics(odd, "scaling")._repr_html_()
    )
    assert "it is cut" in tables.diagnostics(odd)._repr_html_()


def test_a_warning_about_every_run_is_one_row(paths: StudyPaths) -> None:
    dataset = write_titled(paths, [Planned(configuration(devices_per_node=2), Recipe(cores=1, busy_cores=1.5))])
    table = tables.diagnostics(dataset)
    [row] = [row for row in table.rows if row[3].text == COLUMNS["cores"].label]
    assert row[2].text == "1, 2, 3"


@pytest.mark.parametrize("question", ["scaling", "comparison", "quality"])
def test_a_warning_about_cores_is_shown_wherever_there_are_rates(paths: StudyPaths, question: str) -> None:
    dataset = write_titled(paths, [Planned(configuration(devices_per_node=2), Recipe(cores=1))])
    assert COLUMNS["cores"].label in tables.diagnostics(dataset, question).column(COLUMNS["subject"].label)


def test_a_comparison_is_next_to_the_throughput_of_its_reference(mixed: Dataset) -> None:
    table = tables.comparison(mixed)
    ratios, references = (table.column(COLUMNS[n].label) for n in ("relative_throughput", "reference_throughput"))
    assert [r for r, b in zip(ratios, references, strict=True) if r != MISSING and b == MISSING] == []
    assert table.groups[:2] == ("ResNet-50 · 1 device",) * 2
    verdict = cell_of(table, "2", COLUMNS["verdict"].label, "2 devices", framework="PaddlePaddle parameter server")
    assert verdict.text.startswith("equal within ")


def test_the_parts_of_a_difference_are_shown_and_a_reference_differs_from_itself_in_nothing(mixed: Dataset) -> None:
    table = tables.differences(mixed)
    reference = table.rows[0]
    assert [reference[place].text for place in (2, 4, 6, 7)] == ["0", "0", "0", "reference"]


def test_without_references_the_comparison_says_so(paths: StudyPaths) -> None:
    dataset = write_titled(paths, [Planned(configuration(), ALONE)])
    assert "declares no reference" in tables.comparison(dataset)._repr_html_()


def test_a_comparison_without_breakdown_or_interval_gives_the_reason(paths: StudyPaths) -> None:
    ours = configuration()
    others = [configuration(framework=f"torch_{n}", batch_per_device=batch) for n, batch in ((1, 64), (2, 32))]
    planned = [
        Planned(ours, ALONE, reference=ours),
        Planned(others[0], Recipe(0.2), reference=ours),
        Planned(others[1], ALONE, runs=1, reference=ours),
    ]
    notes = [[cell.footnote for cell in row] for row in tables.differences(write_titled(paths, planned)).rows]
    assert "its reference has a different global batch, so a step is different work" in notes[1]
    assert "1 completed run: an interval needs 3" in notes[2]


def test_a_diagnostic_is_a_footnote_of_its_number(paths: StudyPaths) -> None:
    one, two = (configuration(devices_per_node=count) for count in (1, 2))
    dataset = write_titled(paths, [Planned(one, TOGETHER), Planned(two, Recipe(computation_seconds=0.01))])
    flagged = [cell.footnote for row in tables.scaling(dataset).rows for cell in row]
    assert any("linear: from 1 to 2 devices" in note for note in flagged)


def test_a_diagnosed_baseline_is_flagged_too(paths: StudyPaths) -> None:
    one, two = (configuration(devices_per_node=count) for count in (1, 2))
    planned = [Planned(two, Recipe(computation_seconds=0.01)), Planned(one, TOGETHER)]
    [flagged] = [
        c for row in tables.scaling(write_titled(paths, planned)).rows for c in row if c.text == "1" and c.footnote
    ]
    assert "linear: from 1 to 2 devices" in flagged.footnote


def test_under_strong_scaling_the_global_batch_names_the_series(paths: StudyPaths) -> None:
    planned = [
        *(Planned(configuration(batch_per_device=batch, devices_per_node=2), ALONE) for batch in (32, 16)),
        *(Planned(configuration(batch_per_device=batch), ALONE) for batch in (64, 32)),
    ]
    table = tables.scaling(write_titled(paths, planned, scaling="strong"))
    assert set(table.groups) == {"Global batch 64", "Global batch 32"}
    assert "global batch: 32 and 64" in table.caption


def test_a_batch_that_cant_be_shared_is_no_batch_of_zero(paths: StudyPaths) -> None:
    none = configuration(batch_per_device=0, devices_per_node=3)
    planned = [Planned(configuration(batch_per_device=16), ALONE), Planned(none, unsupported="can't be shared")]
    table = tables.scaling(write_titled(paths, planned, scaling="strong"))
    assert set(table.groups) == {""}
    assert table.column(COLUMNS["batch_per_device"].label) == ["16", MISSING]


def test_what_the_runs_cant_tell_apart_is_not_ranked(paths: StudyPaths) -> None:
    noisy = Recipe(noise=0.05)
    planned = [Planned(configuration(framework=name), noisy) for name in ("paddle_collective", "horovod_torch")]
    dataset = write_titled(paths, planned, precision=0.001)
    assert tables.scaling(dataset).column(COLUMNS["baseline_verdict"].label) == ["baseline", "not distinguishable"]
    assert any("not distinguishable" in note for note in tables.measured(dataset).notes)


def test_of_many_pairs_that_are_alike_the_first_are_named_and_the_others_counted(paths: StudyPaths) -> None:
    planned = [Planned(configuration(seed=seed), ALONE) for seed in range(8)]
    dataset = write_titled(paths, planned, precision=0.5)
    [note] = [note for note in tables.measured(dataset).notes if "Seed 0 and Seed 1" in note]
    pairs = 8 * 7 // 2
    assert note.endswith(f"; and {pairs - MOST_PAIRS} more.")
    assert note.count(" and Seed ") == MOST_PAIRS


def test_a_study_without_any_completed_run_still_has_tables(paths: StudyPaths) -> None:
    dataset = write_titled(paths, [Planned(configuration(), Recipe(outcome="failed", reason="exit 1"), runs=1)])
    assert tables.measured(dataset).column(COLUMNS["throughput"].label) == [MISSING]
    assert "Nothing was measured" in tables.scaling(dataset).caption
    assert "No run completed." in tables.environments(dataset)._repr_html_()


def test_a_quick_study_is_labelled_on_every_table(paths: StudyPaths) -> None:
    dataset = write_titled(paths, [Planned(configuration(quick=True), ALONE)], quick=True)
    every = (
        *CONFIGURATION_TABLES,
        tables.stability,
        tables.failures,
        tables.unsupported,
        tables.diagnostics,
    )
    captions = [build(dataset).caption for build in (*every, tables.about, tables.environments)]
    assert [caption for caption in captions if "not for publication" not in caption] == []


def test_only_a_caption_of_ratios_speaks_of_their_intervals(mixed: Dataset) -> None:
    sentence = "Intervals of ratios and differences come from runs of the same round."
    built = (tables.scaling, tables.comparison, tables.differences, tables.communication)
    assert [sentence in build(mixed).caption for build in built] == [True, True, True, False]


def test_an_efficiency_is_shown_only_where_a_baseline_has_another_number_of_devices(
    mixed: Dataset, paths: StudyPaths
) -> None:
    label = COLUMNS["efficiency"].label
    assert label in [heading.text for heading in tables.measured(mixed).headings]
    batches = [Planned(configuration(batch_per_device=count, repeats=1), ALONE, runs=1) for count in (4, 8)]
    dataset = write_titled(paths, batches)
    assert label not in [heading.text for heading in tables.measured(dataset).headings]
    facts = {name.text: value.text for name, value in tables.about(dataset).rows}
    assert facts["Repeats"] == "1 run"


def test_a_study_in_which_each_is_its_own_baseline_shows_no_speedup(paths: StudyPaths) -> None:
    own = [configuration(batch_per_device=count) for count in (4, 8)]
    dataset = write_titled(paths, [Planned(each, ALONE, baseline=each) for each in own])
    headings = [heading.label for heading in tables.measured(dataset).headings]
    assert COLUMNS["throughput"].label in headings
    assert COLUMNS["speedup"].label not in headings


def test_a_caption_names_what_of_the_training_is_not_the_default(paths: StudyPaths) -> None:
    unusual = {"gradient_compression": "fp16", "optimizer": "momentum", "memory_format": "nhwc", "image_size": 32}
    dataset = write_titled(paths, [Planned(configuration(**unusual), ALONE)])
    caption = tables.measured(dataset).caption
    owed = ("image size: 32", "gradients travel as: fp16", "optimizer: momentum", "memory format: NHWC")
    assert [words for words in owed if words not in caption] == []


def test_the_study_is_shown_with_every_fixed_parameter_that_is_not_the_default(paths: StudyPaths) -> None:
    fixed = {"image_size": 32, "classes": 10, "trace_steps": 6, "seed": 7, "fusion_mib": 16}
    table = tables.about(write_titled(paths, [Planned(configuration(**fixed), ALONE)]))
    shown = {row[0].text: row[1].text for row in table.rows}
    assert [shown[COLUMNS[name].label] for name in fixed] == ["32 pixels", "10", "6", "7", "16 MiB"]
    assert COLUMNS["loss_scaling"].label not in shown


@pytest.mark.parametrize(("batches", "words"), [((0, 8), "8 samples; none"), ((0, 0), "none")])
def test_a_global_batch_that_is_not_shared_equally_gives_no_batch(
    paths: StudyPaths, batches: tuple[int, int], words: str
) -> None:
    dataset = write_titled(paths, [Planned(configuration(seed=seed), ALONE) for seed in (1, 2)])
    rows = dataset.configurations.assign(batch_per_device=batches)
    shown = {row[0].text: row[1].text for row in tables.about(replace(dataset, configurations=rows)).rows}
    expected = f"{words} where the global batch can't be shared equally"
    assert shown[COLUMNS["batch_per_device"].label] == expected


def test_the_place_has_a_short_commit_and_the_variables_that_set_libraries(mixed: Dataset) -> None:
    shown = {row[0].text: row[1].text for row in tables.environments(mixed).rows}
    assert shown[COLUMNS["git_commit"].label] == "0" * 12
    assert shown[COLUMNS["library_settings"].label] == "OMP_NUM_THREADS=1"


def test_a_missing_peak_is_missing_in_the_cluster_file(paths: StudyPaths) -> None:
    dataset = write_titled(paths, [Planned(configuration(), Recipe(peak_flops=None))])
    [cell] = [row[1] for row in tables.environments(dataset).rows if row[0].text == COLUMNS["device_peak_flops"].label]
    assert (cell.text, cell.footnote) == (MISSING, "neither the cluster file nor the table of data sheets has it")


def test_the_place_says_how_it_was_reached_and_leaves_out_where_a_user_keeps_a_file(paths: StudyPaths) -> None:
    two = configuration(nodes=2, cluster="/somewhere/of/mine/my_hosts.yaml")
    there = ({"name": "h_1", "address": "10.0.0.2", "interface": "ib0"}, {"name": "h_2"})
    dataset = write_titled(paths, [Planned(two, Recipe(nodes=there), runs=1)])
    shown = {row[0].text: row[1].text for row in tables.environments(dataset).rows}
    named = [shown[COLUMNS[name].label] for name in ("cluster", "launcher", "addresses")]
    assert named == ["my_hosts", "local", "h_1 10.0.0.2 (ib0)"]
    assert "/somewhere" not in "".join(table.to_csv() for table in (dataset.runs, dataset.configurations))


@pytest.mark.parametrize("build", [tables.measured, tables.scaling, tables.comparison])
def test_a_rate_whose_steps_are_not_steady_says_so(paths: StudyPaths, build: object) -> None:
    planned = configuration()
    write_titled(paths, [Planned(planned, ALONE, reference=planned)])
    log = paths.configuration(planned.identity).run(2).rank_log(0)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    [window] = [line for line in lines if line.get("name") == "training"]
    window["step_seconds"] = [seconds * (1 + (step < 8)) for step, seconds in enumerate(window["step_seconds"])]
    window["seconds"] = sum(window["step_seconds"])
    write_lines(log, lines)
    notes = [c.footnote for row in build(collect(paths)).rows for c in row]
    assert any("run 2: parts of the window differ by " in note for note in notes)


def test_a_run_that_did_not_complete_has_no_values(mixed: Dataset) -> None:
    [failed] = [row for row in tables.stability(mixed).rows if any(cell.text == "out of memory" for cell in row)]
    assert "the run does not count" in [cell.footnote for cell in failed]
