"""Hardware and software of a run, from its records."""

from collections.abc import Callable, Iterable, Iterator
from statistics import geometric_mean
from typing import Any

from dlperf_study.core.errors import Diagnostic
from dlperf_study.core.wording import counted
from dlperf_study.metrics import metric
from dlperf_study.records.run import Run

#: Environment variables of the locale: they do not change a library.
_LOCALE_VARIABLES = ("LANG", "LC_ALL", "TZ")
VERSION_PREFIX = "v"


def list_hosts(run: Run) -> list[str]:
    """Return the names of the hosts of the ranks, each once."""
    return sorted({str(log.facts["host"]) for log in run.ranks})


def _read_cluster(name: str) -> Callable[[Run], Any]:
    return lambda run: run.facts["cluster"].get(name)


def _read_hardware(name: str) -> Callable[[Run], Any]:
    return lambda run: run.facts["environment"]["hardware"].get(name)


def _read_rank(name: str) -> Callable[[Run], Any]:
    return lambda run: run.ranks[0].facts.get(name)


def _addresses(run: Run) -> str | None:
    addresses = []
    for node in run.facts["nodes"]:
        if "address" in node:
            addresses.append(f"{node['name']} {node['address']} ({node.get('interface', 'unknown')})".strip())
    return ", ".join(addresses) or None


def _code_version(run: Run) -> str | None:
    git = run.facts["environment"]["git"]
    return git.get("commit") or (f"{VERSION_PREFIX}{git['installed']}" if "installed" in git else None)


def _read_program(name: str) -> Callable[[Run], Any]:
    return lambda run: dict(run.facts.get("program", {})).get(name) or None


def _program_commit(run: Run) -> str | None:
    commit = _read_program("commit")(run)
    if not commit:
        return None
    if run.facts["program"]["dirty"]:
        return f"{commit[:12]}, with changes"
    return str(commit[:12])


def _library_settings(run: Run) -> str:
    variables = run.facts["environment"]["variables"]
    settings = []
    for name, value in variables.items():
        if name not in _LOCALE_VARIABLES:
            settings.append(f"{name}={value}")
    return "; ".join(settings) or "none"


def _gpu_driver(run: Run) -> str | None:
    """Return the distinct driver versions of nodes with GPUs, or None."""
    nodes = [node for node in run.facts["nodes"] if node.get("gpu_support")]
    return _each_once(node.get("hardware", {}).get("gpu_driver") for node in nodes)


def _gpu_library(name: str) -> Callable[[Run], str | None]:
    """Return the formula of distinct GPU library versions, or None."""
    return lambda run: _each_once(node.get("gpu_support", {}).get(name) for node in run.facts["nodes"])


def _each_once(versions: Iterable[Any]) -> str | None:
    return ", ".join(dict.fromkeys(filter(None, versions))) or None


def machine_speed(run: Run) -> float | None:
    """Return iterations/s of the calibration loop; None if incomplete."""
    speeds = []
    for log in run.ranks:
        calibration = log.end.get("calibration")
        if not calibration:
            return None
        speeds += [calibration["iterations"] / seconds for seconds in calibration["seconds"]]
    return geometric_mean(speeds)


def too_few_cores(run: Run) -> Iterator[Diagnostic]:
    """Trainers and servers share cores, so devices add no computing power."""
    cores = run.facts["environment"]["hardware"].get("cores")
    configuration, hosts = run.configuration, len(list_hosts(run))
    trainers = configuration.world_size / hosts
    processes = trainers + configuration.parameter_servers / hosts
    if cores and processes > cores:
        yield Diagnostic("cores", f"{processes:g} ranks and parameter servers on a host with {counted(cores, 'core')}")
    elif cores and trainers * configuration.threads_per_device > cores:
        threads = counted(configuration.threads_per_device, "thread")
        yield Diagnostic("cores", f"{trainers:g} ranks with {threads} on {counted(cores, 'core')}")


METRICS = (
    metric.text(
        "communication",
        "Communication",
        "gradient communication: all_reduce, push_pull, synchronous_push_pull or none",
        metric.R,
        value=_read_rank("communication"),
        pages=(metric.COMMUNICATION,),
    ),
    metric.recorded(
        "device", "Device", "cpu or gpu", _read_cluster("device"), tables=metric.RCP, same_within=metric.STUDY
    ),
    metric.recorded(
        "device_name",
        "Device name",
        "name that the device reports",
        _read_cluster("device_name"),
        tables=metric.RP,
        same_within=metric.STUDY,
    ),
    metric.recorded(
        "interconnect",
        "Interconnect",
        "interconnect, from the cluster file or the published source",
        _read_cluster("interconnect"),
        tables=metric.RP,
        same_within=metric.STUDY,
    ),
    metric.text("host", "Host", "host names of the ranks", metric.R, value=lambda run: ", ".join(list_hosts(run))),
    metric.recorded("launcher", "Launcher", "local, ssh, slurm or kubernetes", _read_cluster("launcher")),
    metric.recorded("addresses", "Addresses", "address and network interface per node", _addresses),
    metric.text("library", "Library", "framework library", metric.R, value=_read_rank("library")),
    metric.text(
        "library_version",
        "Library version",
        "version of the framework library",
        metric.R,
        value=_read_rank("library_version"),
        same_within="framework",
    ),
    metric.text(
        "communication_library",
        "Communication library",
        "NCCL with its version, or gloo",
        metric.R,
        value=_read_rank("communication_library"),
        same_within="framework",
    ),
    metric.recorded(
        "gpu_driver",
        "GPU driver",
        "GPU driver version; several if nodes differ",
        _gpu_driver,
        same_within=metric.STUDY,
    ),
    metric.recorded(
        "cuda_version",
        "CUDA",
        "CUDA version of the library build",
        _gpu_library("cuda"),
        same_within="framework",
    ),
    metric.recorded(
        "cudnn_version",
        "cuDNN",
        "cuDNN version of the library build",
        _gpu_library("cudnn"),
        same_within="framework",
    ),
    metric.recorded("cpu_model", "CPU", "CPU model", _read_hardware("cpu_model"), same_within=metric.STUDY),
    metric.recorded(
        "cpu_mhz",
        "CPU clock",
        "clock of the first core before the run",
        _read_hardware("cpu_mhz"),
        unit="MHz",
        dtype=metric.Dtype.FLOAT,
    ),
    metric.recorded(
        "cpu_cache_bytes",
        "CPU cache",
        "largest cache of the first core",
        _read_hardware("cpu_cache_bytes"),
        unit="bytes",
        dtype=metric.Dtype.OPTIONAL_INTEGER,
        same_within=metric.STUDY,
    ),
    metric.recorded(
        "cores",
        "Cores",
        "logical cores available to the run",
        _read_hardware("cores"),
        pages=metric.THROUGHPUT_PAGES,
        diagnose=too_few_cores,
        same_within=metric.STUDY,
        dtype=metric.Dtype.OPTIONAL_INTEGER,
    ),
    metric.Metric(
        "machine_speed",
        "Machine speed",
        "iterations of a fixed integer loop, geometric mean; for diagnostics",
        metric.R,
        unit="1/s",
        value=machine_speed,
    ),
    metric.recorded(
        "memory_bytes",
        "Memory",
        "host memory",
        _read_hardware("memory_bytes"),
        unit="bytes",
        dtype=metric.Dtype.OPTIONAL_INTEGER,
        same_within=metric.STUDY,
    ),
    metric.recorded(
        "python_version",
        "Python",
        "Python version",
        lambda run: run.facts["environment"]["software"].get("python"),
        same_within="framework",
    ),
    metric.recorded(
        "system",
        "System",
        "operating system and kernel",
        lambda run: run.facts["environment"]["software"].get("system"),
    ),
    metric.recorded(
        "library_settings", "Variables", "environment variables that configure libraries", _library_settings
    ),
    metric.recorded(
        "measuring_code",
        "Benchmark code",
        "hash of the benchmark code",
        lambda run: run.facts.get("worker_code", run.facts["code"]),
    ),
    metric.recorded("program_command", "Command", "command of the user's program", _read_program("command")),
    metric.recorded("program_commit", "Commit of the program", "commit of the program's folder", _program_commit),
    metric.recorded("program_remote", "Repository", "git remote of the program", _read_program("remote")),
    metric.recorded("steps_from", "Step times from", "recorder or log format", _read_program("steps")),
    metric.recorded(
        "git_commit",
        "Commit",
        "benchmark code commit, or version if installed",
        _code_version,
        same_within=metric.STUDY,
    ),
    metric.recorded(
        "git_dirty",
        "Uncommitted",
        "checkout with uncommitted files",
        lambda run: run.facts["environment"]["git"].get("dirty"),
        dtype=metric.Dtype.OPTIONAL_FLAG,
        same_within=metric.STUDY,
    ),
)
