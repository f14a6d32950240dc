"""What a run's numbers depend on besides the machine, as one digest: if it changes, the run is repeated.

The digest is of contents: versions, code, settings. A project folder or an environment may be renamed.

``python -m dlperf_study.execution.cache_key`` declares that the code of this checkout measures as it did when the
evidence of earlier versions was measured: see ``equivalent_code.json``.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from dlperf_study.core import code_identity, resources, wording
from dlperf_study.core.registry import module_name
from dlperf_study.execution.libraries import measuring_software
from dlperf_study.machines import launchers
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.node_agent.installed_packages import different_versions
from dlperf_study.records import run_file, run_record
from dlperf_study.study import renamed
from dlperf_study.study.configuration import Configuration
from dlperf_study.training import data_loaders, frameworks, image_datasets, models
from dlperf_study.training.data_loaders._producers import MODULE as PRODUCER

#: ``code``: the digest by which records name all benchmark code of an earlier version. ``modules``: digests of the
#: modules of later code that measures alike, so that what was measured before still counts. Whoever changes modules
#: and not what they measure declares that with the command above. Whoever does change what is measured adds the
#: module to ``changed``, and the configurations that import it are measured again.
EQUIVALENT_CODE = Path(__file__).with_name("equivalent_code.json")
#: The sentence for a record from before fingerprints had parts.
WITHOUT_PARTS = "an earlier version recorded the path of the Python instead of its version"
#: How the parts with one value are named.
VALUES = {"device": "device", "python": "Python", "container": "container image", "image_folder": "folder of images"}
#: How many changed modules are named, and how many characters of the digest of a module are recorded.
MAX_MODULES, MODULE_DIGEST = 3, 12


def cache_key(configuration: Configuration, parts: run_file.CacheKeyParts) -> str:
    """Return a digest of a configuration and of these parts."""
    content = {"configuration": renamed.earlier_names(configuration.identifying_values()), **parts}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def cache_key_parts(configuration: Configuration, cluster: Cluster) -> run_file.CacheKeyParts:
    """Return what numbers depend on besides configuration and machine."""
    python, packages = measuring_software(configuration, cluster)
    parts = run_file.CacheKeyParts(
        code=code_name(measuring_code(configuration, cluster).roots),
        device=cluster.device,
        python=python,
        packages=packages,
    )
    if container := launchers.load(cluster.launcher).image(cluster, configuration.runtime):
        parts["container"] = container
    if configuration.own_program:
        parts["program"] = configuration.program_hash
    if cluster.image_folder(configuration):
        folder = Path(cluster.image_folder(configuration))
        is_here = folder.is_relative_to(resources.workspace())
        parts["image_folder"] = str(folder.relative_to(resources.workspace()) if is_here else folder)
    return parts


def differences(facts: Mapping[str, Any], run: run_record.RequestedRun) -> Iterator[str]:
    """Yield how a recorded run differs from the requested one."""
    then, now = facts.get("cache_key_parts"), run.parts
    if not then:
        yield WITHOUT_PARTS
        return
    if then["code"] != now["code"]:
        modules_then, modules_now = facts["code_modules"], run.code.modules
        names = {*modules_then, *modules_now}
        changed = sorted(name for name in names if modules_then.get(name) != modules_now.get(name))
        if changed:
            yield f"code of {wording.list_first(changed, MAX_MODULES)} changed"
        else:
            yield f"their benchmark code has another name in {EQUIVALENT_CODE.name}"
    for key, label in VALUES.items():
        before, after = then.get(key, "none"), now.get(key, "none")
        if before != after:
            yield f"{label} {before} then, {after} now"
    for package, before, after in different_versions(then["packages"], now["packages"]):
        yield f"{package} {before} then, {after} now"
    if then.get("program") != now.get("program"):
        yield "the command or a file of the program changed"


def measuring_code(configuration: Configuration, cluster: Cluster) -> code_identity.MeasuringCode:
    """Return the code that measures a configuration on a cluster."""
    launcher = f"{launchers.__name__}.{cluster.launcher}"
    if configuration.own_program:
        return _imported_code((*code_identity.COMMAND_ROOTS, launcher), code_identity.COMMAND_ROOTS)
    source = configuration.data_loader
    roots = (
        *code_identity.COMMON_ROOTS,
        module_name(frameworks.__name__, configuration.framework),
        module_name(models.__name__, configuration.model),
        module_name(data_loaders.__name__, source),
        launcher,
        *([PRODUCER] if data_loaders.load(source).produce else []),
        *(_parts(image_datasets) if cluster.image_folder(configuration) else []),
    )
    return _imported_code(roots, code_identity.COMMON_ROOTS)


def _imported_code(roots: tuple[str, ...], worker_roots: tuple[str, ...]) -> code_identity.MeasuringCode:
    modules = {name: digest[:MODULE_DIGEST] for name, digest in sorted(code_identity.module_digests(roots).items())}
    return code_identity.MeasuringCode(roots, code_identity.code_digest(roots), code_name(worker_roots), modules)


def code_name(roots: Sequence[str]) -> str:
    """Return the digest of benchmark code, or its equivalent's."""
    earlier = _equivalent_code()
    digests = code_identity.module_digests(roots)
    if digests.items() <= earlier["modules"].items():
        return str(earlier["code"])
    return code_identity.code_digest(roots)


@cache
def _equivalent_code() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(EQUIVALENT_CODE.read_text(encoding="utf-8"))
    return content


def declare_equivalent() -> None:
    """Write the digests of all measuring modules of this checkout."""
    if not resources.CHECKOUT:
        raise SystemExit("only a checkout declares that its code measures as before; this package is installed")
    registries = (frameworks, models, data_loaders, image_datasets, launchers)
    parts = [part for registry in registries for part in _parts(registry)]
    modules = code_identity.module_digests([*code_identity.COMMON_ROOTS, PRODUCER, *parts])
    equivalent = _equivalent_code()
    for name in equivalent["changed"]:
        modules.pop(name, None)
    content = {**equivalent, "modules": dict(sorted(modules.items()))}
    EQUIVALENT_CODE.write_text(json.dumps(content, indent=0) + "\n", encoding="utf-8")


def _parts(registry: Any) -> list[str]:
    return [module_name(registry.__name__, name) for name in registry.names()]


if __name__ == "__main__":
    declare_equivalent()
