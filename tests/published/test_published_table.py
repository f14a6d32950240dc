import statistics

import pytest

from dlperf_study.audit.published import load, load_source, read_source, source_names
from dlperf_study.audit.published.source import (
    ESTIMATORS,
    FACTS,
    METRICS,
    NEEDED,
    OPTIONAL,
    ROLES,
    PublishedSource,
    TableSection,
)
from dlperf_study.core.paths import PROJECT
from dlperf_study.metrics.columns import TableName, columns_of
from dlperf_study.study.configuration import FIELD_NAMES


@pytest.fixture(scope="module")
def cells():
    return load()


def cell(cells, key):
    """Return the one number printed in a place."""
    (found,) = cells[cells["cell"] == key].itertuples()
    return found


def test_the_frame_has_the_columns_and_types_of_the_registry(cells):
    assert {name: str(dtype) for name, dtype in cells.dtypes.items()} == {
        column.name: str(column.dtype_in(TableName.PUBLISHED)) for column in columns_of(TableName.PUBLISHED)
    }


def test_numbers_have_keys_of_their_own_and_programs_stand_apart(cells):
    assert cells["cell"].is_unique
    assert set(cells["source"]) == set(source_names())
    tables = cells[(cells["source"] == "dlperf_pytorch_resnet50") & (cells["table"] != "runs")]
    assert len(tables["series"].unique()) == len(tables["extra"].unique()) == 4
    named = [name.removeprefix("our_") for name in cells.columns if name.startswith("our_")]
    assert set(named) <= set(FIELD_NAMES)


def test_baselines_and_runs_point_to_numbers_of_the_same_source(cells):
    for pointer in ("baseline", "runs_of"):
        pairs = cells[["source", pointer]].dropna()
        assert set(pairs[pointer]) <= set(cells["cell"])
        assert all(target.startswith(f"{source}/") for source, target in pairs.itertuples(index=False))


def test_every_speedup_and_efficiency_names_the_throughput_it_is_relative_to(cells):
    ratios = cells[cells["metric"].isin(["speedup", "efficiency"])]
    assert ratios["baseline"].notna().all()
    metrics = cells.set_index("cell")["metric"]
    assert set(metrics[ratios["baseline"]]) == {"throughput"}


def test_a_dash_is_kept_as_printed_and_has_no_value(cells):
    dashes = cells[cells["printed"] == "-"]
    assert dashes["value"].isna().all()
    assert cells.drop(dashes.index)["value"].notna().all()
    assert len(dashes) > 10


def test_an_accelerate_rate_is_an_efficiency_against_one_thread_of_the_same_program(cells):
    efficiency = cell(cells, "paddle_vgg16_cluster/accelerate_rate/PaddlePaddle Fluid/20#2")
    baseline = cell(cells, efficiency.baseline)
    assert (efficiency.metric, efficiency.printed, efficiency.value) == ("efficiency", "78.64", pytest.approx(0.7864))
    assert (baseline.printed, baseline.batch_per_device, baseline.world_size) == ("16.74", 128, 1)
    rate = cell(cells, "paddle_vgg16_cluster/accelerate_rate/PaddlePaddle Fluid/20#1").value
    assert rate / (20 * baseline.value) == pytest.approx(efficiency.value, abs=0.0001)


def test_the_run_lists_of_arcface_and_resnet50_belong_to_the_medians_of_their_tables(cells):
    medians = cells[cells["source"].isin(["dlperf_paddle_plsc", "dlperf_paddle_resnet50"]) & (cells["runs"] > 0)]
    assert len(medians) == 5 + 6
    for median in medians.itertuples():
        runs = cells.loc[cells["runs_of"] == median.cell, "value"]
        assert len(runs) == median.runs
        assert statistics.median(runs) == pytest.approx(median.value, abs=0.01)


def test_numbers_of_nodes_devices_and_samples_multiply(cells):
    stated = cells.dropna(subset=["nodes", "devices_per_node"])
    assert (stated["nodes"] * stated["devices_per_node"] == stated["world_size"]).all()
    assert cell(cells, "dlperf_paddle_plsc/fp32_b128/4 | 32/samples/s").global_batch == 4096


def test_a_line_differs_in_devices_only(cells):
    along = {"nodes", "devices_per_node", "world_size", "global_batch", "our_nodes", "our_devices_per_node"}
    apart = [name for name in FACTS if name not in along | {"scope", "role", "estimator", "inferred"}]
    for _, line in cells.groupby("series"):
        assert (line[apart].nunique(dropna=False) == 1).all()


def test_an_undeclared_fact_is_missing_and_no_default(cells):
    xla = cell(
        cells,
        "tensorpack_multigpu/v100_tf2/--fake-location=gpu --variable-update=replicated --use-fp16 --batch 128/Results",
    )
    assert xla.loss_scaling != xla.loss_scaling  # nan: the page does not say
    assert cells.loc[cells["source"] == "paddle_vgg16_cluster", "estimator"].unique().tolist() == ["not stated"]


def test_our_words_are_used_for_our_networks(cells):
    from dlperf_study.programs import models

    seeds = (
        "paddle_vgg16_cluster",
        "dlperf_paddle_plsc",
        "dlperf_paddle_resnet50",
        "elasticdl_allreduce_wiki",
        "tensorpack_multigpu",
    )
    assert set(cells.loc[cells["source"].isin(seeds), "model"]) <= set(models.names())


def test_what_is_inferred_names_columns(cells):
    named = cells["inferred"].dropna().unique()
    assert {name for names in named for name in names.split(", ")} <= set(FACTS)
    assert "image_size" in cell(cells, "paddle_vgg16_cluster/single_node_single_thread/TensorFlow/32").inferred


@pytest.mark.parametrize("name", source_names())
def test_a_source_says_where_it_comes_from(name):
    source = read_source(name)
    assert source.url.startswith("https://")
    assert set(load_source(name)["table"]) == set(source.tables)


def test_the_page_on_published_numbers_has_every_metric_and_every_key():
    page = (PROJECT / "docs" / "published.md").read_text(encoding="utf-8")
    for name, metric in METRICS.items():
        assert f"| `{name}` | {metric.unit} | {metric.definition} |" in page
    keys = {*PublishedSource.model_fields, *TableSection.model_fields, *NEEDED, *OPTIONAL, *ESTIMATORS, *ROLES}
    assert {key for key in keys if f"`{key}`" not in page} == set()
