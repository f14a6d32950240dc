"""What OneFlow's programs have in common: the end of a line, and the settings printed before the first."""

from dlperf_study.logs.format import JOB_RATE, LOSS, UNIX_TIME, Fact, Field

SETTINGS = (
    Fact("batch_per_device", r"batch_size_per_device = (\d+)"),
    Fact("devices_per_node", r"gpu_num_per_node = (\d+)"),
    Fact("nodes", r"num_nodes = (\d+)"),
)


def numbers(loss: str, rate: str) -> tuple[Field, ...]:
    """Return the numbers of a line: loss and rate, each after its literal, and at its end the Unix time."""
    return Field(LOSS, loss), Field(JOB_RATE, rate), Field(UNIX_TIME, " ", "")
