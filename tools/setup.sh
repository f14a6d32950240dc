#!/bin/sh
# Makes .venv from requirements.lock. Says what it does; ends with one clear message when something is missing.
set -eu

NEEDED_MB=4000
log=.venv/setup.log

fail() {
    echo "set-up failed: $1" >&2
    exit 1
}

supported() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null
}

# Says every 20 seconds how many of the pinned packages pip has looked at.
tell_progress() {
    while sleep 20 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        if grep -q '^Installing' "$log"; then
            echo "set-up 2/4: all packages are fetched and are being copied"
        else
            echo "set-up 2/4: $(grep -cE '^(Collecting|Processing|Requirement already)' "$log") packages of $(
                grep -c '==' requirements.lock) fetched"
        fi
    done
}

python=
for candidate in ${PYTHON_FOR_SETUP:-} python3.11 python3.12 python3.13 python3; do
    if command -v "$candidate" >/dev/null && supported "$candidate"; then
        python=$candidate
        break
    fi
done
# Without one, uv downloads it.
if [ -n "$python" ]; then
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        fail "$python has no venv module; install it (Debian: apt install python3-venv)"
    version=$("$python" --version)
elif command -v uv >/dev/null; then
    version="Python 3.12 from uv"
else
    fail "no Python 3.11, 3.12 or 3.13 found; install one (Debian: apt install python3.11-venv; without root: uv from
install uv, https://docs.astral.sh/uv, which set-up then uses), or name it with PYTHON_FOR_SETUP=/path/to/python3.12"
fi
# Who measures here would be refused after these minutes.
if [ -n "${MEASURES_HERE:-}" ] && [ -n "$python" ]; then
    "$python" "$(dirname "$0")/free_machine.py" || exit 1
fi
free=$(df -Pm . | awk 'NR==2 {print $4}')
[ "$free" -ge "$NEEDED_MB" ] || fail "$free MB free on this disk; the environment needs about $NEEDED_MB MB"

# Complete and of this Python, it is brought up to date: what `make torch` and others installed stays.
if [ -f .venv/.ready ] && [ -n "$python" ] && [ "$(.venv/bin/python --version 2>&1)" = "$version" ]; then
    echo "set-up 1/4: .venv is older than its lock or set-up and is brought up to date (anew: make clean)"
    rm -f .venv/.ready
else
    echo "set-up 1/4: .venv with $version"
    rm -rf .venv
    if [ -n "$python" ]; then
        "$python" -m venv .venv
    else
        uv venv --quiet --seed --python 3.12 .venv || fail "uv found no Python 3.12; is there a network?"
    fi
fi
echo "set-up 2/4: installing the pinned packages, 1-4 minutes (log: $log)"
: >"$log"
started=$(date +%s)
tell_progress &
reporter=$!
trap 'kill $reporter 2>/dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
.venv/bin/python -m pip install --disable-pip-version-check --no-compile -r requirements.lock >"$log" 2>&1 ||
    fail "pip could not install the packages; is there a network? The last lines of $log:
$(tail -n 5 "$log")"
.venv/bin/python -c "from tools.installer import compile_packages; compile_packages(since=$started)" >>"$log" 2>&1 ||
    fail "the last lines of $log:
$(tail -n 5 "$log")"
kill $reporter 2>/dev/null || true
echo "set-up 3/4: installing dlperf_study itself"
.venv/bin/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e . >>"$log" 2>&1 ||
    fail "the last lines of $log:
$(tail -n 5 "$log")"
echo "set-up 4/4: checking that the packages fit together, and that Paddle finds the libraries of the system"
.venv/bin/python -m pip check >>"$log" 2>&1 || fail "the packages do not fit together: $(tail -n 3 "$log")"
.venv/bin/python -c 'import paddle' >>"$log" 2>&1 || fail "Paddle can't be imported: $(tail -n 1 "$log")
Install the library that is missing (libgomp.so.1, Debian: apt install libgomp1), then call make again"
if [ -f .gpu-indexes.json ]; then
    echo "set-up: installing the builds for GPUs again that \`make gpu\` installed"
    .venv/bin/python -m tools.install_gpu
fi
touch .venv/.ready
