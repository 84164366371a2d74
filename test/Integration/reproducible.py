#!/usr/bin/env python3
"""Same input, same bytes out; and no toolkit is needed for PTX.

PTX and manifest of Dense twice, PTX also without any toolkit or ptxas to be
found, for an old device and a newer one (`--all`: for six generations); no `.extern .func` in it.
"""

import os

import harness

DEVICES = ("k80", "v100", "t4", "a100", "h200", "b200")
# Those of the suite: the oldest, and one with asynchronous copies.
PART = ("k80", "h200")


def translate(h, name, device, *flags, environment=None):
    """The bytes of the PTX."""
    source = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "dense.mlir")
    path = h.path(f"{device}.{name}.ptx")
    run = h.tool(
        "ftuner-translate",
        source,
        "--ftuner-to-ptx",
        f"--device={device}",
        "-o",
        path,
        *flags,
        environment=environment,
    )
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    return read(path)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def check(h, device):
    problems = []
    names = ("one", "other")
    manifests = [h.path(f"{device}.{name}.json") for name in names]
    ptx, other = (
        translate(h, name, device, f"--manifest={path}") for name, path in zip(names, manifests)
    )
    if ptx != other:
        problems.append("two translations to PTX differ")
    if read(manifests[0]) != read(manifests[1]):
        problems.append("two manifests differ")
    if ptx != translate(h, "hidden", device, environment=harness.NO_TOOLKIT):
        problems.append("the PTX depends on an installed toolkit")
    if b".extern .func" in ptx:
        problems.append("the PTX calls external functions")
    if ptx.count(b".version") != 1 or not ptx.count(b".entry"):
        problems.append("expected one PTX module with entries")
    return problems


def main():
    h, options = harness.start(
        __doc__, {"--all": {"action": "store_true", "help": "devices of every generation"}}
    )
    for device in DEVICES if options.all else PART:
        h.add(device, check, h, device)
    h.finish()


if __name__ == "__main__":
    main()
