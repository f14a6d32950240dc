r"""Every number of a study as a LaTeX macro: ``\measured{study}{configuration}{column}`` prints it as the tables do.

A name that does not exist is an error of the document, never an empty text.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.configuration_table import MEANS, RATES
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.cells import measured_column
from dlperf_study.report.tables.latex import latex_escaped

#: The columns of a configuration that are numbers with an interval, and verdicts.
QUANTITIES = (
    *RATES,
    *("speedup", "efficiency", "relative_throughput"),
    *MEANS,
    *("computation_factor", "balance_factor", "input_factor", "communication_factor"),
    *("step_difference_seconds", "computation_difference_seconds", "exposed_difference_seconds"),
    *("baseline_verdict", "verdict"),
)
#: Defined once, however many studies a document has.
_DEFINITIONS = r"""\makeatletter
\providecommand{\dlperfnumber}[1]{\ifcsname dlperf@#1\endcsname\csname dlperf@#1\endcsname\else
  \PackageError{dlperf_study}{There is no number "#1"}{The names are in the comments of macros.tex.}\fi}
\providecommand{\measured}[3]{\dlperfnumber{#1/#2/#3}}
\providecommand{\measuredvalue}[3]{\dlperfnumber{#1/#2/#3/value}}
\providecommand{\studyfact}[2]{\dlperfnumber{#1/#2}}
"""


def macros(dataset: Dataset) -> str:
    """Return the file of macros: of each measured configuration and of the study, with comments that list the names."""
    lines = [_DEFINITIONS, *_study_macros(dataset)]
    labels, keys = configuration_labels(dataset), configuration_keys(dataset)
    for row in context.measured(dataset).itertuples(index=False):
        identity = str(row.identity)
        lines.append(f"% {labels[identity]}: {keys[identity]}")
        lines += _configuration_macros(dataset, row, keys[identity])
    return "\n".join([*lines, r"\makeatother"]) + "\n"


def configuration_keys(dataset: Dataset) -> dict[str, str]:
    """Return the name of each configuration in macros, by identity: without the digest where it is unique."""
    identities = dataset.configurations["identity"].tolist()
    counts = Counter(identity.rpartition("-")[0] for identity in identities)
    keys = {}
    for identity in identities:
        readable = identity.rpartition("-")[0]
        keys[identity] = readable if counts[readable] == 1 else identity
    return keys


def _study_macros(dataset: Dataset) -> Iterator[str]:
    runs = context.completed_runs(dataset)
    facts = {
        "configurations": str(len(context.measured(dataset))),
        "runs": str(len(runs)),
        "devices": context.levels(runs["device_name"]),
        "versions": context.versions(runs),
        "begun": str(runs["started"].dropna().min())[:10] if runs["started"].notna().any() else "date unknown",
    }
    for name, fact in facts.items():
        yield _macro(f"{dataset.plan.study}/{name}", latex_escaped(fact))


def _configuration_macros(dataset: Dataset, row: Any, key: str) -> Iterator[str]:
    """Yield the macros of what was measured of one configuration: with its interval and unit, and the value alone."""
    for name in QUANTITIES:
        column = measured_column(dataset, name)
        cell = column.cell(row)
        if cell.text and cell.text != cell.missing("").text:
            path = f"{dataset.plan.study}/{key}/{name}"
            value, unit = latex_escaped(cell.text), latex_escaped(column.heading.unit)
            printed = "~".join(filter(None, (value, unit, latex_escaped(cell.interval))))
            yield _macro(path, printed) + f" % {COLUMNS[name].label}"
            yield _macro(f"{path}/value", value)


def _macro(path: str, content: str) -> str:
    return f"\\@namedef{{dlperf@{path}}}{{{content}}}"
