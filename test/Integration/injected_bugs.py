#!/usr/bin/env python3
"""Breaks a compiled kernel on purpose and sees the emulator find each bug.

The kernel at the NVVM level is edited as text: a missing wait for asynchronous
copies, a missing barrier, an out-of-bounds load, a shared buffer that is too
small, and a wrong zero fill of the reduce axis' tail. The unbroken kernel must
pass in the same modes, so that a failure is the bug's.

Likewise a softmax whose rows several warps share: a missing barrier, a shared
buffer that is too small, a merge of lanes that is lost, a number of a warp's that
is not stored, and a maximum that starts from another value than its neutral one.
And the same softmax whose rows are shared out in slices: a launch that is lost, so
that the next one reads what its workspace held before, a slice that stores none of
its numbers, and slices that are not merged.
Sums of rows that warps have one after the other: one buffer in place of two in turn.
"""

import os
import re

import numpy

import harness
import models

# 44 is no multiple of any reduce tile, so that the last step needs zero fill; 64 is one of all.
M, N, K, K_OF_WHOLE_STEPS = 53, 96, 44, 64
ROWS, COLUMNS = 3, 1500

#: A softmax by one family, whose rows are four slices.
SLICED_SOFTMAX = """
ukernel.plan @given <families = [<#ukernel.rows<rows = 1, lane_rows = 1, lanes = 32, warps = 2, held_units = 4, access = 1>,
  axis = 0, tiles = [[1, 256]], reduce = [1], split = 4>], choices = [], general = 0, unaligned_general = 0>
func.func @f(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %o = tensor.empty(%m, %n) : tensor<?x?xf32>
  %y = ukernel.row_reduction plan(@given) ins(%x : tensor<?x?xf32>) outs(%o : tensor<?x?xf32>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m, r)>] reduce {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.maximumf %acc, %a : f32
    ukernel.yield %s : f32
  }, {
  ^bb0(%a: f32, %max: f32, %acc: f32):
    %d = arith.subf %a, %max : f32
    %e = math.exp %d : f32
    %s = arith.addf %acc, %e : f32
    ukernel.yield %s : f32
  } values {
  ^bb0(%max: f32, %sum: f32):
    ukernel.yield
  } map {
  ^bb0(%a: f32, %max: f32, %sum: f32):
    %d = arith.subf %a, %max : f32
    %e = math.exp %d : f32
    %q = arith.divf %e, %sum : f32
    ukernel.yield %q : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
"""

#: The same without slices, by four warps for each row.
SOFTMAX = (
    SLICED_SOFTMAX.replace("warps = 2", "warps = 4")
    .replace("[[1, 256]]", "[[1, 512]]")
    .replace(", split = 4", "")
)

SUMS = """
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
ukernel.plan @given <families = [<#ukernel.rows<rows = 8, lane_rows = 1, lanes = 32, warps = 4, held_units = 12,
    access = 1, row_loop = 8>, axis = 0, tiles = [[8, 512]], reduce = [1]>], choices = [], general = 0,
    unaligned_general = 0>
func.func @f(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %o = tensor.empty(%m) : tensor<?xf32>
  %y = ukernel.row_reduction plan(@given) ins(%x : tensor<?x?xf32>) outs(%o : tensor<?xf32>) maps = [#all, #row]
    reduce {
    ^bb0(%a: f32, %acc: f32):
      %n = arith.addf %acc, %a : f32
      ukernel.yield %n : f32
    } values {
    ^bb0(%r: f32):
      ukernel.yield %r : f32
    } map {
    ^bb0(%a: f32, %r: f32):
      ukernel.yield
    } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
"""


def multiplied(a, b):
    return a.astype(numpy.float64) @ b.astype(numpy.float64)


def softmax_of(x):
    e = numpy.exp(x.astype(numpy.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sums_of(x):
    return x.astype(numpy.float64).sum(-1)


def run(h, name, text, inputs, flags, reference):
    """Returns (exit status, relative error, output) of the compiled module."""
    path = h.write(name + ".mlir", text)
    folder = h.path(name)
    os.makedirs(folder, exist_ok=True)
    args = ",".join(
        f"{'x'.join(map(str, array.shape))}xf32@{h.path(file)}" for file, array in inputs
    )
    result = h.tool(
        "ftuner-run",
        path,
        "--function=f",
        "--device=h200",
        "--executor=emulator",
        f"--args={args}",
        f"--save-dir={folder}",
        *flags,
    )
    output = os.path.join(folder, "result0.npy")
    error = None
    if result.returncode == 0 and os.path.exists(output):
        expected = reference(*(array for _, array in inputs))
        got = numpy.load(output).astype(numpy.float64)
        error = numpy.linalg.norm(got - expected) / numpy.linalg.norm(expected)
        if not numpy.isfinite(error):
            error = float("inf")
    return result.returncode, error, result.stdout + result.stderr


def replace_once_or_more(text, pattern, replacement):
    text, count = re.subn(pattern, replacement, text)
    if count == 0:
        raise RuntimeError(f"nothing matches {pattern!r}: the test must follow the kernel's form")
    return text


def drop_barriers(text):
    return replace_once_or_more(text, r"\n *nvvm\.barrier0?\b[^\n]*", "")


def drop_waits(text):
    return replace_once_or_more(text, r"\n *nvvm\.cp\.async\.wait\.group[^\n]*", "")


def drop_lane_waits(text):
    return replace_once_or_more(text, r"nvvm\.bar\.warp\.sync[^\n]*\n", "")


def shrink_shared(text):
    return replace_once_or_more(
        text,
        r"shared_memory_bytes = (\d+)",
        lambda m: f"shared_memory_bytes = {int(m.group(1)) // 4}",
    )


def copy_all_bytes(text):
    """Copies read what lies beyond the rows or the reduce axis, instead of writing zeros."""
    return replace_once_or_more(
        text,
        r"(nvvm\.cp\.async\.shared\.global %\w+, %\w+, \d+, cache = +c[ag]), %\w+ : ([^\n]*), i32",
        r"\1 : \2",
    )


def lose_merges(text):
    """Lanes combine their number with itself instead of another lane's."""
    return replace_once_or_more(
        text,
        r"nvvm\.shfl\.sync +bfly %\w+, (%\w+), %\w+, %\w+ : f32 -> f32",
        r"llvm.bitcast \1 : f32 to f32",
    )


def drop_shared_stores(text):
    return replace_once_or_more(text, r"\n *llvm\.store [^\n]*!llvm\.ptr<3>[^\n]*", "")


def share_buffers(text):
    """Numbers of all rows in the same place."""
    return replace_once_or_more(
        text,
        r"(llvm\.getelementptr (?:inbounds\|nuw )?%\w+)\[%\w+\] : \(!llvm\.ptr<3>, i64\) -> !llvm\.ptr<3>, i8",
        r"\1[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8",
    )


def start_from_zero(text):
    return replace_once_or_more(
        text,
        r"llvm\.mlir\.constant\(0x(?:FF8|7FC|FFC)00000 : f32\)",
        "llvm.mlir.constant(0.000000e+00 : f32)",
    )


def in_kernel(text, name, edit):
    """Edits one kernel's module alone."""
    begin = text.index(f"gpu.module @{name} ")
    end = text.find("gpu.module @", begin + 1)
    end = len(text) if end < 0 else end
    return text[:begin] + edit(text[begin:end]) + text[end:]


def drop_launch(text, name):
    return replace_once_or_more(text, rf"\n *ukernel\.launch @{name}::[^\n]*", "")


def drop_global_stores(text):
    return replace_once_or_more(text, r"\n *llvm\.store [^\n]*!llvm\.ptr(?:<1>)?\n", "\n")


class Check:
    """What a broken kernel must do; `reference`: of the inputs, which are (file, array)."""

    def __init__(self, h, inputs, reference):
        self.h, self.inputs, self.reference, self.problems = h, inputs, reference, []

    def passes(self, name, text):
        for flags in ([], ["--check-bounds"], ["--check-races"]):
            status, error, output = run(self.h, name, text, self.inputs, flags, self.reference)
            if status != 0 or error is None or error > 1e-5:
                self.problems.append(
                    f"{name} fails with {flags}: exit {status}, error {error}: {output[:400]}"
                )

    def expect(self, name, broken, flags, what, inputs=None):
        status, error, output = run(
            self.h, name, broken, inputs or self.inputs, flags, self.reference
        )
        crashed = status < 0
        caught = status > 0 or (error is not None and error > 1e-5)
        if crashed or not caught:
            self.problems.append(f"{name}: not caught (exit {status}, error {error})")
        elif what and what not in output:
            self.problems.append(
                f"{name}: expected {what!r} in the report, but got {output[:400]!r}"
            )


def check_rows(h, text, inputs):
    check = Check(h, inputs, softmax_of)
    check.passes("correct_rows", text)
    check.expect("rows_missing_barrier", drop_barriers(text), ["--check-races"], "race")
    check.expect("rows_missing_lane_wait", drop_lane_waits(text), ["--check-races"], "race")
    check.expect("rows_shared_too_small", shrink_shared(text), ["--check-bounds"], "")
    check.expect("rows_lost_merge", lose_merges(text), [], "")
    check.expect("rows_stale_slot", drop_shared_stores(text), [], "")
    check.expect("rows_wrong_identity", start_from_zero(text), [], "")
    return check.problems


def check_slices(h, text, inputs):
    check = Check(h, inputs, softmax_of)
    check.passes("correct_slices", text)
    check.expect("slices_stale_workspace", drop_launch(text, "f_0_k0_1"), [], "")
    check.expect("slices_not_stored", in_kernel(text, "f_0_k0", drop_global_stores), [], "")
    check.expect("slices_lost_merge", in_kernel(text, "f_0_k0_2", lose_merges), [], "")
    return check.problems


def check_row_loop(h, text, inputs):
    check = Check(h, inputs, sums_of)
    check.passes("correct_row_loop", text)
    check.expect("row_loop_missing_barrier", drop_barriers(text), ["--check-races"], "race")
    check.expect("row_loop_one_buffer", share_buffers(text), ["--check-races"], "race")
    check.expect("row_loop_shared_too_small", shrink_shared(text), ["--check-bounds"], "")
    return check.problems


def check(h, compiled, of_whole_steps):
    (text, inputs), (text_of_whole_steps, inputs_of_whole_steps) = compiled, of_whole_steps
    check = Check(h, inputs, multiplied)
    expect = check.expect
    check.passes("correct", text)
    expect("missing_wait", drop_waits(text), [], "")
    expect("missing_barrier", drop_barriers(text), ["--check-races"], "race")
    # Without a tail along the reduce axis it is rows of the first argument that are beyond.
    expect(
        "out_of_bounds_load",
        copy_all_bytes(text_of_whole_steps),
        ["--check-bounds"],
        "of buffer 'argument 0'",
        inputs_of_whole_steps,
    )
    expect("shared_too_small", shrink_shared(text), ["--check-bounds"], "")
    expect("wrong_zero_fill", copy_all_bytes(text), [], "")
    return check.problems


def compile_product(h, rng, k):
    """The module at the NVVM level, and its inputs with their files."""
    inputs = [
        (f"a{k}.npy", rng.standard_normal((M, k), dtype=numpy.float32)),
        (f"b{k}.npy", rng.standard_normal((k, N), dtype=numpy.float32)),
    ]
    for file, array in inputs:
        numpy.save(h.path(file), array)
    source = h.write(f"source{k}.mlir", models.Matmul(m="T", n=N, k=k, name="f").text())
    return compile_module(h, source), inputs


def compile_module(h, source):
    compiled = h.tool("ftuner-opt", source, "--ftuner-compile=device=h200 max-kernels=4")
    if compiled.returncode != 0:
        raise SystemExit(compiled.stderr)
    return compiled.stdout


def compile_softmax(h, rng, name, source):
    """Of negative numbers, so that a maximum of 0 is wrong, and far below, so that their powers are."""
    x = (rng.standard_normal((ROWS, COLUMNS), dtype=numpy.float32) - 200).astype(numpy.float32)
    numpy.save(h.path(f"{name}.npy"), x)
    return compile_module(h, h.write(f"{name}.mlir", source)), [(f"{name}.npy", x)]


def compile_sums(h, rng):
    x = rng.standard_normal((ROWS + 8, COLUMNS), dtype=numpy.float32)
    x += 1
    numpy.save(h.path("rows.npy"), x)
    return compile_module(h, h.write("sums.mlir", SUMS)), [("rows.npy", x)]


def main():
    h, _ = harness.start(__doc__)
    rng = numpy.random.default_rng(harness.next_seed())
    h.add(
        "injected bugs",
        check,
        h,
        compile_product(h, rng, K),
        compile_product(h, rng, K_OF_WHOLE_STEPS),
    )
    h.add("injected bugs in rows", check_rows, h, *compile_softmax(h, rng, "softmax", SOFTMAX))
    h.add(
        "injected bugs in slices of rows",
        check_slices,
        h,
        *compile_softmax(h, rng, "sliced", SLICED_SOFTMAX),
    )
    h.add("injected bugs in rows one after the other", check_row_loop, h, *compile_sums(h, rng))
    h.finish()


if __name__ == "__main__":
    main()
