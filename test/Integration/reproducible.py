#!/usr/bin/env python3
"""Same input, same bytes out; and no toolkit is needed for PTX.

PTX and manifest of Dense twice, PTX also without any toolkit or ptxas to be
found, for devices of several generations; no `.extern .func` in it.
"""

import os
import subprocess

import harness

DEVICES = ("k80", "p100", "p4", "v100", "t4", "a100", "rtx3090", "h200", "b200")


def translate(h, flag, device, env=None):
    source = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "dense.mlir")
    run = subprocess.run([os.path.join(h.bin_dir, "ftuner-translate"), source, flag, f"--device={device}"],
                         capture_output=True, env=env)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.decode())
    return run.stdout


def check(h, device):
    problems = []
    ptx = translate(h, "--ftuner-to-ptx", device)
    if ptx != translate(h, "--ftuner-to-ptx", device):
        problems.append("two translations to PTX differ")
    if translate(h, "--ftuner-to-manifest", device) != translate(h, "--ftuner-to-manifest", device):
        problems.append("two manifests differ")
    hidden = {"PATH": "/nonexistent", "CUDA_HOME": "/nonexistent", "CUDA_PATH": "/nonexistent",
              "CUDA_ROOT": "/nonexistent", "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
    if ptx != translate(h, "--ftuner-to-ptx", device, hidden):
        problems.append("the PTX depends on an installed toolkit")
    if b".extern .func" in ptx:
        problems.append("the PTX calls external functions")
    if ptx.count(b".version") != 1 or not ptx.count(b".entry"):
        problems.append("expected one PTX module with entries")
    return problems


def main():
    h, _ = harness.start(__doc__)
    for device in DEVICES:
        h.add(device, check, h, device)
    h.finish()


if __name__ == "__main__":
    main()
