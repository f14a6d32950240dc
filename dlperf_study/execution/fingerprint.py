"""What a run's numbers depend on besides the machine: if it changed, the run is measured again."""

import hashlib
import json

from dlperf_study import frameworks
from dlperf_study.execution.support import library_version
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.configuration import PROTOCOL, Configuration
from dlperf_study.study.software import measuring_code


def fingerprint(configuration: Configuration, cluster: Cluster) -> str:
    """Return a digest of the configuration, the measuring code, the library and the Python that ran it."""
    framework = frameworks.load(configuration.framework)
    parts = {
        "configuration": {k: v for k, v in configuration.as_dict().items() if k not in PROTOCOL},
        "code": measuring_code(),
        "library": library_version(framework, cluster),
        "python": cluster.brought_by(configuration.framework),
        "device": cluster.device,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
