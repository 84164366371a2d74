"""Workloads of the paper as modules, for the benchmarks of this folder."""

import importlib.util
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "test", "Integration"))
import models


def _load(path):
    """A module of the package by itself: benchmarks run without what the package needs."""
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


papers = _load(os.path.join(ROOT, "python", "ftuner", "study", "papers.py"))

BIN = os.path.join(ROOT, "build", "release", "bin")
# Lengths T, of 1 to 128, that the papers' searches sample.
LENGTHS = (5, 24, 43, 62, 81, 100, 119, 128)
# Dense of the paper's text has T rows, that of its published figures 16·T.
RANGES = {"M = T": "#ukernel.range<1 to 128>", "M = 16·T": "#ukernel.range<16 to 2048 step 16>"}


def load_pyplot(path):
    """matplotlib.pyplot, to draw `path` (.svg or .png); exits where it cannot be drawn.

    Call it before measuring: what was measured is not lost for want of a package.
    """
    if os.path.splitext(path)[1] not in (".svg", ".png"):
        sys.exit(f"error: expected a figure that ends in .svg or .png, but got '{path}'")
    if not os.path.isdir(os.path.dirname(path) or "."):
        sys.exit(f"error: no folder for '{path}'")
    try:
        import matplotlib
    except ImportError:
        sys.exit(
            "error: Matplotlib is missing: pip install matplotlib, or use the Python of .venv, where "
            "tools/setup.sh installs it"
        )
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "ftuner"
    from matplotlib import pyplot

    return pyplot


def save_figure(figure, path):
    """Equal figures give equal bytes."""
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)
    print(f"drew {path}", file=sys.stderr)


def write_module(path, **arguments):
    """Writes a matrix product; arguments as models.Matmul takes them."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(models.Matmul(name="dense", **arguments).text())
    return path


def write(path, rows, **arguments):
    """Writes Dense, N = 2304, K = 768, with a range of rows."""
    return write_module(path, m="M", n=2304, k=768, ranges={"M": rows}, **arguments)


def write_batch_matmul(path, rows="5 to 138 step 19", n="T", k=64):
    """Writes 192 products of T × k and k × n, the symbol T or a number each.

    By default BatchMatmul of the paper, T × 64 and 64 × T. Of its eight sizes a range
    with a step holds seven; the eighth is 128 there and 138 here.
    """
    product = papers.batch_matmul("batch_matmul", 192, "T", n, k)
    with open(path, "w", encoding="utf-8") as file:
        file.write(papers.module([product], lengths=rows))
    return path


def predicted_us(text, sizes, device):
    """Predicted microseconds of all launches of the first function for each of the sizes, from one plan."""
    import ftuner

    data = ftuner.describe.explanation.explain_data(text, sizes, device=device)
    shares = data["functions"][0]["work"]["shares"]
    return [share["ukernel_us"] + share["fallback_us"] for share in shares]
