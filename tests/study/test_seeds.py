"""Each study after a published source against the tables of that source, cell by cell."""

from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest

from dlperf_study.audit.published import load, read_source
from dlperf_study.audit.published.same_question import SameQuestion
from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.resources import PARAMS
from dlperf_study.metrics.statistics import rounds_needed
from dlperf_study.study.configuration import study_parameters
from dlperf_study.study.plan import build_plan
from dlperf_study.study.study_file import load_study
from dlperf_study.training import frameworks
from tests.study.examples import anything_goes, cluster
from tools.published_coverage import (
    answers_of_all_studies,
    configurations_of,
    coverage_of,
    dashes,
    plan_on,
    seed_studies,
    studies_of_sources,
)

STUDIES = ("allreduce", "arcface", "input_pipeline", "resnet50", "vgg16_parameter_server")
#: Today's tables, which recompute, compile or compute in float8 what no configuration of ours does.
OF_LANGUAGE_MODELS = ("torchtitan_llama3_h100", "torchtitan_llama3_h200", "fms_fsdp_llama2", "llm_foundry_mpt")
#: Of these each configuration is one of a published table, or an extra.
AFTER_TABLES = (*STUDIES, "bert", "gpt")


def printed_cells(sources):
    """Return every cell with a result that published sources print, also a dash."""
    cells = load(sources)
    return cells[cells["role"] == "result"].reset_index(drop=True)


def is_planned(cells):
    """Return for each cell whether its framework exists here, so that a study can plan it."""
    return cells["matching_framework"].isin(frameworks.names())


def test_every_throughput_of_a_source_that_a_study_repeats_has_a_configuration_that_can_run_somewhere(answers):
    assert tuple(seed_studies()) == STUDIES
    repeated = answers[[bool(read_source(name).question) for name in answers["source"]]]
    assert len(repeated) == repeated["planned"].sum() == repeated["measurable"].sum() == 117


@pytest.fixture(scope="module")
def answers():
    return answers_of_all_studies()


def test_of_all_published_throughputs_a_fifth_have_a_configuration_that_can_run_somewhere(answers):
    of_tokens = answers["source"].isin(OF_LANGUAGE_MODELS)
    assert (~of_tokens).sum() + dashes() == 1585
    assert answers["measurable"].sum() >= 350
    assert not answers.loc[of_tokens, "planned"].any()
    of_libraries = answers[answers["measurable"]].groupby("source").size()
    for bert, throughputs in (("ngc_pytorch", 26), ("tensorflow", 66), ("ngc_tensorflow", 25), ("paddle", 38)):
        assert of_libraries[f"dlperf_{bert}_bert"] == throughputs
    assert (answers["planned"] >= answers["measurable"]).all()
    # Numbers of other libraries have none of ours.
    answered = set(answers.loc[answers["planned"], "source"])
    assert not {name for name in answered if "oneflow" in name or "mxnet" in name or "mindspore" in name}


def test_the_coverage_of_a_study_counts_its_configurations():
    coverage = coverage_of("gpt")
    configurations = configurations_of("gpt")
    assert "gpt" in set(studies_of_sources())
    assert coverage.configurations == configurations["configuration_id"].nunique() > coverage.runnable
    assert (coverage.throughputs, coverage.planned, coverage.measurable) == (6, 6, 3)


@pytest.mark.parametrize("study", STUDIES)
def test_each_printed_cell_has_exactly_one_configuration(study):
    asking_sources = [name for name in load_study(study).published if read_source(name).question]
    cells, ours = printed_cells(asking_sources), configurations_of(study)
    matches = SameQuestion(cells, ours).matches()
    counts = pd.Series([len(match.configuration_ids) for match in matches])
    wrong = cells[(counts != 1) & is_planned(cells)]
    assert list(wrong["cell"]) == []
    assert (counts[~is_planned(cells)] == 0).all()


@pytest.mark.parametrize("study", AFTER_TABLES)
def test_each_configuration_has_a_printed_cell_unless_it_is_marked_as_an_extra(study):
    cells, ours = printed_cells(load_study(study).published), configurations_of(study)
    answering = {
        configuration_id
        for match in SameQuestion(cells, ours).matches()
        for configuration_id in match.configuration_ids
    }
    of_source = set(ours.loc[~ours["is_unpublished"], "configuration_id"])
    assert of_source - answering == set(), "neither printed nor marked as an extra"
    assert answering - of_source == set(), "printed, and marked as an extra"


def test_what_can_run_nowhere_is_named():
    reasons = []
    for study in STUDIES:
        on_cpus, on_gpus = (plan_on(device, study).entries for device in ("cpu", "gpu"))
        for on_cpu, on_gpu in zip(on_cpus, on_gpus, strict=True):
            if on_cpu.unsupported and on_gpu.unsupported:
                reasons.append(on_gpu.unsupported)
    assert Counter(reasons) == {
        "compiler xla is not supported by paddle_collective (supported: none, to_static, cinn)": 2,
        "data_loader dali is not supported with tensorflow (supported: paddle, torch)": 15,
    }


def test_vgg16_compares_each_configuration_with_one_process_of_the_same_batch_and_images():
    plan = build_plan(load_study("vgg16_parameter_server"), cluster(100, 1), anything_goes)
    by_id = {entry.configuration.configuration_id: entry.configuration for entry in plan.entries}
    for entry in plan.entries:
        baseline, configuration = by_id[entry.baseline_id], entry.configuration
        assert (baseline.parameter_servers, baseline.world_size) == (0, 1)
        assert baseline.strategy == ("local" if configuration.framework == "paddle_ps" else "all_reduce")
        alone = "tensorflow_mirrored" if configuration.framework == "tensorflow_ps" else configuration.framework
        assert baseline.framework == alone
        for name in ("batch_per_device", "data_loader"):
            assert getattr(baseline, name) == getattr(configuration, name)


@pytest.mark.parametrize(("study", "warmup", "measured"), [("arcface", 50, 100), ("resnet50", 20, 100)])
def test_a_study_measures_the_iterations_of_its_source(study, warmup, measured):
    """Its windows are no time: what was published has numbers of steps."""
    plan = build_plan(load_study(study), cluster(nodes=100, devices_per_node=8), anything_goes)
    configurations = [entry.configuration for entry in plan.entries]
    assert {(c.warmup_steps, c.measured_steps) for c in configurations} == {(warmup, measured)}
    assert {(c.max_warmup_seconds, c.measured_seconds) for c in configurations} == {(0, 0)}


def test_a_mark_that_matches_no_configuration_is_refused(refused):
    study = load_study("arcface")
    with refused(StudyFileError):
        list(study.changed(unpublished=({"nodes": [3]},)).points)


TWO_CORES = cluster(1, 2)
QUICK = ("quickstart", *STUDIES)
#: Runs of seconds: with the report, quick mode takes less than eight minutes.
MOST_QUICK_RUNS = 24
#: What the seeds in quick mode can't vary on two cores; the plan lists the other value with its reason.
UNVARIED = {"nodes": "needs 2 devices on 2 nodes; cluster example has 2 devices on 1 node"}


def with_every_library(configuration):
    """Return why a configuration can't run on CPUs although every library is installed, in some version."""
    obstacles = frameworks.load(configuration.framework).obstacles(configuration, TWO_CORES, "")
    return "; ".join(obstacles) or None


def quick_plan(name):
    return build_plan(load_study(name, quick=True), TWO_CORES, with_every_library)


def values(entries, name):
    """Return the values of a parameter in some entries of a plan."""
    return {getattr(entry.configuration, name) for entry in entries}


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_variant_runs_on_two_devices_in_a_few_minutes(name):
    runnable = quick_plan(name).runnable
    configurations = [entry.configuration for entry in runnable]
    assert len(configurations) <= MOST_QUICK_RUNS
    assert {c.world_size for c in configurations} == {1, 2}
    assert {(c.repetitions, c.quick) for c in configurations} == {(1, True)}
    assert max(c.image_size for c in configurations) <= 64
    assert max(c.warmup_steps + c.measured_steps + c.compute_only_steps for c in configurations) <= 12
    assert {(c.max_warmup_seconds, c.measured_seconds) for c in configurations} == {(0, 0)}
    assert max(c.global_batch for c in configurations) <= 16
    # Every baseline can run that something is compared with.
    assert {entry.baseline_id for entry in runnable} <= {c.configuration_id for c in configurations}
    assert any(not entry.is_baseline for entry in runnable)


@pytest.mark.parametrize("name", STUDIES)
def test_a_quick_variant_varies_whatever_its_study_does_as_far_as_two_cores_can(name):
    full, quick = build_plan(load_study(name), cluster(100, 8), anything_goes), quick_plan(name)
    factors = [factor for factor in study_parameters() if len(values(full.entries, factor)) > 1]
    assert {factor for factor in factors if len(values(quick.entries, factor)) < 2} == set()
    for factor in factors:
        (value, *more) = values(quick.runnable, factor)
        if not more:
            reasons = {e.unsupported for e in quick.unsupported if getattr(e.configuration, factor) != value}
            assert reasons == {UNVARIED.get(factor)}, factor


def test_resnet50_searches_the_largest_batch_of_half_precision_on_gpus_and_a_small_one_in_quick():
    for quick, at_most, precision in ((False, 512, "amp_fp16"), (True, 16, "fp32")):
        plan = build_plan(load_study("resnet50", quick), cluster(4, 8), anything_goes)
        searched = [entry.configuration for entry in plan.entries if entry.is_searched]
        assert plan.largest_batch == at_most
        assert {(c.world_size, c.precision, c.data_loader) for c in searched} == {(1, precision, "synthetic_device")}


@pytest.mark.parametrize("quick", [False, True])
def test_quickstart_runs_on_two_cores_and_compares_each_with_its_own_process(quick):
    plan = build_plan(load_study("quickstart", quick), TWO_CORES, with_every_library)
    assert plan.runnable == plan.entries
    by_id = {entry.configuration.configuration_id: entry.configuration for entry in plan.entries}
    for entry in plan.entries:
        planned = entry.configuration
        assert planned.world_size * planned.threads_per_device + planned.parameter_servers <= 2
        alone = {"strategy": "local", "parameter_servers": 0} if planned.framework == "paddle_ps" else {}
        assert by_id[entry.baseline_id] == replace(planned, devices_per_node=1, **alone)


def test_quickstart_measures_six_rounds_and_has_time_to_repeat_disturbed_ones():
    study = load_study("quickstart")
    assert (study.target_ci, study.time_budget_minutes) == (None, 8)
    plan = build_plan(study, TWO_CORES, with_every_library)
    assert len(plan.entries) == 6
    runs = {
        (c.repetitions, c.measured_seconds, c.breakdown_from) for c in (entry.configuration for entry in plan.entries)
    }
    assert runs == {(6, 2.0, 4)}


@pytest.mark.parametrize("name", [file.stem for file in sorted((PARAMS / "studies").glob("*.yaml"))])
def test_a_shipped_study_has_as_many_rounds_as_its_outcomes_need_here(name):
    plan = build_plan(load_study(name), cluster(1, 2), anything_goes)
    assert {entry.configuration.repetitions for entry in plan.entries} == {6}
    assert rounds_needed(max(1, len(plan.runnable))) <= 6
