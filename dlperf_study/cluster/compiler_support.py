"""Whether the library of a framework can compile networks here, asked in the very Python that trains.

``python -m dlperf_study.cluster.compiler_support FRAMEWORK COMPILER`` imports the library and prints the reason why it
can't, as one line of JSON: an empty string if it can. That takes seconds, so ask only where a study compiles.
"""

import json
import os
import sys

from dlperf_study import frameworks
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.cluster.library_answer import library_answer
from dlperf_study.errors import RunError
from dlperf_study.study.configuration import Configuration

MODULE = "dlperf_study.cluster.compiler_support"


def compiler_obstacle_here(configuration: Configuration, cluster: Cluster) -> str:
    """Return why the library can't compile with the compiler of the configuration on this machine, or nothing."""
    name, compiler = configuration.framework, configuration.compiler
    if not frameworks.load(name).compilers.get(compiler):
        return ""
    command = (*cluster.container, cluster.python_for(name), "-m", MODULE, name, compiler)
    try:
        obstacle = library_answer(command, os.environ | cluster.environment)
    except RunError as error:
        return str(error)
    return f"compiler {compiler}: {obstacle}" if obstacle else ""


def main() -> None:
    """Print why the library of the framework can't compile with the compiler; the arguments name both."""
    framework, compiler = sys.argv[1:]
    why = frameworks.load(framework).compilers[compiler]
    print(json.dumps(why() if why else ""))


if __name__ == "__main__":
    main()
