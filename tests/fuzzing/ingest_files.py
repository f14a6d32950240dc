"""The files next to logs by which a user says what they are: an identity, a configuration, a format of one's own."""

from pathlib import Path

import atheris

with atheris.instrument_imports(include=["dlperf_study.logs", "dlperf_study.study.strict_yaml"]):
    from dlperf_study.core.errors import DlperfStudyError
    from dlperf_study.logs.identification import identify_logs
    from dlperf_study.logs.log_reader import read_log

from tests.fuzzing.fuzzer import fuzz_in_folder

#: The files, each with content that is right.
FILES = {
    "metadata.yaml": """\
confirmed: true
study: mine
scaling: weak
baseline: {devices_per_node: 1}
configurations:
- {framework: mine, model: r50, nodes: 1, devices_per_node: 1, batch_per_device: 8, precision: fp32,
   runs: [{repetition: 1, logs: [run/1.log]}]}
""",
    "run/configuration.json": """\
{"framework": "mine", "model": "r50", "nodes": 1, "devices_per_node": 2, "global_batch": 16, "precision": "fp32",
 "repetition": 1}
""",
    "log_format.yaml": """\
name: iterations
lines: ['iteration {step} {time} s loss {loss}']
numbers: {time: {unit: s/step, of: job}}
""",
}
LOG = "".join(f"iteration {step} {0.1 + 0.001 * (step % 3):.3f} s loss 1.5\n" for step in range(60))


class Target:
    """Reads one input as one of these files, by its first byte; the others are right or not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "run").mkdir()
        (folder / "run" / "1.log").write_text(LOG)

    def __call__(self, data: bytes) -> None:
        choice = data[0] if data else 0
        name = list(FILES)[choice % len(FILES)]
        for other, content in FILES.items():
            (self._folder / other).unlink(missing_ok=True)
            if choice & 128 and other != name:
                (self._folder / other).write_text(content)
        (self._folder / name).write_bytes(data[1:])
        try:
            identify_logs(self._folder)
            identify_logs(self._folder, confirm=True)
            for source in identify_logs(self._folder).files:
                read_log(source.source)
        except DlperfStudyError as error:
            if str(self._folder) not in str(error) and Path(name).name not in str(error) and "1.log" not in str(error):
                raise RuntimeError(f"the message names no file: {error}") from error


if __name__ == "__main__":
    seeds = {}
    for number, (file_name, text) in enumerate(FILES.items()):
        for others in (0, 126):
            seeds[f"{Path(file_name).name}-{others}"] = bytes([number + others]) + text.encode()
    fuzz_in_folder(Target, seeds)
