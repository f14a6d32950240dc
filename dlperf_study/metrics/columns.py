"""Every metric by its column: package first, then users' parts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from importlib import import_module
from itertools import chain
from operator import attrgetter
from typing import Any

from dlperf_study.core.errors import RecordError
from dlperf_study.core.part_search import PartLocation, cached_by_parts, import_part, locations
from dlperf_study.metrics.metric import (
    DATASET_TABLES,
    QUALITY,
    RC,
    Dtype,
    Metric,
    Source,
    Summary,
    TableName,
    list_names,
    text,
)

__all__ = ["COLUMNS", "DATASET_TABLES", "PRODUCTS", "Dtype", "Metric", "Source", "Summary", "TableName", "list_columns"]

FAMILIES = [
    "published",
    "parameters",
    "run_status",
    "throughput",
    "scaling",
    "comparison",
    "step_times",
    "steady_state",
]
FAMILIES += ["computation", "communication", "collectives", "pipeline_bubble", "communication_reports", "utilisation"]
FAMILIES += ["tuning", "process_resources", "energy", "gpu_state", "network", "ingested", "environment"]


def columns_by_name(metrics: Iterable[tuple[str, Iterable[Metric]]]) -> dict[str, Metric]:
    """Return the columns by name; ``metrics``: by file."""
    columns: dict[str, Metric] = {}
    files: dict[str, str] = {}
    for file, declared in metrics:
        for column in (column for metric in declared for column in metric.columns):
            if column.name in columns:
                raise RecordError(f"{files[column.name]} and {file} both declare the column {column.name}")
            columns[column.name], files[column.name] = column, file
    return columns


_METRICS = [(f"{family}.py", import_module(f"{__package__}.{family}").METRICS) for family in FAMILIES]
_BUILT_IN = columns_by_name(_METRICS)


class _Columns(Mapping[str, Metric]):
    """The columns by name; users' parts are imported on demand."""

    def __getitem__(self, name: str) -> Metric:
        if name in _BUILT_IN:
            return _BUILT_IN[name]
        return _all_columns()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_all_columns())

    def __len__(self) -> int:
        return len(_all_columns())


COLUMNS: Mapping[str, Metric] = _Columns()
#: Columns that are the product of two others, in the order in which they can be computed.
PRODUCTS = {"world_size": ("nodes", "devices_per_node"), "global_batch": ("batch_per_device", "world_size")}


@cached_by_parts
def _all_columns() -> dict[str, Metric]:
    return columns_by_name([*_METRICS, *_load_user_metrics()])


@cached_by_parts
def _load_user_metrics() -> list[tuple[str, tuple[Metric, ...]]]:
    """Return the metrics of each user's part, with its file."""
    parts = locations(__package__, "metric", RecordError).values()
    return [(part.source, _load_metrics(part)) for part in parts if not part.is_built_in]


def _load_metrics(part: PartLocation) -> tuple[Metric, ...]:
    metrics = getattr(import_part(part, RecordError), "METRICS", ())
    if not metrics or not all(isinstance(metric, Metric) for metric in metrics):
        raise RecordError(f"{part.source}: it has no METRICS, a tuple of the metrics that it declares")
    for metric in metrics:
        if not set(metric.tables) <= set(RC) or metric.source is not Source.COMPLETED_RUN:
            raise RecordError(
                f"{part.source}: {metric.name}: your own metric must be of completed runs, with tables R or RC"
            )
    return tuple(replace(metric, value=_naming(part, metric)) for metric in metrics)


def _naming(part: PartLocation, metric: Metric) -> Callable[[Any], Any] | None:
    """Return the formula of a user's metric, whose errors name its file."""
    formula = metric.value
    if formula is None:
        return None

    @wraps(formula)
    def value(run: Any) -> Any:
        try:
            return formula(run)
        except Exception as error:
            of_run = f"{metric.name} of run {run.repetition} of {run.configuration_id}"
            raise RecordError(f"{part.source}: {of_run} raises {type(error).__name__}: {error}") from error

    return value


def names_of_users() -> tuple[str, ...]:
    """Return the names of users' metrics that runs have."""
    metrics = chain.from_iterable(dict(_load_user_metrics()).values())
    return list_names(metric for metric in metrics if TableName.RUNS in metric.tables)


@cached_by_parts
def _columns_by_table() -> dict[TableName, tuple[Metric, ...]]:
    return {table: tuple(filter(lambda column: table in column.tables, COLUMNS.values())) for table in TableName}


@cached_by_parts
def _computed_metrics() -> dict[Source, list[Metric]]:
    return {source: [m for m in COLUMNS.values() if m.value and m.source is source] for source in Source}


@cached_by_parts
def diagnosing_any_run() -> list[Metric]:
    """Return the metrics with diagnostics of any run."""
    return list(filter(attrgetter("diagnose_any"), COLUMNS.values()))


@cached_by_parts
def diagnosing_completed_run() -> list[Metric]:
    """Return the metrics with diagnostics of a completed run."""
    return list(filter(attrgetter("diagnose"), COLUMNS.values()))


@cached_by_parts
def _pages() -> dict[str, tuple[str, ...]]:
    return {metric.subject or metric.name: metric.pages or (QUALITY,) for metric in COLUMNS.values()}


def column_named(name: str) -> Metric:
    """Return a column; an undeclared one is a user's setting."""
    return COLUMNS.get(name) or text(name, name, f"{name}, a setting of the program", RC)


def list_family(family: str) -> tuple[Metric, ...]:
    """Return the metrics of one of this package's files, in order."""
    return tuple(dict(_METRICS)[f"{family}.py"])


def list_columns(table: TableName) -> tuple[Metric, ...]:
    """Return the columns of a table, in order."""
    return _columns_by_table()[table]


def compute_values(source: Source, thing: Any) -> dict[str, Any]:
    """Return the values of all metrics of a source, by name."""
    return {metric.name: metric.value(thing) for metric in _computed_metrics()[source] if metric.value}


def names_from(source: Source) -> tuple[str, ...]:
    """Return the names of this package's metrics of a source."""
    return tuple(name for name, metric in _BUILT_IN.items() if metric.value and metric.source is source)


def summarised(*summaries: Summary) -> dict[str, Metric]:
    """Return the metrics with one of these summaries, by name."""
    return {name: metric for name, metric in COLUMNS.items() if metric.summary in summaries}


def list_pages(subject: str) -> tuple[str, ...]:
    """Return the pages for diagnostics about a subject."""
    return _pages().get(subject, (QUALITY,))
