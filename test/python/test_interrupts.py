"""Signals: what Ctrl-C ends, and what is left of a process that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
import pytest

import ftuner
from scale import SCALE

# On two cores a run of this size takes longer than may pass after a signal.
ROWS, WIDTH = 6000, 1024
SECONDS = 2.0

SOURCE = f"""
module attributes {{ukernel.symbols = {{T = #ukernel.range<1 to 64>}}}} {{
  func.func @product(%a: tensor<?x{WIDTH}xf32> {{ukernel.shape = ["T", {WIDTH}]}},
                     %b: tensor<{WIDTH}x{WIDTH}xf32>) -> tensor<?x{WIDTH}xf32> {{
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x{WIDTH}xf32>
    %empty = tensor.empty(%m) : tensor<?x{WIDTH}xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x{WIDTH}xf32>)
        -> tensor<?x{WIDTH}xf32>
    %c = linalg.matmul ins(%a, %b : tensor<?x{WIDTH}xf32>, tensor<{WIDTH}x{WIDTH}xf32>)
        outs(%init : tensor<?x{WIDTH}xf32>) -> tensor<?x{WIDTH}xf32>
    return %c : tensor<?x{WIDTH}xf32>
  }}
}}
"""


@pytest.fixture(scope="module")
def product() -> ftuner.Module:
    return ftuner.compile(SOURCE, emulate=True, max_kernels=1)


@pytest.fixture
def arrays(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    rows = rng.standard_normal((ROWS, WIDTH), np.float32)
    return rows, rng.standard_normal((WIDTH, WIDTH), np.float32)


class Stop(Exception):
    """The exception that the handler of a test raises."""


@pytest.fixture
def handler() -> Iterator[Any]:
    """Sets a handler of SIGUSR1 and sends the signal after a while."""
    before = signal.getsignal(signal.SIGUSR1)
    timers = []

    def install(handle: Any, *seconds: float) -> None:
        signal.signal(signal.SIGUSR1, handle)
        for after in seconds:
            timers.append(threading.Timer(after, os.kill, (os.getpid(), signal.SIGUSR1)))
            timers[-1].start()

    yield install
    for timer in timers:
        timer.cancel()
        timer.join()
    signal.signal(signal.SIGUSR1, before)


def run_forever(product: ftuner.Module, arrays: tuple[np.ndarray, np.ndarray]) -> None:
    while True:  # The machine may have many cores.
        product(*arrays)


def is_right(product: ftuner.Module, arrays: tuple[np.ndarray, np.ndarray]) -> bool:
    a, b = arrays[0][:5], arrays[1]
    return np.allclose(product(a, b), a.astype(np.float64) @ b, rtol=1e-3, atol=1e-3)


def test_a_handler_ends_a_run(product: Any, arrays: Any, handler: Any) -> None:
    """The call raises the handler's exception; the next call runs as usual."""
    stopped = []

    def stop(*_: Any) -> None:
        stopped.append(time.monotonic())
        raise Stop

    for _ in range(2):
        handler(stop, 0.3)
        begin = time.monotonic()
        with pytest.raises(Stop):
            run_forever(product, arrays)
        end = time.monotonic()
        assert end - begin < 0.3 + SECONDS and end - stopped[-1] < SECONDS
        assert is_right(product, arrays)
    assert len(stopped) == 2


def test_a_handler_that_raises_nothing(product: Any, arrays: Any, handler: Any) -> None:
    """It runs while the kernel does, and the run goes on to its end."""
    seen = []
    handler(lambda *_: seen.append(time.monotonic()), 0.1, 0.4)
    a = arrays[0][:600]
    while len(seen) < 2:
        result = product(a, arrays[1])
        np.testing.assert_allclose(result, a.astype(np.float64) @ arrays[1], rtol=1e-2, atol=1e-2)


def test_a_handler_that_launches(product: Any, arrays: Any, handler: Any) -> None:
    """The emulator runs one launch at a time: an error, not a standstill."""
    handler(lambda *_: product(arrays[0][:5], arrays[1]), 0.2)
    with pytest.raises(ftuner.Error, match="while another one of the same thread runs"):
        run_forever(product, arrays)
    assert is_right(product, arrays)


def test_waiting_for_another_thread(product: Any, arrays: Any, handler: Any) -> None:
    """A run that waits for that of another thread ends, and the other one goes on."""

    def stop(*_: Any) -> None:
        raise Stop

    results = []
    a, b = arrays[0][: ROWS // 3], arrays[1]
    other = threading.Thread(target=lambda: results.append(product(a, b)))
    other.start()
    time.sleep(0.2)
    handler(stop, 0.3)
    begin = time.monotonic()
    with pytest.raises(Stop):
        run_forever(product, arrays)
    assert time.monotonic() - begin < 0.3 + SECONDS
    other.join()
    np.testing.assert_allclose(
        results[0][::97], a[::97].astype(np.float64) @ b, rtol=1e-2, atol=1e-2
    )


def interrupt(
    command: list[str], cwd: Path, number: int = signal.SIGINT, **environment: str
) -> tuple[int, str, float]:
    """Runs a program until its kernel or its compiler runs, and sends it a signal."""
    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **environment},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    time.sleep(4)
    assert process.poll() is None
    begin = time.monotonic()
    process.send_signal(number)
    _, words = process.communicate(timeout=60)
    return process.returncode, words, time.monotonic() - begin


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


# The suite has SIGINT, which has its own words, and one of the two signals with equal words.
@pytest.mark.parametrize("number", SIGNALS if SCALE > 1 else SIGNALS[:2])
def test_nothing_is_left_of_a_compilation(tmp_path: Path, number: int) -> None:
    """Neither files beside the output nor temporary ones; what was there stays."""
    source, output, temporary = (tmp_path / name for name in ("a.mlir", "out", "tmp"))
    output.mkdir()
    temporary.mkdir()
    (output / "liba.so").write_bytes(b"before")
    # Plans of so many products take longer than the test waits.
    body = SOURCE[SOURCE.index("{\n") + 2 : SOURCE.rindex("}")]
    functions = (
        body.replace("@product", f"@product{count}").replace(str(WIDTH), str(WIDTH + 8 * count))
        for count in range(40)
    )
    header = "module attributes {ukernel.symbols = {T = #ukernel.range<1 to 100000>}} {\n"
    source.write_text(header + "".join(functions) + "}\n")
    options = ["--device=h200", "--emulate", "--max-kernels=64", "-o", str(output / "liba.so")]
    command = [sys.executable, "-m", "ftuner", "compile", str(source), *options]
    words = {signal.SIGINT: "error: interrupted\n"}.get(
        number, f"error: ended by {signal.Signals(number).name}\n"
    )
    code, printed, seconds = interrupt(command, tmp_path, number, TMPDIR=str(temporary))
    assert code == 128 + number and printed == words and seconds < SECONDS
    assert [path.name for path in output.iterdir()] == ["liba.so"]
    assert (output / "liba.so").read_bytes() == b"before"
    assert not [*temporary.iterdir()]


# The suite has each signal and each linker.
@pytest.mark.parametrize(
    ("linker", "number"),
    [(linker, number) for linker in ("ld.lld", "ld") for number in SIGNALS]
    if SCALE > 1
    else [("ld.lld", signal.SIGINT), ("ld", signal.SIGTERM), ("ld", signal.SIGHUP)],
)
def test_nothing_is_left_of_a_linker(tmp_path: Path, linker: str, number: int) -> None:
    """Only ftuner-translate is ended while its linker runs, which goes on to write."""
    source, temporary, fake = (tmp_path / name for name in ("a.mlir", "tmp", linker))
    temporary.mkdir()
    source.write_text(SOURCE)
    # It opens its output first, as linkers do.
    fake.write_text(
        """#!/bin/sh
echo "$@" > "$0.started"
while [ "$1" != -o ]; do shift; done
if [ "$2" = - ]; then exec 3>&1; else exec 3>"$2"; fi
sleep 1.5
echo library >&3
touch "$0.ended"
"""
    )
    fake.chmod(0o755)
    program = Path(os.environ["FTUNER_HOME"], "bin", "ftuner-translate")
    command = [program, source, "--ftuner-to-library", "--device=h200", "--max-kernels=1"]
    process = subprocess.Popen(
        [*map(str, command), "-o", str(tmp_path / "liba.so")],
        env={**os.environ, "TMPDIR": str(temporary), "FTUNER_LINKER": str(fake)},
        stderr=subprocess.DEVNULL,
    )
    started, ended = Path(f"{fake}.started"), Path(f"{fake}.ended")
    deadline = time.monotonic() + 60
    while not started.exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(number)
    assert process.wait(60) == -number and not ended.exists()
    while not ended.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not [*temporary.iterdir()] and not (tmp_path / "liba.so").exists()


def test_command_lines(product: Any, tmp_path: Path) -> None:
    """`ftuner run` says so and ends; ftuner-run leaves it to the system."""
    source = tmp_path / "product.mlir"
    source.write_text(SOURCE)
    rows = 10 * ROWS
    zeros = tmp_path / "zeros.npy"
    np.lib.format.open_memmap(zeros, "w+", np.float32, (rows, WIDTH))
    command = [
        sys.executable,
        "-m",
        "ftuner",
        "run",
        str(source),
        "--device=h200",
        "--max-kernels=1",
    ]
    code, words, seconds = interrupt([*command, "--input", f"0={zeros}"], tmp_path)
    assert code == 130 and words == "error: interrupted\n" and seconds < SECONDS
    program = Path(os.environ["FTUNER_HOME"], "bin", "ftuner-run")
    command = [str(program), str(source), "--max-kernels=1", "--device=h200"]
    arguments = f"--args={rows}x{WIDTH}xf32@{zeros},{WIDTH}x{WIDTH}xf32"
    code, _, seconds = interrupt([*command, arguments], tmp_path)
    assert code == -signal.SIGINT and seconds < SECONDS


#: A module on which torch-mlir's passes do not end.
ENDLESS = """
module {
  func.func @main(%x: !torch.vtensor<[1,4,8,8],f32>) -> !torch.vtensor<[1,4,13,13],f32>
      attributes {torch.onnx_meta.ir_version = 9 : si64, torch.onnx_meta.opset_version = 19 : si64} {
    %pads = torch.operator "onnx.Constant"() {torch.onnx.value = dense<[0, 0, 2, 1, 0, 0, 3, 4]>
        : tensor<8xsi64>} : () -> !torch.vtensor<[8],si64>
    %y = torch.operator "onnx.Pad"(%x, %pads) {torch.onnx.mode = "wrap"}
        : (!torch.vtensor<[1,4,8,8],f32>, !torch.vtensor<[8],si64>) -> !torch.vtensor<[1,4,13,13],f32>
    return %y : !torch.vtensor<[1,4,13,13],f32>
  }
}
"""

#: Work that takes longer than a test waits, by the front end.
_IMPORT = f"""
from ftuner.frontend.importing import torch_mlir, worker
lower, passes = worker.lower, (torch_mlir.FROM_ONNX, torch_mlir.TO_LINALG)
worker.lower = lambda *_: lower({ENDLESS.encode()!r}, passes)
"""
WORK = {
    "compile": f"""
import ftuner
text = {SOURCE!r}
body = text[text.index("{{\\n") + 2 : text.rindex("}}")]
functions = [body.replace("@product", f"@product{{n}}").replace("{WIDTH}", str({WIDTH} + 8 * n)) for n in range(40)]
head = text[:text.index("{{\\n") + 2].replace("1 to 64", "1 to 100000")
ftuner.compile(head + "".join(functions) + "}}", device="h200", max_kernels=64)
""",
    "export": _IMPORT
    + """
import torch, ftuner.torch
ftuner.torch.export(torch.nn.Linear(8, 8), (torch.randn(3, 8),))
""",
    "onnx": _IMPORT
    + """
import onnx, ftuner
from onnx import TensorProto, helper
value = lambda name, type=TensorProto.FLOAT: helper.make_tensor_value_info(name, type, [3])
node = helper.make_node("ScatterElements", ["x", "i", "v"], ["y"])
inputs = [value("x"), value("i", TensorProto.INT64), value("v")]
graph = helper.make_graph([node], "g", inputs, [value("y")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "m.onnx")
ftuner.compile("m.onnx", device="h200")
""",
    "torch.compile": """
import torch, ftuner.torch
layers = [torch.nn.Linear(1024 + 8 * n, 64, bias=False) for n in range(20)]
def model(*xs):
    return [layer(x) for layer, x in zip(layers, xs)]
options = {"host": "eager", "device": "h200", "max_kernels": 64}
with torch.no_grad():
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)
    compiled(*(torch.randn(3, layer.in_features) for layer in layers))
""",
}


def descendants(pid: int) -> list[int]:
    """Processes that a process has started, and theirs, that run."""
    parents: dict[int, int] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                fields = (path / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] not in "ZX":
                parents[int(path.name)] = int(fields[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def programs(pid: int) -> str:
    names = []
    for child in descendants(pid):
        try:
            names.append(Path(f"/proc/{child}/cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            pass
    return " ".join(names)


@pytest.mark.parametrize("name", WORK)
def test_nothing_runs_on(tmp_path: Path, name: str) -> None:
    """Ctrl-C ends work and its programs, and SIGKILL of Python ends these and their folders.

    One of the processes may wait for locks that the other one has.
    """
    if name != "compile":
        pytest.importorskip("onnx" if name == "onnx" else "torch")
    if name in ("export", "onnx"):
        pytest.importorskip("iree.compiler")
    temporary, copy = tmp_path / "tmp", tmp_path / "tmp2"
    environment = {
        "FTUNER_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(Path(ftuner.__path__[0]).parent),
    }  # fmt: skip
    # Python with PyTorch takes its time to end.
    script = f"try:\n{indent(WORK[name], '    ')}\nexcept KeyboardInterrupt:\n"
    script += "    import os, sys\n    print('interrupted', file=sys.stderr)\n    os._exit(130)\n"
    processes = []
    for folder in (temporary, copy):
        folder.mkdir()
        processes.append(
            subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", script],
                cwd=tmp_path, stderr=subprocess.PIPE, text=True,
                env={**os.environ, **environment, "TMPDIR": str(folder)},
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )
        )  # fmt: skip
    program = "passes.py" if name in ("export", "onnx") else "--max-kernels=64"
    for process, number in zip(processes, (signal.SIGINT, signal.SIGKILL)):
        deadline = time.monotonic() + 120
        # Either has the lock, while the other one waits for it.
        while not any(program in programs(one.pid) for one in processes):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(0.5)
        started = descendants(process.pid)
        begin = time.monotonic()
        process.send_signal(number)
        words = process.communicate(timeout=60)[1]
        assert time.monotonic() - begin < SECONDS, (number, words)
        if number == signal.SIGINT:
            assert process.returncode == 130 and "interrupted" in words
        while any(map(is_alive, started)):
            assert time.monotonic() < begin + SECONDS
            time.sleep(0.02)
    left = [path for folder in (temporary, copy) for path in folder.glob("ftuner-*")]
    assert not left
