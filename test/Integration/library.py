#!/usr/bin/env python3
"""Compiled libraries, opened as any program opens them, against NumPy.

Functions are called through ctypes by what the manifest in the library says of
them: random arguments, poisoned results and workspace, guard bands around all
buffers, arguments that must not change.
"""

import ctypes
import json
import os
import resource
import subprocess
import sys
import threading

import numpy as np

import harness

GUARD_BYTES = 256
POISON = 0xA5
TOLERANCE = {"f32": 1e-5, "f64": 1e-12, "f16": 2e-3, "bf16": 1.6e-2}
NUMPY_TYPES = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": np.uint16,
    "i1": np.uint8,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
C_SCALARS = {
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    "i1": ctypes.c_uint8,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "index": ctypes.c_int64,
}
FTRT_ERROR_HOST, FTRT_ERROR_VERSION = 4, 9

# A product of products has an intermediate in the workspace.
CHAIN = """
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 64>}} {
  func.func @chain(%a: tensor<?x24xf32> {ukernel.shape = ["T", 24]}, %b: tensor<24x40xf32>,
                   %c: tensor<40x16xf32>) -> tensor<?x16xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %a, %c0 : tensor<?x24xf32>
    %e0 = tensor.empty(%t) : tensor<?x40xf32>
    %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?x40xf32>) -> tensor<?x40xf32>
    %ab = linalg.matmul ins(%a, %b : tensor<?x24xf32>, tensor<24x40xf32>)
                        outs(%i0 : tensor<?x40xf32>) -> tensor<?x40xf32>
    %e1 = tensor.empty(%t) : tensor<?x16xf32>
    %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x16xf32>) -> tensor<?x16xf32>
    %abc = linalg.matmul ins(%ab, %c : tensor<?x40xf32>, tensor<40x16xf32>)
                         outs(%i1 : tensor<?x16xf32>) -> tensor<?x16xf32>
    return %abc : tensor<?x16xf32>
  }
  func.func @batch(%a: tensor<?x?x8xf32> {ukernel.shape = ["B", "T", 8]},
                   %b: tensor<?x8x?xf32> {ukernel.shape = ["B", 8, "N"]}) -> tensor<?x?x?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0.0 : f32
    %batch = tensor.dim %a, %c0 : tensor<?x?x8xf32>
    %t = tensor.dim %a, %c1 : tensor<?x?x8xf32>
    %n = tensor.dim %b, %c2 : tensor<?x8x?xf32>
    %e = tensor.empty(%batch, %t, %n) : tensor<?x?x?xf32>
    %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    %r = linalg.batch_matmul ins(%a, %b : tensor<?x?x8xf32>, tensor<?x8x?xf32>)
                             outs(%i : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    return %r : tensor<?x?x?xf32>
  }
  // Scalars of 16 bits, which host code computes with.
  func.func @half(%a: tensor<?xf64>, %h: f16, %b: bf16, %d: f64) -> (tensor<?xf64>, tensor<?xf64>, tensor<?xf64>) {
    %c0 = arith.constant 0 : index
    %n = tensor.dim %a, %c0 : tensor<?xf64>
    %e = tensor.empty(%n) : tensor<?xf64>
    %h2 = arith.mulf %h, %h : f16
    %b2 = arith.mulf %b, %b : bf16
    %dh = arith.truncf %d : f64 to f16
    %db = arith.truncf %d : f64 to bf16
    %hs = arith.addf %h2, %dh : f16
    %bs = arith.addf %b2, %db : bf16
    %hw = arith.extf %hs : f16 to f64
    %bw = arith.extf %bs : bf16 to f64
    %r0 = linalg.fill ins(%hw : f64) outs(%e : tensor<?xf64>) -> tensor<?xf64>
    %r1 = linalg.fill ins(%bw : f64) outs(%e : tensor<?xf64>) -> tensor<?xf64>
    %r2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                          iterator_types = ["parallel"]}
        ins(%a : tensor<?xf64>) outs(%e : tensor<?xf64>) {
    ^bb0(%x: f64, %out: f64):
      %b64 = arith.extf %b : bf16 to f64
      %s0 = arith.mulf %x, %b64 : f64
      linalg.yield %s0 : f64
    } -> tensor<?xf64>
    return %r0, %r1, %r2 : tensor<?xf64>, tensor<?xf64>, tensor<?xf64>
  }
  // A name of the C library, and a scalar of each width.
  func.func @exp(%a: tensor<?xf16>, %h: f16, %i: i8, %j: i16, %l: i64, %d: f64) -> tensor<?xf64> {
    %c0 = arith.constant 0 : index
    %n = tensor.dim %a, %c0 : tensor<?xf16>
    %e = tensor.empty(%n) : tensor<?xf64>
    %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                         iterator_types = ["parallel"]}
        ins(%a : tensor<?xf16>) outs(%e : tensor<?xf64>) {
    ^bb0(%x: f16, %out: f64):
      %x64 = arith.extf %x : f16 to f64
      %h64 = arith.extf %h : f16 to f64
      %i64 = arith.sitofp %i : i8 to f64
      %j64 = arith.sitofp %j : i16 to f64
      %l64 = arith.sitofp %l : i64 to f64
      %s0 = arith.mulf %x64, %h64 : f64
      %s1 = arith.addf %s0, %i64 : f64
      %s2 = arith.addf %s1, %j64 : f64
      %s3 = arith.addf %s2, %l64 : f64
      %s4 = arith.addf %s3, %d : f64
      linalg.yield %s4 : f64
    } -> tensor<?xf64>
    return %r : tensor<?xf64>
  }
}
"""

# Sizes of results and of the workspace that 64 bits may not hold.
SIZES = """
func.func @outer(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?xf32>
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %z = arith.constant 1.0 : f32
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %g = tensor.collapse_shape %i [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  return %g : tensor<?xf32>
}
func.func @sum(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?xf32>
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %g = tensor.collapse_shape %r [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  return %g : tensor<?xf32>
}
func.func @join(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %p = tensor.concat dim(0) %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %p : tensor<?xf32>
}
// In 64-bit integers, as importers write it.
func.func @repeat(%x: tensor<?xf32>, %k: i64) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %n64 = arith.index_cast %n : index to i64
  %s64 = arith.muli %n64, %k : i64
  %s = arith.index_cast %s64 : i64 to index
  %v = arith.constant 2.0 : f32
  %e = tensor.empty(%s) : tensor<?xf32>
  %r = linalg.fill ins(%v : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @lengthen(%x: tensor<?xf32>, %k: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %p = index.mul %n, %k
  %s = index.add %p, %k
  %v = arith.constant 2.0 : f32
  %e = tensor.empty(%s) : tensor<?xf32>
  %r = linalg.fill ins(%v : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @workspace(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %o = linalg.fill ins(%z : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %i = linalg.softmax dimension(0) ins(%o : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %se = tensor.empty(%m) : tensor<?xf32>
  %s = linalg.fill ins(%z : f32) outs(%se : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.reduce { arith.addf } ins(%i : tensor<?x?xf32>) outs(%s : tensor<?xf32>) dimensions = [1]
  return %r : tensor<?xf32>
}
"""


class ModuleObject(ctypes.Structure):
    """ftrt_module of include/FTuner/Runtime/ftrt.h."""

    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("image_count", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("images", ctypes.c_void_p),
        ("kernels", ctypes.c_void_p),
        ("kernel_count", ctypes.c_uint64),
        ("manifest", ctypes.c_char_p),
        ("handle", ctypes.c_void_p),
    ]


class Guarded:
    """A buffer between guard bands, poisoned all over."""

    def __init__(self, size):
        self.size = size
        self.memory = np.full(size + 2 * GUARD_BYTES + 256, POISON, np.uint8)
        start = GUARD_BYTES + -(self.memory.ctypes.data + GUARD_BYTES) % 256
        self.start, self.address = start, self.memory.ctypes.data + start

    def view(self, dtype, shape):
        return self.memory[self.start : self.start + self.size].view(dtype).reshape(shape)

    def is_intact(self):
        return (self.memory[: self.start] == POISON).all() and (
            self.memory[self.start + self.size :] == POISON
        ).all()


def open_runtime(bin_dir):
    runtime = ctypes.CDLL(os.path.join(bin_dir, "..", "lib", "libftrt.so.1"))
    runtime.ftrt_emulator_stream.restype = ctypes.c_void_p
    runtime.ftrt_last_error.restype = ctypes.c_char_p
    return runtime


def round_bf16(value):
    """The nearest number of bf16, ties to even."""
    if not np.isfinite(value) or value == 0:
        return float(value)
    exponent = max(np.frexp(value)[1] - 8, -133)
    return float(np.ldexp(np.rint(np.ldexp(np.float64(value), -exponent)), exponent))


def c_scalar(kind, value):
    """A scalar as C passes it; one of 16 bits in the low bits of a floating-point register."""
    if kind in ("f16", "bf16"):
        low = (
            np.float16(value).view(np.uint16)
            if kind == "f16"
            else np.float32(value).view(np.uint32) >> 16
        )
        return ctypes.c_float(np.array([low, 0], np.uint16).view(np.float32)[0])
    return C_SCALARS[kind](value)


class Library:
    """A library and what its manifest says of it."""

    def __init__(self, path, runtime):
        self.runtime = runtime
        self.library = ctypes.CDLL(path)
        self.module = ModuleObject.in_dll(self.library, "ftuner_module")
        self.functions = {f["name"]: f for f in json.loads(self.module.manifest)["functions"]}

    def check(self, code):
        if code < 0 or code > 0:
            raise RuntimeError(f"code {code}: {self.runtime.ftrt_last_error().decode()}")

    def call(self, name, *values):
        """Calls a function; returns its results and the bytes of its workspace."""
        function = self.functions[name]
        symbol = getattr(self.library, function["symbol"])
        get_sizes = getattr(self.library, function["result_sizes_symbol"])
        get_workspace = getattr(self.library, function["workspace_size_symbol"])
        get_workspace.restype = ctypes.c_int64
        buffers, sizes, scalars = [], [], []
        for argument, value in zip(function["arguments"], values, strict=True):
            if argument["kind"] == "scalar":
                scalars.append(c_scalar(argument["type"], value))
                continue
            buffer = Guarded(value.nbytes)
            buffer.view(value.dtype, value.shape)[...] = value
            buffers.append(buffer)
            sizes += [
                ctypes.c_int64(size)
                for size, known in zip(value.shape, argument["shape"], strict=True)
                if not isinstance(known, int)
            ]
        ranks = [len(result["shape"]) for result in function["results"]]
        dims = (ctypes.c_int64 * max(sum(ranks), 1))()
        self.check(get_sizes(*sizes, *scalars, dims))
        results, first = [], 0
        for result, rank in zip(function["results"], ranks):
            dtype, shape = NUMPY_TYPES[result["type"]], tuple(dims[first : first + rank])
            results.append((Guarded(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype, shape))
            first += rank
        workspace_bytes = get_workspace(*sizes, *scalars)
        if workspace_bytes < 0:
            self.check(workspace_bytes)
        workspace = Guarded(workspace_bytes)
        outputs = [buffer for buffer, _, _ in results]
        pointers = [ctypes.c_void_p(buffer.address) for buffer in [*buffers, *outputs]]
        self.check(
            symbol(
                *pointers,
                *sizes,
                *scalars,
                ctypes.c_void_p(workspace.address),
                ctypes.c_void_p(self.runtime.ftrt_emulator_stream()),
            )
        )
        tensors = [v for v, a in zip(values, function["arguments"]) if a["kind"] == "tensor"]
        for buffer, value in zip(buffers, tensors):
            if not np.array_equal(buffer.view(value.dtype, value.shape), value):
                raise RuntimeError("an argument changed")
        if not all(buffer.is_intact() for buffer in [*buffers, *outputs, workspace]):
            raise RuntimeError("something was written outside of a buffer")
        return [buffer.view(dtype, shape) for buffer, dtype, shape in results], workspace_bytes


def compare(problems, label, got, expected, kind):
    expected = np.asarray(expected)
    if got.shape != expected.shape:
        problems.append(f"{label}: expected shape {expected.shape}, but got {got.shape}")
    elif kind not in TOLERANCE:
        if not np.array_equal(got, expected):
            problems.append(f"{label}: results differ")
    else:
        error = np.linalg.norm(got.astype(np.float64) - expected) / max(
            np.linalg.norm(expected), 1e-300
        )
        if not error <= TOLERANCE[kind]:
            problems.append(f"{label}: relative error {error:.2e}")


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(harness.next_seed()).standard_normal(shape).astype(dtype)


def wide(array):
    return array.astype(np.float64)


def build(h, source, name, *options):
    """Compiles a library; returns its path."""
    path = h.path(f"lib{name}.so")
    run = h.tool(
        "ftuner-translate", source, "--ftuner-to-library", "--device=h200", *options, "-o", path
    )
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    return path


def inputs(name):
    return os.path.join(os.path.dirname(__file__), "..", "tools", "Inputs", name)


def check_functions(h, runtime):
    problems = []
    library = Library(
        build(h, inputs("functions.mlir"), "functions", "--emulator", "--host-cpu=native"), runtime
    )
    for n in (0, 1, 53, 1000):
        a, b, s = normal(n), normal(n), float(normal(1)[0])
        results, _ = library.call("scale", a, b, s)
        compare(problems, f"scale {n}", results[0], wide(a) * s + b, "f32")
        compare(problems, f"scale {n}, result 1", results[1], a, "i32")
        a = np.random.default_rng(harness.next_seed()).integers(-9, 9, (4, n), np.int32)
        for flag in (0, 1, 255):
            results, _ = library.call("odd name!", a, -7, flag)
            compare(problems, f"odd name {n}", results[0], a * -7 if flag else a, "i32")
        a = normal(n, 512)
        bits = (a.view(np.uint32) >> 16).astype(np.uint16)
        exact = (bits.astype(np.uint32) << 16).view(np.float32)
        results, _ = library.call("sum", bits)
        got = (results[0].astype(np.uint32) << 16).view(np.float32)
        compare(problems, f"sum {n}", got, wide(exact).sum(1), "bf16")
    a = normal(3)
    compare(problems, "bounded", library.call("bounded", a)[0][0], np.exp(wide(a)), "f32")
    try:
        library.call("bounded", normal(4))
        problems.append("expected an assertion to fail")
    except RuntimeError as error:
        expected = f"code {FTRT_ERROR_HOST}: functions.mlir:43:3: expected fewer than four elements, but got 4 (dimension 0 of argument 'a')"
        if str(error) != expected:
            problems.append(f"expected '{expected}', but got '{error}'")
    try:
        library.call("scale", normal(3), normal(4), 1.0)
        problems.append("expected sizes that differ to fail")
    except RuntimeError as error:
        if f"code {FTRT_ERROR_HOST}" not in str(error):
            problems.append(f"sizes that differ: {error}")
    return problems


def check_matmuls(h, runtime):
    problems = []
    library = Library(build(h, h.write("chain.mlir", CHAIN), "chain", "--emulator"), runtime)
    for t in (0, 1, 7, 31, 64, 100):
        a, b, c = normal(t, 24), normal(24, 40), normal(40, 16)
        results, workspace = library.call("chain", a, b, c)
        compare(problems, f"chain {t}", results[0], wide(a) @ b @ c, "f32")
        if t > 0 and workspace < t * 40 * 4:
            problems.append(f"chain {t}: a workspace of {workspace} bytes holds no intermediate")
        batch, n = t % 5, t // 3
        a, b = normal(batch, t, 8), normal(batch, 8, n)
        compare(problems, f"batch {t}", library.call("batch", a, b)[0][0], wide(a) @ wide(b), "f32")
        a = normal(t, dtype=np.float16)
        results, _ = library.call("exp", a, 0.375, -128, -30000, 1 << 40, 0.25)
        compare(
            problems,
            f"scalars {t}",
            results[0],
            wide(a) * 0.375 - 128 - 30000 + (1 << 40) + 0.25,
            "f64",
        )
    rng = np.random.default_rng(harness.next_seed())
    specials = [
        0.0,
        -0.0,
        65504.0,
        65519.99,
        65520.0,
        1e9,
        2.0**-24,
        2.0**-25,
        2.0**-25 * (1 + 2.0**-40),
        3e-8,
        6.1e-5,
        1 + 2.0**-11,
        1 + 2.0**-11 + 2.0**-50,
        1 + 2.0**-8,
        1 + 2.0**-8 + 2.0**-50,
        -1.5,
    ]
    for d in [*specials, *(rng.standard_normal(40) * 10.0 ** rng.integers(-9, 5, 40))]:
        h, b = np.float16(rng.standard_normal()), round_bf16(rng.standard_normal())
        a = normal(3, dtype=np.float64)
        (f16, bf16, product), _ = library.call("half", a, h, b, float(d))
        with np.errstate(over="ignore"):
            expected = np.float16(
                np.float32(np.float16(np.float32(h) * np.float32(h))) + np.float32(np.float16(d))
            )
        if not np.array_equal(f16, np.full(3, expected, np.float64), equal_nan=True):
            problems.append(f"f16 of {d!r} and {h!r}: expected {expected!r}, but got {f16[0]!r}")
        expected = round_bf16(np.float32(round_bf16(np.float32(b * b))) + np.float32(round_bf16(d)))
        if not np.array_equal(bf16, np.full(3, expected)):
            problems.append(f"bf16 of {d!r} and {b!r}: expected {expected!r}, but got {bf16[0]!r}")
        if not np.array_equal(product, a * b):
            problems.append(f"product with {b!r} differs")
    if library.functions["exp"]["symbol"] == "exp":
        problems.append("a function has the name of one of the C library")
    return problems


def check_sizes(h, runtime):
    """Sizes that 64 bits do not hold are errors; products with a factor 0 are not."""
    problems = []
    library = Library(build(h, h.write("sizes.mlir", SIZES), "sizes", "--emulator"), runtime)
    too_large = f"code {FTRT_ERROR_HOST}: a size is negative or does not fit 64 bits"

    def ask(name, *sizes):
        """The workspace of a function, and the sizes of its results."""
        arguments = [ctypes.c_int64(size) for size in sizes]
        get_workspace = getattr(library.library, name + "_workspace_size")
        get_workspace.restype = ctypes.c_int64
        out = (ctypes.c_int64 * 1)(-7)

        def failure(code):
            return f"code {code}: {runtime.ftrt_last_error().decode()}"

        runtime.ftrt_fail(b"no error of this call")
        workspace = get_workspace(*arguments)
        if workspace < 0:
            workspace = failure(-workspace)
        runtime.ftrt_fail(b"no error of this call")
        code = getattr(library.library, name + "_result_sizes")(*arguments, out)
        return workspace, out[0] if code == 0 else failure(code)

    def expect(name, sizes, workspace, result):
        got = ask(name, *sizes)
        for what, value, wanted in (("workspace", got[0], workspace), ("result", got[1], result)):
            if wanted is not None and value != wanted:
                problems.append(f"{what} of {name}{sizes}: expected {wanted!r}, but got {value!r}")

    for sizes in ((1 << 32, 1 << 32), (1 << 32, 1 << 31), (3, (1 << 62) + 5), ((1 << 62) - 1, 4)):
        expect("outer", sizes, None, too_large)
    expect("outer", (1 << 20, 1 << 20), None, 1 << 40)
    expect("outer", (1 << 62, 0), None, 0)
    expect("outer", (0, (1 << 63) - 1), None, 0)
    # An elementwise operator numbers its elements in 31 bits.
    got = ask("sum", 1 << 20, 1 << 20)[1]
    if "expected at most 2147483647 elements in an elementwise operator" not in str(got):
        problems.append(f"sizes of sum(2^20, 2^20): {got!r}")
    expect("sum", (1 << 15, (1 << 16) - 1), None, (1 << 31) - (1 << 15))
    expect("join", ((1 << 63) - 1, 1), None, too_large)
    expect("join", ((1 << 63) - 2, 1), None, (1 << 63) - 1)
    expect("repeat", (1 << 33, 1 << 33), None, too_large)
    expect("repeat", (1 << 33, 1 << 20), None, 1 << 53)
    expect("lengthen", (1 << 33, 1 << 33), None, too_large)
    expect("lengthen", (1, 1 << 62), None, too_large)
    expect("lengthen", (3, 1 << 60), None, 1 << 62)
    # 4 bytes for each of m · n elements, and more.
    for sizes in (
        (3, (1 << 60) + 5),
        (4, 1 << 61),
        (4, 1 << 62),
        (1 << 31, 1 << 31),
        (1, (1 << 61) - 1),
    ):
        expect("workspace", sizes, too_large, sizes[0])
    got, _ = ask("workspace", 4, 1 << 20)
    if not isinstance(got, int) or got < 4 * 4 << 20:
        problems.append(f"workspace of (4, 2^20): {got!r}")
    negative = ask("workspace", 4, -1)[0]
    if negative != too_large:
        problems.append(f"workspace of (4, -1): {negative!r}")
    # Nothing is launched.
    dims = [ctypes.c_int64(1 << 32)] * 2
    code = library.library.outer(
        *[None] * 3, *dims, None, ctypes.c_void_p(runtime.ftrt_emulator_stream())
    )
    if f"code {code}: {runtime.ftrt_last_error().decode()}" != too_large:
        problems.append(f"outer(2^32, 2^32): code {code}: {runtime.ftrt_last_error().decode()}")
    return problems


def check_threads(h, runtime):
    """Two libraries with the same names, by several threads at once."""
    problems = []
    first = build(h, inputs("matmul.mlir"), "first", "--emulator", "--least-gain=0")
    second = build(h, inputs("matmul.mlir"), "second", "--emulator", "--max-kernels=2")
    libraries = [Library(first, runtime), Library(second, runtime)]

    def work(library):
        try:
            for m in np.random.default_rng(harness.next_seed()).permutation(80)[:20]:
                a, b = normal(m, 40), normal(40, 48)
                compare(
                    problems,
                    f"{library.module.name.decode()} {m}",
                    library.call("matmul", a, b)[0][0],
                    wide(a) @ b,
                    "f32",
                )
        except RuntimeError as error:
            problems.append(str(error))

    threads = [threading.Thread(target=work, args=(library,)) for library in libraries * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = [library.module.kernel_count for library in libraries]
    if counts[1] != 2 or counts[0] <= 2:
        problems.append(f"expected more than 2 kernels and 2, but got {counts}")
    return problems


def check_refused(h, runtime):
    """What cannot run says so."""
    problems = []
    a, b = normal(5, 40), normal(40, 48)

    def expect(library, code, words):
        try:
            library.call("matmul", a, b)
            problems.append(f"expected an error with '{words}'")
        except RuntimeError as error:
            if f"code {code}" not in str(error) or words not in str(error):
                problems.append(f"expected code {code} with '{words}', but got: {error}")

    path = build(h, inputs("matmul.mlir"), "versions", "--emulator", "--max-kernels=2")
    library = Library(path, runtime)
    library.module.abi_version += 1
    expect(library, FTRT_ERROR_VERSION, "version")
    expect(
        Library(build(h, inputs("matmul.mlir"), "plain", "--max-kernels=2"), runtime), 7, "emulator"
    )
    # Without all of its head the loader refuses a library. One that is cut off
    # further on ends the process that opens it, hence another process.
    with open(path, "rb") as file:
        content = file.read()
    for kept in (0, 10, 100):
        with open(h.path("libshort.so"), "wb") as file:
            file.write(content[:kept])
        run = subprocess.run(
            [
                sys.executable,
                "-c",
                "import ctypes, sys; ctypes.CDLL(sys.argv[1])",
                h.path("libshort.so"),
            ],
            capture_output=True,
            text=True,
        )
        if run.returncode != 1 or "libshort.so" not in run.stderr:
            problems.append(
                f"{kept} bytes: expected the loader's error, but got code {run.returncode}: {run.stderr}"
            )
    return problems


ONE_CALL = """
import sys
import numpy as np
import library
one = library.Library(sys.argv[2], library.open_runtime(sys.argv[1]))
a, b = library.normal(64, 40), library.normal(40, 48)
problems = []
library.compare(problems, "matmul", one.call("matmul", a, b)[0][0], library.wide(a) @ b, "f32")
sys.exit("\\n".join(problems) or 0)
"""


def check_without_threads(h, runtime):
    """A launch runs where the system has no room for another thread's stack."""
    limit = 2 << 30

    def prepare():
        # Threads get stacks of the size of the limit of the program's.
        resource.setrlimit(
            resource.RLIMIT_STACK, (limit, resource.getrlimit(resource.RLIMIT_STACK)[1])
        )
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    path = build(h, inputs("matmul.mlir"), "alone", "--emulator", "--max-kernels=2")
    run = subprocess.run(
        [sys.executable, "-c", ONE_CALL, os.path.abspath(h.bin_dir), path],
        preexec_fn=prepare,
        cwd=os.path.dirname(__file__),
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    return [] if run.returncode == 0 else [f"code {run.returncode}: {run.stderr}"]


def main():
    h, _ = harness.start(__doc__)
    runtime = open_runtime(h.bin_dir)
    for check in (
        check_functions,
        check_matmuls,
        check_sizes,
        check_threads,
        check_without_threads,
        check_refused,
    ):
        h.add(check.__name__.removeprefix("check_"), check, h, runtime)
    h.finish()


if __name__ == "__main__":
    main()
