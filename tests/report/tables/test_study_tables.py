"""The tables of a study's own numbers, from constructed studies."""

from dataclasses import replace

import pytest

from dlperf_study.dataset.dataset import collect
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.report import tables
from dlperf_study.report.context import repetition
from dlperf_study.report.formatting import MISSING
from dlperf_study.report.section import evidence_anchor
from dlperf_study.study.study import SECTIONS
from tests.evidence_factory import Planned, Recipe, change, configuration, write_run
from tests.report.conftest import ALONE, TOGETHER, on_devices, study, write_titled
from tests.report.tables.cells import assert_dashes_have_reasons, cell_of, facts, labels

CONFIGURATION_TABLES = (tables.measured, tables.scaling, tables.communication, tables.comparison, tables.differences)
THROUGHPUT, SPEEDUP = COLUMNS["throughput"].label, COLUMNS["speedup"].label
FAILED = Recipe(status="failed", reason="exit 1")


@pytest.mark.parametrize("build", CONFIGURATION_TABLES)
def test_every_planned_configuration_has_a_row_under_the_conditions_of_its_numbers(mixed, build, snapshot):
    table = build(mixed)
    assert len(table.rows) == len(mixed.plan.entries)
    assert table.caption == snapshot
    assert_dashes_have_reasons(table)


@pytest.mark.parametrize("name", tables.__all__)
def test_the_files_of_a_table_have_its_name(mixed, name):
    assert getattr(tables, name)(mixed).name.replace("-", "_") == name


def test_why_a_number_or_its_interval_is_missing(mixed, snapshot):
    """Out of memory, unsupported, a failed baseline, and too few runs."""
    measured = tables.measured(mixed)
    assert cell_of(measured, "2", THROUGHPUT, "collective").interval.startswith("[")
    cells = [
        cell_of(measured, "8", THROUGHPUT, "collective"),
        cell_of(measured, "1", THROUGHPUT, "fp16"),
        cell_of(tables.scaling(mixed), "2", SPEEDUP, "asynchronous"),
        cell_of(measured, "4", THROUGHPUT, "collective"),
    ]
    assert [(cell.text == MISSING, cell.interval) for cell in cells] == [(True, "")] * 3 + [(False, "")]
    assert [cell.footnote for cell in cells] == snapshot
    assert len(tables.failures(mixed).rows) == len(tables.unsupported(mixed).rows) == 1
    assert_dashes_have_reasons(tables.memory(mixed))


@pytest.mark.parametrize(
    ("build", "ratio", "denominator"),
    [
        (tables.scaling, "speedup", "baseline_throughput"),
        (tables.comparison, "relative_throughput", "reference_throughput"),
    ],
)
def test_a_ratio_is_next_to_the_throughput_it_is_relative_to(mixed, build, ratio, denominator):
    ratios, denominators = (build(mixed).column(COLUMNS[name].label) for name in (ratio, denominator))
    assert [r for r, d in zip(ratios, denominators, strict=True) if r != MISSING and d == MISSING] == []


def test_a_comparison_has_groups_verdicts_and_a_reference_that_differs_in_nothing(mixed):
    table = tables.comparison(mixed)
    assert table.groups[:2] == ("ResNet-50 · 1 device",) * 2
    significance = cell_of(
        table, "2", COLUMNS["significance"].label, "2 devices", framework="PaddlePaddle parameter server"
    )
    assert significance.text.startswith("equal within ")
    reference = tables.differences(mixed).rows[0]
    assert [reference[position].text for position in (2, 4, 6, 7)] == ["0", "0", "0", "reference"]
    assert cell_of(tables.scaling(mixed), "2", COLUMNS["parameter_servers"].label, "asynchronous").text == "1"


def test_diagnostics_are_on_the_summary_and_a_run_that_did_not_complete_has_no_values(mixed):
    on_pages = {row for question in SECTIONS for row in tables.diagnostics(mixed, question).rows}
    assert set(tables.diagnostics(mixed).rows) == on_pages != set()
    [failed] = [row for row in tables.stability(mixed).rows if any(cell.text == "out of memory" for cell in row)]
    assert [cell for cell in failed if "does not count" in cell.footnote]
    rows = mixed.configurations.assign(bus_bandwidth=9e8, communication_bandwidth=1.1e9)
    headings = tables.communication_alone(replace(mixed, configurations=rows)).headings
    assert {h.unit for h in headings if h.label in {COLUMNS["bus_bandwidth"].label, "Fitted bandwidth"}} == {"MB/s"}


def test_pages_and_studies_without_numbers_still_speak(snapshot):
    clean = on_devices(1)
    assert clean.diagnostics.empty
    diagnostic = {"subject": "trace", "message": "it is cut", "severity": "error"}
    odd = replace(clean, diagnostics=clean.diagnostics.reindex([0]).assign(**diagnostic))
    assert [tables.diagnostics(dataset, "scaling").empty for dataset in (clean, odd)] == snapshot
    assert "it is cut" in tables.diagnostics(odd)._repr_html_()
    dataset = study(Planned(configuration(), FAILED, runs=1))
    assert tables.measured(dataset).column(THROUGHPUT) == [MISSING]
    assert [tables.scaling(dataset).caption, tables.environments(dataset).empty] == snapshot


@pytest.mark.parametrize("question", ["", "scaling", "comparison", "quality"])
def test_a_warning_about_cores_is_one_row_wherever_there_are_throughputs(question):
    dataset = on_devices(2, recipe=Recipe(cores=1, busy_cores=1.5))
    rows = tables.diagnostics(dataset, question).rows
    [cores] = [row for row in rows if row[3].text == COLUMNS["cores"].label]
    assert cores[2].text == "1, 2, 3"


def test_a_study_without_references_or_breakdown_gives_the_reason(snapshot):
    table = tables.comparison(on_devices(1))
    assert (table.is_empty, table.empty) == (True, snapshot)
    reference = configuration()
    planned = [Planned(reference, ALONE, reference=reference)]
    for framework, batch, recipe, runs in (("torch_1", 64, Recipe(0.2), 3), ("torch_2", 32, ALONE, 1)):
        planned.append(
            Planned(configuration(framework=framework, batch_per_device=batch), recipe, runs, reference=reference)
        )
    assert [[cell.footnote for cell in row] for row in tables.differences(study(*planned)).rows] == snapshot


@pytest.mark.parametrize("counts", [(1, 2), (2, 1)])
def test_a_diagnostic_is_a_footnote_of_its_number_also_of_a_baseline(counts):
    recipes = {1: TOGETHER, 2: Recipe(compute_seconds=0.065)}
    dataset = study(*(Planned(configuration(devices_per_node=count), recipes[count]) for count in counts))
    cells = [cell for row in tables.scaling(dataset).rows for cell in row]
    flagged = {cell.text for cell in cells if "linear: from 1 to 2 devices" in cell.footnote}
    # The first is the baseline of the other: its ratios are 1 by definition.
    assert ("1" in flagged) == (counts == (2, 1))
    assert flagged


@pytest.mark.parametrize(
    ("batches", "groups"), [((64, 32), {"Global batch 64", "Global batch 32"}), ((64,), {""})], ids=["two", "one"]
)
def test_under_strong_scaling_the_global_batch_names_the_series(batches, groups):
    planned = [
        Planned(configuration(batch_per_device=batch // devices, devices_per_node=devices), ALONE)
        for devices in (2, 1)
        for batch in batches
    ]
    assert set(tables.scaling(study(*planned, scaling="strong")).groups) == groups


def test_a_batch_that_cant_be_shared_is_no_batch_of_zero():
    none = configuration(batch_per_device=0, devices_per_node=3)
    planned = [Planned(configuration(batch_per_device=16), ALONE), Planned(none, unsupported="can't be shared")]
    table = tables.scaling(study(*planned, scaling="strong"))
    assert set(table.groups) == {""}
    assert table.column(COLUMNS["batch_per_device"].label) == ["16", MISSING]


def test_a_quick_study_is_labelled_on_every_table(paths):
    dataset = write_titled(paths, [Planned(configuration(quick=True), ALONE)], quick=True)
    further = (tables.stability, tables.failures, tables.unsupported, tables.diagnostics)
    built = [build(dataset) for build in (*CONFIGURATION_TABLES, *further, tables.about, tables.environments)]
    assert [table.name for table in built if "not for publication" not in table.caption] == []


def test_ratios_are_shown_only_where_they_say_something(mixed):
    assert COLUMNS["efficiency"].label in labels(tables.measured(mixed))
    batches = [configuration(batch_per_device=count) for count in (4, 8)]
    of_one_size = study(*(Planned(each, ALONE) for each in batches))
    assert COLUMNS["efficiency"].label not in labels(tables.measured(of_one_size))
    alone = labels(tables.measured(study(*(Planned(each, ALONE, baseline=each) for each in batches))))
    assert THROUGHPUT in alone
    assert SPEEDUP not in alone


def test_what_of_the_training_is_not_the_default_is_in_captions_and_on_the_summary(paths, snapshot):
    unusual = {"gradient_compression": "fp16", "optimizer": "momentum", "memory_format": "nhwc", "image_size": 32}
    fixed = {"classes": 10, "seed": 7, "fusion_mib": 16}
    further = {"compute_only_steps": -1, "max_warmup_seconds": 2.0, "repetitions": 1}
    dataset = write_titled(paths, [Planned(configuration(**unusual | fixed | further), ALONE, runs=1)])
    assert tables.measured(dataset).caption == snapshot
    shown = facts(tables.about(dataset))
    assert shown == snapshot
    assert COLUMNS["loss_scaling"].label not in shown


@pytest.mark.parametrize("batches", [(0, 8), (0, 0)])
def test_a_global_batch_that_is_not_shared_equally_gives_no_batch(paths, batches, snapshot):
    dataset = study(*(Planned(configuration(seed=seed), ALONE) for seed in (1, 2)))
    rows = dataset.configurations.assign(batch_per_device=batches)
    shown = facts(tables.about(replace(dataset, configurations=rows)))
    assert shown[COLUMNS["batch_per_device"].label] == snapshot


def test_the_environment_says_how_nodes_were_reached_and_not_where_a_user_keeps_a_file():
    two = configuration(nodes=2, cluster="/somewhere/of/mine/my_hosts.yaml")
    nodes = ({"name": "h_1", "address": "10.0.0.2", "interface": "ib0"}, {"name": "h_2"})
    dataset = study(Planned(two, Recipe(nodes=nodes), runs=1))
    shown = facts(tables.environments(dataset))
    named = [shown[COLUMNS[name].label] for name in ("cluster", "launcher", "addresses")]
    assert named == ["my_hosts", "local", "h_1 10.0.0.2 (ib0)"]
    assert "/somewhere" not in "".join(table.to_csv() for table in (dataset.runs, dataset.configurations))


def test_runs_on_one_machine_are_of_one_environment_whatever_their_clocks_were():
    dataset = study(Planned(configuration(), ALONE))
    clocks = [2101.0, 2596.1, 2300.0]
    runs = dataset.runs.assign(cpu_mhz=clocks, cpu_cache_bytes=20 * 2**20)
    table = tables.environments(replace(dataset, runs=runs))
    assert len(table.headings) == 2
    assert facts(table)[COLUMNS["cpu_mhz"].label].replace("\N{NARROW NO-BREAK SPACE}", "") == "2100 MHz to 2600 MHz"
    assert facts(table)[COLUMNS["cpu_cache_bytes"].label] == "21.0 MB"
    assert COLUMNS["cpu_mhz"].label not in facts(tables.environments(dataset))


def test_only_runs_that_count_make_a_throughput_doubtful_and_they_share_a_footnote(paths, snapshot):
    first = configuration()
    write_titled(paths, [Planned(first)])
    write_run(paths, first, 4, Recipe(busy_cores=1.5, status="timeout", reason="no end"))
    assert not [
        footnote for footnote in tables.measured(collect(paths)).footnotes if "background load" in str(footnote)
    ]
    for repetition_number, busy_cores in ((1, 0.5), (3, 1.75)):
        load = {"busy_cores_before": 0.0, "busy_cores_during": busy_cores, "orphans_ended": [], "waited_seconds": 0.0}
        change(paths.configuration(first.configuration_id).run(repetition_number), load=load)
    assert [str(note) for note in tables.measured(collect(paths)).footnotes if "busy" in str(note)] == snapshot


def test_the_summary_says_what_was_planned_and_what_precision_added(paths, snapshot):
    first, second = configuration(devices_per_node=1), configuration(devices_per_node=2)
    course = {"target_ci": 0.05, "max_repetitions": 8, "time_budget_minutes": 30.0, "order_seed": 7}
    planned = [Planned(first, runs=first.repetitions), Planned(second, runs=second.repetitions + 1)]
    dataset = write_titled(paths, planned, **course)
    table = tables.about(dataset)
    rows = [
        facts(table)[name] for name in ("Order of the runs", "Target margin of the 95 % CIs", "Target compared after")
    ]
    assert [*rows, table.caption, repetition(dataset)] == snapshot
    counts = tables.measured(dataset).column(COLUMNS["runs_completed"].label)
    assert counts == [f"{n} of {n}" for n in (first.repetitions, second.repetitions + 1)]


def test_a_study_without_precision_says_nothing_about_it(paths):
    dataset = write_titled(paths, [Planned(configuration(), runs=configuration().repetitions)])
    table = tables.about(replace(dataset, plan=dataset.plan.changed(order="sequential")))
    assert facts(table)["Order of the runs"] == "sequential"
    assert not [name for name in facts(table) if "Target" in name]
    assert "added" not in table.caption
    assert "93" not in repetition(dataset)


def test_links_to_runs_arrive_whatever_their_numbers_are(mixed):
    runs = mixed.runs.assign(repetition=mixed.runs["repetition"] + 20201112090000)
    anchors = [row[0].anchor for row in tables.runs(replace(mixed, runs=runs)).rows if row[0].anchor]
    assert sorted(anchors) == sorted(map(evidence_anchor, runs["configuration_id"].unique()))


def test_a_run_without_memory_is_among_the_failures_where_others_completed():
    requested = configuration(devices_per_node=1)
    dataset = study(Planned(requested, Recipe(), runs=3))
    lacking = dataset.runs["status"].mask(dataset.runs["repetition"] == 3, "out_of_memory")
    some = tables.failures(replace(dataset, runs=dataset.runs.assign(status=lacking)))
    assert some.column("Status") == ["out of memory"]
    none_fits = tables.failures(replace(dataset, runs=dataset.runs.assign(status="out_of_memory")))
    assert (none_fits.is_empty, "out of memory" in none_fits.empty) == (True, True)
