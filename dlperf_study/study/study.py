"""What a study measures: a grid of points, each with its baseline and its reference. Standard library only."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.resources import PACKAGE_FOLDER
from dlperf_study.core.wording import closest, counted, level
from dlperf_study.study import grid
from dlperf_study.study.configuration import (
    DEFAULTS,
    GLOBAL_BATCH,
    SCALE,
    Configuration,
    shared_batch,
    study_parameters,
)
from dlperf_study.study.job import ROUNDS
from dlperf_study.study.parallel_parameters import layout_of
from dlperf_study.study.parameter import SAMPLES, Parameter, Scalar
from dlperf_study.study.program import AMOUNTS, Program, program_values

#: What a report may be asked, in the order of its pages: each is a notebook of this name.
QUESTIONS = ("scaling", "communication", "comparison", "published", "audit", "quality", "resources", "prediction")
#: Pages of earlier versions, with what to do about them in a study file.
FORMER_QUESTIONS = {
    "replication": "leave it out: the page of published has its tables",
    "compliance": "leave it out: the page of quality has its rules",
}
#: The question that needs a declared reference, the one that needs published sources, and the one on further sizes.
COMPARISON, PUBLISHED, PREDICTION = "comparison", "published", "prediction"
SOURCES_FOLDER = PACKAGE_FOLDER / "audit" / "published" / "sources"

#: An interval needs so many runs; further ones are asked for where it is still too wide.
REPEATS_OF_INTERVAL = 3
#: Rounds that a study with a precision may have where it does not say.
DEFAULT_MAX_REPEATS = 12
SMALLEST_PRECISION, LARGEST_PRECISION = 0.0001, 0.5
PRECISION_KEYS = ("precision", "max_repeats", "time_budget_minutes")

#: A study of more configurations must say so: each takes a minute or more, and a factor too many multiplies them.
DEFAULT_MAX_CONFIGURATIONS = 10_000

#: The batch that stays the same as devices are added, and the one that follows from it and can't be given.
BATCH_OF_SCALING = {"weak": ("batch_per_device", GLOBAL_BATCH.name), "strong": (GLOBAL_BATCH.name, "batch_per_device")}

#: What of a measurement a user's program can be told.
PROGRAM_MEASUREMENT = ("warmup_steps", "measured_steps", "computation_steps", "repeats", "timeout_seconds")


def source_names() -> tuple[str, ...]:
    """Return the names of the published sources: each is a pair of files, ``<name>.yaml`` and ``<name>.csv``."""
    return tuple(sorted(file.stem for file in SOURCES_FOLDER.glob("*.yaml")))


@dataclass(frozen=True)
class Study:
    """One study, in full or in quick mode; ``source`` is the file that messages name.

    ``scaling`` is ``weak`` (batch per device fixed) or ``strong`` (global batch fixed). ``order`` is ``rounds`` or
    ``blocks``, and ``order_seed`` shuffles the rounds. ``max_configurations``: how many points the factors and the
    included points may give, before some are excluded. ``precision`` is the wanted half-width of every interval, as a
    share of its value: rounds are added, up to ``max_repeats`` of them and within ``time_budget_minutes``, until it is
    reached; None: only the requested repeats are measured. ``extras`` are conditions: the published tables do not have
    what matches one of them.
    ``largest_batch``: up to which batch per device the largest that fits in memory is searched, of the configurations
    that match ``largest_batch_where``; None: of none. ``program``: of the user; None: networks of this package.
    ``rate``: ratios are of ``samples``/s or of ``tokens``/s.
    Raises StudyFileError when its parts contradict each other.
    """

    name: str
    source: str
    title: str
    about: str
    questions: tuple[str, ...]
    scaling: str
    fixed: Mapping[str, Scalar]
    factors: grid.Levels
    baseline: grid.Rules
    reference: grid.Rules = ()
    published: tuple[str, ...] = ()
    extras: tuple[grid.Levels, ...] = ()
    include: tuple[grid.Levels, ...] = ()
    exclude: tuple[grid.Levels, ...] = ()
    measurement: Mapping[str, int] = field(default_factory=dict)
    order: str = ROUNDS
    order_seed: int = 0
    max_configurations: int = DEFAULT_MAX_CONFIGURATIONS
    precision: float | None = None
    max_repeats: int | None = None
    time_budget_minutes: float | None = None
    largest_batch: int | None = None
    largest_batch_where: grid.Levels = field(default_factory=dict)
    quick: bool = False
    program: Program | None = None
    rate: str = SAMPLES

    def __post_init__(self) -> None:
        self._check_factors()
        self._check_size()
        self._check_precision()
        self._check_breakdown()
        self._check_batch()
        self._check_program()
        for index, included in enumerate(self.include):
            missing = [name for name in self.factors if name not in included]
            if missing:
                raise self._error(f"include[{index}] gives no value of {', '.join(missing)}; it must name every factor")
        self._check_question(COMPARISON, "reference", bool(self.reference), "what to compare with")
        self._check_all_different("duplicate source in published", self.published)
        self._check_question(PUBLISHED, "published", bool(self.published), "the sources to show")
        if self.extras and not self.published:
            raise self._error("extras is given, but published is not; name the source that does not have them")

    @property
    def rounds_at_most(self) -> int:
        """How many rounds a study with a precision may have."""
        return DEFAULT_MAX_REPEATS if self.max_repeats is None else self.max_repeats

    @cached_property
    def points(self) -> tuple[grid.Point, ...]:
        """The grid, then the included points, without the excluded ones: complete and all different.

        Raises StudyFileError for a duplicate point, a condition that matches none, and when none is left.
        """
        keys: dict[tuple[Scalar | None, ...], str] = {}
        all_points: list[grid.Point] = []
        for key, point in self._all_points():
            values = tuple(map(point.get, self.varied))
            if values in keys:
                raise self._error(f"duplicate point in {key}: {self._format(point)} is already in {keys[values]}")
            keys[values] = key
            all_points.append(point)
        points = all_points
        for index, where in enumerate(self.exclude):
            # A point may match several.
            self._require_match(f"exclude[{index}]", where, all_points)
            points = [point for point in points if not grid.matches(point, where)]
        if not points:
            raise self._error("exclude leaves no configuration")
        for index, where in enumerate(self.extras):
            self._require_match(f"extras[{index}]", where, points)
        if self.largest_batch is not None:
            self._require_match("largest_batch.where", self.largest_batch_where, points)
        return tuple(points)

    def is_searched(self, point: grid.Point) -> bool:
        """Return whether the largest batch of a point is searched."""
        return self.largest_batch is not None and grid.matches(point, self.largest_batch_where)

    def is_extra(self, point: grid.Point) -> bool:
        """Return whether a point is marked as one that is not in the published tables."""
        return any(grid.matches(point, where) for where in self.extras)

    def configuration(self, point: grid.Point, cluster: str) -> Configuration:
        """Return a point as a Configuration.

        Under strong scaling ``batch_per_device`` is the device's share of the global batch, or 0 where the
        batch can't be shared equally; a plan lists those as unsupported.
        """
        values = {"study": self.name, "cluster": cluster, "quick": self.quick, **point, **self.measurement}
        replicas = layout_of(point).replicas
        if self.scaling == "strong" and GLOBAL_BATCH.name in point:
            values["batch_per_device"] = shared_batch(int(values.pop(GLOBAL_BATCH.name)), replicas)
        if not self.program:
            return Configuration.from_mapping(values, self.source)
        values |= {"batch_per_device": self._batch_of_program(values, replicas), "program_digest": self.program.digest}
        configuration = Configuration.of_program(self.program.name, values, self.source)
        # A global batch that its devices can't share is unsupported, for that reason.
        if self.scaling == "strong" and not configuration.batch_per_device:
            return configuration
        try:
            for name in AMOUNTS:
                self.program.amount(name, configuration.program_values)
        except ValueError as error:
            raise self._error(str(error)) from None
        return configuration

    def _batch_of_program(self, values: grid.Point, replicas: int) -> int:
        """Return how many samples each device of a program has in a step; 0 if its study does not say it, or can't.

        Raises StudyFileError where ``samples_per_step`` is no number, or another than the batches of the study give.
        """
        batch = values.get("batch_per_device")
        try:
            samples = self.program.amount("samples_per_step", program_values(values)) if self.program else None
        except ValueError as error:
            raise self._error(str(error)) from None
        if samples is None:
            return int(batch or 0)
        if samples != int(samples):
            raise self._error(f"program.samples_per_step is {samples:g} for {self._format(values)}; it must be a count")
        if batch is not None and int(batch) * replicas != samples:
            raise self._error(
                f"program.samples_per_step is {samples:g} for {self._format(values)}, but batch_per_device is {batch} "
                f"on {counted(replicas, 'device')}; give the batch of a part of a step another name, as micro_batch"
            )
        return shared_batch(int(samples), replicas)

    @property
    def parameters(self) -> dict[str, Parameter]:
        """What its points have, by name: of a user's program, only how it is scaled goes without saying."""
        parameters = study_parameters()
        return {name: parameters[name] for name in SCALE if name != "batch_per_device"} if self.program else parameters

    def rules(self, kind: grid.Denominator) -> grid.Rules:
        """Return the rules that declare baselines or references; none where the study has no such."""
        return {"baseline": self.baseline, "reference": self.reference}[kind]

    def denominator_of(self, point: grid.Point, kind: grid.Denominator) -> grid.Point:
        """Return the point that the first matching rule declares as baseline or as reference.

        Raises StudyFileError when no rule matches, and when the declared point has a different one itself.
        """
        denominator = self._declared(point, kind)
        if self._declared(denominator, kind) != denominator:
            raise self._error(f"{kind}: the {kind} of {self._format(point)} has a different {kind} itself")
        return denominator

    def missing_denominator(self, point: grid.Point, kind: grid.Denominator) -> StudyFileError:
        """Return the error for a point whose baseline or reference is not in the plan."""
        declared = f"the {kind} of {self._format(point)} is {self._format(self.denominator_of(point, kind))}"
        return self._error(f"{kind}: {declared}, which is not in the study; add it to factors or include")

    def locate(self, name: str, value: Scalar) -> str:
        """Return where the study file has a level of a parameter, as messages name it: ``x.yaml: factors.model[0]``."""
        key = name
        for index, included in enumerate(self.include):
            if value in included.get(name, ()):
                key = f"include[{index}].{name}"
        if value in self.factors.get(name, ()):
            key = f"factors.{name}[{list(self.factors[name]).index(value)}]"
        elif self.fixed.get(name) == value:
            key = f"fixed.{name}"
        return f"{self.source}: {key}"

    def _declared(self, point: grid.Point, kind: grid.Denominator) -> grid.Point:
        for rule in self.rules(kind):
            if grid.matches(point, rule.where):
                return {**point, **rule.values}
        raise self._error(f"{kind}: no rule's where matches {self._format(point)}")

    def _require_match(self, key: str, where: grid.Levels, points: Sequence[grid.Point]) -> None:
        """Refuse a condition that no point meets."""
        if not any(grid.matches(point, where) for point in points):
            raise self._error(f"{key} ({grid.format_condition(where)}) matches no configuration of the study")

    def _all_points(self) -> Iterator[tuple[str, grid.Point]]:
        """Yield every point with the key of the study file that it comes from."""
        _, derived_batch = BATCH_OF_SCALING[self.scaling]
        given = {}
        for name, parameter in self.parameters.items():
            if parameter.default is not None and name != derived_batch:
                given[name] = parameter.default
        given |= self.fixed
        for levels in grid.points_of(self.factors):
            yield "factors", {**given, **levels}
        for index, included in enumerate(self.include):
            for levels in grid.points_of(included):
                yield f"include[{index}]", {**given, **levels}

    def _format(self, point: grid.Point) -> str:
        """Return the values of a point that the study varies, as messages show them."""
        return grid.format_values({name: point[name] for name in self.varied if name in point})

    @cached_property
    def varied(self) -> tuple[str, ...]:
        """The names in which points, and what they declare as their baselines and references, may differ."""
        rules = (*self.baseline, *self.reference)
        return tuple(dict.fromkeys(chain(self.factors, *self.include, *(rule.values for rule in rules))))

    def _check_factors(self) -> None:
        self._check_all_different("duplicate in questions", self.questions)
        for name, levels in self.factors.items():
            if name in self.fixed:
                raise self._error(
                    f"{name} is in fixed ({level(self.fixed[name])}) and in factors; it can only be one of them"
                )
            self._check_all_different(f"duplicate level in factors.{name}", levels)
        for name, parameter in self.parameters.items():
            if parameter.default is None and name != GLOBAL_BATCH.name and not self._gives(name):
                raise self._error(f"{name} is missing; give it in fixed or in factors")

    def _check_size(self) -> None:
        """Refuse a study of more points than its file allows, before they are made."""
        points = sum(math.prod(map(len, levels.values())) for levels in (self.factors, *self.include))
        if points > self.max_configurations:
            sources = "factors and include give" if self.include else "factors give"
            raise self._error(
                f"{sources} {points:,} points, more than max_configurations, which is {self.max_configurations:,}; "
                f"leave out a factor or levels, or write max_configurations: {points} if you mean it"
            )

    def _check_batch(self) -> None:
        fixed_batch, derived_batch = BATCH_OF_SCALING[self.scaling]
        parts = [self.fixed, self.factors, *self.include, *self.exclude]
        for rule in (*self.baseline, *self.reference):
            parts += (rule.where, rule.values)
        if any(derived_batch in part for part in parts):
            raise self._error(f"{derived_batch} can't be given, because scaling is {self.scaling}; give {fixed_batch}")
        if self.scaling == "strong" and self.largest_batch is not None:
            raise self._error("largest_batch can't be given, because scaling is strong: devices share the global batch")
        if self.scaling == "strong" and not self.program and not self._gives(fixed_batch):
            raise self._error(f"{fixed_batch} is missing, because scaling is strong; give it in fixed or in factors")

    def _check_precision(self) -> None:
        """Refuse limits of a precision that is not asked for, and a precision that can't be reached or known."""
        if self.precision is None:
            if self.max_repeats is not None:
                raise self._error("max_repeats is given, but precision is not; give the precision or leave it out")
            return
        if self.order != ROUNDS:
            raise self._error(f"precision needs order: {ROUNDS}, because blocks have no interval of a ratio")
        repeats = self.measurement.get("repeats", REPEATS_OF_INTERVAL)
        if repeats < REPEATS_OF_INTERVAL:
            raise self._error(
                f"measurement.repeats is {repeats}; with precision it must be at least {REPEATS_OF_INTERVAL}"
            )
        if self.rounds_at_most < repeats:
            raise self._error(f"max_repeats is {self.rounds_at_most}; it must be at least repeats, which is {repeats}")

    def _check_breakdown(self) -> None:
        """Refuse windows of computation, exchange and input in too few runs, also of those that confirm a precision."""
        first, repeats = (int(self.measurement.get(name, DEFAULTS[name])) for name in ("breakdown_from", "repeats"))
        most = max(1, repeats - REPEATS_OF_INTERVAL + 1)
        if first > most:
            raise self._error(
                f"measurement.breakdown_from is {first}; with repeats {repeats} it must be at most {most}, so that an "
                f"interval of a part of a step has {REPEATS_OF_INTERVAL} runs"
            )

    def _check_program(self) -> None:
        """Refuse a placeholder of the program's command that has no value, and factors that change nothing."""
        if not self.program:
            return
        placeholders, given = self.program.placeholders, {*self.fixed, *self.factors, *SCALE, *PROGRAM_MEASUREMENT}
        for name in self.program.settings:
            if name not in given and name != GLOBAL_BATCH.name:
                raise self._error(
                    f"program: the placeholder {{{name}}} has no value; {closest(name, given)}give it in fixed or in "
                    "factors, or write {{ and }} for braces"
                )
        for name in self.factors:
            if name not in (*placeholders, *SCALE, GLOBAL_BATCH.name):
                raise self._error(f"factors.{name}: the program's command has no placeholder {{{name}}}")
        for name in ("framework", "strategy"):
            if self._gives(name):
                raise self._error(f"{name} can't be given for a program; give a placeholder another name")
        for name in self.measurement:
            if name not in PROGRAM_MEASUREMENT:
                raise self._error(
                    f"measurement.{name} can't be given for a program; {', '.join(PROGRAM_MEASUREMENT)} can"
                )

    def _check_question(self, question: str, key: str, is_given: bool, needed: str) -> None:
        """Refuse a question without the key that it needs, and the key without its question."""
        is_requested = question in self.questions
        if is_requested and not is_given:
            raise self._error(f"{key} is missing, because questions has {question}; give {needed}")
        if is_given and not is_requested:
            raise self._error(
                f"{key} is given, but questions does not contain {question}; add the question or leave it out"
            )

    def _check_all_different(self, problem: str, values: Sequence[Scalar]) -> None:
        if len(set(values)) < len(values):
            raise self._error(f"{problem}: {', '.join(map(level, values))}")

    def _gives(self, name: str) -> bool:
        return name in self.fixed or name in self.factors

    def _error(self, message: str) -> StudyFileError:
        return StudyFileError(f"{self.source}: {message}")
