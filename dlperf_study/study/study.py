"""What a study asks for: a grid of points, and the partners of each. Standard library only."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache

from dlperf_study.errors import StudyFileError
from dlperf_study.paths import NOTEBOOKS, PROJECT
from dlperf_study.study.configuration import Configuration, Scalar
from dlperf_study.study.grid import (
    DENOMINATORS,
    Denominator,
    Levels,
    Point,
    Rules,
    format_condition,
    format_values,
    matches,
    partner,
    points_of,
)

#: The question whose answer needs a declared reference.
COMPARISON = "comparison"
#: The question whose answer needs published sources.
PUBLISHED = "published"
SOURCES_FOLDER = PROJECT / "dlperf_study" / "published" / "sources"


@cache
def question_names() -> tuple[str, ...]:
    """Return what a report may be asked, in the order of its pages.

    A question is a notebook with the page's position in its metadata: ``"dlperf_study": {"page": 1}``.
    """
    positions: dict[str, int] = {}
    for notebook in NOTEBOOKS.glob("*.ipynb"):
        metadata = json.loads(notebook.read_text(encoding="utf-8"))["metadata"]
        if "dlperf_study" in metadata:
            positions[notebook.stem] = metadata["dlperf_study"]["page"]
    return tuple(sorted(positions, key=lambda name: (positions[name], name)))


def source_names() -> tuple[str, ...]:
    """Return the names of the published sources: each is a pair of files, ``<name>.yaml`` and ``<name>.csv``."""
    return tuple(sorted(file.stem for file in SOURCES_FOLDER.glob("*.yaml")))


#: How each configuration is measured; the same for a whole study.
MEASUREMENT_NAMES = (
    "warmup_steps",
    "measured_steps",
    "computation_steps",
    "exchange_steps",
    "trace_steps",
    "repeats",
    "timeout_seconds",
)
GIVEN_BY_THE_PLAN = ("study", "cluster", "quick")
#: What ``fixed``, ``factors``, ``include``, ``exclude`` and the partners may name, besides ``global_batch``.
PARAMETER_NAMES = tuple(
    entry.name for entry in fields(Configuration) if entry.name not in (*MEASUREMENT_NAMES, *GIVEN_BY_THE_PLAN)
)
DEFAULTS: Point = {
    entry.name: entry.default
    for entry in fields(Configuration)
    if entry.name in PARAMETER_NAMES and entry.default is not MISSING
}
#: Which batch stays the same as devices are added, and which therefore can't be given.
BATCH_OF_SCALING = {"weak": ("batch_per_device", "global_batch"), "strong": ("global_batch", "batch_per_device")}


@dataclass(frozen=True)
class Study:
    """One study, or its quick variant; ``source`` is the file that messages name.

    ``scaling`` is ``weak`` (batch per device fixed) or ``strong`` (global batch fixed).
    Raises StudyFileError when its parts contradict each other.
    """

    name: str
    source: str
    title: str
    about: str
    questions: tuple[str, ...]
    scaling: str
    fixed: Mapping[str, Scalar]
    factors: Levels
    baseline: Rules
    reference: Rules = ()
    published: tuple[str, ...] = ()
    include: tuple[Levels, ...] = ()
    exclude: tuple[Levels, ...] = ()
    measurement: Mapping[str, int] = field(default_factory=dict)
    quick: bool = False

    def __post_init__(self) -> None:
        self._check_roles()
        self._check_batch()
        self._check_include()
        self._check_reference()
        self._check_published()

    def points(self) -> list[Point]:
        """Return the grid, then the included points, without the excluded ones: complete and all different.

        Raises StudyFileError for a point that comes twice, an ``exclude`` that matches none, and when none is left.
        """
        points = list(self._all_different())
        for index, where in enumerate(self.exclude):
            if not any(matches(point, where) for point in points):
                raise self._error(f"exclude[{index}] ({format_condition(where)}) matches no configuration of the study")
        kept = [point for point in points if not any(matches(point, where) for where in self.exclude)]
        if not kept:
            raise self._error("exclude leaves no configuration")
        return kept

    def configuration(self, point: Point, cluster: str) -> Configuration:
        """Return a point as a Configuration.

        Under strong scaling ``batch_per_device`` is the device's share of the global batch, or 0 where the
        batch can't be shared equally; a plan lists those as unsupported.
        """
        given = {name: value for name, value in point.items() if name != "global_batch"}
        if self.scaling == "strong":
            share, rest = divmod(int(point["global_batch"]), int(point["nodes"]) * int(point["devices_per_node"]))
            given["batch_per_device"] = 0 if rest else share
        run = {"study": self.name, "cluster": cluster, "quick": self.quick}
        return Configuration.from_mapping({**run, **given, **self.measurement}, self.source)

    def denominator_of(self, point: Point, role: Denominator) -> Point:
        """Return the point that the first matching rule declares as baseline or as reference.

        Raises StudyFileError when no rule matches, and when that partner would have another partner itself.
        """
        found = self._put_in(point, role)
        if self._put_in(found, role) != found:
            raise self._error(f"{role}: the {role} of {self._short(point)} has another {role} itself")
        return found

    def missing_denominator(self, point: Point, role: Denominator) -> StudyFileError:
        """Return the error for a point whose partner is not in the plan."""
        return self._error(
            f"{role}: {self._short(point)} is to be compared with {self._short(self.denominator_of(point, role))}, "
            "which no configuration of the study is; add it to factors or include"
        )

    def rules(self, role: Denominator) -> Rules:
        """Return the rules that declare the partners of one role; none where the study has no such partners."""
        return {"baseline": self.baseline, "reference": self.reference}[role]

    def _put_in(self, point: Point, role: Denominator) -> Point:
        found = partner(self.rules(role), point)
        if found is None:
            raise self._error(f"{role}: no rule's where matches {self._short(point)}")
        return found

    def _all_different(self) -> Iterator[Point]:
        seen: dict[tuple[tuple[str, Scalar], ...], str] = {}
        for place, point in self._all():
            key = tuple(sorted(point.items()))
            if key in seen:
                raise self._error(f"{place} gives {self._short(point)} again; it is already in {seen[key]}")
            seen[key] = place
            yield point

    def _all(self) -> Iterator[tuple[str, Point]]:
        fixed = {**self._defaults(), **self.fixed}
        for levels in points_of(self.factors):
            yield "factors", {**fixed, **levels}
        for index, included in enumerate(self.include):
            for levels in points_of(included):
                yield f"include[{index}]", {**fixed, **levels}

    def _defaults(self) -> Point:
        _, derived = BATCH_OF_SCALING[self.scaling]
        return {name: value for name, value in DEFAULTS.items() if name != derived}

    def _short(self, point: Point) -> str:
        """Return the part of a point that the study varies, in words."""
        names = [*self.factors, *(name for included in self.include for name in included)]
        names += [name for rule in self._every_rule() for name in rule.values]
        return format_values({name: point[name] for name in dict.fromkeys(names) if name in point})

    def _check_roles(self) -> None:
        if len(set(self.questions)) < len(self.questions):
            raise self._error(f"questions has one twice: {', '.join(self.questions)}")
        for name in self.factors:
            if name in self.fixed:
                raise self._error(f"{name} is in fixed ({self.fixed[name]}) and in factors; it can only be one of them")
            if len(set(self.factors[name])) < len(self.factors[name]):
                raise self._error(f"factors.{name} has a level twice: {', '.join(map(str, self.factors[name]))}")
        for name in ("framework", "strategy", "model"):
            if name not in self.fixed and name not in self.factors:
                raise self._error(f"{name} is missing; give it in fixed or in factors")

    def _check_batch(self) -> None:
        needed, derived = BATCH_OF_SCALING[self.scaling]
        rules = [part for rule in self._every_rule() for part in (rule.where, rule.values)]
        if any(derived in part for part in (self.fixed, self.factors, *self.include, *self.exclude, *rules)):
            raise self._error(f"{derived} can't be given, because scaling is {self.scaling}; give {needed}")
        if self.scaling == "strong" and needed not in self.fixed and needed not in self.factors:
            raise self._error(f"{needed} is missing, because scaling is strong; give it in fixed or in factors")

    def _check_include(self) -> None:
        for index, included in enumerate(self.include):
            missing = [name for name in self.factors if name not in included]
            if missing:
                raise self._error(f"include[{index}] gives no value of {', '.join(missing)}; it must name every factor")

    def _check_reference(self) -> None:
        asked = COMPARISON in self.questions
        if asked and not self.reference:
            raise self._error(f"reference is missing, because questions has {COMPARISON}; give what to compare with")
        if self.reference and not asked:
            raise self._error(f"reference is given, but questions lacks {COMPARISON}; add the question or leave it out")

    def _check_published(self) -> None:
        if len(set(self.published)) < len(self.published):
            raise self._error(f"published has a source twice: {', '.join(self.published)}")
        asked = PUBLISHED in self.questions
        if asked and not self.published:
            raise self._error(f"published is missing, because questions has {PUBLISHED}; give the sources to show")
        if self.published and not asked:
            raise self._error(f"published is given, but questions lacks {PUBLISHED}; add the question or leave it out")

    def _every_rule(self) -> Rules:
        return tuple(rule for role in DENOMINATORS for rule in self.rules(role))

    def _error(self, message: str) -> StudyFileError:
        return StudyFileError(f"{self.source}: {message}")
