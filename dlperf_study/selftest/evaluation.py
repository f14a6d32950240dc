"""Evaluation of one self-test: collect its studies, check, keep the result."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial

from dlperf_study.core.code_identity import files_digest
from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.selftest import checks
from dlperf_study.selftest.known_truths import check_link, check_steps, check_straggler
from dlperf_study.selftest.power import power_sentences
from dlperf_study.selftest.result import CheckResult, Machine, SelftestResult, Status, add_result

#: The rooms from a run's evidence to the significance tests of its dataset.
ANALYSING = ("records", "metrics", "dataset")


@cache
def analysis_code() -> str:
    """Return a digest of all code from evidence to significance tests."""
    return files_digest(*ANALYSING)


#: Of the column of statuses on the command line: the longest one and a space.
_STATUS_WIDTH = max(map(len, Status)) + 1
_MACHINE = ["host", "cpu_model", "cores"]


def evaluate(
    pairs: Sequence[str], others: Mapping[str, str], obstacles: Mapping[str, str], bits_per_second: float, quick: bool
) -> SelftestResult:
    """Check the measured studies, add the result to the file, return it.

    ``pairs`` are the names of the studies of pairs, ``others`` of those of the other checks, by the name of the check;
    ``obstacles`` are the reasons why studies were not measured, by name: their checks are skipped. ``bits_per_second``
    is the rate of the link. Raises RecordError if no pair was measured, or on several machines.
    """
    datasets = [collect(StudyPaths.of(name)) for name in pairs]
    machine, code = _machine_and_code(datasets)
    results = [
        _checked(checks.SAME, "", partial(checks.check_same_program, datasets)),
        _checked(checks.SLOWDOWNS, "", partial(checks.check_slowdowns, datasets)),
        _checked(checks.INTERVALS, "", partial(checks.check_intervals, datasets)),
    ]
    known: dict[str, Callable[[Dataset], CheckResult]] = {
        checks.STEPS: check_steps,
        checks.LINK: partial(check_link, bits_per_second=bits_per_second),
        checks.STRAGGLER: check_straggler,
    }
    for name, check in known.items():
        results.append(_checked(name, obstacles.get(others[name], ""), partial(_check_study, check, others[name])))
    ended = datetime.now(UTC).isoformat(timespec="seconds")
    result = SelftestResult(ended, machine, code, quick, tuple(results), analysis_code(), _power(datasets, results))
    add_result(result)
    return result


def describe(result: SelftestResult) -> str:
    """Return every check as text: status, requirement and observation."""
    lines = []
    for check in result.checks:
        lines += [f"{check.status:{_STATUS_WIDTH}}{check.name}: {check.requirement}", " " * _STATUS_WIDTH + check.seen]
    lines += [f"{result.power}."] if result.power else []
    return "\n".join(lines)


def _power(datasets: Sequence[Dataset], results: Sequence[CheckResult]) -> str:
    """Return the power of the checks of pairs, if decided."""
    slowdowns = next(result for result in results if result.name == checks.SLOWDOWNS)
    if not slowdowns.comparisons:
        return ""
    half_width = checks.median_half_width(slowdowns.comparisons)
    return power_sentences(list(map(checks.slowdown_of_pair, datasets)), checks.common_rounds(datasets), half_width)


def _check_study(check: Callable[[Dataset], CheckResult], study: str) -> CheckResult:
    return check(collect(StudyPaths.of(study)))


def _checked(name: str, obstacle: str, check: Callable[[], CheckResult]) -> CheckResult:
    """Return the result of a check: skipped, undecided or evaluated."""
    requirement = checks.REQUIREMENTS[name]
    if obstacle:
        return CheckResult(name, requirement, Status.SKIPPED, obstacle)
    try:
        return check()
    except RecordError as error:
        return CheckResult(name, requirement, Status.UNDECIDED, str(error))


def _machine_and_code(datasets: Sequence[Dataset]) -> tuple[Machine, str]:
    """Return the one machine and benchmark code of all runs."""
    environments = set()
    for dataset in datasets:
        runs = dataset.runs[[*_MACHINE, "measuring_code"]].dropna()
        environments.update(runs.itertuples(index=False, name=None))
    if len(environments) != 1:
        machines = "; ".join(sorted(map(_named, environments))) or "none"
        raise RecordError(f"a self-test is of one machine and one benchmark code; these runs are from {machines}")
    [(host, cpu_model, cores, code)] = environments
    return Machine(str(host), str(cpu_model), int(cores)), str(code)


def _named(environment: tuple[str, str, float, str]) -> str:
    host, cpu_model, cores, code = environment
    return f"{host} ({cpu_model}, {cores:.0f} cores, code {code[:12]})"
