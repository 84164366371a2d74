# Sourced by the other scripts: finds ptxas where tools/setup.sh installed it.
if ! command -v ptxas >/dev/null && [ ! -x "${CUDA_HOME:-/usr/local/cuda}/bin/ptxas" ]; then
  for folder in "$(dirname "${BASH_SOURCE[0]}")"/../.venv/lib/python*/site-packages/nvidia/*/bin; do
    if [ -x "$folder/ptxas" ]; then
      PATH="$(cd "$folder" && pwd):$PATH"
      export PATH
    fi
  done
fi
