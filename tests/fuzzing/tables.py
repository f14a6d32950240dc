"""Tables of results: hypothesis turns the fuzzer's bytes into tables, as it does in the test of the audit."""

import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["dlperf_study.audit"]):
    from tests.audit.tables_of_anything import audit_or_refuse, contents

from hypothesis import given

from tests.fuzzing.fuzzer import fuzz


def main() -> None:
    """Fuzz until the time has passed."""
    with tempfile.TemporaryDirectory() as folder:

        @given(contents())
        def target(content: str | bytes) -> None:
            audit_or_refuse(Path(folder, "table.csv"), content)

        fuzz(target.hypothesis.fuzz_one_input, {})


if __name__ == "__main__":
    main()
