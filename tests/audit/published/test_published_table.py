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
from dlperf_study.metrics.columns import TableName, list_columns
from dlperf_study.study.configuration import FIELD_NAMES
from tests.audit.test_published import SEEDS


@pytest.fixture(scope="module")
def cells():
    return load()


def cell(cells, key):
    """Return the one number printed in a place."""
    (found,) = cells[cells["cell"] == key].itertuples()
    return found


def test_the_frame_has_the_columns_and_types_of_the_registry(cells):
    assert {name: str(dtype) for name, dtype in cells.dtypes.items()} == {
        column.name: str(column.dtype_in(TableName.PUBLISHED)) for column in list_columns(TableName.PUBLISHED)
    }


def test_numbers_have_keys_of_their_own_and_programs_stand_apart(cells):
    assert cells["cell"].is_unique
    assert set(cells["source"]) == set(source_names())
    tables = cells[(cells["source"] == "dlperf_pytorch_resnet50") & (cells["table"] != "runs")]
    assert len(tables["series"].unique()) == len(tables["extra"].unique()) == 4
    named = [name.removeprefix("matching_") for name in cells.columns if name.startswith("matching_")]
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


def test_a_line_differs_in_devices_only(cells):
    along = {"nodes", "devices_per_node", "world_size", "global_batch", "matching_nodes", "matching_devices_per_node"}
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
    from dlperf_study.training import models

    assert set(cells.loc[cells["source"].isin(SEEDS), "model"]) <= set(models.names())


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
