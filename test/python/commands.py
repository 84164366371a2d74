"""Runs commands of the package as `python -m ftuner` does, without starting Python for each.

A process that has imported the command line, and has done nothing else, forks for each command: so each one has a
process of its own, with its own folder, environment and files, as a program has. Tests of how Python itself starts
(encodings, pipes, terminals) run `python -m ftuner` themselves.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Runs in the process that forks: requests are lines of JSON from descriptor 0, answers are exit codes.
_SERVER = r"""
import importlib, json, os, sys, traceback

requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
from ftuner.cli import main

for name in sys.argv[1:]:
    importlib.import_module(name)


def run(request):
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    for number, name in enumerate(request["files"]):
        file = os.open(name, os.O_RDWR | os.O_APPEND if number else os.O_RDONLY)
        os.dup2(file, number)
        os.close(file)
    sys.argv[:] = ["ftuner", *request["arguments"]]
    try:
        code = main()
    except SystemExit as end:
        code = 0 if end.code is None else end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


for line in requests:
    child = os.fork()
    if child == 0:
        requests.close()
        answers.close()
        run(json.loads(line))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)
"""


@functools.cache
def _server(*modules: str) -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER, *modules],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(server.communicate)
    return server


#: The message of commands without `--device` on machines without a GPU (test_devices.py).
NO_DEVICE = "no GPU is found and no device is named: the device is h200\n"


def run_command(
    *arguments: Any,
    cwd: Path | None = None,
    given: str | None = None,
    environment: Mapping[str, str] | None = None,
    modules: tuple[str, ...] = (),
) -> subprocess.CompletedProcess[str]:
    """Runs a command with `given` on standard input; returns its output and its exit code.

    Standard error is without `NO_DEVICE`.

    `modules` are imported beforehand, once for all commands that name them.
    """
    command = [str(argument) for argument in arguments]
    server = _server(*modules)
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("in", "out", "err")]
        for name in files:
            Path(name).write_text((given or "") if name == files[0] else "")
        request = {
            "arguments": command,
            "folder": str(cwd or Path.cwd()),
            "environment": {**os.environ, **(environment or {})},
            "files": files,
        }
        assert server.stdin and server.stdout
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, err = (Path(name).read_text(errors="surrogateescape") for name in files[1:])
    return subprocess.CompletedProcess(command, code, out, err.replace(NO_DEVICE, "", 1))
