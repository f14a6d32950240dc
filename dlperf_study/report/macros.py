r"""The numbers of a study as macros of LaTeX: ``\measured{study}{configuration}{column}`` prints one as tables do.

A configuration has a full name, and a short one: what distinguishes it in words, as in ``MobileNetV2, 2 devices``. A
name that does not exist is an error of the document, never an empty text.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.series import varying_factors
from dlperf_study.metrics.columns import Summary, column_named, summarised
from dlperf_study.metrics.metric import MEANS
from dlperf_study.report import context, series
from dlperf_study.report.formatting import DOUBTFUL, MISSING, latex_escaped, text_if
from dlperf_study.report.tables.table_builders import measured_column

QUANTITIES = (
    *summarised(Summary.GEOMETRIC),
    *("speedup", "efficiency"),
    "relative_throughput",
    *summarised(*MEANS),
    *("step_difference_seconds", "compute_difference_seconds", "exposed_communication_difference_seconds"),
    *("baseline_significance", "significance"),
)
_DEFINITIONS = Path(__file__).parent / "templates" / "paper" / "macros.tex"


def macros(dataset: Dataset) -> str:
    """Return the macros of each configuration and of the study."""
    lines, runs = [_DEFINITIONS.read_text(encoding="utf-8")], dataset.completed_runs
    facts = {
        "configurations": str(len(dataset.measured)),
        "runs": str(len(runs)),
        "devices": context.list_values(runs["device_name"]),
        "versions": context.versions(runs),
        "begun": str(runs["started"].dropna().min())[:10] if runs["started"].notna().any() else "date unknown",
    }
    for name, fact in facts.items():
        lines.append(_macro(f"{dataset.plan.study}/{name}", latex_escaped(fact or "not stated")))
    labels, keys, short = series.configuration_labels(dataset), configuration_keys(dataset), short_names(dataset)
    for row in dataset.measured.itertuples(index=False):
        configuration_id = str(row.configuration_id)
        lines.append(f"% {labels[configuration_id]}: {keys[configuration_id]}")
        if configuration_id in short:
            lines.append(
                f"\\@namedef{{dlperf@{dataset.plan.study}@{short[configuration_id]}}}{{{keys[configuration_id]}}}"
            )
        lines += _configuration_macros(dataset, row, keys[configuration_id])
    return "\n".join([*lines, r"\makeatother"]) + "\n"


def configuration_keys(dataset: Dataset) -> dict[str, str]:
    """Return each configuration's macro name; without the digest if unique."""
    configuration_ids = dataset.configurations["configuration_id"].tolist()
    counts = Counter(configuration_id.rpartition("-")[0] for configuration_id in configuration_ids)
    keys = {}
    for configuration_id in configuration_ids:
        readable = configuration_id.rpartition("-")[0]
        keys[configuration_id] = readable if counts[readable] == 1 else configuration_id
    return keys


def short_names(dataset: Dataset) -> dict[str, str]:
    """Return each configuration's short name: its fewest unique parts.

    Where another label has all of its parts, and more, it also has values that labels leave out, as ``no CPU limit``.
    A study that grows may need more parts: the old name is then an error of the document, and never another number.
    Configurations whose labels are equal, or not plain letters, have none.
    """
    labels = {
        configuration_id: label.split(series.SEPARATOR)
        for configuration_id, label in series.full_configuration_labels(dataset).items()
    }
    unsaid, having = {}, defaultdict[str, set[str]](set)
    for row in dataset.configurations[["configuration_id", *varying_factors(dataset)]].to_dict("records"):
        configuration_id = row.pop("configuration_id")
        unsaid[configuration_id] = [
            series.value_label(name, value) for name, value in row.items() if series.goes_without_saying(name, value)
        ]
    for configuration_id, parts in labels.items():
        for part in (*parts, *unsaid[configuration_id]):
            having[part].add(configuration_id)
    names = {}
    for configuration_id, parts in labels.items():
        *leading, devices = parts
        # Of many parts there are very many choices: they are made one after another.
        for chosen in chain(_choices(parts), _choices([*leading, *unsaid[configuration_id], devices])):
            name = ", ".join(chosen)
            is_alone = len(set.intersection(*(having[part] for part in chosen))) == 1
            # LaTeX reads such a name as it is.
            if is_alone and name.isascii() and not set(name) & set("\\{}%#~^$&"):
                names[configuration_id] = name
                break
    return names


def _choices(parts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield choices of label parts with the devices, the fewest first."""
    *leading, devices = parts
    for count in range(min(1, len(leading)), len(leading) + 1):
        for chosen in combinations(reversed(leading), count):
            yield (*reversed(chosen), devices)


def _configuration_macros(dataset: Dataset, row: Any, key: str) -> Iterator[str]:
    for name in QUANTITIES:
        column = measured_column(dataset, name)
        cell = column.cell(row)
        if cell.text and cell.text != MISSING:
            path = f"{dataset.plan.study}/{key}/{name}"
            value, unit = latex_escaped(cell.text), latex_escaped(column.heading.unit)
            # Apart from its number, the sign of times would be read as that of a product.
            space = text_if(column.heading.unit != "×", "~")
            with_unit, mark = space.join(filter(None, (value, unit))), text_if(cell.is_doubtful, DOUBTFUL)
            printed = "~".join(filter(None, (mark, with_unit, latex_escaped(cell.interval))))
            yield _macro(path, printed) + f" % {column_named(name).label}"
            alone = _macro(f"{path}/value", value)
            if cell.interval:
                low, _, high = cell.interval.strip("[]").partition(", ")
                alone += _macro(f"{path}/low", latex_escaped(low)) + _macro(f"{path}/high", latex_escaped(high))
            yield alone


def _macro(path: str, content: str) -> str:
    return f"\\@namedef{{dlperf@{path}}}{{{content}}}"
