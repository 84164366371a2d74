#!/usr/bin/env python3
"""Checks Markdown pages: the given ones, or all of the root and of docs/.

Always: relative links lead to files of the repository, and to headings that
exist. With --bin-dir also the pages' commands, page by page, in a folder of
their own with the programs on the path:

  ```mlir file=NAME    is written to NAME
  ```sh run            must succeed
  ```sh fails          must fail
  ```python run        must succeed, with the package ftuner on the path
  ```… run slow        with FTUNER_TEST_SCALE above 1 alone, and its output too
  ```text output       (or mlir) lines that the last command must print, in this
                       order; `…` is anything, alone in a line any lines. With
                       `output similar` numbers may differ.

Folders of the repository are there too, as links: a page's commands may name
examples/dense.mlir.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

#: True if slow commands run, too.
RUNS_EVERYTHING = int(os.environ.get("FTUNER_TEST_SCALE") or 1) > 1
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def pages():
    paths = [os.path.join(ROOT, file) for file in os.listdir(ROOT) if file.endswith(".md")]
    for folder, _, files in os.walk(os.path.join(ROOT, "docs")):
        paths += [os.path.join(folder, file) for file in files if file.endswith(".md")]
    return sorted(paths)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def anchors(text):
    """GitHub's names of a page's headings."""
    names = set()
    for heading in re.findall(r"^#+ +(.*)$", FENCE.sub("", text), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        names.add(name)
    return names


def check_links(path):
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", read(path)))
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        if not full.startswith(ROOT) or not os.path.exists(full):
            yield f"link to {target}: no such file"
        elif anchor and full.endswith(".md") and anchor not in anchors(read(full)):
            yield f"link to {target}: no such heading"


def pattern(line, is_similar):
    """Returns the pattern that a printed line must match; `…` matches anything."""
    text = ".*".join(re.escape(part.strip()) for part in line.strip().split("…"))
    if is_similar:
        text = re.sub(r"\d+(\\\.\d+)?(e\\?[-+]?\d+)?", r"\\d[\\d,.e+-]*", text)
    return re.compile(r"\s*" + text + r"\s*")


def missing_line(expected, printed, is_similar):
    """The first expected line that does not follow the ones before it."""
    lines = iter(printed.splitlines())
    for line in expected.splitlines():
        if line.strip() in ("", "…"):
            continue
        wanted = pattern(line, is_similar)
        if not any(wanted.fullmatch(candidate) for candidate in lines):
            return line.strip()
    return None


def find_python():
    """The interpreter with the packages that tools/setup.sh installs."""
    path = os.path.join(ROOT, ".venv", "bin", "python")
    return path if os.path.exists(path) else sys.executable


def make_environment(bin_dir, scripts, cache):
    """Variables for a page's commands; `scripts` is a new folder for python and ftuner, `cache` one of all pages."""
    os.mkdir(scripts)
    for name, arguments in (("python", ""), ("ftuner", "-m ftuner")):
        script = os.path.join(scripts, name)
        with open(script, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec "{find_python()}" {arguments} "$@"\n')
        os.chmod(script, 0o755)
    # What pages build is compiled once for all runs, wherever their folders are.
    launcher = (
        {
            "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
            "CCACHE_BASEDIR": os.path.dirname(scripts),
            "CCACHE_NOHASHDIR": "1",
        }
        if shutil.which("ccache")
        else {}
    )
    return dict(
        os.environ,
        **launcher,
        PATH=os.pathsep.join([scripts, bin_dir, os.environ["PATH"]]),
        PYTHONPATH=os.path.join(ROOT, "python"),
        PYTHONDONTWRITEBYTECODE="1",
        FTUNER_HOME=os.path.dirname(bin_dir),
        FTUNER_CACHE_DIR=cache,
        TORCHINDUCTOR_CACHE_DIR=os.path.join(scripts, "inductor"),
    )


def run_page(path, bin_dir, folder, cache):
    environment = make_environment(bin_dir, os.path.join(folder, ".scripts"), cache)
    for name in ("examples", "lib", "tools"):
        os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    printed = ""
    for info, body in FENCE.findall(read(path)):
        words = info.split()
        if words[-1:] == ["slow"] and not RUNS_EVERYTHING:
            printed = None
            continue
        name = next((word[5:] for word in words if word.startswith("file=")), None)
        if name:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(body)
        elif words[:2] in (["sh", "run"], ["sh", "fails"], ["python", "run"]):
            command = ["bash", "-euo", "pipefail", "-c", body]
            if words[0] == "python":
                command = [find_python(), "-c", body]
            begin = time.monotonic()
            run = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            printed = run.stdout
            print(
                f"{time.monotonic() - begin:5.1f} s {os.path.relpath(path, ROOT)}: {body.split(chr(10))[0]}",
                flush=True,
            )
            if (run.returncode != 0) != (words[1] == "fails"):
                yield f"{body.strip()!r} exits with {run.returncode}: {printed.strip()[-2000:]}"
                return
        elif words[1:2] == ["output"] and printed is not None:
            line = missing_line(body, printed, "similar" in words)
            if line is not None:
                yield f"expected the output {line!r} after the lines before it, but got:\n{printed[:4000]}"


def check_pages(paths, bin_dir, cache):
    failed = False
    for path in paths:
        problems = list(check_links(path))
        if bin_dir:
            with tempfile.TemporaryDirectory() as folder:
                problems += run_page(path, bin_dir, folder, cache)
        for problem in problems:
            print(f"error: {os.path.relpath(path, ROOT)}: {problem}", file=sys.stderr)
            failed = True
    return failed


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", help="folder of FTuner's programs: run the commands too")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="a page (default: all)")
    options = parser.parse_args()
    for page in options.pages:
        if not os.path.isfile(page):
            parser.error(f"expected a page, but got '{page}'")
    paths = [os.path.abspath(page) for page in options.pages] or pages()
    with tempfile.TemporaryDirectory() as cache:
        failed = check_pages(paths, options.bin_dir and os.path.abspath(options.bin_dir), cache)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
