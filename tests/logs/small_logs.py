"""Logs that a test writes, and the messages about them."""

from dlperf_study.core.errors import Severity
from dlperf_study.logs.log_reader import read_log


def elapse(step, seconds="0.2500"):
    return f"[Pass 0, train batch {step}] \tloss 6.90000, acc1 0.1, acc5 0.2, lr 0.1, elapse {seconds} sec\n"


def ips(step, printed):
    head = f"[2023/01/02 03:04:05] plsc INFO: [Train][Epoch 1/20][Iter: {step}/5059]"
    return f"{head}lr: 0.1, loss: 6.9, reader_cost: 0.00100, batch_cost: 0.10788, {printed}, eta: 1:02:03\n"


def write_and_read(folder, file, content, name=""):
    path = folder / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_log(path, name)


def read_text(folder, content, name=""):
    return write_and_read(folder, "training.log", content, name)


def messages(log):
    return "\n".join(diagnostic.message for diagnostic in log.diagnostics)


def errors(log):
    return "\n".join(diagnostic.message for diagnostic in log.diagnostics if diagnostic.severity is Severity.ERROR)


def described(log):
    """Return the severity and the message of every diagnostic of a log."""
    return [f"{diagnostic.severity}: {diagnostic.message}" for diagnostic in log.diagnostics]
