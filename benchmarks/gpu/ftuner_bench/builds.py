"""Builds the native peers, and programs, with the machine's own compilers, beside the first part.

`python -m ftuner_bench.builds --scratch DIR`; each library appears at once when it is
complete, and what failed leaves its messages in a file beside it.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from .processes import end_with_parent

SOURCES = pathlib.Path(__file__).resolve().parent


def built(scratch: pathlib.Path, name: str, seconds: float) -> pathlib.Path:
    """The library `name`, waiting for it; RuntimeError with the compiler's words."""
    library, failure = scratch / f"{name}.so", scratch / f"{name}.failed"
    end = time.monotonic() + seconds
    while not library.exists():
        if failure.exists():
            raise RuntimeError(f"building {name} failed: {failure.read_text().strip()[-2000:]}")
        if time.monotonic() > end:
            raise RuntimeError(f"building {name} took more than {seconds:.0f} s")
        time.sleep(0.2)
    return library


def cublaslt_paths() -> tuple[list[pathlib.Path], pathlib.Path]:
    """Folders of headers and the library: those that PyTorch uses, else the toolkit's."""
    candidates = []
    packages = importlib.util.find_spec("nvidia")
    for root in (packages.submodule_search_locations or []) if packages else []:
        candidates += sorted(pathlib.Path(root).glob("*/lib/libcublasLt.so.*"), reverse=True)
    home = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    candidates += sorted((home / "lib64").glob("libcublasLt.so*"), reverse=True)
    for library in candidates:
        for headers in (library.parent.parent / "include", home / "include"):
            if (headers / "cublasLt.h").exists():
                return [headers, home / "include"], library
    looked = ", ".join(str(path) for path in candidates) or "no libcublasLt.so"
    raise RuntimeError(f"no cublasLt.h was found beside {looked}")


def command_cublaslt(output: pathlib.Path) -> list[str]:
    headers, library = cublaslt_paths()
    return [
        tool("nvcc"),
        "-O2",
        "-std=c++17",
        "-shared",
        "-Xcompiler",
        "-fPIC",
        *[f"-I{folder}" for folder in headers],
        str(SOURCES / "peers" / "cublaslt.cu"),
        f"-L{library.parent}",
        f"-l:{library.name}",
        "-Xlinker",
        f"-rpath={library.parent}",
        "-o",
        str(output),
    ]


def command_overhead(output: pathlib.Path) -> list[str]:
    return [
        compiler(),
        "-O2",
        "-shared",
        "-fPIC",
        str(SOURCES / "launch_loop.c"),
        "-ldl",
        "-o",
        str(output),
    ]


def command_bandwidths(output: pathlib.Path) -> list[str]:
    source = SOURCES.parent / "bandwidths.cu"
    return [tool("nvcc"), "-O3", "-std=c++17", "-arch=native", "-o", str(output), str(source)]


def command_probes(output: pathlib.Path) -> list[str]:
    source = SOURCES.parent / "probes.cu"
    # Instructions of Hopper alone.
    target = "-gencode=arch=compute_90a,code=sm_90a"
    return [tool("nvcc"), "-O3", "-std=c++17", target, "-o", str(output), str(source)]


COMMANDS = {
    "launch_loop": command_overhead,
    "bandwidths": command_bandwidths,
    "probes": command_probes,
    "cublaslt": command_cublaslt,
}


def tool(name: str) -> str:
    """The path of a CUDA tool; RuntimeError where there is none."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    path = shutil.which(name) or shutil.which(f"{home}/bin/{name}")
    if not path:
        raise RuntimeError(f"no {name} on PATH or in {home}/bin")
    return path


def compiler() -> str:
    for name in ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path:
            return path
    raise RuntimeError("no C compiler on PATH")


def build(scratch: pathlib.Path, name: str) -> bool:
    partial = scratch / f"{name}.partial.so"
    try:
        run = subprocess.run(COMMANDS[name](partial), capture_output=True, text=True, timeout=120)
        words = run.stdout + run.stderr
        if run.returncode == 0:
            partial.rename(scratch / f"{name}.so")
            return True
    except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        words = str(error)
    (scratch / f"{name}.failed").write_text(words or "the compiler said nothing")
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--only", choices=list(COMMANDS), action="append")
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.parent is not None:
        end_with_parent(options.parent)
    with ThreadPoolExecutor() as pool:
        results = list(
            pool.map(lambda name: build(options.scratch, name), options.only or COMMANDS)
        )
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
