"""FTuner's runtime and compiled code through ctypes (FTuner/Runtime/ftrt.h).

Nothing but the C API, so that what is timed holds no layer of Python that a C++
program would not have.
"""

from __future__ import annotations

import ctypes
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

SUCCESS = 0
IMAGE_CUBIN = 2


class RuntimeFailure(Exception):
    """A call of the C API failed; the text is ftrt_last_error's."""

    def __init__(self, call: str, code: int, words: str):
        super().__init__(f"{call} failed with code {code}: {words}")
        self.code = code


class _Image(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_uint32),
        ("architecture", ctypes.c_uint32),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
    ]


class _Module(ctypes.Structure):
    pass


class _Kernel(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("module", ctypes.POINTER(_Module)),
        ("handle", ctypes.c_void_p),
    ]


_Module._fields_ = [
    ("abi_version", ctypes.c_uint32),
    ("image_count", ctypes.c_uint32),
    ("name", ctypes.c_char_p),
    ("images", ctypes.POINTER(_Image)),
    ("kernels", ctypes.POINTER(ctypes.POINTER(_Kernel))),
    ("kernel_count", ctypes.c_uint64),
    ("manifest", ctypes.c_char_p),
    ("handle", ctypes.c_void_p),
]


class TensorMap(ctypes.Structure):
    """`ftrt_tensor_map`."""

    _fields_ = [
        ("kernel", ctypes.c_char_p),
        ("parameter", ctypes.c_char_p),
        ("element_type", ctypes.c_uint32),
        ("rank", ctypes.c_uint32),
        ("box", ctypes.c_uint32 * 5),
        ("swizzle", ctypes.c_uint32),
        ("l2_promotion", ctypes.c_uint32),
    ]


# CUtensorMapDataType of the types in manifests.
_ELEMENT_TYPES = {
    "i8": 0, "i16": 1, "i32": 3, "i64": 5, "f16": 6, "f32": 7, "f64": 8, "bf16": 9,
}  # fmt: skip


# Rows of a box that is fitted to a small operand are a multiple of so many.
_FIT_ROWS = 8


def fitted_box(box: int, fit_below: int, size: int) -> int:
    """The elements of a box along a dimension of a tensor map (include/FTuner/Schedule/TensorMap.h)."""
    return box if size >= fit_below else -(-size // _FIT_ROWS) * _FIT_ROWS


class Runtime:
    """libftrt, opened before any compiled library, which then finds it by name."""

    def __init__(self, path: pathlib.Path):
        self.api = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        if not hasattr(self.api, "ftrt_prepare"):
            raise OSError(f"{path}: expected FTuner's runtime, but it has no ftrt_prepare")
        self.api.ftrt_last_error.restype = ctypes.c_char_p
        self.api.ftrt_emulator_stream.restype = ctypes.c_void_p
        self.api.ftrt_launch.argtypes = [
            ctypes.c_void_p,
            ctypes.c_uint32,
            ctypes.c_uint32,
            ctypes.c_uint32,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ]
        self.api.ftrt_prepare.argtypes = [ctypes.c_void_p, ctypes.c_void_p]

    def check(self, call: str, code: int) -> None:
        if code != SUCCESS:
            raise RuntimeFailure(call, code, self.api.ftrt_last_error().decode("utf-8", "replace"))

    def tensor_map(
        self,
        entry: str,
        parameter: Mapping[str, Any],
        address: int,
        sizes: Sequence[int],
        strides: Sequence[int],
        stream: int,
    ) -> bytes:
        """The value of a parameter of the manifest that is a tensor map (docs/abi.md)."""
        rank = len(sizes)
        below = parameter.get("fit_below") or [0] * rank
        box = [fitted_box(*one) for one in zip(parameter["box"], below, sizes)]
        kind = TensorMap(
            kernel=entry.encode(),
            parameter=parameter["name"].encode(),
            element_type=_ELEMENT_TYPES[parameter["type"]],
            rank=rank,
            box=(ctypes.c_uint32 * 5)(*box),
            swizzle=(0, 32, 64, 128).index(parameter["swizzle_bytes"]),
            l2_promotion=(0, 64, 128, 256).index(parameter["l2_promotion_bytes"]),
        )
        result = ctypes.create_string_buffer(128)
        code = self.api.ftrt_tensor_map_encode(
            ctypes.byref(kind),
            ctypes.c_void_p(address),
            (ctypes.c_int64 * rank)(*sizes),
            (ctypes.c_int64 * rank)(*strides),
            ctypes.c_void_p(stream),
            result,
        )
        self.check("ftrt_tensor_map_encode", code)
        return result.raw

    def device_count(self) -> int:
        """CUDA devices; raises RuntimeFailure where there is no driver."""
        count = ctypes.c_int32()
        self.check("ftrt_device_count", self.api.ftrt_device_count(ctypes.byref(count)))
        return count.value

    def device_name(self, device: int) -> str:
        name = ctypes.create_string_buffer(256)
        self.check(
            "ftrt_device_name",
            self.api.ftrt_device_name(ctypes.c_int32(device), name, ctypes.c_uint64(len(name))),
        )
        return name.value.decode()

    def device_attribute(self, device: int, attribute: int) -> int:
        """`attribute` is the driver's number (CUdevice_attribute)."""
        value = ctypes.c_int32()
        self.check(
            "ftrt_device_attribute",
            self.api.ftrt_device_attribute(
                ctypes.c_int32(device), ctypes.c_int32(attribute), ctypes.byref(value)
            ),
        )
        return value.value

    def emulator_stream(self) -> int:
        return self.api.ftrt_emulator_stream()


class Library:
    """A compiled library and its functions (docs/abi.md)."""

    def __init__(self, runtime: Runtime, path: pathlib.Path):
        self.runtime = runtime
        self.library = ctypes.CDLL(str(path))
        self.module = _Module.in_dll(self.library, "ftuner_module")

    def prepare(self, stream: int) -> None:
        """Loads the kernels, so that no call that is timed does."""
        self.runtime.check(
            "ftrt_prepare", self.runtime.api.ftrt_prepare(ctypes.addressof(self.module), stream)
        )

    def function(self, name: str, pointers: int, sizes: int) -> Function:
        """A function of `pointers` arguments and results, `sizes` and no scalars."""
        return Function(self, name, pointers, sizes)

    def kernels(self) -> dict[str, int]:
        """Addresses of the kernels by their names."""
        found = {}
        for index in range(self.module.kernel_count):
            kernel = self.module.kernels[index]
            found[kernel.contents.name.decode()] = ctypes.addressof(kernel.contents)
        return found


class Function:
    """f(arguments…, results…, sizes…, workspace, stream)."""

    def __init__(self, library: Library, name: str, pointers: int, sizes: int):
        self.name, self.pointers, self.sizes = name, pointers, sizes
        self.runtime = library.runtime
        self.entry = getattr(library.library, name)
        self.entry.argtypes = (
            [ctypes.c_void_p] * pointers + [ctypes.c_int64] * sizes + [ctypes.c_void_p] * 2
        )
        self.entry.restype = ctypes.c_int32
        self._workspace_size = getattr(library.library, name + "_workspace_size")
        self._workspace_size.argtypes = [ctypes.c_int64] * sizes
        self._workspace_size.restype = ctypes.c_int64

    def workspace_bytes(self, *sizes: int) -> int:
        count = self._workspace_size(*sizes)
        if count < 0:
            self.runtime.check(self.name + "_workspace_size", -1)
        return count

    def address(self) -> int:
        return ctypes.cast(self.entry, ctypes.c_void_p).value or 0

    def __call__(self, *arguments: int) -> None:
        code = self.entry(*arguments)
        if code != SUCCESS:
            self.runtime.check(self.name, code)


def blocks_of(family: dict[str, Any], tiles: int) -> int:
    """The blocks that a host launches for so many tiles of a manifest's family or program."""
    schedule = family["schedule"]
    blocks = tiles * schedule.get("cluster_m", 1) * schedule.get("cluster_n", 1)
    return min(blocks, schedule.get("persistent_blocks") or blocks)


class Launch:
    """One launch of a kernel with its parameters, to be repeated.

    parameters: (kind, type, value) in the kernel's order, as the manifest has them;
    of a pointer the value is its address, of a tensor map its bytes.
    """

    def __init__(
        self,
        runtime: Runtime,
        kernel: int,
        grid: int,
        block: int,
        shared_bytes: int,
        parameters: Sequence[tuple[str, str, int | bytes]],
    ):
        self.runtime, self.kernel, self.grid = runtime, kernel, grid
        self.block, self.shared_bytes = block, shared_bytes
        self.values: list[Any] = []
        for kind, type_, value in parameters:
            if kind == "pointer":
                self.values.append(ctypes.c_uint64(value))
            elif kind == "tensor_map":
                self.values.append(ctypes.create_string_buffer(value, len(value)))
            elif type_ == "i32":
                self.values.append(ctypes.c_int32(value))
            else:
                raise ValueError(f"expected a pointer or an i32, but got a {kind} of type {type_}")
        self.pointers = (ctypes.c_void_p * len(self.values))(
            *[ctypes.addressof(value) for value in self.values]
        )

    def __call__(self, stream: int) -> None:
        code = self.runtime.api.ftrt_launch(
            self.kernel,
            self.grid,
            self.block,
            self.shared_bytes,
            stream,
            ctypes.addressof(self.pointers),
        )
        if code != SUCCESS:
            self.runtime.check("ftrt_launch", code)
