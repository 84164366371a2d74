#!/usr/bin/env python3
"""Runs random reductions of some dimensions in the emulator, against the reference.

Sums, sums of products, of squared deviations, maxima and minima of tensors of two to five dimensions along any of them,
neighbours or not; of f32, f16, bf16, i8, i16, i32 and booleans; with unit dimensions in place of the reduced ones or
without; from a number or a tensor; static and dynamic sizes; bounds and race checks, threads in random order. Each must
be as many kernels of rows as there are groups of neighbours among the dimensions, and no fallback kernel.

`--count=N` is the number of cases; `--seed=S --count=1` runs one again.
"""

import math
import random

import harness

DEVICES = ("v100", "a100", "h200")
LEAST = {
    "f32": "0xFF800000",
    "f16": "0xFC00",
    "bf16": "0xFF80",
    "i8": "-128",
    "i16": "-32768",
    "i32": "-2147483648",
}


class Reduction:
    def __init__(self, rng):
        self.device = rng.choice(DEVICES)
        self.type = rng.choice(["f32", "f32", "f16", "bf16", "i8", "i16", "i32", "i1"])
        self.is_float = self.type.endswith(("f32", "f16"))
        self.kind = rng.choice(
            ["sum", "products", "deviations", "maximum", "quotient"]
            if self.is_float
            else ["any"]
            if self.type == "i1"
            else ["sum", "maximum"]
        )
        self.rank = rng.choice([2, 3, 3, 4, 4, 5])
        self.sizes = [rng.choice([1, 2, 3, 5, 8, 33]) for _ in range(self.rank)]
        while math.prod(self.sizes) > 20000:
            self.sizes[self.sizes.index(max(self.sizes))] = 2
        self.reduced = sorted(rng.sample(range(self.rank), rng.randint(1, self.rank - 1)))
        self.is_static = rng.random() < 0.5
        self.keeps = rng.random() < 0.3
        self.has_start = rng.random() < 0.2
        self.kept = [dim for dim in range(self.rank) if dim not in self.reduced]

    def groups(self):
        return sum(dim - 1 not in self.reduced for dim in self.reduced)

    def properties(self):
        names = ("device", "type", "kind", "rank", "is_static", "keeps", "has_start")
        return {name: getattr(self, name) for name in names} | {
            "groups": self.groups(),
            "inner": self.rank - 1 in self.reduced,
        }

    def tensor(self, kind=None, reduced=False):
        sizes = [str(size) if self.is_static else "?" for size in self.sizes]
        if reduced:
            sizes = [
                "1" if dim in self.reduced else sizes[dim]
                for dim in range(self.rank)
                if self.keeps or dim in self.kept
            ]
        return f"tensor<{''.join(f'{size}x' for size in sizes)}{kind or self.type}>"

    def shape(self, reduced=False):
        sizes = self.sizes
        if reduced:
            sizes = [
                1 if dim in self.reduced else sizes[dim]
                for dim in range(self.rank)
                if self.keeps or dim in self.kept
            ]
        return "".join(f"{size}x" for size in sizes) + self.type

    def map(self, reduced=False):
        results = [f"d{dim}" for dim in range(self.rank)]
        if reduced:
            results = [
                "0" if dim in self.reduced else results[dim]
                for dim in range(self.rank)
                if self.keeps or dim in self.kept
            ]
        return f"affine_map<({', '.join(f'd{dim}' for dim in range(self.rank))}) -> ({', '.join(results)})>"

    def arguments(self):
        found = [("%x", self.tensor(), self.shape())]
        if self.kind == "products":
            found.append(("%y", self.tensor(), self.shape()))
        if self.kind == "deviations":
            found.append(("%y", self.tensor(reduced=True), self.shape(reduced=True)))
        if self.has_start:
            found.append(("%s", self.tensor(reduced=True), self.shape(reduced=True)))
        return found

    def body(self):
        kind = self.type
        if self.kind == "products":
            return f"%p = arith.mulf %a, %b : {kind}\n      %n = arith.addf %acc, %p : {kind}"
        if self.kind == "deviations":
            return (
                f"%d = arith.subf %a, %b : {kind}\n      %p = arith.mulf %d, %d : {kind}\n      "
                f"%n = arith.addf %acc, %p : {kind}"
            )
        operation = {
            "sum": "addf" if self.is_float else "addi",
            "quotient": "addf",
            "any": "ori",
            "maximum": "maximumf" if self.is_float else "maxsi",
        }[self.kind]
        return f"%n = arith.{operation} %a, %acc : {kind}"

    def module(self):
        out, full = self.tensor(reduced=True), self.tensor()
        start = (
            LEAST[self.type]
            if self.kind == "maximum"
            else "0.0"
            if self.is_float
            else "false"
            if self.type == "i1"
            else "0"
        )
        constant = (
            "arith.constant false" if self.type == "i1" else f"arith.constant {start} : {self.type}"
        )
        dims = "\n    ".join(
            f"%c{dim} = arith.constant {dim} : index\n    %d{dim} = tensor.dim %x, %c{dim} : {full}"
            for dim in range(self.rank)
        )
        sizes = "" if self.is_static else ", ".join(f"%d{dim}" for dim in self.kept)
        operands = [("%x", full, self.map())]
        if self.kind == "products":
            operands.append(("%y", full, self.map()))
        if self.kind == "deviations":
            operands.append(("%y", out, self.map(reduced=True)))
        kinds = ", ".join(
            '"reduction"' if dim in self.reduced else '"parallel"' for dim in range(self.rank)
        )
        names = ", ".join(f"%{name}: {self.type}" for name in ["a", "b"][: len(operands)])
        text = f"""
    %r = linalg.generic {{indexing_maps = [{", ".join(access for _, _, access in operands)}, {self.map(reduced=True)}],
        iterator_types = [{kinds}]}}
        ins({", ".join(name for name, _, _ in operands)} : {", ".join(tensor for _, tensor, _ in operands)})
        outs({"%s" if self.has_start else "%f"} : {out}) {{
    ^bb0({names}, %acc: {self.type}):
      {self.body()}
      linalg.yield %n : {self.type}
    }} -> {out}"""
        result = "%r"
        if self.kind == "quotient":
            rank = self.rank if self.keeps else len(self.kept)
            loops = ", ".join(f"d{dim}" for dim in range(rank))
            identity = f"affine_map<({loops}) -> ({loops})>"
            text += f"""
    %q = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = [{", ".join(['"parallel"'] * rank)}]}}
        ins(%r : {out}) outs(%e : {out}) {{
    ^bb0(%a: {self.type}, %o: {self.type}):
      %n = arith.divf %a, %count : {self.type}
      linalg.yield %n : {self.type}
    }} -> {out}"""
            result = "%q"
        arguments = ", ".join(f"{name}: {kind}" for name, kind, _ in self.arguments())
        count = f"\n    %count = arith.constant 3.0 : {self.type}" if self.is_float else ""
        return f"""
func.func @f({arguments}) -> {out} {{
    {dims}
    %first = {constant}{count}
    %e = tensor.empty({sizes}) : {out}
    %f = linalg.fill ins(%first : {self.type}) outs(%e : {out}) -> {out}{text}
    return {result} : {out}
}}
"""

    def __str__(self):
        flags = ("is_static", "keeps", "has_start")
        return (
            f"{self.device}, {self.kind}, {self.type}, {self.sizes} along {self.reduced}"
            + "".join(f", {name}" for name in flags if getattr(self, name))
        )


def run(tests, reduction):
    tests.describe(f"seed {reduction.seed}", str(reduction))
    kernels, problems = harness.run_case(tests, reduction)
    if kernels is None:
        return problems
    if len(kernels) > reduction.groups() or any("fallback" in kernel for kernel in kernels):
        problems.append(f"expected {reduction.groups()} kernels of rows, but got {kernels}")
    return problems


def main():
    tests, options = harness.start(__doc__, harness.random_cases(20))
    harness.add_random_cases(tests, options, lambda seed: Reduction(random.Random(seed)), run)
    tests.finish()


if __name__ == "__main__":
    main()
