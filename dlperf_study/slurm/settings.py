"""The section ``slurm`` of a cluster file."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from dlperf_study.cluster.sections import DAY_SECONDS, MAX_SECONDS, matching
from dlperf_study.study.validation import Section

#: The options that the sbatch script sets itself, by sbatch's long and short names.
SCRIPT_OPTIONS = (
    *("--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node", "--time", "-t", "--job-name", "-J", "--partition", "-p"),
    *("--account", "-A", "--output", "-o", "--error", "-e", "--array", "-a", "--wait", "-W", "--wrap", "--chdir", "-D"),
    *("--comment", "--export", "--requeue", "--no-requeue", "--parsable"),
)


def _option(text: str) -> str:
    if not re.fullmatch(r"--?[A-Za-z][^\n]*", text):
        raise ValueError("it must be one option of sbatch, as --constraint=v100")
    name = re.split(r"[=\s]", text, maxsplit=1)[0]
    for option in SCRIPT_OPTIONS:
        is_short = len(option) == 2
        # The value may follow a short name at once (-N2), and a long name may be abbreviated (--outp=log).
        if name.startswith(option) if is_short else option.startswith(name) and name.startswith("--"):
            raise ValueError(f"{option} is set by this package")
    return text


SbatchOption = Annotated[str, AfterValidator(_option)]
#: Stands in a line of the sbatch script, which a shell reads.
QueueName = Annotated[str, matching(r"[\w.,:+-]*", "a name of Slurm: letters, digits and _ . , : + -")]


class SlurmSettings(Section):
    """How jobs are put into the queue; only with launcher slurm."""

    partition: QueueName = Field(default="", description="left out: Slurm's default")
    account: QueueName = Field(default="", description="left out: your default")
    options: list[SbatchOption] = Field(default=[], description="further options of sbatch, one each")
    jobs_in_queue: int = Field(default=1, ge=1, le=1000, description="configurations in the queue at once")
    start_within_seconds: float = Field(
        default=float(DAY_SECONDS), gt=0, le=MAX_SECONDS, description="how long a job may wait to be started"
    )
    poll_seconds: float = Field(default=5.0, gt=0, le=3600, description="how often Slurm is asked")
