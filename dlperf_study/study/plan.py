"""The plan of a study on one cluster: its configurations in order, and as JSON."""

import json
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    PlainSerializer,
    TypeAdapter,
    ValidationInfo,
    computed_field,
)

from dlperf_study.core import user_commands, wording, writing
from dlperf_study.core.errors import RecordError, StudyFileError
from dlperf_study.study import grid, parallel_parameters, renamed, study_values, validation
from dlperf_study.study.configuration import FIELD_NAMES, OF_WHOLE_PROGRAM, Configuration
from dlperf_study.study.order import Rounds
from dlperf_study.study.parameter import TOKENS, Scalar
from dlperf_study.study.program import Program
from dlperf_study.study.record_types import FormatNumber
from dlperf_study.study.study import FORMER_SECTIONS, ReportSection, Study, StudyFacts

FORMAT = 4


class PlannedCluster(Protocol):
    """What a plan needs to know of a cluster."""

    @property
    def name(self) -> str:
        """Its name in ``params/clusters``, or the path of its file."""

    @property
    def device(self) -> str:
        """The device of a process: ``cpu`` or ``gpu``."""

    @property
    def why_not_gpu(self) -> str:
        """Why runs are measured on the CPU in spite of GPUs."""

    def obstacles(self, configuration: Configuration) -> Iterator[str]:
        """Yield each reason why a configuration needs more than there is."""


ParameterName = Annotated[str, study_values.valid_name("parameters", lambda: FIELD_NAMES)]


def _recorded_configuration(values: Any, info: ValidationInfo) -> Any:
    if isinstance(values, dict):
        return Configuration.from_record(values, f"{info.context}: configuration of an entry")
    return values


class Entry(validation.Section):
    """One configuration of a plan, with its baseline and its obstacle.

    Every entry has a baseline, and a reference where the study declares references (else None). A baseline is an entry
    of the same plan and its own baseline, whether or not it can run: the declaration belongs to the study and not to
    the machine. The same holds for references. The values of ``unstated`` parameters, which only ingested logs have,
    are unknown; what the configuration holds in their place means nothing. ``is_unpublished``: the published tables do
    not have it, according to the study.
    """

    model_config = ConfigDict(extra="ignore")
    configuration: Annotated[
        InstanceOf[Configuration], BeforeValidator(_recorded_configuration), PlainSerializer(Configuration.as_dict)
    ]
    baseline_id: str
    unsupported: str | None = None
    reference_id: str | None = None
    unstated: tuple[ParameterName, ...] = Field(default=(), strict=False)
    is_unpublished: bool = False
    is_searched: bool = False

    @computed_field  # type: ignore[prop-decorator]
    @property
    def configuration_id(self) -> str:
        """The identity of its configuration."""
        return self.configuration.configuration_id

    @property
    def parameters(self) -> dict[str, Scalar | None]:
        """Every parameter by name; None where it is unstated."""
        return self.configuration.displayed_values() | dict.fromkeys(self.unstated)

    @property
    def is_baseline(self) -> bool:
        """Whether this configuration is its own baseline."""
        return self.configuration.configuration_id == self.baseline_id

    @property
    def is_reference(self) -> bool:
        """Whether this configuration is its own reference."""
        return self.configuration.configuration_id == self.reference_id

    def denominator(self, kind: grid.Denominator) -> str | None:
        """Return the identity of the declared baseline or reference."""
        return {"baseline": self.baseline_id, "reference": self.reference_id}[kind]


def _present_pages(sections: Any) -> Any:
    if isinstance(sections, list | tuple):
        return [name for name in sections if name not in FORMER_SECTIONS]
    return sections


class Plan(StudyFacts):
    """What will be run, in order: a study's facts and its configurations.

    ``factors`` are the names of the parameters that vary. ``order``: empty for what is ingested.
    ``largest_batch``: up to which batch per device the largest that fits in memory is searched; None: it is not.
    ``ingested_from``: the folder of logs of other programs that were ingested; empty for what is measured.
    ``device``: of the cluster; empty for what is ingested.
    ``program``: the user's own that trains; None: networks of this package. It is no part of the file.
    ``why_not_gpu``: why runs are measured on a CPU although the machine has GPUs; empty everywhere else.
    """

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)
    format: Annotated[int, FormatNumber(FORMAT)] = FORMAT
    study: str
    cluster: str
    # An earlier version may have written a plan with pages that there are no more.
    sections: Annotated[tuple[ReportSection, ...], Field(strict=False), BeforeValidator(_present_pages)]
    factors: tuple[str, ...] = Field(strict=False)
    quick: bool
    entries: tuple[Entry, ...] = Field(strict=False)
    order: Literal["interleaved", "sequential", ""] = ""
    largest_batch: int | None = Field(default=None, ge=1)
    ingested_from: str = ""
    device: Literal["cpu", "gpu", ""] = ""
    why_not_gpu: str = ""
    program: InstanceOf[Program] | None = Field(default=None, exclude=True)

    @property
    def rounds(self) -> Rounds:
        """How many rounds are measured, and when the widths of CIs are compared with the target."""
        planned = max((entry.configuration.repetitions for entry in self.runnable), default=0)
        return Rounds.of(planned, self.target_ci, self.max_repetitions)

    @property
    def has_speedups(self) -> bool:
        """Whether a configuration has another one as its baseline."""
        return not all(entry.is_baseline for entry in self.entries)

    @property
    def is_program(self) -> bool:
        """Whether a program of the user trains."""
        return any(entry.configuration.own_program for entry in self.entries)

    @property
    def rerun_command(self) -> str:
        """The command that re-runs the study, and keeps the earlier results.

        It is not make's for a user's program: make is called in the checkout, and its study is elsewhere.
        """
        target = "" if self.is_program else "study"
        return user_commands.command_of_study("run", self.study, self.cluster, rerun=True, target=target)

    @property
    def runnable(self) -> tuple[Entry, ...]:
        """The entries that can run here."""
        return tuple(entry for entry in self.entries if entry.unsupported is None)

    @property
    def unsupported(self) -> tuple[Entry, ...]:
        """The entries that can't run here, each with its reason."""
        return tuple(entry for entry in self.entries if entry.unsupported is not None)

    def can_add_section(self, name: str) -> bool:
        """Return whether its study file could have a section and has not."""
        return name not in self.sections and not self.ingested_from

    @property
    def by_id(self) -> dict[str, Entry]:
        """The entries by the identity of their configuration, in order."""
        return {entry.configuration.configuration_id: entry for entry in self.entries}

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before measuring: a CPU is used, or no throughput follows.

        Of a plan that was read from its file, the program and thus the latter are not known.
        """
        return tuple(filter(None, (self.why_not_gpu, self._why_no_throughput)))

    @property
    def _why_no_throughput(self) -> str:
        if self.program is None or self.scaling != "weak" or not self.runnable:
            return ""
        amounts = (self.program.samples_per_step, self.program.tokens_per_step)
        if any(amounts) or any(entry.configuration.global_batch for entry in self.runnable):
            return ""
        return (
            "the samples per step are not stated: runs get step times, but no throughput and no speedup; "
            "samples_per_step, tokens_per_step or batch_per_device states it"
        )

    def declares(self, kind: grid.Denominator) -> bool:
        """Return whether the study declares baselines, or references."""
        return any(entry.denominator(kind) for entry in self.entries)

    def write(self, path: Path) -> None:
        """Write the plan as JSON, all of it or nothing."""
        writing.write_atomically(path, json.dumps(self.model_dump(), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> "Plan":
        """Read a plan; raises RecordError when it is missing or damaged."""
        command = user_commands.command_of_study("run", path.parent.name)
        if not path.exists():
            raise RecordError(f"{path}: there is no plan yet; `{command}` writes one")
        try:
            content = validation.parse_object(validation.read_text_file(path), str(path))
            content = renamed.rename_plan(content)
            plan = validation.validate_record(_PLAN, content, str(path))
            for name in _ALWAYS_WRITTEN:
                if name not in content:
                    raise RecordError(f"{path}: {name} is missing")
            for index, (entry, record) in enumerate(zip(plan.entries, content["entries"], strict=True)):
                if "reference_id" not in record:
                    raise RecordError(f"{path}: entries[{index}].reference_id is missing")
                if entry.configuration_id != record.get("configuration_id"):
                    name = f"the entry {record.get('configuration_id')} has the parameters of {entry.configuration_id}"
                    raise RecordError(f"{path}: {name}")
            _check_denominators(plan.entries, path)
            _check_factors(plan.factors, plan.entries, path)
        except RecordError as error:
            raise RecordError(f"{error}; `{command}` writes the plan again") from error
        return plan


_PLAN = TypeAdapter(Plan)
#: Keys that have defaults in memory, and are in the file of every version.
_ALWAYS_WRITTEN = ["format", "about", "published", "order", "order_seed", "target_ci", "max_repetitions"]
_ALWAYS_WRITTEN += ["ingested_from"]


def build_plan(study: Study, cluster: PlannedCluster, unsupported: Callable[[Configuration], str | None]) -> Plan:
    """Return the plan of a study on a cluster.

    ``unsupported`` returns why the frameworks and models here can't do a configuration, or None. Whether the cluster
    is large enough is checked here.
    Raises StudyFileError when a baseline or a reference is not in the plan, or two points are one configuration.
    """
    points = study.points
    configurations = [study.configuration(point, cluster.name) for point in points]
    _check_all_different(study, points, configurations)
    _check_throughput(study, configurations)
    _check_searched_batches(study, points)
    configuration_ids = [each.configuration_id for each in configurations]
    baselines = _denominators("baseline", study, points, configuration_ids)
    references = (
        _denominators("reference", study, points, configuration_ids) if study.reference else [None] * len(points)
    )
    entries = []
    for point, configuration, baseline, reference in zip(points, configurations, baselines, references, strict=True):
        misfits = list(parallel_parameters.layout_obstacles(vars(configuration)))
        obstacles = [*misfits, *cluster.obstacles(configuration), unsupported(configuration)]
        if not configuration.batch_per_device and not configuration.own_program and not misfits:
            obstacles.insert(0, f"global_batch {point['global_batch']} {_not_shared(configuration)}")
        entries.append(
            Entry(
                configuration=configuration,
                baseline_id=baseline,
                unsupported=wording.all_reasons(obstacles) or None,
                reference_id=reference,
                unstated=configuration.unstated,
                is_unpublished=study.is_unpublished(point),
                is_searched=study.is_searched(point),
            )
        )
    return _plan(study, cluster, entries)


def _not_shared(configuration: Configuration) -> str:
    layout = configuration.layout
    if layout.devices_per_replica == 1:
        return f"cannot be split equally over {layout.replicas} devices"
    groups = wording.counted(layout.replicas, "group")
    return f"cannot be split equally over {groups} of {wording.counted(layout.devices_per_replica, 'device')}"


def _plan(study: Study, cluster: PlannedCluster, entries: Sequence[Entry]) -> Plan:
    values: dict[str, Any] = {name: getattr(study, name) for name in StudyFacts.model_fields}
    if study.target_ci:
        values["max_repetitions"] = study.rounds_at_most
    if study.largest_batch:
        values["largest_batch"] = study.largest_batch.at_most
    values["device"] = cluster.device
    return Plan(
        **values,
        study=study.name,
        cluster=cluster.name,
        sections=study.sections,
        factors=varying(entries, list(study.factors)),
        quick=study.is_quick,
        entries=tuple(entries),
        order=study.order,
        why_not_gpu=cluster.why_not_gpu,
        program=study.program,
    )


def _denominators(
    kind: grid.Denominator, study: Study, points: Sequence[grid.Point], configuration_ids: Sequence[str]
) -> list[str]:
    # A point has fifty values, of which a study varies a few: by these the declared one is found.
    names = study.varied
    by_values = {
        tuple(map(point.get, names)): configuration_id
        for point, configuration_id in zip(points, configuration_ids, strict=True)
    }
    denominators = []
    for point in points:
        denominator = tuple(map(study.declared_denominator(point, kind).get, names))
        if denominator not in by_values:
            raise study.missing_denominator(point, kind)
        denominators.append(by_values[denominator])
    return denominators


def _check_all_different(study: Study, points: Sequence[grid.Point], configurations: Sequence[Configuration]) -> None:
    points_by_identity: dict[str, grid.Point] = {}
    for point, configuration in zip(points, configurations, strict=True):
        first = points_by_identity.setdefault(configuration.configuration_id, point)
        if first is not point:
            batches = f"{first['global_batch']} and {point['global_batch']}"
            raise StudyFileError(
                f"{study.source}: global_batch {batches} {_not_shared(configuration)} "
                "and would be one configuration; exclude all but one"
            )


def _check_searched_batches(study: Study, points: Sequence[grid.Point]) -> None:
    """Refuse a search below one sample for each micro-batch."""
    parts = max((int(point.get("micro_batches", 1)) for point in points if study.is_searched(point)), default=1)
    if study.largest_batch and study.largest_batch.at_most < parts:
        reason = f"a batch of {parts} micro-batches has {parts} samples at least"
        raise study.error(f"largest_batch.at_most is {study.largest_batch.at_most}, but {reason}")


def _check_throughput(study: Study, configurations: Sequence[Configuration]) -> None:
    """Refuse ratios of tokens where a configuration has none."""
    counts_tokens = bool(study.program and study.program.tokens_per_step)
    for configuration in configurations:
        if study.throughput_unit == TOKENS and not counts_tokens and not configuration.sequence_length:
            needed = "program.tokens_per_step" if study.program else "sequence_length"
            raise StudyFileError(
                f"{study.source}: throughput_unit is tokens, but {configuration.model} has no {needed}"
            )


def varying(entries: Sequence[Entry], factors: Sequence[str]) -> tuple[str, ...]:
    """Return the parameters with more than one value, factors first."""
    configurations, names = [entry.configuration for entry in entries], []
    settings = dict.fromkeys(name for configuration in configurations for name in configuration.own_settings)
    for name in dict.fromkeys((*factors, *FIELD_NAMES, *settings)):
        if name in settings:
            values = {configuration.own_settings[name] for configuration in configurations}
        elif name in FIELD_NAMES and name not in OF_WHOLE_PROGRAM:
            values = set(map(attrgetter(name), configurations))
        else:
            continue
        if len(values) > 1:
            names.append(name)
    return tuple(names)


def _check_factors(factors: Sequence[str], entries: Sequence[Entry], path: Path) -> None:
    declared = {*FIELD_NAMES, *(name for entry in entries for name in entry.configuration.own_settings)}
    for name in factors:
        if name not in declared:
            raise RecordError(f"{path}: factors has {name!r}, which is no parameter and no setting of its program")


def _check_denominators(entries: Sequence[Entry], path: Path) -> None:
    configuration_ids = {entry.configuration.configuration_id for entry in entries}
    if len(configuration_ids) < len(entries):
        raise RecordError(f"{path}: two of its {len(entries)} entries are the same configuration")
    for entry in entries:
        for kind in grid.DENOMINATORS:
            denominator = entry.denominator(kind)
            if denominator is not None and denominator not in configuration_ids:
                owner = entry.configuration.configuration_id
                raise RecordError(f"{path}: the {kind} of {owner} is {denominator!r}, which is no entry of the plan")
