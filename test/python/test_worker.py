"""The process of torch-mlir's passes: what ends it is an error of one sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("iree.compiler")

from ftuner import CompileError
from ftuner.frontend.importing import torch_mlir, worker
from test_interrupts import ENDLESS

PASSES = (torch_mlir.FROM_ONNX, torch_mlir.TO_LINALG)


def module_of(operator: str, attributes: str, sizes: str = "[3,4]", result: str = "[3,4]") -> str:
    """A module of ONNX: a Relu, and an operator of its result."""
    given, other = f"!torch.vtensor<{sizes},f32>", f"!torch.vtensor<{result},f32>"
    return f"""
func.func @main(%x: {given}) -> {other}
    attributes {{torch.onnx_meta.ir_version = 9 : si64, torch.onnx_meta.opset_version = 17 : si64}} {{
  %r = torch.operator "onnx.Relu"(%x) : ({given}) -> {given} loc("node of relu")
  %y = torch.operator "onnx.{operator}"(%r) {{{attributes}}} : ({given}) -> {other} loc("the node")
  return %y : {other}
}}
"""


RELU = module_of("Relu", "")
ABORTS = """
func.func @main(%x: !torch.vtensor<[1],f32>) -> !torch.vtensor<[1],f32>
    attributes {torch.onnx_meta.ir_version = 9 : si64, torch.onnx_meta.opset_version = 18 : si64} {
  %axes = torch.operator "onnx.Constant"() {torch.onnx.value = dense<-1> : tensor<1xsi64>}
      : () -> !torch.vtensor<[1],si64>
  %r = torch.operator "onnx.Relu"(%x) : (!torch.vtensor<[1],f32>) -> !torch.vtensor<[1],f32>
  %y = torch.operator "onnx.ReduceL2"(%r, %axes) {torch.onnx.keepdims = 1 : si64}
      : (!torch.vtensor<[1],f32>, !torch.vtensor<[1],si64>) -> !torch.vtensor<[1],f32> loc("the node")
  return %y : !torch.vtensor<[1],f32>
}
"""


def test_lowered_with_places() -> None:
    lowered = torch_mlir.lower_text(RELU, PASSES)
    assert "linalg.generic" in lowered and 'loc("the node")' in lowered
    assert torch_mlir.lower_text(RELU.encode(), PASSES) == lowered
    with pytest.raises(torch_mlir.NotLowered) as caught:
        torch_mlir.lower_text(module_of("Nothing", ""), PASSES)
    assert caught.value.reason == "torch-mlir does not lower the operator Nothing"
    assert caught.value.place == "node the node"
    with pytest.raises(CompileError, match="^cannot import the model: "):
        torch_mlir.lower_text("no module", PASSES)


def test_an_abort_names_the_operator() -> None:
    """Python goes on, and so does the next import."""
    with pytest.raises(torch_mlir.NotLowered) as caught:
        torch_mlir.lower_text(ABORTS, PASSES)
    words = "cannot import the model: torch-mlir crashes at the operator ReduceL2 (abort) (node the node)"
    assert str(caught.value) == words and "LLVM ERROR" in caught.value.diagnostics
    assert "linalg.generic" in torch_mlir.lower_text(RELU, PASSES)


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTUNER_IMPORT_SECONDS", "0.5")
    words = r"torch-mlir does not end within 0.5 s at the operator Pad \(-:7\)$"
    with pytest.raises(torch_mlir.NotLowered, match=words):
        torch_mlir.lower_text(ENDLESS, PASSES)
    monkeypatch.setenv("FTUNER_IMPORT_GIB", "0.01")
    with pytest.raises(torch_mlir.NotLowered, match="takes more than 0.01 GiB of memory"):
        torch_mlir.lower_text(ENDLESS, PASSES)
    for text in ("0", "-1", "nan", "x"):
        monkeypatch.setenv("FTUNER_IMPORT_GIB", text)
        with pytest.raises(ValueError, match="FTUNER_IMPORT_GIB: expected a positive number"):
            torch_mlir.lower_text(RELU, PASSES)


def test_kept_and_started_again() -> None:
    """Also where the process has been killed meanwhile."""
    torch_mlir.lower_text(RELU, PASSES)
    assert worker._worker is not None
    first = worker._worker.pid
    torch_mlir.lower_text(RELU, PASSES)
    assert worker._worker.pid == first
    os.kill(first, signal.SIGKILL)
    assert "linalg" in torch_mlir.lower_text(RELU, PASSES)
    assert worker._worker.pid != first


def test_threads_and_forks() -> None:
    """Threads take turns; a forked process has its own worker."""
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(torch_mlir.lower_text(RELU, PASSES)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len({*found}) == 1
    assert worker._worker is not None
    own = worker._worker.pid
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            is_equal = torch_mlir.lower_text(RELU, PASSES) == found[0]
            code = 0 if is_equal and worker._worker.pid != own else 2
        finally:
            worker._end()
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert torch_mlir.lower_text(RELU, PASSES) == found[0] and worker._worker.pid == own


def test_a_program_of_standard_input(tmp_path: Path) -> None:
    """The worker runs without its own file, in a folder with modules of the names that it imports."""
    for name in ("iree.py", "onnx.py", "json.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')")
    script = f"""
import sys
sys.path = [path for path in sys.path if path]
from ftuner.frontend.importing import torch_mlir
print(len(torch_mlir.lower_text({RELU!r}, {PASSES!r})))
"""
    run = subprocess.run(
        [sys.executable, "-"], input=script, cwd=tmp_path, text=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(worker.__file__).parents[3])},
    )  # fmt: skip
    assert run.returncode == 0 and int(run.stdout) > 100 and run.stderr == "", run
