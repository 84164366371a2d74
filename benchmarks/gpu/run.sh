#!/usr/bin/env bash
# Checks and measures FTuner on a GPU, from the bundle that prepare.sh made, in which
# this script lies. See docs/benchmarks.md, or --help.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if [ ! -f "$here/bundle.json" ]; then
  echo "error: $here is no bundle: run prepare.sh, then the run.sh in what it made" >&2
  exit 1
fi
PYTHONUNBUFFERED=1 PYTHONPATH="$here:$here/python${PYTHONPATH:+:$PYTHONPATH}" \
  exec "${PYTHON:-python3}" -m ftuner_bench.run --bundle "$here" "$@"
