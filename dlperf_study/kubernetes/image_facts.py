"""What an image has: ``python -m dlperf_study.kubernetes.image_facts DEVICE`` prints it as one line of JSON.

On the device ``gpu`` the library of every framework is imported, and says what it can do with the GPUs of the pod.
"""

import json
import os
import sys

from dlperf_study.cluster import software
from dlperf_study.cluster.gpu_support import all_gpu_answers

MODULE = "dlperf_study.kubernetes.image_facts"


def main() -> None:
    """Print the installed packages of this Python and, for GPUs, what its libraries can do with them."""
    facts = software.installed()
    if sys.argv[1:] == ["gpu"]:
        facts["gpu_support"] = all_gpu_answers(os.environ)
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
