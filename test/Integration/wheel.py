#!/usr/bin/env python3
"""Installs the Python package as a user would, and runs it from there.

`pip install .` in a fresh environment, with the folder of this build's own
compiler cache as the only help; then, in another folder and with nothing of the
source tree on any path: the example of the README, the tools, the command line,
and an own module with random data against NumPy in float64.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

OWN_MODULE = '''
import numpy as np
import ftuner

text = """
func.func @scores(%q: tensor<?x?x24xf32> {ukernel.shape = ["B", "S", 24]},
                  %k: tensor<?x24x?xf32> {ukernel.shape = ["B", 24, "L"]}) -> tensor<?x?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %b = tensor.dim %q, %c0 : tensor<?x?x24xf32>
  %s = tensor.dim %q, %c1 : tensor<?x?x24xf32>
  %l = tensor.dim %k, %c2 : tensor<?x24x?xf32>
  %empty = tensor.empty(%b, %s, %l) : tensor<?x?x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %r = linalg.batch_matmul ins(%q, %k : tensor<?x?x24xf32>, tensor<?x24x?xf32>)
                           outs(%init : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}
"""
module = ftuner.compile(text, device="rtx4090", emulate=True, max_kernels=3)
seed = np.random.SeedSequence().entropy
print('seed', seed)
random = np.random.default_rng(seed)
for b, s, l in [(1, 1, 1), (3, 17, 31), (2, 64, 5), (0, 4, 4)]:
    q = random.standard_normal((b, s, 24), np.float32)
    k = random.standard_normal((b, 24, l), np.float32)
    out = np.full((b, s, l), np.nan, np.float32)
    module.scores(q, k, out=out)
    wanted = q.astype(np.float64) @ k
    # Relative to what is summed: a sum of one element may cancel.
    summed = np.abs(q.astype(np.float64)) @ np.abs(k)
    error = np.linalg.norm(out - wanted) / np.linalg.norm(summed) if out.size else 0.0
    assert error < 4e-7, (b, s, l, error)
import pathlib, sys
package = pathlib.Path(ftuner.__file__)
assert package.is_relative_to(sys.prefix), package
# What is compiled against PyTorch where users have it.
assert (package.parent / "frontend" / "torch" / "native" / "ftuner_torch.cpp").is_file()
assert (package.parent / "host" / "native" / "Parameters.h").is_file()
import importlib.metadata
metadata = importlib.metadata.metadata("ftuner")
assert metadata["License-Expression"] == "Apache-2.0 WITH LLVM-exception", metadata
licenses = [file for file in importlib.metadata.files("ftuner") if "dist-info/licenses" in str(file)]
assert ["LLVM Exceptions" in file.read_text() for file in licenses] == [True], licenses
print("own module: right")
'''


def run(command, **arguments):
    """Runs a command that must succeed; returns its output."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **arguments
    )
    if done.returncode != 0:
        sys.exit(f"FAIL: {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", help="not used: the package has programs of its own")
    parser.parse_args()
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FTUNER_", "FTRT_", "PYTHON")) and name != "VIRTUAL_ENV"
    }
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "environment")
        venv.create(prefix, with_pip=True)
        programs = os.path.join(prefix, "bin")
        environment["PATH"] = programs + os.pathsep + environment["PATH"]
        environment["FTUNER_CACHE_DIR"] = os.path.join(folder, "cache")
        # What the release build compiled need not be compiled again.
        environment["CCACHE_BASEDIR"] = ROOT
        print("pip install .", flush=True)
        run(
            [os.path.join(programs, "pip"), "install", "--quiet", ROOT], cwd=folder, env=environment
        )

        elsewhere = os.path.join(folder, "elsewhere")
        os.makedirs(os.path.join(elsewhere, "examples", "python"))
        for name in ("dense.mlir", "python/dense.py"):
            shutil.copy(
                os.path.join(ROOT, "examples", name), os.path.join(elsewhere, "examples", name)
            )
        python = os.path.join(programs, "python")
        print(run([python, "examples/python/dense.py"], cwd=elsewhere, env=environment))
        print(run([python, "-c", OWN_MODULE], cwd=elsewhere, env=environment))
        for program in ("ftuner-opt", "ftuner-translate", "ftuner-run", "ftuner"):
            text = run(
                [os.path.join(programs, program), "--version"], cwd=elsewhere, env=environment
            )
            assert text.startswith("FTuner ") and "LLVM version" in text, text
        text = run(
            ["ftuner", "run", "examples/dense.mlir", "--device=a100", "--size", "T=7", "--check"],
            cwd=elsewhere,
            env=environment,
        )
        assert "relative error" in text, text
        print(text)
    print("PASS")


if __name__ == "__main__":
    main()
