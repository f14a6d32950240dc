"""What a study measures: its keys, and the grid of points, each with its baseline and its reference."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field

from dlperf_study.core import resources, wording
from dlperf_study.core.errors import StudyFileError
from dlperf_study.study import grid, parallel_parameters, program_section, study_values, training_parameters, validation
from dlperf_study.study.configuration import GLOBAL_BATCH, SCALE, Configuration, shared_batch, study_parameters
from dlperf_study.study.parameter import Parameter, Scalar
from dlperf_study.study.program import AMOUNTS, program_values

#: What a report may be asked, in the order of its pages: each is a notebook of this name.
SECTIONS = ("scaling", "communication", "comparison", "published", "audit", "quality", "resources", "prediction")
#: Pages of earlier versions, with what to do about them in a study file.
FORMER_SECTIONS = {
    "replication": "leave it out: the section published has its tables",
    "compliance": "leave it out: the section quality has its rules",
}
#: The section that needs a declared reference, the one that needs published sources, and the one on further sizes.
COMPARISON, PUBLISHED, PREDICTION = "comparison", "published", "prediction"
SOURCES_FOLDER = resources.PACKAGE_FOLDER / "audit" / "published" / "sources"

#: Rounds that a study with a target CI width may have where it does not say.
DEFAULT_MAX_REPEATS = 12
TARGET_CI_KEYS = ("target_ci", "max_repetitions", "time_budget_minutes")

#: The batch that stays the same as devices are added, and the one that follows from it and can't be given.
BATCH_OF_SCALING = {"weak": ("batch_per_device", GLOBAL_BATCH.name), "strong": (GLOBAL_BATCH.name, "batch_per_device")}

#: What of a measurement a user's program can be told.
PROGRAM_MEASUREMENT = ("warmup_steps", "measured_steps", "compute_only_steps", "repetitions", "timeout_seconds")


def source_names() -> tuple[str, ...]:
    """Return the names of the published sources: each is a pair of files, ``<name>.yaml`` and ``<name>.csv``."""
    return tuple(sorted(file.stem for file in SOURCES_FOLDER.glob("*.yaml")))


def _no_former_section(name: str) -> str:
    if name in FORMER_SECTIONS:
        raise ValueError(FORMER_SECTIONS[name])
    return name


ReportSection = Annotated[
    str,
    AfterValidator(_no_former_section),
    study_values.valid_name("sections", lambda: SECTIONS),
    Field(json_schema_extra=lambda schema: schema.update(enum=list(SECTIONS))),
]
SourceName = Annotated[str, study_values.valid_name("published sources", source_names)]
Conditions = Annotated[tuple[study_values.Choices, ...], Field(strict=False)]


class StudyFacts(validation.Section):
    """The keys that a plan has as well."""

    title: str = Field(min_length=1, description="one line")
    about: Annotated[str, AfterValidator(str.strip)] = Field(
        default="", description="a paragraph on the origin of the study"
    )
    scaling: Literal["weak", "strong"] = Field(description="weak: batch per device fixed; strong: global batch fixed")
    published: tuple[SourceName, ...] = Field(
        default=(),
        strict=False,
        description="published sources to show; for the section published",
    )
    throughput_unit: Literal["samples", "tokens"] = Field(
        default="samples", description="unit of ratios: samples/s, or tokens/s of sequence models"
    )
    order_seed: int = Field(default=0, ge=0, lt=2**32, description="seed of the random run order")
    target_ci: study_values.TargetCi | None = Field(
        default=None, description="target margin of the 95 % CI of every throughput and ratio: 2 %"
    )
    max_repetitions: int | None = Field(default=None, ge=1, le=1000, description="limit of rounds for target_ci")
    time_budget_minutes: float | None = Field(
        default=None, gt=0, description="adds no round that would end later, from the start of the call"
    )

    def changed(self, **changes: Any) -> Self:
        """Return this with other values of some keys; they are not checked."""
        # A copy by pydantic would keep the points of a study.
        return self.model_construct(**{**dict(self), **changes})


class LargestBatchSection(validation.Section):
    """The search for the largest batch per device that fits in memory."""

    at_most: int = Field(ge=1, le=training_parameters.MAX_BATCH, description="largest local batch that is tried")
    where: study_values.Choices = Field(default={}, description="which configurations; left out: all")


class QuickSection(validation.Section):
    """What quick mode changes: mappings key by key, lists as a whole."""

    constants: study_values.Values = Field(default={})
    factors: study_values.Factors = Field(default={})
    include: Conditions = Field(default=())
    exclude: Conditions = Field(default=())
    baseline: study_values.Rules | None = None
    reference: study_values.Rules | None = None
    measurement: study_values.Measurement = Field(default={})
    largest_batch: LargestBatchSection | None = None


class StudyFile(StudyFacts):
    """The keys of a study file."""

    sections: tuple[ReportSection, ...] = Field(
        min_length=1, strict=False, description="sections of the report besides the summary"
    )
    constants: study_values.Values = Field(default={}, description="parameters with one value")
    factors: study_values.Factors = Field(min_length=1, description="values by parameter; their product is the grid")
    include: Conditions = Field(default=(), description="further points, with a value of every factor")
    exclude: Conditions = Field(default=(), description="points that match all keys are dropped")
    baseline: study_values.Rules = Field(
        description="values that make a configuration its baseline, or rules: the first match counts"
    )
    reference: study_values.Rules | None = Field(
        default=None, description="comparison baseline, written like baseline; for the section comparison"
    )
    unpublished: Conditions = Field(
        default=(),
        description="configurations that match all keys stay out of the published tables; quick mode ignores it",
    )
    measurement: study_values.Measurement = Field(default={}, description="how each configuration is measured")
    order: Literal["interleaved", "sequential"] = Field(
        default="interleaved",
        description="interleaved: each configuration once per round; sequential: all runs of one, then of the next",
    )
    max_configurations: int = Field(
        default=10_000, ge=1, description="limit of points of factors and include, before exclude"
    )
    largest_batch: LargestBatchSection | None = Field(
        default=None, description="find the largest batch per device that fits in memory, by short runs"
    )
    # Its validator is built at the first use, with that of the file.
    quick: QuickSection = Field(default=QuickSection.model_construct(), description="changes for quick mode")
    program: program_section.DeclaredProgram | None = Field(
        default=None,
        description="your training script, measured in place of a built-in model",
    )


class Study(StudyFile):
    """One study, in full or in quick mode; messages name ``source``.

    Raises StudyFileError when its keys contradict each other.
    """

    name: str
    source: str
    is_quick: bool = False

    @property
    def rounds_at_most(self) -> int:
        """How many rounds a study with a target CI width may have."""
        return DEFAULT_MAX_REPEATS if self.max_repetitions is None else self.max_repetitions

    @cached_property
    def points(self) -> tuple[grid.Point, ...]:
        """The grid and the included points, without the excluded ones.

        Raises StudyFileError for a duplicate point, a condition that matches none, and when none is left.
        """
        keys: dict[tuple[Scalar | None, ...], str] = {}
        all_points: list[grid.Point] = []
        for key, point in self._all_points():
            values = tuple(map(point.get, self.varied))
            if values in keys:
                raise self.error(f"duplicate point in {key}: {self._format(point)} is already in {keys[values]}")
            keys[values] = key
            all_points.append(point)
        points = all_points
        for index, where in enumerate(self.exclude):
            # A point may match several.
            self._require_match(f"exclude[{index}]", where, all_points)
            points = [point for point in points if not grid.matches(point, where)]
        if not points:
            raise self.error("exclude leaves no configuration")
        for index, where in enumerate(self.unpublished):
            self._require_match(f"unpublished[{index}]", where, points)
        if self.largest_batch:
            self._require_match("largest_batch.where", self.largest_batch.where, points)
        return tuple(points)

    def is_searched(self, point: grid.Point) -> bool:
        """Return whether the largest batch of a point is searched."""
        return self.largest_batch is not None and grid.matches(point, self.largest_batch.where)

    def is_unpublished(self, point: grid.Point) -> bool:
        """Return whether the published tables lack a point."""
        return any(grid.matches(point, where) for where in self.unpublished)

    def configuration(self, point: grid.Point, cluster: str) -> Configuration:
        """Return a point as a Configuration.

        Under strong scaling ``batch_per_device`` is the device's share of the global batch, or 0 where the
        batch can't be shared equally; a plan lists those as unsupported.
        """
        values = {"study": self.name, "cluster": cluster, "quick": self.is_quick, **point, **self.measurement}
        replicas = parallel_parameters.parallel_layout(point).replicas
        if self.scaling == "strong" and GLOBAL_BATCH.name in point:
            values["batch_per_device"] = shared_batch(int(values.pop(GLOBAL_BATCH.name)), replicas)
        if not self.program:
            return Configuration.from_mapping(values, self.source)
        values |= {"batch_per_device": self._batch_of_program(values, replicas), "program_hash": self.program.digest}
        configuration = Configuration.for_program(self.program.name, values, self.source)
        # A global batch that its devices can't share is unsupported, for that reason.
        if self.scaling == "strong" and not configuration.batch_per_device:
            return configuration
        try:
            for name in AMOUNTS:
                self.program.amount(name, configuration.program_values)
        except ValueError as error:
            raise self.error(str(error)) from None
        return configuration

    def _batch_of_program(self, values: grid.Point, replicas: int) -> int:
        """Return the batch per device of a program; 0 if unknown.

        Raises StudyFileError where ``samples_per_step`` is no number, or another than the batches of the study give.
        """
        batch = values.get("batch_per_device")
        try:
            samples = self.program.amount("samples_per_step", program_values(values)) if self.program else None
        except ValueError as error:
            raise self.error(str(error)) from None
        if samples is None:
            return int(batch or 0)
        if samples != int(samples):
            raise self.error(f"program.samples_per_step is {samples:g} for {self._format(values)}; it must be a count")
        if batch is not None and int(batch) * replicas != samples:
            devices = wording.counted(replicas, "device")
            raise self.error(
                f"program.samples_per_step is {samples:g} for {self._format(values)}, but batch_per_device is {batch} "
                f"on {devices}; give the batch of a gradient accumulation step another name, such as micro_batch"
            )
        return shared_batch(int(samples), replicas)

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters of its points, by name."""
        parameters = study_parameters()
        if self.program:
            return {name: parameters[name] for name in SCALE if name != "batch_per_device"}
        return parameters

    def rules(self, kind: grid.Denominator) -> study_values.Rules:
        """Return the rules that declare baselines or references."""
        return self.baseline if kind == "baseline" else self.reference or ()

    def declared_denominator(self, point: grid.Point, kind: grid.Denominator) -> grid.Point:
        """Return the declared baseline or reference of a point.

        Raises StudyFileError when no rule matches, and when the declared point has a different one itself.
        """
        denominator = self._declared(point, kind)
        if self._declared(denominator, kind) != denominator:
            message = f"the {kind} of {self._format(point)} has another {kind} itself"
            raise self.error(f"{kind}: {message}; a {kind} must be its own {kind}")
        return denominator

    def missing_denominator(self, point: grid.Point, kind: grid.Denominator) -> StudyFileError:
        """Return the error for a baseline or reference outside of the plan."""
        declared = f"the {kind} of {self._format(point)} is {self._format(self.declared_denominator(point, kind))}"
        return self.error(f"{kind}: {declared}, which is not in the study; add it to factors or include")

    def locate(self, name: str, value: Scalar) -> str:
        """Return the key of a parameter's value: ``x.yaml: factors.model[0]``."""
        key = name
        for index, included in enumerate(self.include):
            if value in included.get(name, ()):
                key = f"include[{index}].{name}"
        if value in self.factors.get(name, ()):
            key = f"factors.{name}[{list(self.factors[name]).index(value)}]"
        elif self.constants.get(name) == value:
            key = f"constants.{name}"
        return f"{self.source}: {key}"

    def _declared(self, point: grid.Point, kind: grid.Denominator) -> grid.Point:
        for rule in self.rules(kind):
            if grid.matches(point, rule.where):
                return {**point, **rule.values}
        raise self.error(f"{kind}: no rule's where matches {self._format(point)}")

    def _require_match(self, key: str, where: grid.Values, points: Sequence[grid.Point]) -> None:
        if not any(grid.matches(point, where) for point in points):
            raise self.error(f"{key} ({grid.format_condition(where)}) matches no configuration of the study")

    def _all_points(self) -> Iterator[tuple[str, grid.Point]]:
        """Yield every point with the key that it comes from."""
        _, derived_batch = BATCH_OF_SCALING[self.scaling]
        given = {}
        for name, parameter in self.parameters.items():
            if parameter.default is not None and name != derived_batch:
                given[name] = parameter.default
        given |= self.constants
        for values in grid.grid_points(self.factors):
            yield "factors", {**given, **values}
        for index, included in enumerate(self.include):
            for values in grid.grid_points(included):
                yield f"include[{index}]", {**given, **values}

    def _format(self, point: grid.Point) -> str:
        return grid.format_values({name: point[name] for name in self.varied if name in point})

    @cached_property
    def varied(self) -> tuple[str, ...]:
        """The names in which points or their denominators may differ."""
        rules = (*self.baseline, *self.rules("reference"))
        return tuple(dict.fromkeys(chain(self.factors, *self.include, *(rule.values for rule in rules))))

    def gives(self, name: str) -> bool:
        """Return whether a parameter is fixed or a factor."""
        return name in self.constants or name in self.factors

    def error(self, message: str) -> StudyFileError:
        """Return an error with the file of the study."""
        return StudyFileError(f"{self.source}: {message}")
