"""Check nodes that can be reached: each by itself, then all together, then the network between them."""

import shlex
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from dlperf_study.core import code_identity, wording
from dlperf_study.core.paths import outputs_folder
from dlperf_study.core.user_commands import SAME_PACKAGE, install_command
from dlperf_study.machines.check import CheckResult, CheckStatus, missing, note, ok, untested
from dlperf_study.machines.cluster import Cluster, software
from dlperf_study.machines.cluster.hardware import link_contradictions
from dlperf_study.machines.cluster.software import IMPORT_SECONDS
from dlperf_study.machines.node_agent import messages, probe
from dlperf_study.machines.node_agent.coordinator import PORTS
from dlperf_study.machines.node_agent.installed_packages import different_versions
from dlperf_study.machines.node_agent.submission import Node
from dlperf_study.study.gpu_support import GpuQuestion, GpuSupport, is_named
from dlperf_study.study.job import FrameworkFacts, ProgramFacts

#: What one node reports of itself (``probe.facts``).
Facts = Mapping[str, Any]
#: Logs have the time of events; numbers never come from comparing clocks.
MAX_CLOCK_OFFSET_SECONDS = 1.0
MIN_MEMORY_BYTES, MIN_DISK_BYTES = 2e9, 2e8


@dataclass(frozen=True)
class NodeAccess:
    """How a launcher reaches its nodes.

    ``commands`` must be on this machine, and ``commands_from`` says what installs them.
    ``by_hand(cluster, node, argv)`` is how a person would run a command on a node. ``peers_by_ssh``: the first node
    reaches the others by ssh, so it needs a key of its own.
    """

    launcher: str
    commands: tuple[str, ...] = ()
    commands_from: str = ""
    by_hand: Callable[[Cluster, Node, Sequence[str]], Sequence[str]] = lambda cluster, node, argv: argv
    peers_by_ssh: bool = False


def nodes_check(
    nodes: Callable[[Cluster], Sequence[Node]], access: NodeAccess
) -> Callable[[Cluster, ProgramFacts], Iterator[CheckResult]]:
    """Return the check of a launcher with reachable nodes."""

    def check(cluster: Cluster, programs: ProgramFacts) -> Iterator[CheckResult]:
        yield (result := check_commands(access))
        if not result.remedy:
            yield from check_nodes(cluster, programs, nodes(cluster), access)

    return check


def check_commands(access: NodeAccess) -> CheckResult:
    """Return whether this machine has the commands that a launcher needs."""
    subject = f"launcher {access.launcher}"
    absent = [command for command in access.commands if not shutil.which(command)]
    if absent:
        return missing(subject, f"no {', '.join(absent)} here", access.commands_from)
    return ok(subject, ", ".join(access.commands) or "needs no program")


def check_nodes(
    cluster: Cluster, programs: ProgramFacts, available: Sequence[Node], access: NodeAccess
) -> Iterator[CheckResult]:
    """Yield the results of the nodes and their network."""
    nodes = available[: cluster.nodes]
    if len(nodes) < cluster.nodes:
        detail = f"{len(nodes)} of the {cluster.nodes} in the cluster file"
        remedy = "lower nodes in the cluster file, or name a partition that has as many"
        yield missing("nodes", detail, remedy)
    else:
        yield ok("nodes", ", ".join(node.name for node in nodes if node.name) or "this machine")
    with probe.start_probes(nodes) as probes, _facts_request(cluster, programs) as request:
        imports_seconds = 0.0
        if cluster.device == "gpu":
            imports_seconds = len(programs.frameworks) * IMPORT_SECONDS
        facts = probes.ask("facts", probe.ANSWER_SECONDS + imports_seconds, **request)
        for node in nodes:
            if node.title in facts:
                yield from check_node(cluster, node.title, facts[node.title])
            else:
                argv = access.by_hand(cluster, node, (node.python, "-m", software.MODULE))
                yield missing(f"{node.title}: reached", probes.lost[node.title], f"try it by hand: {shlex.join(argv)}")
        if facts:
            yield from check_together(cluster, programs, facts, probes.clock_offsets())
        if len(nodes) > 1:
            yield check_ports(probes, facts)
            if access.peers_by_ssh:
                yield from check_ssh_between(nodes, facts)


@contextmanager
def _facts_request(cluster: Cluster, programs: ProgramFacts) -> Iterator[dict[str, Any]]:
    """Provide the request for the facts of nodes."""
    request = {
        "work_folder": cluster.work_folder,
        "network_interface": cluster.network_interface,
        "environment": dict(cluster.environment),
        "device": cluster.device,
        "shared_file": "",
        "code_roots": code_identity.check_roots(cluster.launcher),
        "image_datasets": dict(cluster.image_datasets),
        "pythons": {each.name: [*cluster.container, cluster.python_for(each.name)] for each in programs.frameworks},
        "gpu_questions": {name: asdict(question) for name, question in programs.gpu_questions.items()},
        "packages": programs.packages,
        "variables": asdict(programs.variables),
        "classes_question": programs.classes_question,
    }
    if not cluster.shared_files or cluster.is_this_machine:
        yield request
        return
    file = outputs_folder() / f".check-{uuid.uuid4().hex}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    try:
        yield request | {"shared_file": str(file)}
    finally:
        file.unlink(missing_ok=True)


def check_node(cluster: Cluster, name: str, facts: Facts) -> Iterator[CheckResult]:
    """Yield what one node has and what is missing there."""
    yield ok(f"{name}: reached", f"{facts['hardware']['host']}, {facts['hardware']['cpu_model']}")
    yield _devices(cluster, f"{name}: devices", facts["hardware"])
    links = facts["hardware"].get("gpu_links") if cluster.device == "gpu" else ""
    measured_link = facts["hardware"].get("network") if cluster.nodes > 1 else links
    if contradiction := next(link_contradictions(cluster.interconnect, cluster.nodes, facts["hardware"]), ""):
        yield missing(f"{name}: interconnect", contradiction, "correct it in the cluster file")
    elif measured_link:
        yield ok(f"{name}: interconnect", measured_link)
    busy = f"{facts['busy_cores']:.1f} cores busy"
    if facts["busy_cores"] <= cluster.idle_max_busy_cores:
        yield ok(f"{name}: idle", busy)
    else:
        wait = f"{cluster.idle_wait_seconds:.0f} s"
        yield note(
            f"{name}: idle", busy, f"a run waits {wait}, then starts with a diagnostic: end the other programs there"
        )
    if processes := facts["gpu_processes"]:
        remedy = (
            "a run starts next to them, with a diagnostic: end them, or leave their GPUs out of CUDA_VISIBLE_DEVICES"
        )
        yield note(f"{name}: GPUs idle", f"in use: {'; '.join(processes)}", remedy)
    yield _enough(f"{name}: memory", "free", facts["free_memory_bytes"], MIN_MEMORY_BYTES)
    yield _folder(cluster, name, facts)
    if cluster.is_this_machine:
        return
    address = facts["address"]
    if "error" in address:
        yield missing(f"{name}: address", address["error"], "set network_interface in the cluster file")
    else:
        yield ok(f"{name}: address", f"{address['address']} on {address['interface']}")


def check_together(
    cluster: Cluster, programs: ProgramFacts, facts: Mapping[str, Facts], clock_offsets: Mapping[str, float]
) -> Iterator[CheckResult]:
    """Yield whether all nodes would run the same."""
    first, *_ = facts
    code = facts[first]["code"]
    if different := [name for name in facts if facts[name]["code"] != code]:
        detail = f"different on {', '.join(different)} than on {first}"
        yield missing("benchmark code", detail, SAME_PACKAGE)
    else:
        yield ok("benchmark code", f"the same everywhere ({code[:12]})")
    results = []
    for framework in programs.frameworks:
        results.append(check_framework(cluster, framework, programs.gpu_questions[framework.name], facts))
    yield from results
    yield from check_images(cluster, programs.made_image_datasets, facts)
    if not any(result.status is CheckStatus.OK for result in results):
        yield missing(
            "a framework",
            "none can train",
            f"`{install_command('paddle')}` installs one, on every node: docs/clusters.md",
        )
    if cluster.is_this_machine:
        return
    wrong = []
    for name, offset in clock_offsets.items():
        if abs(offset) > MAX_CLOCK_OFFSET_SECONDS:
            wrong.append(f"{name} {offset:+.1f} s")
    if wrong:
        yield note("clocks", ", ".join(wrong), "set them by NTP; no number depends on it, but times in logs do")
    else:
        yield ok("clocks", f"within {MAX_CLOCK_OFFSET_SECONDS:.0f} s of this machine")


def _devices(cluster: Cluster, subject: str, hardware: Facts) -> CheckResult:
    if cluster.device == "cpu":
        count, name = hardware["cores"], hardware["cpu_model"]
    else:
        names = [gpu for gpu in hardware.get("gpu_names", "").split("; ") if gpu]
        count, name = len(names), names[0] if names else "no GPU"
    detail = f"{count} × {name}"
    if count < cluster.devices_per_node:
        return missing(subject, detail, f"the cluster file has devices_per_node: {cluster.devices_per_node}; lower it")
    remedy = f"the cluster file has {cluster.device_name!r}; write device_name: {name}"
    if cluster.device == "gpu" and not is_named(cluster.device_name, name):
        return missing(subject, detail, remedy)
    if cluster.device == "cpu" and cluster.device_name != name:
        return note(subject, detail, remedy)
    if cluster.why_not_gpu:
        return note(subject, detail, cluster.why_not_gpu)
    return ok(subject, detail)


def _enough(subject: str, label: str, available_bytes: float, min_bytes: float) -> CheckResult:
    detail = f"{available_bytes / 1e9:.1f} GB {label}"
    if available_bytes < min_bytes:
        return missing(subject, detail, f"a run needs at least {min_bytes / 1e9:.1f} GB")
    return ok(subject, detail)


def _folder(cluster: Cluster, name: str, facts: Facts) -> CheckResult:
    """Return whether a node can use its folder."""
    if not cluster.is_this_machine and cluster.shared_files:
        if facts["sees_shared_file"]:
            return ok(f"{name}: outputs/", "is shared with this machine")
        return missing(
            f"{name}: outputs/",
            "is not the folder of this machine",
            "put it on a shared file system and name it by DLPERF_STUDY_OUTPUTS, or (ssh only) set shared_files: false",
        )
    subject = f"{name}: {facts['work_folder']}"
    if not facts["is_writable"]:
        return missing(subject, "cannot be made or written", "name another work_folder in the cluster file")
    return _enough(subject, "free", facts["free_disk_bytes"], MIN_DISK_BYTES)


def check_framework(
    cluster: Cluster, declared: FrameworkFacts, question: GpuQuestion, facts: Mapping[str, Facts]
) -> CheckResult:
    """Return whether all nodes have the libraries of a framework.

    ``question`` is how its library was asked what it can do with GPUs.
    """
    framework, (first, *_) = declared.name, facts
    installed = {name: facts[name]["software"][framework] for name in facts}
    for name, of_node in installed.items():
        if "error" in of_node:
            return missing(framework, f"{name}: {of_node['error']}", _python_remedy(cluster, framework))
    if different := [name for name in facts if installed[name]["code"] != facts[first]["code"]]:
        detail = f"{', '.join(different)}: this Python has different benchmark code"
        return missing(framework, detail, SAME_PACKAGE)
    reference = installed[first]["software"]
    if obstacle := _installation_obstacle(cluster, declared, reference):
        return obstacle
    for name, of_node in installed.items():
        for package, version, _ in different_versions(of_node["software"], reference):
            detail = f"{package} is {version} on {name}, different from {first}"
            return missing(framework, detail, "install the same lock file everywhere")
    packages = (*declared.packages, *declared.further_packages)
    versions = [f"{package} {reference[package]}" for package in packages if package in reference]
    everywhere = f"{', '.join(versions)} everywhere"
    if cluster.device == "gpu":
        return _check_gpus(cluster, question, facts, everywhere)
    return ok(framework, everywhere)


def _installation_obstacle(
    cluster: Cluster, framework: FrameworkFacts, versions: Mapping[str, str]
) -> CheckResult | None:
    """Return that a library is missing or too old or new."""
    version, is_named = framework.version_in(versions), framework.name in cluster.python
    if version is None:
        detail = f"not installed in {cluster.python_for(framework.name)}"
        if not is_named:
            return note(framework.name, detail, "its configurations are unsupported")
        remedy = f"{_python_remedy(cluster, framework.name)}, or leave python.{framework.name} out"
        return missing(framework.name, detail, remedy)
    if wrong := framework.wrong_version(version):
        result = missing if is_named else note
        remedy = f": {framework.version_remedy}" if framework.version_remedy else ""
        return result(framework.name, wrong, f"its configurations are unsupported{remedy}")
    return None


def _check_gpus(cluster: Cluster, question: GpuQuestion, facts: Mapping[str, Facts], everywhere: str) -> CheckResult:
    """Return whether a framework can train on all GPUs."""
    framework = question.framework
    answers = {name: facts[name]["gpu_support"][framework] for name in facts}
    for name, answer in answers.items():
        if answer and "error" in answer:
            return missing(framework, f"{name}: {answer['error']}", _python_remedy(cluster, framework))
    if not question.arguments:
        return note(framework, f"{everywhere}; trains on CPUs only", "its configurations are unsupported")
    supports = {name: GpuSupport.of(answer) for name, answer in answers.items()}
    is_without_cuda = any(support and not support.cuda for support in supports.values())
    contradictions = question.contradictions(supports, cluster.devices_per_node, cluster.device_name)
    if contradiction := next(contradictions, ""):
        if is_without_cuda and framework not in cluster.python:
            return note(framework, contradiction, "its configurations are unsupported")
        build = "a build for GPUs" if is_without_cuda else "a build for the CUDA of this driver, or a newer driver"
        return missing(framework, contradiction, f"see docs/gpu.md to install {build}")
    support = next(iter(supports.values()))
    return ok(framework, f"{everywhere}, {support.build if support else ''}")


def _python_remedy(cluster: Cluster, framework: str) -> str:
    """Return what to do about an unusable Python."""
    key = f"python.{framework}" if framework in cluster.python else "container" if cluster.container else "python"
    return f"{key} in the cluster file names it: install this package and the library there, or name another"


def check_images(
    cluster: Cluster, made_image_datasets: Mapping[str, str], facts: Mapping[str, Mapping[str, Any]]
) -> Iterator[CheckResult]:
    """Yield a result for each image dataset.

    ``made_image_datasets`` are the folders of those. ``facts`` are those of ``agent.probe.facts`` by name of node.
    """
    for name, folder in cluster.image_datasets.items():
        answers = {node: of_node["image_datasets"][name] for node, of_node in facts.items()}
        is_anywhere = any("classes" in answer for answer in answers.values())
        if not is_anywhere and folder == made_image_datasets.get(name):
            continue
        subject = f"image dataset {name}"
        errors = [f"{node}: {answer['error']}" for node, answer in answers.items() if "error" in answer]
        counts = {node: answer["classes"] for node, answer in answers.items() if "classes" in answer}
        if errors:
            remedy = (
                f"put the images there on every node, or name another folder: image_datasets.{name} of the cluster file"
            )
            yield missing(subject, "; ".join(errors), remedy)
        elif len(set(counts.values())) > 1:
            detail = ", ".join(f"{node} has {count} classes" for node, count in counts.items())
            yield missing(subject, detail, "copy the same images to every node")
        else:
            yield ok(subject, f"{next(iter(counts.values()))} classes in {folder}")


_PORTS = "ports between nodes"
_OPEN_PORTS = (
    f"let the nodes reach each other on every TCP port: a run listens on {PORTS.start} to {PORTS.stop - 1}, and gloo, "
    "NCCL and Horovod on ports that the system chooses; or name the right network_interface"
)
_ONLY_HOROVOD = "only Horovod on several nodes needs it: give the first node a key that the others accept"
SSH_SECONDS = 30
#: An ssh server refuses connections when too many at once are not yet authenticated.
MAX_SSH_AT_ONCE = 4


def check_ports(probes: probe.Probes, facts: Mapping[str, messages.Message]) -> CheckResult:
    """Return whether every node reaches every other node."""
    if len(facts) < 2:
        return untested(_PORTS, "fewer than two nodes were reached")
    if without := [name for name, of_node in facts.items() if "address" not in of_node["address"]]:
        return untested(_PORTS, f"the address of {', '.join(without)} is unknown")
    endpoints = {}
    for name, of_node in facts.items():
        for port in of_node["ports"]:
            endpoints[f"{name} port {port}"] = (of_node["address"]["address"], port)
    answers = probes.ask("connect", endpoints=endpoints)
    if silent := [name for name in facts if name not in answers]:
        return missing(_PORTS, "; ".join(f"{name} {probes.lost[name]}" for name in silent), "check again")
    closed = []
    for name, answer in answers.items():
        closed += [f"{endpoint} from {name}" for endpoint in answer["unreachable"]]
    if closed:
        return missing(_PORTS, f"no answer: {'; '.join(closed)}", _OPEN_PORTS)
    interfaces = sorted({of_node["address"]["interface"] for of_node in facts.values()})
    return ok(_PORTS, f"every node reaches every other over {', '.join(interfaces)}")


def check_ssh_between(nodes: Sequence[Node], facts: Mapping[str, messages.Message]) -> Iterator[CheckResult]:
    """Yield whether the first node reaches each other by ssh."""
    first, *peers = nodes
    if first.name not in facts:
        yield untested(f"ssh from {first.name}", f"{first.name} was not reached")
        return
    reached = [node for node in peers if node.name in facts]
    with ThreadPoolExecutor(MAX_SSH_AT_ONCE) as pool:
        yield from pool.map(lambda node: _check_ssh(first, node), reached)
    for node in peers:
        if node not in reached:
            yield untested(f"ssh from {first.name} to {node.name}", f"{node.name} was not reached")


def _check_ssh(first: Node, second: Node) -> CheckResult:
    subject = f"ssh from {first.name} to {second.name}"
    command = shlex.join((*second.shell_argv(), "true"))
    try:
        done = subprocess.run([*first.shell_argv(), command], capture_output=True, text=True, timeout=SSH_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return note(subject, str(error), _ONLY_HOROVOD)
    if done.returncode:
        return note(subject, wording.last_line(done.stderr) or f"exit code {done.returncode}", _ONLY_HOROVOD)
    return ok(subject, "as Horovod needs it")
