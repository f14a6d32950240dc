#!/bin/sh
# What make runs to test and to lint: test.sh test|test-all|test-ci|lint PYTHON [TEST]...
set -eu
target=$1
python=$2
shift 2

for test; do
    [ -e "${test%%::*}" ] || {
        echo "make $target: there is no $test" >&2
        exit 2
    }
done

# Some tests wait for what others compute: twice as many workers as CPUs. tests/tiers.py decides which share a worker.
workers=${WORKERS:-$((2 * $(nproc)))}
# How long each test took: the slowest at the end, all of them in the file.
record="--durations=25 --junitxml=.pytest_cache/durations.xml"

lint() {
    "$python" -m ruff check . && "$python" -m ruff format --check -q . &&
        "$python" -m mypy dlperf_study && "$python" -m tools.code_style
}

# Meanwhile pytest compiles what all its workers import.
lint_first() {
    "$python" -m pytest --collect-only -qq "$@" >/dev/null 2>&1 &
    lint >/dev/null || {
        wait
        exit 1
    }
    wait
}

# What failed runs once more, with no other test beside it.
run_pytest() {
    outcome=0
    # shellcheck disable=SC2086
    "$python" -m pytest --numprocesses="$workers" --maxprocesses=8 --no-loadscope-reorder $record "$@" || outcome=$?
    # 1: tests failed. Every other code is an error of the run itself.
    [ "$outcome" -eq 1 ] || exit "$outcome"
    echo "make $target: the failed tests run once more, one after the other" >&2
    "$python" -m pytest --last-failed --last-failed-no-failures none -rpf "$@" || exit
    echo "make $target: the tests above passed alone and failed beside others. Find out what they wait for" >&2
}

# Compiled modules are kept for the processes that tests start.
unset PYTHONDONTWRITEBYTECODE
case $target in
lint)
    lint
    ;;
test)
    lint_first "$@"
    run_pytest -m "not matrix and not ci" "$@"
    ;;
test-all)
    lint_first "$@"
    "$python" -m tools.install torch horovod tensorflow ||
        echo "make test-all: goes on; the tests of what is missing are skipped" >&2
    run_pytest -m "not ci" "$@"
    ;;
test-ci)
    "$python" -m tools.install torch horovod tensorflow docs programs release ||
        echo "make test-ci: goes on; the tests of what is missing are skipped" >&2
    run_pytest -m ci "$@"
    ;;
esac
