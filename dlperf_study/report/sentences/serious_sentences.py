"""The sentences on serious diagnostics, which every surface shows before all others."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from dlperf_study.core.wording import counted, first_of
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.serious_diagnostics import TRAINED_APART, failed_apart
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.report.formatting import MOST_NAMED, listed
from dlperf_study.report.sentences.names import Names, answer


def serious_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield what is wrong and which numbers of which configurations are doubtful, for each message.

    First, of which configurations runs failed because their ranks trained apart: these runs are in no number.
    """
    names, rows_by_message = Names(dataset), defaultdict[tuple[str, ...], list[Any]](list)
    apart = failed_apart(dataset.runs)
    if len(apart):
        identities = dict.fromkeys(apart["identity"])
        rows = [row for identity, row in dataset.configuration_rows.items() if identity in identities]
        configurations = first_of([names.of_configuration(row) for row in rows], MOST_NAMED, "; ")
        failed = answer(f"{counted(len(apart), 'run')} failed")
        yield f"{TRAINED_APART[0].upper()}{TRAINED_APART[1:]}. {failed} for that reason, of {configurations}."
    for diagnostic in dataset.serious_diagnostics:
        row = dataset.configuration_rows[diagnostic.identity]
        rows_by_message[diagnostic.message, *diagnostic.columns].append(row)
    for (message, *columns), rows in rows_by_message.items():
        configurations = first_of([names.of_configuration(row) for row in rows], MOST_NAMED, "; ")
        problem = f"{message[0].upper()}{message[1:].rstrip('.')}{'' if message.endswith('?') else '.'}"
        doubtful = listed([COLUMNS[column].words for column in columns])
        yield f"{problem} {answer(f'Do not trust the {doubtful}')} of {configurations}."
