#!/bin/sh
# Fails with what to do if the active environment can't run this project: active_environment.sh PYTHON
"$1" -c 'import dlperf_study, papermill' 2>/dev/null || {
    echo "the active environment ${VIRTUAL_ENV:-$CONDA_PREFIX} can't run this project.
Install the project there: pip install -c locks/main.txt -e '.[dev]'
Or deactivate the environment, and make sets up .venv." >&2
    exit 1
}
