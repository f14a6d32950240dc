"""What a run's numbers depend on besides the machine, as one digest: if it changes, the run is measured again.

``python -m dlperf_study.execution.fingerprint`` declares that the code of this checkout measures as it did when the
evidence of earlier versions was measured: see ``equivalent_code.json``.
"""

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from dlperf_study.core.code_identity import COMMAND_ROOTS, COMMON_ROOTS, MeasuringCode, code_digest, module_digests
from dlperf_study.core.registry import module_of
from dlperf_study.core.resources import CHECKOUT
from dlperf_study.execution.libraries import data_source_versions, library_version
from dlperf_study.machines import launchers
from dlperf_study.machines.cluster import Cluster
from dlperf_study.programs import data_sources, frameworks, image_sets, models
from dlperf_study.programs.data_sources._producers import MODULE as PRODUCER
from dlperf_study.study.configuration import Configuration

#: ``code``: the digest by which records name all measuring code of an earlier version. ``modules``: digests of the
#: modules of later code that measures alike, so that what was measured before still counts. Whoever changes modules
#: and not what they measure declares that with the command above. Whoever does change what is measured leaves the file
#: as it is, and the configurations that import the module are measured again.
EQUIVALENT_CODE = Path(__file__).with_name("equivalent_code.json")


def fingerprint(configuration: Configuration, cluster: Cluster) -> str:
    """Return a digest of the configuration, the code that it imports, the library and the Python that runs it."""
    parts: dict[str, Any] = {
        "configuration": configuration.identifying_values(),
        "code": code_name(measuring_code(configuration, cluster).roots),
        "python": launchers.load(cluster.launcher).runtime(cluster, configuration.runtime),
        "device": cluster.device,
    }
    if configuration.own_program:
        parts["program"] = configuration.program_digest
    else:
        parts["library"] = library_version(frameworks.load(configuration.framework), cluster)
        parts["data_source"] = data_source_versions(configuration, cluster)
    if folder := cluster.image_folder(configuration):
        parts["images"] = folder
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def measuring_code(configuration: Configuration, cluster: Cluster) -> MeasuringCode:
    """Return the code that measures a configuration on a cluster; a folder of images is tried with every format."""
    launcher = f"{launchers.__name__}.{cluster.launcher}"
    if configuration.own_program:
        roots: tuple[str, ...] = (*COMMAND_ROOTS, launcher)
        return MeasuringCode(roots, code_digest(roots), code_name(COMMAND_ROOTS))
    source = configuration.data_source
    roots = (
        *COMMON_ROOTS,
        module_of(frameworks.__name__, configuration.framework),
        module_of(models.__name__, configuration.model),
        module_of(data_sources.__name__, source),
        launcher,
        *([PRODUCER] if data_sources.load(source).produce else []),
        *(_parts(image_sets) if cluster.image_folder(configuration) else []),
    )
    return MeasuringCode(roots, code_digest(roots), code_name(COMMON_ROOTS))


def code_name(roots: Sequence[str]) -> str:
    """Return the digest of the code that these modules import, or, if it measures alike, the one that it replaced."""
    earlier = _equivalent_code()
    digests = module_digests(roots)
    return earlier["code"] if digests.items() <= earlier["modules"].items() else code_digest(roots)


@cache
def _equivalent_code() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(EQUIVALENT_CODE.read_text(encoding="utf-8"))
    return content


def declare_equivalent() -> None:
    """Write the digests of all measuring modules of this checkout."""
    if not CHECKOUT:
        raise SystemExit("only a checkout declares that its code measures as before; this package is installed")
    registries = (frameworks, models, data_sources, image_sets, launchers)
    parts = [part for registry in registries for part in _parts(registry)]
    modules = module_digests([*COMMON_ROOTS, PRODUCER, *parts])
    content = {"code": _equivalent_code()["code"], "modules": dict(sorted(modules.items()))}
    EQUIVALENT_CODE.write_text(json.dumps(content, indent=0) + "\n", encoding="utf-8")


def _parts(registry: Any) -> list[str]:
    return [module_of(registry.__name__, name) for name in registry.names()]


if __name__ == "__main__":
    declare_equivalent()
