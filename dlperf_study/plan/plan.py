"""The plan of a study on one cluster: its configurations in order, and as JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.errors import EvidenceError, StudyFileError
from dlperf_study.paths import write_atomically
from dlperf_study.study.configuration import FIELD_NAMES, Configuration
from dlperf_study.study.grid import Denominator, Point
from dlperf_study.study.parameter import Scalar
from dlperf_study.study.study import Study

FORMAT = 4


@dataclass(frozen=True)
class Entry:
    """One configuration, the identities of its declared baseline and reference, and why it can't run here (or None).

    Every entry has a baseline, and a reference where the study declares references (else None). A baseline is an
    entry of the same plan and its own baseline, whether or not it can run: the declaration belongs to the study and
    not to the machine. The same holds for references. The values of ``unstated`` parameters, which only ingested logs
    have, are unknown; what the configuration holds in their place means nothing.
    """

    configuration: Configuration
    baseline_identity: str
    unsupported: str | None = None
    reference_identity: str | None = None
    unstated: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, Scalar | None]:
        """Every parameter by name, as pages show it; None where it is unstated."""
        return self.configuration.displayed_values() | dict.fromkeys(self.unstated)

    @property
    def is_baseline(self) -> bool:
        """Whether this configuration is its own baseline."""
        return self.configuration.identity == self.baseline_identity

    @property
    def is_reference(self) -> bool:
        """Whether this configuration is its own reference."""
        return self.configuration.identity == self.reference_identity

    def denominator(self, kind: Denominator) -> str | None:
        """Return the identity of the declared baseline or reference."""
        return {"baseline": self.baseline_identity, "reference": self.reference_identity}[kind]


@dataclass(frozen=True)
class Plan:
    """What will be run, in order; ``factors`` are the names of the parameters that vary.

    ``published`` are the names of the published sources whose numbers are shown next to the measured ones.
    ``order`` and ``order_seed``: in which order the runs are measured; empty and 0 for what is ingested.
    ``precision``: the wanted half-width of every interval as a share of its value, for which rounds are added to
    ``repeats``, up to ``max_repeats`` in all and within ``time_budget_minutes``; None: none are added.
    ``ingested_from``: the folder of logs of other programs that were ingested; empty for what is measured.
    ``why_not_gpu``: why runs are measured on a CPU although the machine has GPUs; empty everywhere else.
    """

    study: str
    cluster: str
    title: str
    about: str
    scaling: str
    questions: tuple[str, ...]
    factors: tuple[str, ...]
    published: tuple[str, ...]
    quick: bool
    entries: tuple[Entry, ...]
    order: str = ""
    order_seed: int = 0
    precision: float | None = None
    max_repeats: int | None = None
    time_budget_minutes: float | None = None
    ingested_from: str = ""
    why_not_gpu: str = ""

    @property
    def runnable(self) -> tuple[Entry, ...]:
        """The entries that can run here."""
        return tuple(entry for entry in self.entries if entry.unsupported is None)

    @property
    def unsupported(self) -> tuple[Entry, ...]:
        """The entries that can't run here, each with its reason."""
        return tuple(entry for entry in self.entries if entry.unsupported is not None)

    def write(self, path: Path) -> None:
        """Write the plan as JSON, all of it or nothing."""
        entries = [{"identity": entry.configuration.identity, **asdict(entry)} for entry in self.entries]
        head = {name: value for name, value in vars(self).items() if name != "entries"}
        content = {"format": FORMAT, **head, "entries": entries}
        write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> "Plan":
        """Read a plan; raises EvidenceError when it is missing, damaged or of another version of this package."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise EvidenceError(f"{path}: there is no plan yet; `python -m dlperf_study run` writes one") from None
        except ValueError as error:
            raise EvidenceError(f"{path}: not a plan: {error}") from error
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise EvidenceError(f"{path}: not a plan of format {FORMAT}; plan the study again")
        try:
            entries = tuple(_entry_from_json(entry, path) for entry in content.pop("entries"))
            lists = {name: tuple(content[name]) for name in ("questions", "factors", "published")}
            return cls(**{**content, **lists, "entries": entries})
        except (KeyError, TypeError) as error:
            raise EvidenceError(f"{path}: a damaged plan ({error}); plan the study again") from error


def build_plan(study: Study, cluster: Cluster, unsupported: Callable[[Configuration], str | None]) -> Plan:
    """Return the plan of a study on a cluster.

    ``unsupported`` returns why the frameworks and models here can't do a configuration, or None. Whether the cluster
    is large enough is checked here.
    Raises StudyFileError when a baseline or a reference is not in the plan, or two points are one configuration.
    """
    points = study.points()
    configurations = [study.configuration(point, cluster.name) for point in points]
    _check_all_different(study, points, configurations)
    identities = {frozenset(point.items()): each.identity for point, each in zip(points, configurations, strict=True)}
    baselines = _denominators("baseline", study, points, identities)
    references = _denominators("reference", study, points, identities) if study.reference else [None] * len(points)
    entries = []
    for point, configuration, baseline, reference in zip(points, configurations, baselines, references, strict=True):
        reason = _unsupported_reason(point, configuration, cluster, unsupported)
        entries.append(Entry(configuration, baseline, reason, reference))
    return _plan(study, cluster, entries)


def _unsupported_reason(
    point: Point, configuration: Configuration, cluster: Cluster, unsupported: Callable[[Configuration], str | None]
) -> str | None:
    """Return everything that keeps a configuration from running on a cluster, or None."""
    obstacles = [*cluster.obstacles(configuration), unsupported(configuration)]
    if not configuration.batch_per_device:
        devices = configuration.world_size
        obstacles.insert(0, f"global_batch {point['global_batch']} can't be shared equally by {devices} devices")
    return "; ".join(filter(None, obstacles)) or None


def _plan(study: Study, cluster: Cluster, entries: Sequence[Entry]) -> Plan:
    """Return the plan of these entries, with what the study file says of all of them."""
    return Plan(
        study=study.name,
        cluster=cluster.name,
        title=study.title,
        about=study.about,
        scaling=study.scaling,
        questions=study.questions,
        factors=varying([entry.configuration for entry in entries], list(study.factors)),
        published=study.published,
        quick=study.quick,
        entries=tuple(entries),
        order=study.order,
        order_seed=study.order_seed,
        precision=study.precision,
        max_repeats=study.rounds_at_most if study.precision else None,
        time_budget_minutes=study.time_budget_minutes,
        why_not_gpu=cluster.why_not_gpu,
    )


def _denominators(
    kind: Denominator, study: Study, points: Sequence[Point], identities: Mapping[frozenset[Any], str]
) -> list[str]:
    """Return the identity of each point's baseline or reference; ``identities`` has those of all points, by values."""
    denominators = []
    for point in points:
        denominator = frozenset(study.denominator_of(point, kind).items())
        if denominator not in identities:
            raise study.missing_denominator(point, kind)
        denominators.append(identities[denominator])
    return denominators


def _check_all_different(study: Study, points: Sequence[Point], configurations: Sequence[Configuration]) -> None:
    """Refuse points that become one configuration: global batches that can't be shared have no batch per device."""
    points_by_identity: dict[str, Point] = {}
    for point, configuration in zip(points, configurations, strict=True):
        first = points_by_identity.setdefault(configuration.identity, point)
        if first is not point:
            batches = f"{first['global_batch']} and {point['global_batch']}"
            raise StudyFileError(
                f"{study.source}: global_batch {batches} can't be shared equally by {configuration.world_size} devices "
                "and would be one configuration; exclude all but one"
            )


def varying(configurations: Sequence[Configuration], factors: Sequence[str]) -> tuple[str, ...]:
    """Return the parameters with more than one value: the study's factors first, in their order."""
    names = []
    for name in dict.fromkeys((*factors, *FIELD_NAMES)):
        if name in FIELD_NAMES and len({getattr(configuration, name) for configuration in configurations}) > 1:
            names.append(name)
    return tuple(names)


def _entry_from_json(entry: dict[str, Any], path: Path) -> Entry:
    configuration = Configuration.from_mapping(entry["configuration"], str(path))
    if configuration.identity != entry["identity"]:
        raise EvidenceError(
            f"{path}: planned by a different version of this package; measure the study again with the command run"
        )
    return Entry(
        configuration,
        baseline_identity=entry["baseline_identity"],
        unsupported=entry["unsupported"],
        reference_identity=entry["reference_identity"],
        unstated=tuple(entry.get("unstated", ())),
    )
