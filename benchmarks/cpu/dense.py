"""What the benchmarks of this folder share: Dense of the paper as a module."""

import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "test", "Integration"))
import models  # noqa: E402

BIN = os.path.join(ROOT, "build", "release", "bin")
# Dense of the paper's text has T rows, that of its published figures 16·T.
RANGES = {"M = T": "#ukernel.range<1 to 128>", "M = 16·T": "#ukernel.range<16 to 2048 step 16>"}


def write_module(path, **arguments):
    """Writes a matrix product; arguments as models.Matmul takes them."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(models.Matmul(name="dense", **arguments).text())
    return path


def write(path, rows, **arguments):
    """Writes Dense, N = 2304, K = 768, with a range of rows."""
    return write_module(path, m="M", n=2304, k=768, ranges={"M": rows}, **arguments)
