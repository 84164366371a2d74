"""Calls of a library: checks of arguments, scalars, results, errors. The library is hand-made."""

from __future__ import annotations

import ctypes
import inspect
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner
from handmade import SCALAR_TYPES, build_handmade, handmade_manifest

Module = ftuner.Module


def expect(error: type[Exception], message: str) -> Any:
    return pytest.raises(error, match=re.escape(message))


def test_call(handmade: Module, rng: np.random.Generator) -> None:
    x = rng.standard_normal((53, 4), np.float32)
    y = handmade.scale(x, 2.5)
    assert y.dtype == np.float32 and y.shape == (53, 4)
    np.testing.assert_array_equal(y, x * np.float32(2.5))


@pytest.mark.parametrize("rows", [0, 1, 7, 1000])
def test_out(handmade: Module, rng: np.random.Generator, poisoned: Any, rows: int) -> None:
    x = rng.standard_normal((rows, 4), np.float32)
    out, is_intact = poisoned((rows, 4))
    assert handmade.scale(x, -1.5, out=out) is out
    np.testing.assert_array_equal(out, x * np.float32(-1.5))
    assert is_intact()


def test_several_results(handmade: Module, rng: np.random.Generator, poisoned: Any) -> None:
    a = rng.standard_normal((3, 5), np.float32)
    b = rng.standard_normal((5, 7))
    first, second = handmade["join"](a, b, 4)
    np.testing.assert_array_equal(first, a)
    np.testing.assert_array_equal(second, b[:, :, None] * np.arange(4))
    outs = [poisoned((3, 5)), poisoned((5, 7, 4), np.float64)]
    handmade["join"](a, b, np.int16(4), out=[outs[0][0], outs[1][0]])
    np.testing.assert_array_equal(outs[1][0], second)
    assert all(is_intact() for _, is_intact in outs)


NUMBERS = {
    "f16": [0.1, -65504.0, 1e9, float("inf"), 5e-8, -0.0],
    "f32": [0.1, -3.4e38, 1e300, float("-inf"), 1e-45, -0.0],
    "f64": [0.1, 5e-324, float("inf"), -0.0],
    "i1": [True, False],
    "i8": [-128, 127, 0],
    "i16": [-(2**15), 2**15 - 1],
    "i32": [-(2**31), 2**31 - 1],
    "i64": [-(2**63), 2**63 - 1],
}


@pytest.mark.parametrize("name", NUMBERS)
def test_scalars(handmade: Module, name: str) -> None:
    dtypes = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i1": np.bool_}
    dtype = np.dtype(dtypes.get(name) or f"int{name[1:]}")
    x = np.ones(5, dtype)
    with np.errstate(over="ignore"):
        for number in NUMBERS[name]:
            wanted = np.full(5, number, dtype)
            result = handmade[f"fill_{name}"](x, number)
            assert result.dtype == dtype
            assert result.tobytes() == wanted.tobytes(), number
            assert handmade[f"fill_{name}"](x, dtype.type(number)).tobytes() == wanted.tobytes()


def test_bf16_scalars(handmade: Module, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch", minversion="2")
    x = torch.ones(3, dtype=torch.bfloat16)
    numbers = [0.1, -1 / 3, 3.0e38, 3.4e38, float("inf"), -0.0, 1.00390625, 1.01171875, 1e-40]
    for number in [*numbers, *rng.standard_normal(200)]:
        wanted = torch.tensor([number] * 3, dtype=torch.float32).to(torch.bfloat16)
        result = handmade.fill_bf16(x, float(number))
        assert result.dtype == torch.bfloat16
        assert torch.equal(result.view(torch.int16), wanted.view(torch.int16)), number
    assert handmade.fill_bf16(x, float("nan")).isnan().all()


def test_more_scalars_than_registers(handmade: Module, rng: np.random.Generator) -> None:
    numbers = rng.standard_normal(12)
    np.testing.assert_array_equal(handmade.many(*numbers), numbers.astype(np.float16))


def test_unsigned_is_the_same(handmade: Module) -> None:
    x = np.ones(2, np.uint8)
    np.testing.assert_array_equal(handmade.fill_i8(x, 200), np.full(2, 200, np.uint8).view(np.int8))
    out = np.zeros(2, np.uint8)
    np.testing.assert_array_equal(handmade.fill_i8(x, 200, out=out), [200, 200])


@pytest.mark.parametrize("name", SCALAR_TYPES)
def test_wrong_scalars(handmade: Module, name: str) -> None:
    torch = pytest.importorskip("torch", minversion="2") if name == "bf16" else None
    x: Any = torch.ones(2, dtype=torch.bfloat16) if torch else None
    if x is None:
        dtypes = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i1": np.bool_}
        x = np.ones(2, dtypes.get(name) or f"int{name[1:]}")
    call = handmade[f"fill_{name}"]
    with expect(TypeError, f"fill_{name}: argument 1: expected a number for {name}, but got str"):
        call(x, "3")
    with expect(TypeError, "but got complex"):
        call(x, 3j)
    if name.startswith("i"):
        with expect(TypeError, "but got float"):
            call(x, 1.0)
        with expect(ValueError, f"fill_{name}: argument 1: expected a"):
            call(x, 2**70)


X = np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    "args, error, message",
    [
        ((X,), TypeError, "scale: expected 2 arguments, but got 1"),
        ((X, 1, 2), TypeError, "the signature is scale(arg0: f32[T, 4], arg1: f32) -> f32[T, 4]"),
        (
            (X.astype(np.float64), 1),
            TypeError,
            "scale: argument 0: expected elements of type float32, but got float64",
        ),
        ((X.astype(">f4"), 1), TypeError, "expected elements of type float32, but got >f4"),
        ((X.astype(np.complex64), 1), TypeError, "but got complex64"),
        ((X[0], 1), ValueError, "scale: argument 0: expected shape [T, 4], but got [4]"),
        ((X[None], 1), ValueError, "expected shape [T, 4], but got [1, 3, 4]"),
        ((X[:, :3].copy(), 1), ValueError, "expected shape [T, 4], but got [3, 3]"),
        ((X.T, 1), ValueError, "scale: argument 0: expected a contiguous array (row-major)"),
        ((X[::2], 1), ValueError, "expected a contiguous array"),
        ((X.tolist(), 1), TypeError, "scale: argument 0: expected a NumPy array, a PyTorch tensor"),
        ((None, 1), TypeError, "but got NoneType"),
        ((np.ma.masked_array(X), 1), TypeError, "expected a NumPy array, but got a masked one"),
        ((X, X), TypeError, "scale: argument 1: expected a number for f32, but got ndarray"),
    ],
)
def test_wrong_arguments(
    handmade: Module, args: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with expect(error, message):
        handmade.scale(*args)


def test_shared_sizes(handmade: Module) -> None:
    message = (
        "join: argument 1: expected size 5 of dimension 0, which is K as in dimension 1 of "
        "argument 0, but got 6"
    )
    with expect(ValueError, message):
        handmade["join"](np.ones((3, 5), np.float32), np.ones((6, 2)), 1)


def test_wrong_out(handmade: Module) -> None:
    scale: Callable[..., Any] = handmade.scale
    good = np.empty_like(X)
    with expect(ValueError, "scale: out[0]: expected shape [3, 4], but got [4, 3]"):
        scale(X, 1, out=np.empty((4, 3), np.float32))
    with expect(TypeError, "scale: out[0]: expected elements of type float32, but got float64"):
        scale(X, 1, out=np.empty((3, 4)))
    with expect(TypeError, "scale: out: expected 1 tensors, but got 2"):
        scale(X, 1, out=(good, good))
    with expect(TypeError, "scale: out[0]: expected a NumPy array, but got list"):
        scale(X, 1, out=[[1.0]])
    with expect(ValueError, "scale: out[0]: expected a contiguous array"):
        scale(X, 1, out=np.empty((4, 3), np.float32).T)
    with expect(
        ValueError, "scale: out[0]: expected memory of its own, but it overlaps argument 0"
    ):
        scale(X, 1, out=X)
    locked = np.empty_like(X)
    locked.flags.writeable = False
    with expect(ValueError, "scale: out[0]: expected a writable array, but got a read-only one"):
        scale(X, 1, out=locked)
    # Arguments may be read-only, and neighbours do not overlap.
    memory = np.ones((6, 4), np.float32)
    np.testing.assert_array_equal(scale(memory[:3], 2, out=memory[3:]), np.full((3, 4), 2))
    memory.flags.writeable = False
    scale(memory[:3], 1)


def test_outs_that_overlap(handmade: Module) -> None:
    memory = np.empty(64)
    outs = (memory[:8].view(np.float32)[:15].reshape(3, 5), memory[7:17].reshape(5, 2, 1))
    with expect(ValueError, "join: out[1]: expected memory of its own, but it overlaps out[0]"):
        handmade["join"](np.ones((3, 5), np.float32), np.ones((5, 2)), 1, out=outs)


def misaligned(shape: tuple[int, ...], dtype: Any, offset: int) -> np.ndarray:
    """An array whose elements begin `offset` bytes after a multiple of 64."""
    dtype = np.dtype(dtype)
    memory = np.zeros(int(np.prod(shape)) * dtype.itemsize + 128, np.uint8)
    begin = -memory.ctypes.data % 64 + offset
    return memory[begin : begin + int(np.prod(shape)) * dtype.itemsize].view(dtype).reshape(shape)


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_misaligned_elements(handmade: Module, offset: int) -> None:
    """A GPU cannot load them, and neither can what was compiled for one."""
    scale, join = handmade.scale, handmade["join"]
    x = misaligned((3, 4), np.float32, offset)
    assert x.flags.c_contiguous
    message = f"but got an address {offset} bytes off; a copy is aligned"
    with expect(ValueError, "scale: argument 0: expected memory aligned to 4 bytes, the size of"):
        scale(x, 1)
    with expect(ValueError, message):
        scale(x, 1)
    x.flags.writeable = False
    with expect(ValueError, message):
        scale(x, 1)
    with expect(ValueError, "scale: out[0]: expected memory aligned to 4 bytes"):
        scale(X, 1, out=misaligned((3, 4), np.float32, offset))
    # f64 in halves: aligned for f32, not for itself.
    b = misaligned((5, 2), np.float64, 4)
    with expect(ValueError, "join: argument 1: expected memory aligned to 8 bytes, the size of"):
        join(np.ones((3, 5), np.float32), b, 1)
    # Memory that is aligned only to its elements is fine, and so is a tensor without elements.
    np.testing.assert_array_equal(scale(misaligned((3, 4), np.float32, 4), 1), np.zeros((3, 4)))
    assert scale(misaligned((0, 4), np.float32, offset), 1).shape == (0, 4)


def test_misaligned_torch_tensors(handmade: Module) -> None:
    torch = pytest.importorskip("torch", minversion="2")
    tensor = torch.from_numpy(misaligned((3, 4), np.float32, 1))
    with expect(ValueError, "scale: argument 0: expected memory aligned to 4 bytes"):
        handmade.scale(tensor, 1)


def test_stream_of_the_cpu(handmade: Module) -> None:
    with expect(ValueError, "stream: expected none for a NumPy array"):
        handmade.scale(X, 1, stream=0)


def test_result_shapes(handmade: Module) -> None:
    join = handmade["join"]
    assert join.result_shapes(2, 3, 3, 5, scalars=[7]) == [(2, 3), (3, 5, 7)]
    with expect(TypeError, "join: expected 4 sizes, but got 1"):
        join.result_shapes(2, scalars=[7])
    with expect(TypeError, "join: expected 1 scalars, but got 0"):
        join.result_shapes(2, 3, 3, 5)
    with expect(TypeError, "join: argument 2: expected a number for index, but got float"):
        join.result_shapes(2, 3, 3, 5, scalars=[1.5])


def test_no_copy(handmade: Module) -> None:
    from ftuner.host import runtime

    x = np.ones(9, np.float32)
    expected = [x.ctypes.data, runtime.get().emulator_stream]
    np.testing.assert_array_equal(handmade.place(x), expected)
    np.testing.assert_array_equal(handmade.place(x[3:])[0], x.ctypes.data + 12)


def test_failures_have_words(handmade: Module) -> None:
    a, b = np.ones((1, 2), np.float32), np.ones((2, 1))
    for number, message in [
        (-1, "join: expected n of at least 0"),
        (666, "join: this size always fails"),
        (999, "join: no workspace is large enough"),
    ]:
        with expect(ftuner.Error, message):
            handmade["join"](a, b, number)
    with pytest.raises(ftuner.Error) as caught:
        handmade["join"](a, b, 666)
    assert caught.value.code == 4


def test_without_emulator(tmp_path: Path) -> None:
    module = ftuner.load(build_handmade(tmp_path, host_images=0))
    assert not module.has_emulator
    with expect(ftuner.Error, "the library has no kernels for it; compile with emulate=True"):
        module.scale(X, 1)


def test_bad_libraries(tmp_path: Path) -> None:
    with expect(ftuner.Error, "No such file"):
        ftuner.load(tmp_path / "missing.so")
    text = tmp_path / "text.so"
    text.write_text("no library")
    with expect(ftuner.Error, f"cannot load '{text}'"):
        ftuner.load(text)
    whole = build_handmade(tmp_path / "whole").read_bytes()
    for length in (len(whole) // 3, 64, 1):
        truncated = tmp_path / f"truncated{length}.so"
        truncated.write_bytes(whole[:length])
        with expect(ftuner.Error, "it is "):
            ftuner.load(truncated)
    with expect(ftuner.Error, "but got version 7"):
        ftuner.load(build_handmade(tmp_path / "version", abi_version=7))
    with expect(ftuner.Error, "the manifest of"):
        ftuner.load(build_handmade(tmp_path / "manifest", manifest="{"))
    with expect(ftuner.Error, "the manifest is not valid"):
        ftuner.load(build_handmade(tmp_path / "empty", manifest="{}"))
    changed = handmade_manifest()
    changed["functions"][0]["symbol"] = "absent"
    with expect(ftuner.Error, "lacks a function"):
        ftuner.load(build_handmade(tmp_path / "symbol", manifest=json.dumps(changed)))
    with expect(ftuner.Error, "is not a compiled library of FTuner"):
        ftuner.load(_libm())


def _libm() -> str:
    """Path of a library that is not FTuner's."""
    ctypes.CDLL("libm.so.6")
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(line.split()[-1] for line in maps if "/libm.so" in line or "/libm-" in line)


def test_names(handmade: Module) -> None:
    assert list(handmade)[:2] == ["scale", "join"]
    assert handmade["scale"] is handmade.scale is handmade.functions["scale"]
    assert "scale" in dir(handmade)
    with expect(KeyError, "expected one of the functions scale, join"):
        handmade["missing"]
    with expect(AttributeError, "the module has no attribute 'missing'"):
        handmade.missing
    with expect(TypeError, "the module has several functions"):
        handmade(X, 1)
    assert handmade.ptx == "// PTX of a test\n"
    join = handmade["join"]
    assert str(join.signature) == (
        "join(arg0: f32[T, K], arg1: f64[K, ?], arg2: index) -> (f32[?, ?], f64[?, ?, ?])"
    )
    assert join.signature.symbols == ("T", "K")
    assert "arg1: tensor f64[K, ?]" in (join.__doc__ or "")
    parameters = inspect.signature(join).parameters
    assert list(parameters) == ["arg0", "arg1", "arg2", "out", "stream"]
    assert parameters["arg1"].annotation == "f64[K, ?]"


def test_torch_tensors(handmade: Module) -> None:
    torch = pytest.importorskip("torch", minversion="2")
    x = torch.randn(9, 4)
    y = handmade.scale(x, 3.0)
    assert isinstance(y, torch.Tensor) and torch.equal(y, x * 3.0)
    out = torch.full((9, 4), float("nan"))
    assert handmade.scale(x, 3.0, out=out) is out and torch.equal(out, y)
    with expect(ValueError, "scale: argument 0: expected a contiguous tensor (row-major)"):
        handmade.scale(torch.randn(4, 9).T, 1)
    with expect(TypeError, "expected elements of type float32, but got torch.float64"):
        handmade.scale(x.double(), 1)
    with expect(ValueError, "expected a PyTorch tensor on cpu or cuda, but got one on meta"):
        handmade.scale(torch.empty(9, 4, device="meta"), 1)
    with expect(ValueError, "expected a tensor that needs no gradient"):
        handmade.scale(x.clone().requires_grad_(), 1)
    with torch.no_grad():
        handmade.scale(x.clone().requires_grad_(), 1)
    with expect(ValueError, "expected a dense tensor, but got layout torch.sparse_coo"):
        handmade.scale(x.to_sparse(), 1)
    with expect(TypeError, "join: argument 1: expected a PyTorch tensor on cpu, but got ndarray"):
        handmade["join"](torch.randn(2, 3), np.ones((3, 4)), 1)
    with expect(TypeError, "join: argument 1: expected a NumPy array, but got Tensor"):
        handmade["join"](np.ones((2, 3), np.float32), torch.randn(3, 4), 1)
    with expect(ValueError, "stream: expected none for a PyTorch tensor on cpu"):
        handmade.scale(x, 1, stream=1)


def test_torch_is_not_imported(handmade: Module) -> None:
    """NumPy callers do not pay for it."""
    code = (
        "import sys, numpy as np, ftuner;"
        f"ftuner.load({str(handmade.library_path)!r}).scale(np.ones((2, 4), np.float32), 1);"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_many_threads(handmade: Module, rng: np.random.Generator) -> None:
    """Each thread calls with its own sizes; all results are right."""
    failures = []
    arrays = [rng.standard_normal((i + 1, 4), np.float32) for i in range(32)]

    def work(number: int) -> None:
        try:
            for i in range(200):
                x = arrays[(number * 7 + i) % len(arrays)]
                if not np.array_equal(handmade.scale(x, number), x * np.float32(number)):
                    failures.append((number, i))
                with pytest.raises(ftuner.Error, match="always fails"):
                    handmade["join"](x, np.ones((4, number + 1)), 666)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
