"""What an image has: ``python -m dlperf_study.machines.kubernetes.image_facts REQUEST`` prints it as one line of JSON.

The request, JSON too, names ``packages`` and ``code_roots``, and has ``gpu_questions`` by framework where the pod has
GPUs.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dlperf_study.core import code_identity, restoring
from dlperf_study.core.errors import RunError
from dlperf_study.machines.cluster import software
from dlperf_study.machines.cluster.software import gpu_answer
from dlperf_study.study.gpu_support import GpuQuestion
from dlperf_study.study.job import ProgramFacts

MODULE = "dlperf_study.machines.kubernetes.image_facts"


def facts_request(programs: ProgramFacts, device: str, launcher: str) -> str:
    """Return the request for a pod on this device."""
    questions = {name: asdict(question) for name, question in programs.gpu_questions.items()}
    return json.dumps(
        {
            "packages": programs.packages,
            "code_roots": code_identity.check_roots(launcher),
            "gpu_questions": questions if device == "gpu" else {},
        }
    )


def main() -> None:
    """Print the packages and the GPU support of this Python."""
    request = json.loads(sys.argv[1])
    facts = software.installed(request["packages"], request["code_roots"])
    if request["gpu_questions"]:
        facts["gpu_support"] = gpu_answers(request["gpu_questions"])
    print(json.dumps(facts))


def gpu_answers(questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the GPU answers by framework, or ``error``."""
    answers: dict[str, dict[str, Any]] = {}
    for name, question in questions.items():
        try:
            answer = gpu_answer((sys.executable,), restoring.restored(GpuQuestion, question), os.environ)
        except RunError as error:
            answer = {"error": str(error)}
        if answer:
            answers[name] = answer
    return answers


if __name__ == "__main__":
    main()
