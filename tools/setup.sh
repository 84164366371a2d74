#!/usr/bin/env bash
# Installs what FTuner needs to build and to test, where it is missing. Safe to
# repeat. Needs Debian 12 or a relative of it with packages of LLVM 22.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  build-essential cmake ninja-build ccache git python3 python3-venv python3-pip
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools lld-22 clang-22 libclang-rt-22-dev
  clang-format-22 clang-tidy-22
  libboost-context-dev libgtest-dev libxgboost0 chromium-headless-shell)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "install ok installed" ||
    missing+=("$package")
done
if ((${#missing[@]})); then
  sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "error: these packages are missing, and there is no sudo to install them: ${missing[*]}" >&2
      exit 1
    }
    sudo=(sudo)
  fi
  echo "Installing: ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# NumPy for the tests' independent references, Matplotlib for figures, PyTorch
# for its backend, …: tools/requirements.txt. The toolchain's own assembler where
# no CUDA toolkit is found: without ptxas everything works but cubins and figures
# of registers and spills.
if [ ! -x .venv/bin/python ]; then
  python3 -m venv .venv
fi
if ! cmp -s tools/requirements.txt .venv/requirements.txt; then
  echo "Installing Python packages into .venv"
  .venv/bin/pip install -q -r tools/requirements.txt
  cp tools/requirements.txt .venv/requirements.txt
fi
if ! command -v ptxas >/dev/null && [ ! -x "${CUDA_HOME:-/usr/local/cuda}/bin/ptxas" ] &&
  ! ls .venv/lib/python*/site-packages/nvidia/*/bin/ptxas >/dev/null 2>&1; then
  .venv/bin/pip install -q nvidia-cuda-nvcc ||
    echo "warning: no ptxas could be installed; figures of registers and spills will be missing" >&2
fi
echo "FTuner's dependencies are installed."
