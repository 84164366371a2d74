#!/usr/bin/env python3
"""Breaks a compiled kernel on purpose and sees the emulator find each bug.

The kernel at the NVVM level is edited as text: a missing wait for asynchronous
copies, a missing barrier, an out-of-bounds load, a shared buffer that is too
small, and a wrong zero fill of the reduce axis' tail. The unbroken kernel must
pass in the same modes, so that a failure is the bug's.
"""

import os
import re

import numpy

import harness
import models

# 44 is no multiple of any reduce tile, so that the last step needs zero fill; 64 is one of all.
M, N, K, K_OF_WHOLE_STEPS = 53, 96, 44, 64


def multiplied(a, b):
    return a.astype(numpy.float64) @ b.astype(numpy.float64)


def run(h, name, text, inputs, flags):
    """Returns (exit status, relative error, output) of the compiled module."""
    path = h.write(name + ".mlir", text)
    folder = h.path(name)
    os.makedirs(folder, exist_ok=True)
    args = ",".join(f"{'x'.join(map(str, array.shape))}xf32@{h.path(file)}" for file, array in inputs)
    result = h.tool("ftuner-run", path, "--function=f", "--device=h200", "--executor=emulator",
                    f"--args={args}", f"--save-dir={folder}", *flags)
    output = os.path.join(folder, "result0.npy")
    error = None
    if result.returncode == 0 and os.path.exists(output):
        expected = multiplied(inputs[0][1], inputs[1][1])
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


def shrink_shared(text):
    return replace_once_or_more(text, r"shared_memory_bytes = (\d+)",
                                lambda m: f"shared_memory_bytes = {int(m.group(1)) // 2}")


def copy_all_bytes(text):
    """Copies read what lies beyond the rows or the reduce axis, instead of writing zeros."""
    return replace_once_or_more(
        text, r"(nvvm\.cp\.async\.shared\.global %\w+, %\w+, \d+, cache = +c[ag]), %\w+ : ([^\n]*), i32",
        r"\1 : \2")


def check(h, compiled, of_whole_steps):
    (text, inputs), (text_of_whole_steps, inputs_of_whole_steps) = compiled, of_whole_steps
    problems = []

    def expect(name, broken, flags, what, inputs=inputs):
        status, error, output = run(h, name, broken, inputs, flags)
        crashed = status < 0
        caught = status > 0 or (error is not None and error > 1e-5)
        if crashed or not caught:
            problems.append(f"{name}: not caught (exit {status}, error {error})")
        elif what and what not in output:
            problems.append(f"{name}: expected {what!r} in the report, but got {output[:400]!r}")

    for flags in ([], ["--check-bounds"], ["--check-races"]):
        status, error, output = run(h, "correct", text, inputs, flags)
        if status != 0 or error is None or error > 1e-5:
            problems.append(f"the correct kernel fails with {flags}: exit {status}, error {error}: {output[:400]}")
    expect("missing_wait", drop_waits(text), [], "")
    expect("missing_barrier", drop_barriers(text), ["--check-races"], "race")
    # Without a tail along the reduce axis it is rows of the first argument that are beyond.
    expect("out_of_bounds_load", copy_all_bytes(text_of_whole_steps), ["--check-bounds"],
           "of buffer 'argument 0'", inputs_of_whole_steps)
    expect("shared_too_small", shrink_shared(text), ["--check-bounds"], "")
    expect("wrong_zero_fill", copy_all_bytes(text), [], "")
    return problems


def compile_product(h, rng, k):
    """The module at the NVVM level, and its inputs with their files."""
    inputs = [(f"a{k}.npy", rng.standard_normal((M, k), dtype=numpy.float32)),
              (f"b{k}.npy", rng.standard_normal((k, N), dtype=numpy.float32))]
    for file, array in inputs:
        numpy.save(h.path(file), array)
    source = h.write(f"source{k}.mlir", models.Matmul(m="T", n=N, k=k, name="f").text())
    compiled = h.tool("ftuner-opt", source, "--ftuner-compile=device=h200")
    if compiled.returncode != 0:
        raise SystemExit(compiled.stderr)
    return compiled.stdout, inputs


def main():
    h, _ = harness.start(__doc__)
    rng = numpy.random.default_rng(harness.next_seed())
    h.add("injected bugs", check, h, compile_product(h, rng, K), compile_product(h, rng, K_OF_WHOLE_STEPS))
    h.finish()


if __name__ == "__main__":
    main()
