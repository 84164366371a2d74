"""Results that callers of a GPU see, with a driver that runs nothing (test/unit/Runtime/FakeDriver.h).

Its memory is the host's, and the functions of the hand-made library compute without kernels, so
data can be checked, too. test_fake_gpu.py runs this file in a process of its own.
"""

from __future__ import annotations

import gc
import re
import threading
from typing import Any

import numpy as np
import pytest

import ftuner
from capsules import Array
from ftuner.host import runtime
from ftuner.host.memory import dlpack

Module = ftuner.Module
DeviceArray = ftuner.DeviceArray


def expect(error: type[Exception], message: str) -> Any:
    return pytest.raises(error, match=re.escape(message))


def test_devices() -> None:
    library = runtime.get()
    assert library.has_device() and library.device_count() == 5
    assert library.device_name(1) == "Fake 86" and library.device_memory(1) == 24 << 30
    with expect(ftuner.Error, "expected a device from 0 to 4, but got 9"):
        ftuner.query_device(9)
    # The fake driver knows few attributes; its words come through.
    with expect(ftuner.Error, "CUDA_ERROR_INVALID_VALUE"):
        ftuner.query_device(0)


def test_arrays(rng: np.random.Generator) -> None:
    x = rng.standard_normal((5, 7), np.float32)
    array = DeviceArray.from_numpy(x, 1)
    assert array.device == (dlpack.CUDA, 1) and array.pointer % 256 == 0
    np.testing.assert_array_equal(array.numpy(), x)
    np.testing.assert_array_equal(DeviceArray.from_numpy(x.T).numpy(), x.T)
    assert DeviceArray.from_numpy(np.empty((0, 3), np.int8)).numpy().shape == (0, 3)
    interface = array.__cuda_array_interface__
    assert interface["data"] == (array.pointer, False) and interface["typestr"] == "<f4"
    with expect(TypeError, "expected a dtype that FTuner knows, but got complex128"):
        DeviceArray.from_numpy(np.ones(3, complex))


@pytest.mark.parametrize("device", [0, 1, 3])
@pytest.mark.parametrize("versioned", [False, True])
def test_call(handmade: Module, rng: np.random.Generator, device: int, versioned: bool) -> None:
    x = rng.standard_normal((9, 4), np.float32)
    memory = DeviceArray.from_numpy(x, device)
    array = Array(
        memory.pointer, x.shape, device=(dlpack.CUDA, device), versioned=versioned, keep=memory
    )
    y = handmade.scale(array, 3.0)
    assert isinstance(y, DeviceArray) and y.device == (dlpack.CUDA, device)
    np.testing.assert_array_equal(y.numpy(), x * 3)
    # The default stream has the number 1.
    assert array.requests[0]["stream"] == 1
    out = DeviceArray("f32", (9, 4), (dlpack.CUDA, device))
    assert handmade.scale(memory, 2.0, out=out) is out
    np.testing.assert_array_equal(out.numpy(), x * 2)
    del y
    gc.collect()
    assert array.live == 0


def test_no_copy(handmade: Module) -> None:
    x = DeviceArray.from_numpy(np.ones(9, np.float32))
    pointer, stream = handmade.place(x).numpy()
    assert pointer == x.pointer and stream == 0


class CudaStream:
    """A stream as cuda.core has it."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.handle)


class CupyStream:
    def __init__(self, handle: int) -> None:
        self.ptr = handle


@pytest.mark.parametrize("make", [int, CudaStream, CupyStream])
def test_streams(handmade: Module, make: Any) -> None:
    handle = _new_stream()
    memory = DeviceArray.from_numpy(np.ones(9, np.float32))
    array = Array(memory.pointer, (9,), device=memory.device, keep=memory)
    result = handmade.place(array, stream=make(handle))
    assert array.requests[0]["stream"] == handle
    assert result.stream == handle and result.numpy()[1] == handle
    with expect(TypeError, "stream: expected a CUDA stream or its address, but got str"):
        handmade.place(array, stream="0")


def _new_stream() -> int:
    import ctypes

    runtime.get().select_device(0)
    stream = ctypes.c_void_p()
    assert runtime.get().library.ftrt_stream_create(ctypes.byref(stream)) == 0
    return stream.value or 0


def test_devices_do_not_mix(handmade: Module) -> None:
    a = DeviceArray.from_numpy(np.ones((2, 3), np.float32), 0)
    b = DeviceArray.from_numpy(np.ones((3, 2)), 1)
    with expect(
        ValueError, "join: argument 1: expected an array on cuda:0 with __dlpack__, but got"
    ):
        handmade["join"](a, b, 1)
    with expect(ValueError, "but got one on cpu"):
        handmade["join"](a, np.ones((3, 2)), 1)
    with expect(TypeError, "join: argument 1: expected a NumPy array, but got DeviceArray"):
        handmade["join"](np.ones((2, 3), np.float32), b, 1)


def test_threads(handmade: Module) -> None:
    """New threads have no context; each call makes the right one current."""
    failures: list[Any] = []

    def work(device: int) -> None:
        try:
            x = np.full((3, 4), device, np.float32)
            for _ in range(50):
                array = DeviceArray.from_numpy(x, device)
                if not np.array_equal(handmade.scale(array, 2.0).numpy(), x * 2):
                    failures.append(device)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i % 3,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_export_waits_for_other_streams() -> None:
    array = DeviceArray.from_numpy(np.ones(4, np.float32))
    for stream in (None, 1, -1, 77):
        capsule = array.__dlpack__(stream=stream)
        tensor, is_read_only = dlpack._tensor_in(capsule)
        assert tensor.data == array.pointer and not is_read_only
        assert (tensor.device_type, tensor.device_id) == (dlpack.CUDA, 0)


def test_errors_have_the_drivers_words(handmade: Module) -> None:
    with expect(ftuner.Error, "cannot allocate"):
        DeviceArray("i8", (1 << 62,))
    with expect(ftuner.Error, "cannot select device 9"):
        DeviceArray.from_numpy(np.ones(3), 9)


def test_compile_knows_the_gpu() -> None:
    """With a GPU, modules have kernels for the emulator only on request."""
    from models import MATMUL

    # Nobody names a device: it is the GPU, of which the fake driver says too little.
    with expect(ftuner.Error, "CUDA_ERROR_INVALID_VALUE"):
        ftuner.compile(MATMUL)
    module = ftuner.compile(MATMUL, device="h200")
    assert not module.has_emulator
    module.prepare(device=0)
    a = DeviceArray.from_numpy(np.ones((3, 32), np.float32))
    b = DeviceArray.from_numpy(np.ones((32, 64), np.float32))
    assert module(a, b).shape == (3, 64)
    # 8.6 is older than the kernels.
    c, d = (DeviceArray.from_numpy(v.numpy(), 1) for v in (a, b))
    with expect(ftuner.Error, "expected a cubin for sm_80 to sm_86"):
        module(c, d)


class FakeCuda:
    """PyTorch's CUDA tensors and streams, over the memory of the host: what calls ask of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        torch = pytest.importorskip("torch", minversion="2")

        self.torch = torch
        self.current = [77]
        self.allocations: list[int] = []
        self.recorded: list[int] = []
        fake = self

        class Tensor(torch.Tensor):
            index = 0

            @property
            def device(self) -> Any:
                return torch.device("cuda", self.index)

            def record_stream(self, stream: Any) -> None:
                fake.recorded.append(stream.cuda_stream)

        class Stream:
            def __init__(self, handle: int, device: Any = None) -> None:
                self.cuda_stream = handle

            def __enter__(self) -> None:
                fake.current.append(self.cuda_stream)

            def __exit__(self, *_: Any) -> None:
                fake.current.pop()

        real_empty = torch.empty

        def empty(shape: Any, *, dtype: Any, device: Any) -> Any:
            assert device.type == "cuda"
            self.allocations.append(self.current[-1])
            return self.make(real_empty(shape, dtype=dtype), device.index)

        self.Tensor, self.Stream = Tensor, Stream
        monkeypatch.setattr(torch, "empty", empty)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream(self.current[-1]))
        monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
        monkeypatch.setattr(torch.cuda, "ExternalStream", Stream)
        monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)

    def make(self, tensor: Any, index: int = 0) -> Any:
        made = tensor.as_subclass(self.Tensor)
        made.index = index
        return made


def test_torch_current_stream(handmade: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels run on PyTorch's current stream, where results are allocated."""
    fake = FakeCuda(monkeypatch)
    x = fake.make(fake.torch.ones(9))
    place = handmade.place(x)
    assert place.tolist() == [x.data_ptr(), 77] and isinstance(place, fake.Tensor)
    assert fake.allocations == [77] and fake.recorded == []
    y = handmade.scale(fake.make(fake.torch.ones(3, 4)), 2.0)  # With a workspace.
    assert y.tolist() == [[2.0] * 4] * 3 and fake.allocations == [77] * 3


def test_torch_other_stream(handmade: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another stream, results are allocated there, and the allocator hears of the arguments."""
    fake = FakeCuda(monkeypatch)
    x = fake.make(fake.torch.ones(9))
    for stream in (88, fake.Stream(88)):
        assert handmade.place(x, stream=stream).tolist() == [x.data_ptr(), 88]
    assert fake.allocations == [88, 88] and fake.recorded == [88, 88]
    assert fake.current == [77]


def test_torch_devices_do_not_mix(handmade: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCuda(monkeypatch)
    a = fake.make(fake.torch.ones(2, 3))
    b = fake.torch.ones(3, 2, dtype=fake.torch.float64)
    with expect(ValueError, "expected a PyTorch tensor on cuda:0, but got one on cpu"):
        handmade["join"](a, b, 1)
    with expect(ValueError, "expected a PyTorch tensor on cuda:0, but got one on cuda:1"):
        handmade["join"](a, fake.make(b, 1), 1)


def in_new_thread(call: Any) -> Any:
    """New threads have no context."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    assert results, "the thread failed"
    return results[0]


def test_launches_from_new_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from models import MATMUL

    module = ftuner.compile(MATMUL, device="h200")
    a = DeviceArray.from_numpy(np.ones((3, 32), np.float32))
    b = DeviceArray.from_numpy(np.ones((32, 64), np.float32))
    assert in_new_thread(lambda: module(a, b)).shape == (3, 64)
    fake = FakeCuda(monkeypatch)
    c, d = fake.make(fake.torch.ones(3, 32)), fake.make(fake.torch.ones(32, 64))
    assert in_new_thread(lambda: module(c, d)).shape == (3, 64)
