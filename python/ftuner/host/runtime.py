"""libftrt, the runtime (include/FTuner/Runtime/ftrt.h), through ctypes."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from typing import Any

from .. import locations
from ..errors import Error

ABI_VERSION = 1

IMAGE_PTX, IMAGE_CUBIN, IMAGE_HOST = 1, 2, 3
ARCHITECTURE_EXACT = 1 << 16
ERROR_NO_DRIVER = 5
ERROR_INTERRUPTED = 10


class Image(ctypes.Structure):
    """`ftrt_image`."""

    _fields_ = [
        ("kind", ctypes.c_uint32),
        ("architecture", ctypes.c_uint32),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
    ]

    @property
    def chip(self) -> str:
        """The processor of PTX or a cubin, such as `sm_90`, or `sm_90a` for this one only."""
        suffix = "a" if self.architecture & ARCHITECTURE_EXACT else ""
        return f"sm_{self.architecture & ~ARCHITECTURE_EXACT}{suffix}"


class CompiledModule(ctypes.Structure):
    """`ftrt_module`."""

    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("image_count", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("images", ctypes.POINTER(Image)),
        ("kernels", ctypes.c_void_p),
        ("kernel_count", ctypes.c_uint64),
        ("manifest", ctypes.c_char_p),
        ("handle", ctypes.c_void_p),
    ]


_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "ftrt_last_error": (ctypes.c_char_p, []),
    "ftrt_prepare": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p]),
    "ftrt_emulator_stream": (ctypes.c_void_p, []),
    "ftrt_set_interrupt_check": (None, [ctypes.c_void_p]),
    "ftrt_driver_version": (ctypes.c_int32, [ctypes.POINTER(ctypes.c_int32)]),
    "ftrt_device_count": (ctypes.c_int32, [ctypes.POINTER(ctypes.c_int32)]),
    "ftrt_device_select": (ctypes.c_int32, [ctypes.c_int32]),
    "ftrt_device_name": (ctypes.c_int32, [ctypes.c_int32, ctypes.c_char_p, ctypes.c_uint64]),
    "ftrt_device_memory": (ctypes.c_int32, [ctypes.c_int32, ctypes.POINTER(ctypes.c_uint64)]),
    "ftrt_device_attribute": (
        ctypes.c_int32,
        [ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32)],
    ),
    "ftrt_stream_synchronize": (ctypes.c_int32, [ctypes.c_void_p]),
    "ftrt_memory_allocate": (
        ctypes.c_int32,
        [ctypes.c_uint64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)],
    ),
    "ftrt_memory_free": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p]),
    "ftrt_memory_copy": (
        ctypes.c_int32,
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p],
    ),
}


class Runtime:
    """The functions of libftrt, with errors as exceptions.

    Streams and memory are addresses (int); 0 is null.
    """

    def __init__(self) -> None:
        path = locations.find(locations.RUNTIME_LIBRARY)
        try:
            # Compiled libraries need it only by its name, so it is loaded first.
            self.library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            for name, (result, arguments) in _PROTOTYPES.items():
                function = getattr(self.library, name)
                function.restype = result
                function.argtypes = arguments
        except (OSError, AttributeError) as error:
            raise Error(f"cannot load the runtime '{path}': {error}") from error
        self.emulator_stream: int = self.library.ftrt_emulator_stream()
        # Exception of a signal handler that ran during a kernel.
        self._raised: BaseException | None = None
        self._signals: Any = None

    def check(self, code: int, action: str) -> None:
        """Raises the runtime's last error of this thread unless the code is 0."""
        if code == ERROR_INTERRUPTED and self._raised is not None:
            error, self._raised = self._raised, None
            raise error
        if code != 0:
            raise Error(f"{action}: {self.last_error() or f'error {code}'}", code)

    def heed_signals(self) -> None:
        """Lets handlers of signals run during the emulator's launches of this thread.

        Python runs them only in the main thread, so elsewhere this does nothing. A launch ends
        if one raises, as that of Ctrl-C does, and `check` raises the same.
        """
        if self._signals is None and threading.current_thread() is threading.main_thread():
            answers = self._handle_signals()
            next(answers)
            # A generator goes on inside its `try`; a function's first instruction, where handlers
            # may run, would be outside.
            self._signals = ctypes.CFUNCTYPE(ctypes.c_int32)(answers.__next__)
            self.library.ftrt_set_interrupt_check(self._signals)

    def heeds_signals(self) -> bool:
        """Does `heed_signals`; returns whether the main thread has done so, for good."""
        self.heed_signals()
        return self._signals is not None

    def _handle_signals(self) -> Iterator[int]:
        """Handles the signals that arrived, each time it goes on; yields whether one raised."""
        answer = 0
        while True:
            try:
                while True:
                    yield answer
                    answer = 0
                    ctypes.pythonapi.PyErr_CheckSignals()
            except GeneratorExit:
                return
            except BaseException as error:
                self._raised = error
                answer = 1

    def last_error(self) -> str:
        text: bytes | None = self.library.ftrt_last_error()
        return (text or b"").decode(errors="replace")

    def driver_version(self) -> str:
        """Version of CUDA that the driver is for, such as 12.4; `Error` without one."""
        version = ctypes.c_int32()
        code = self.library.ftrt_driver_version(ctypes.byref(version))
        self.check(code, "cannot read the driver's version")
        return f"{version.value // 1000}.{version.value % 1000 // 10}"

    def device_count(self) -> int:
        """Number of CUDA devices. Raises `Error` without a driver."""
        count = ctypes.c_int32()
        self.check(self.library.ftrt_device_count(ctypes.byref(count)), "cannot count devices")
        return count.value

    def has_device(self) -> bool:
        count = ctypes.c_int32()
        return self.library.ftrt_device_count(ctypes.byref(count)) == 0 and count.value > 0

    def select_device(self, device: int) -> None:
        """Makes the primary context of the device current to this thread."""
        self.check(self.library.ftrt_device_select(device), f"cannot select device {device}")

    def device_name(self, device: int) -> str:
        name = ctypes.create_string_buffer(256)
        self.check(
            self.library.ftrt_device_name(device, name, len(name)),
            f"cannot read the name of device {device}",
        )
        return name.value.decode(errors="replace")

    def device_memory(self, device: int) -> int:
        size = ctypes.c_uint64()
        self.check(
            self.library.ftrt_device_memory(device, ctypes.byref(size)),
            f"cannot read the memory of device {device}",
        )
        return size.value

    def device_attribute(self, device: int, attribute: int) -> int:
        value = ctypes.c_int32()
        self.check(
            self.library.ftrt_device_attribute(device, attribute, ctypes.byref(value)),
            f"cannot read attribute {attribute} of device {device}",
        )
        return value.value

    def synchronize(self, stream: int) -> None:
        """Waits for all work of the stream."""
        self.check(self.library.ftrt_stream_synchronize(stream), "cannot wait for the stream")

    def allocate(self, size: int, stream: int) -> int:
        """Address of `size` bytes of the stream's device, aligned to 256 bytes."""
        memory = ctypes.c_void_p()
        self.check(
            self.library.ftrt_memory_allocate(size, stream, ctypes.byref(memory)),
            f"cannot allocate {size} bytes",
        )
        return memory.value or 0

    def free(self, memory: int, stream: int) -> None:
        self.check(self.library.ftrt_memory_free(memory, stream), "cannot free memory")

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        self.check(
            self.library.ftrt_memory_copy(target, source, size, stream),
            f"cannot copy {size} bytes",
        )


_runtime: Runtime | None = None
_lock = threading.Lock()


def get() -> Runtime:
    """The runtime, loaded once. Raises `Error` if it cannot be."""
    global _runtime
    if _runtime is None:
        with _lock:
            if _runtime is None:
                _runtime = Runtime()
    return _runtime
