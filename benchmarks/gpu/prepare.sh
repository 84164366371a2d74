#!/usr/bin/env bash
# Makes the bundle that run.sh takes to a GPU. See docs/benchmarks.md, or --help.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
python="${PYTHON:-$root/.venv/bin/python}"
command -v "$python" >/dev/null || python=python3
PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}" exec "$python" -m ftuner_bench.prepare "$@"
