"""Outputs and temporary files in folders with odd names: folders.py BIN_DIR MATMUL.mlir FOLDER.

LLVM names new files by models in which each '%' is replaced, which must not happen to folders.
"""

import os
import shutil
import subprocess
import sys

BIN_DIR, SOURCE, ROOT = sys.argv[1:]
OPTIONS = ["--device=h200", "--max-kernels=2"]
NAMES = ["plain", "a%2Fb %%%%%%", "a #'\"$x;&\\é"]


def run(program, *arguments, **environment):
    command = [os.path.join(BIN_DIR, program), SOURCE, *arguments]
    result = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert result.returncode == 0, (command, result.stderr)
    assert result.stderr == "", (command, result.stderr)
    return result.stdout


def translate(what, output, *more, **environment):
    run("ftuner-translate", f"--ftuner-to-{what}", *OPTIONS, "-o", output, *more, **environment)


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def write_all(folder):
    for _ in range(2):  # New files, and those that are there.
        translate("ptx", f"{folder}/a%.ptx")
    translate("manifest", f"{folder}/a%.json")
    translate("library", f"{folder}/liba%.so", "--emulator")
    translate("library", f"{folder}/a%.o", "--emulator", f"--header={folder}/o%.h")
    run("ftuner-opt", "-o", f"{folder}/a%.mlir")
    run("ftuner-run", "--args=7x40xf32,40x48xf32", *OPTIONS, f"--save-dir={folder}/new%d/r")
    names = sorted(
        os.path.relpath(os.path.join(path, name), folder)
        for path, _, files in os.walk(folder)
        for name in files
    )
    expected = [
        "a%.h",
        "a%.json",
        "a%.mlir",
        "a%.o",
        "a%.ptx",
        "liba%.so",
        "new%d/r/result0.npy",
        "o%.h",
    ]
    assert names == expected, names
    return {name: read(folder, name) for name in names}


shutil.rmtree(ROOT, ignore_errors=True)
written = {}
for name in NAMES:
    os.makedirs(os.path.join(ROOT, name))
    written[name] = write_all(os.path.join(ROOT, name))
    for file, content in written[name].items():
        assert content == written["plain"][file], (name, file)
    temporary = os.path.join(ROOT, name, "tmp")
    os.mkdir(temporary)
    translate("library", f"{ROOT}/libb.so", "--emulator", "--cubins=auto", TMPDIR=temporary)
    assert os.listdir(temporary) == [], os.listdir(temporary)
