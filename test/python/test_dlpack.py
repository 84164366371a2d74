"""DLPack on the CPU: capsules of other packages in, DeviceArrays out."""

from __future__ import annotations

import gc
import re
from typing import Any

import numpy as np
import pytest

import ftuner
from capsules import Array
from ftuner.host.memory import dlpack

Module = ftuner.Module


def expect(error: type[Exception], message: str) -> Any:
    return pytest.raises(error, match=re.escape(message))


def array_of(x: np.ndarray, **options: Any) -> Array:
    return Array(x.ctypes.data, x.shape, keep=x, **options)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("with_strides", [False, True])
def test_in_and_out(
    handmade: Module, rng: np.random.Generator, versioned: bool, with_strides: bool
) -> None:
    x = rng.standard_normal((53, 4), np.float32)
    strides = (4, 1) if with_strides else None
    array = array_of(x, versioned=versioned, strides=strides)
    y = handmade.scale(array, 2.0)
    assert isinstance(y, ftuner.DeviceArray) and y.shape == (53, 4) and y.type == "f32"
    np.testing.assert_array_equal(y.numpy(), x * 2)
    # The CPU lacks a stream to ask for.
    assert "stream" not in array.requests[0]
    del y
    gc.collect()
    assert array.live == 0, "a capsule was not freed"


def test_result_keeps_arguments(handmade: Module) -> None:
    array = array_of(np.ones((2, 4), np.float32))
    y = handmade.scale(array, 2.0)
    assert array.live == 1
    del y
    gc.collect()
    assert array.live == 0


def test_misaligned_elements(handmade: Module) -> None:
    x = np.ones((5, 4), np.float32)
    with expect(ValueError, "scale: argument 0: expected memory aligned to 4 bytes"):
        handmade.scale(Array(x.ctypes.data, (4, 4), byte_offset=2, keep=x), 1.0)


def test_offset(handmade: Module, rng: np.random.Generator) -> None:
    x = rng.standard_normal((5, 4), np.float32)
    array = Array(x.ctypes.data, (4, 4), byte_offset=16, keep=x)
    np.testing.assert_array_equal(handmade.scale(array, 1.0).numpy(), x[1:])


def test_out(handmade: Module, rng: np.random.Generator, poisoned: Any) -> None:
    x = rng.standard_normal((7, 4), np.float32)
    out, is_intact = poisoned((7, 4))
    target = array_of(out)
    assert handmade.scale(array_of(x), -1.0, out=target) is target
    np.testing.assert_array_equal(out, -x)
    assert is_intact() and target.live == 0
    locked = array_of(out, versioned=True, read_only=True)
    with expect(ValueError, "scale: out[0]: expected a writable array, but got a read-only one"):
        handmade.scale(array_of(x), 1.0, out=locked)
    handmade.scale(array_of(x, versioned=True, read_only=True), 1.0)


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"lanes": 4}, TypeError, "expected elements of one lane, but got 4"),
        ({"dtype": (2, 64)}, TypeError, "expected elements of type float32, but got float64"),
        ({"dtype": (4, 16)}, TypeError, "expected elements of type float32, but got bfloat16"),
        ({"dtype": (9, 8)}, TypeError, "expected elements of type float32, but got code 9 of 8"),
        (
            {"strides": (1, 3)},
            ValueError,
            "expected a contiguous array (row-major), but got strides",
        ),
        ({"strides": (8, 1)}, ValueError, "expected a contiguous array"),
        (
            {"device": (10, 0)},
            ValueError,
            "expected an array on a CPU or CUDA, but got device kind",
        ),
        ({"versioned": True, "major": 2}, ValueError, "expected DLPack of version 1, but got 2.0"),
    ],
)
def test_wrong(
    handmade: Module, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    array = array_of(np.ones((3, 4), np.float32), **options)
    with expect(error, f"scale: argument 0: {message}"):
        handmade.scale(array, 1.0)
    gc.collect()
    assert array.live == 0


def test_wrong_capsules(handmade: Module) -> None:
    class Liar:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **options: Any) -> Any:
            return "no capsule"

    with expect(TypeError, "expected __dlpack__ to return a capsule with a tensor"):
        handmade.scale(Liar(), 1.0)
    x = array_of(np.ones((3, 4), np.float32))
    with expect(
        TypeError, "join: argument 1: expected an array on cpu with __dlpack__, but got list"
    ):
        handmade["join"](x, [1.0], 1)
    with expect(ValueError, "but got one on cuda:1"):
        handmade["join"](x, Array(0, (4, 2), device=(dlpack.CUDA, 1)), 1)


def test_sizes_of_one_and_none(handmade: Module) -> None:
    """Strides of dimensions with one element, or of no elements, mean nothing."""
    x = np.ones((1, 4), np.float32)
    handmade.scale(array_of(x, strides=(77, 1)), 1.0)
    empty = np.empty((0, 4), np.float32)
    assert handmade.scale(array_of(empty, strides=(9, 9)), 1.0).numpy().shape == (0, 4)


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 1, 3), (0, 4), ()])
def test_device_array_to_torch(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch", minversion="2")
    array = ftuner.DeviceArray("f32", shape, (dlpack.CPU, 0))
    tensor = torch.from_dlpack(array)
    assert tuple(tensor.shape) == shape and tensor.is_contiguous()
    tensor.copy_(torch.randn(shape))
    np.testing.assert_array_equal(array.numpy(), tensor.numpy())
    exports = len(dlpack._exports)
    pointer = array.pointer
    del array
    gc.collect()
    assert tensor.data_ptr() == pointer or tensor.numel() == 0
    tensor += 1
    del tensor
    gc.collect()
    assert len(dlpack._exports) == exports - 1


@pytest.mark.parametrize("type", ["f16", "f64", "i1", "i8", "i16", "i32", "i64"])
def test_device_array_to_numpy(type: str) -> None:
    array = ftuner.DeviceArray(type, (3, 5), (dlpack.CPU, 0))
    view = np.from_dlpack(array)
    assert view.dtype == array.element_type.numpy and view.shape == (3, 5)
    assert view.ctypes.data == array.pointer
    with expect(BufferError, "never copied"):
        array.__dlpack__(copy=True)
    with expect(BufferError, "never copied"):
        array.__dlpack__(dl_device=(dlpack.CUDA, 0))


def test_unused_capsules_are_freed() -> None:
    array = ftuner.DeviceArray("f32", (4,), (dlpack.CPU, 0))
    before = len(dlpack._exports)
    for version in (None, (1, 0)):
        capsule = array.__dlpack__(max_version=version)
        assert len(dlpack._exports) == before + 1
        del capsule
        gc.collect()
        assert len(dlpack._exports) == before


def test_device_array_errors() -> None:
    with expect(ValueError, "expected one of f16, bf16"):
        ftuner.DeviceArray("float32", (4,))
    assert repr(ftuner.DeviceArray("f32", (4, 2), (1, 0))) == "<ftuner.DeviceArray 4x2xf32 on cpu>"
