"""A study as the replication of a published source: its numbers, with those of ours that answer the same question."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from dlperf_study.analysis.published_points import Published
from dlperf_study.analysis.same_question import Match, SameQuestion
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context

NO_QUESTION = "No published source of this study has a question that the study asks again."


@dataclass(frozen=True)
class Replication:
    """One source that has a question, its numbers, and the configurations of a study that answer the same."""

    dataset: Dataset
    name: str

    @property
    def title(self) -> str:
        """The title of the publication."""
        return self.published.sources[self.name].title

    @cached_property
    def published(self) -> Published:
        """Its numbers as printed, and as points of scaling curves."""
        return Published.read((self.name,))

    @cached_property
    def results(self) -> pd.DataFrame:
        """Every printed result, also a dash, with its ``match``."""
        cells = self.published.cells
        return self._with_matches(cells[cells["role"] == "result"])

    @cached_property
    def points(self) -> pd.DataFrame:
        """Every published throughput with its ratios and its ``match``."""
        return self._with_matches(self.published.points)

    @cached_property
    def rows(self) -> Mapping[str, Any]:
        """Our configurations with a completed run, by identity."""
        rows = self.dataset.configuration_rows
        return {identity: rows[identity] for identity in context.measured(self.dataset)["identity"]}

    @cached_property
    def is_answered(self) -> list[bool]:
        """Of each published throughput, whether one of ours was measured that answers the same question."""
        return [self.measured(match) is not None for match in self.points["match"]]

    def measured(self, match: Match) -> Any:
        """Return the first configuration with a completed run that answers the question of a number, or None."""
        return next((self.rows[identity] for identity in match.identities if identity in self.rows), None)

    def _with_matches(self, numbers: pd.DataFrame) -> pd.DataFrame:
        return numbers.assign(match=SameQuestion(numbers, self.dataset.configurations).matches())


def replications_of(dataset: Dataset) -> list[Replication]:
    """Return the replications of a study, one for each of its sources with a question, in the order of the study."""
    sources = Published.read(dataset.plan.published).sources
    return [Replication(dataset, name) for name, source in sources.items() if source.question]
