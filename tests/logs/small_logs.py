"""Logs that a test writes, and the messages about them."""

from pathlib import Path

from dlperf_study.diagnostic import Severity
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.parsed_log import ParsedLog


def elapse(step: int, seconds: str = "0.2500") -> str:
    return f"[Pass 0, train batch {step}] \tloss 6.90000, acc1 0.1, acc5 0.2, lr 0.1, elapse {seconds} sec\n"


def ips(step: int, printed: str) -> str:
    head = f"[2023/01/02 03:04:05] plsc INFO: [Train][Epoch 1/20][Iter: {step}/5059]"
    return f"{head}lr: 0.1, loss: 6.9, reader_cost: 0.00100, batch_cost: 0.10788, {printed}, eta: 1:02:03\n"


def write_and_read(folder: Path, file: str, content: str | bytes, name: str = "") -> ParsedLog:
    path = folder / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_log(path, name)


def read_text(folder: Path, content: str | bytes, name: str = "") -> ParsedLog:
    return write_and_read(folder, "training.log", content, name)


def messages(log: ParsedLog) -> str:
    return "\n".join(diagnostic.message for diagnostic in log.diagnostics)


def errors(log: ParsedLog) -> str:
    return "\n".join(diagnostic.message for diagnostic in log.diagnostics if diagnostic.severity is Severity.ERROR)
