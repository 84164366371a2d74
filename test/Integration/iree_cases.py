"""Modules for the tests of IREE: their text, their arguments and what they compute; and their compilation.

As a program it runs a compiled module by IREE's runtime, in a process of its own, whose environment says where kernels
for the emulator are.
"""

import json
import os
import subprocess
import sys
import sysconfig
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import iree_many

#: The device whose plans the cases expect.
DEVICE = "h100"

HEAD = "module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128>}}"

DENSE = (
    HEAD
    + """ {
  func.func @dense(%x: tensor<?x96xf32> {ukernel.shape = ["T", 96]}, %w: tensor<96x160xf32>, %b: tensor<160xf32>, %s: f32) -> tensor<?x160xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x96xf32>
    %e = tensor.empty(%t) : tensor<?x160xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x160xf32>) -> tensor<?x160xf32>
    %p = linalg.matmul ins(%x, %w : tensor<?x96xf32>, tensor<96x160xf32>) outs(%f : tensor<?x160xf32>) -> tensor<?x160xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%p, %b : tensor<?x160xf32>, tensor<160xf32>) outs(%e : tensor<?x160xf32>) {
    ^bb0(%a: f32, %bias: f32, %old: f32):
      %scaled = arith.mulf %a, %s : f32
      %sum = arith.addf %scaled, %bias : f32
      %y = arith.maximumf %sum, %zero : f32
      linalg.yield %y : f32
    } -> tensor<?x160xf32>
    return %r : tensor<?x160xf32>
  }
}
"""
)

SCORES = (
    HEAD.replace("T = ", "B = #ukernel.range<1 to 8>, T = ")
    + """ {
  func.func @scores(%q: tensor<?x?x24xf32> {ukernel.shape = ["B", "T", 24]}, %k: tensor<?x24x?xf32> {ukernel.shape = ["B", 24, "T"]}) -> tensor<?x?x?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %b = tensor.dim %q, %c0 : tensor<?x?x24xf32>
    %t = tensor.dim %q, %c1 : tensor<?x?x24xf32>
    %e = tensor.empty(%b, %t, %t) : tensor<?x?x?xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    %r = linalg.batch_matmul ins(%q, %k : tensor<?x?x24xf32>, tensor<?x24x?xf32>) outs(%f : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    return %r : tensor<?x?x?xf32>
  }
}
"""
)

PROJECTION = (
    HEAD
    + """ {
  func.func @projection(%x: tensor<?x256xf16> {ukernel.shape = ["T", 256]}, %w: tensor<192x256xf16>) -> tensor<?x192xf16> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f16
    %t = tensor.dim %x, %c0 : tensor<?x256xf16>
    %e = tensor.empty(%t) : tensor<?x192xf16>
    %f = linalg.fill ins(%zero : f16) outs(%e : tensor<?x192xf16>) -> tensor<?x192xf16>
    %r = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %w : tensor<?x256xf16>, tensor<192x256xf16>) outs(%f : tensor<?x192xf16>) -> tensor<?x192xf16>
    return %r : tensor<?x192xf16>
  }
}
"""
)

# Adds to what the caller has.
UPDATE = (
    HEAD
    + """ {
  func.func @update(%x: tensor<?x40xf32> {ukernel.shape = ["T", 40]}, %w: tensor<40x72xf32>, %y: tensor<?x72xf32> {ukernel.shape = ["T", 72]}) -> tensor<?x72xf32> {
    %r = linalg.matmul ins(%x, %w : tensor<?x40xf32>, tensor<40x72xf32>) outs(%y : tensor<?x72xf32>) -> tensor<?x72xf32>
    return %r : tensor<?x72xf32>
  }
}
"""
)

# Few rows and a long k: families with slices of k, but for more rows than declared, unless these are aligned.
SLICES = (
    HEAD
    + """ {
  func.func @slices(%x: tensor<16384x?xf32> {ukernel.shape = [16384, "T"]}, %w: tensor<16384x24xf32>, %b: tensor<24xf32>, %s: f32, %start: f32) -> tensor<?x24xf32> {
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c1 : tensor<16384x?xf32>
    %e = tensor.empty(%t) : tensor<?x24xf32>
    %f = linalg.fill ins(%start : f32) outs(%e : tensor<?x24xf32>) -> tensor<?x24xf32>
    %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %w : tensor<16384x?xf32>, tensor<16384x24xf32>) outs(%f : tensor<?x24xf32>) -> tensor<?x24xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%p, %b : tensor<?x24xf32>, tensor<24xf32>) outs(%e : tensor<?x24xf32>) {
    ^bb0(%a: f32, %bias: f32, %old: f32):
      %scaled = arith.mulf %a, %s : f32
      %sum = arith.addf %scaled, %bias : f32
      %y = arith.maximumf %sum, %zero : f32
      linalg.yield %y : f32
    } -> tensor<?x24xf32>
    return %r : tensor<?x24xf32>
  }
}
"""
)

SLICES_BATCH = (
    HEAD.replace("T = ", "B = #ukernel.range<1 to 4>, T = ")
    + """ {
  func.func @slices_batch(%q: tensor<?x?x16384xf32> {ukernel.shape = ["B", "T", 16384]}, %k: tensor<?x16384x24xf32> {ukernel.shape = ["B", 16384, 24]}) -> tensor<?x?x24xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %b = tensor.dim %q, %c0 : tensor<?x?x16384xf32>
    %t = tensor.dim %q, %c1 : tensor<?x?x16384xf32>
    %e = tensor.empty(%b, %t) : tensor<?x?x24xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x24xf32>) -> tensor<?x?x24xf32>
    %r = linalg.batch_matmul ins(%q, %k : tensor<?x?x16384xf32>, tensor<?x16384x24xf32>) outs(%f : tensor<?x?x24xf32>) -> tensor<?x?x24xf32>
    return %r : tensor<?x?x24xf32>
  }
}
"""
)

# On tensor cores: without slices for more rows than declared.
SLICES_HALF = (
    HEAD.replace("128", "16")
    + """ {
  func.func @slices_half(%x: tensor<?x32768xf16> {ukernel.shape = ["T", 32768]}, %w: tensor<32768x24xf16>, %y: tensor<?x24xf16> {ukernel.shape = ["T", 24]}) -> tensor<?x24xf16> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x32768xf16>
    %wide = tensor.empty(%t) : tensor<?x24xf32>
    %e = tensor.empty(%t) : tensor<?x24xf16>
    %f = linalg.fill ins(%zero : f32) outs(%wide : tensor<?x24xf32>) -> tensor<?x24xf32>
    %p = linalg.matmul ins(%x, %w : tensor<?x32768xf16>, tensor<32768x24xf16>) outs(%f : tensor<?x24xf32>) -> tensor<?x24xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%p, %y : tensor<?x24xf32>, tensor<?x24xf16>) outs(%e : tensor<?x24xf16>) {
    ^bb0(%a: f32, %residual: f16, %old: f16):
      %narrow = arith.truncf %a : f32 to f16
      %sum = arith.addf %narrow, %residual : f16
      linalg.yield %sum : f16
    } -> tensor<?x24xf16>
    return %r : tensor<?x24xf16>
  }
}
"""
)

# Products that add to what is there, by the same kernels, one after the other.
SLICES_UPDATE = (
    HEAD
    + """ {
  func.func @slices_update(%x: tensor<?x16384xf32> {ukernel.shape = ["T", 16384]}, %v: tensor<16384x24xf32>, %w: tensor<16384x24xf32>, %y: tensor<?x24xf32> {ukernel.shape = ["T", 24]}) -> tensor<?x24xf32> {
    %p = linalg.matmul ins(%x, %v : tensor<?x16384xf32>, tensor<16384x24xf32>) outs(%y : tensor<?x24xf32>) -> tensor<?x24xf32>
    %r = linalg.matmul ins(%x, %w : tensor<?x16384xf32>, tensor<16384x24xf32>) outs(%p : tensor<?x24xf32>) -> tensor<?x24xf32>
    return %r : tensor<?x24xf32>
  }
}
"""
)

# The sum with a residual, its RMS norm and a statistic, and a softmax: one kernel of rows.
ROWS = (
    HEAD
    + """ {
  func.func @rows(%x: tensor<?x160xf32> {ukernel.shape = ["T", 160]}, %y: tensor<?x160xf32> {ukernel.shape = ["T", 160]}, %gamma: tensor<160xf32>) -> (tensor<?x160xf32>, tensor<?x160xf32>, tensor<?xf32>, tensor<?x160xf32>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %count = arith.constant 160.0 : f32
    %small = arith.constant 1.0e-5 : f32
    %t = tensor.dim %x, %c0 : tensor<?x160xf32>
    %e = tensor.empty(%t) : tensor<?x160xf32>
    %er = tensor.empty(%t) : tensor<?xf32>
    %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
    %h = linalg.add ins(%x, %y : tensor<?x160xf32>, tensor<?x160xf32>) outs(%e : tensor<?x160xf32>) -> tensor<?x160xf32>
    %squares = linalg.generic {indexing_maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>], iterator_types = ["parallel", "reduction"]}
        ins(%h : tensor<?x160xf32>) outs(%fr : tensor<?xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %p = arith.mulf %a, %a : f32
      %s = arith.addf %sum, %p : f32
      linalg.yield %s : f32
    } -> tensor<?xf32>
    %root = linalg.generic {indexing_maps = [affine_map<(m) -> (m)>, affine_map<(m) -> (m)>], iterator_types = ["parallel"]}
        ins(%squares : tensor<?xf32>) outs(%er : tensor<?xf32>) {
    ^bb0(%a: f32, %old: f32):
      %mean = arith.divf %a, %count : f32
      %shifted = arith.addf %mean, %small : f32
      %r = math.rsqrt %shifted : f32
      linalg.yield %r : f32
    } -> tensor<?xf32>
    %norm = linalg.generic {indexing_maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>, affine_map<(m, r) -> (r)>, affine_map<(m, r) -> (m, r)>], iterator_types = ["parallel", "parallel"]}
        ins(%h, %root, %gamma : tensor<?x160xf32>, tensor<?xf32>, tensor<160xf32>) outs(%e : tensor<?x160xf32>) {
    ^bb0(%a: f32, %r: f32, %g: f32, %old: f32):
      %scaled = arith.mulf %a, %r : f32
      %n = arith.mulf %scaled, %g : f32
      linalg.yield %n : f32
    } -> tensor<?x160xf32>
    %s = linalg.softmax dimension(1) ins(%y : tensor<?x160xf32>) outs(%e : tensor<?x160xf32>) -> tensor<?x160xf32>
    return %h, %norm, %root, %s : tensor<?x160xf32>, tensor<?x160xf32>, tensor<?xf32>, tensor<?x160xf32>
  }
}
"""
)

# The second product takes what IREE's own kernel computes, or one of rows.
MIXED = (
    HEAD
    + """ {
  func.func @mixed(%x: tensor<?x96xf32> {ukernel.shape = ["T", 96]}, %w: tensor<96x160xf32>, %v: tensor<160x24xf32>) -> (tensor<?x160xf32>, tensor<?x24xf32>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x96xf32>
    %e = tensor.empty(%t) : tensor<?x160xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x160xf32>) -> tensor<?x160xf32>
    %p = linalg.matmul ins(%x, %w : tensor<?x96xf32>, tensor<96x160xf32>) outs(%f : tensor<?x160xf32>) -> tensor<?x160xf32>
    %s = linalg.softmax dimension(1) ins(%p : tensor<?x160xf32>) outs(%e : tensor<?x160xf32>) -> tensor<?x160xf32>
    %e2 = tensor.empty(%t) : tensor<?x24xf32>
    %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x24xf32>) -> tensor<?x24xf32>
    %r = linalg.matmul ins(%s, %v : tensor<?x160xf32>, tensor<160x24xf32>) outs(%f2 : tensor<?x24xf32>) -> tensor<?x24xf32>
    return %s, %r : tensor<?x160xf32>, tensor<?x24xf32>
  }
}
"""
)

# Products whose kernels are chosen by one number.
PAIR = (
    HEAD
    + """ {
  func.func @pair(%x: tensor<?x64xf32> {ukernel.shape = ["T", 64]}, %v: tensor<64x96xf32>, %w: tensor<64x160xf32>) -> (tensor<?x96xf32>, tensor<?x160xf32>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x64xf32>
    %e = tensor.empty(%t) : tensor<?x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
    %p = linalg.matmul ins(%x, %v : tensor<?x64xf32>, tensor<64x96xf32>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
    %e2 = tensor.empty(%t) : tensor<?x160xf32>
    %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x160xf32>) -> tensor<?x160xf32>
    %q = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x160xf32>) outs(%f2 : tensor<?x160xf32>) -> tensor<?x160xf32>
    return %p, %q : tensor<?x96xf32>, tensor<?x160xf32>
  }
}
"""
)

# IREE's own phase; `util.assume.int` says the range.
PHASES = """
func.func @phases(%x: tensor<?x64xf32>, %w: tensor<64x96xf32>) -> tensor<?x96xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c0 : tensor<?x64xf32>
  %t = util.assume.int %d<umin = 1, umax = 128> : index
  %e = tensor.empty(%t) : tensor<?x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
  %r = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x96xf32>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %r : tensor<?x96xf32>
}
"""


# Without constants in bodies: a transform spec finds all of it.
RESIDUAL = """
func.func @residual(%x: tensor<?x80xf32>, %w: tensor<112x80xf32>, %b: tensor<112xf32>, %y: tensor<?x112xf32>) -> tensor<?x112xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c0 : tensor<?x80xf32>
  %t = util.assume.int %d<umin = 1, umax = 128> : index
  %we = tensor.empty() : tensor<80x112xf32>
  %wt = linalg.transpose ins(%w : tensor<112x80xf32>) outs(%we : tensor<80x112xf32>) permutation = [1, 0]
  %e = tensor.empty(%t) : tensor<?x112xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x112xf32>) -> tensor<?x112xf32>
  %p = linalg.matmul ins(%x, %wt : tensor<?x80xf32>, tensor<80x112xf32>) outs(%f : tensor<?x112xf32>) -> tensor<?x112xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%p, %b : tensor<?x112xf32>, tensor<112xf32>) outs(%e : tensor<?x112xf32>) {
  ^bb0(%a: f32, %bias: f32, %old: f32):
    %sum = arith.addf %a, %bias : f32
    linalg.yield %sum : f32
  } -> tensor<?x112xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%s, %y : tensor<?x112xf32>, tensor<?x112xf32>) outs(%e : tensor<?x112xf32>) {
  ^bb0(%a: f32, %rest: f32, %old: f32):
    %sum = arith.addf %a, %rest : f32
    linalg.yield %sum : f32
  } -> tensor<?x112xf32>
  return %r : tensor<?x112xf32>
}
"""

# One fill for the products of a loop; IREE's host counts.
LOOP = """
func.func @loop(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c0 : tensor<?x64xf32>
  %t = util.assume.int %d<umin = 1, umax = 128> : index
  %e = tensor.empty(%t) : tensor<?x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> tensor<?x64xf32> {
    %p = linalg.matmul ins(%a, %w : tensor<?x64xf32>, tensor<64x64xf32>) outs(%f : tensor<?x64xf32>) -> tensor<?x64xf32>
    scf.yield %p : tensor<?x64xf32>
  }
  return %r : tensor<?x64xf32>
}
"""

# Weights of two products: numbers of the module, and what IREE computes of such numbers.
PACKED = (
    HEAD
    + """ {
  func.func @packed(%x: tensor<?x128xf16> {ukernel.shape = ["T", 128]}) -> (tensor<?x72xf16>, tensor<?x72xf16>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f16
    %t = tensor.dim %x, %c0 : tensor<?x128xf16>
    %v = arith.constant dense<"0xV"> : tensor<128x72xf16>
    %numbers = arith.constant dense<"0xW"> : tensor<72x128xf32>
    %none = tensor.empty() : tensor<72x128xf16>
    %w = linalg.generic {indexing_maps = [affine_map<(n, k) -> (n, k)>, affine_map<(n, k) -> (n, k)>], iterator_types = ["parallel", "parallel"]}
        ins(%numbers : tensor<72x128xf32>) outs(%none : tensor<72x128xf16>) {
    ^bb0(%a: f32, %old: f16):
      %power = math.exp %a : f32
      %y = arith.truncf %power : f32 to f16
      linalg.yield %y : f16
    } -> tensor<72x128xf16>
    %e = tensor.empty(%t) : tensor<?x72xf16>
    %f = linalg.fill ins(%zero : f16) outs(%e : tensor<?x72xf16>) -> tensor<?x72xf16>
    %p = linalg.matmul ins(%x, %v : tensor<?x128xf16>, tensor<128x72xf16>) outs(%f : tensor<?x72xf16>) -> tensor<?x72xf16>
    %q = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %w : tensor<?x128xf16>, tensor<72x128xf16>) outs(%f : tensor<?x72xf16>) -> tensor<?x72xf16>
    return %p, %q : tensor<?x72xf16>, tensor<?x72xf16>
  }
}
"""
)

#: Those of aligned rows and others, beyond the range, and none.
SIZES = [[size] for size in (0, 1, 2, 7, 16, 53, 64, 100, 127, 128, 129, 200)]


@dataclass(frozen=True)
class Case:
    """A function of that name.

    text: the module, from a seed. arguments: (random generator, seed, *size) to the arguments and the expected results.
    tolerance: of results, relative to their norm. dispatches: products of a run. has_slices: whether some have slices of k.
    in_text: dispatches in the module, where loops repeat them. flags: of ftuner-translate.
    """

    text: Callable[[int], str]
    arguments: Callable[..., Any]
    tolerance: float
    dispatches: int = 1
    sizes: Any = tuple(SIZES)
    has_slices: bool = False
    in_text: Any = None
    flags: Any = ()


def _floats(rng, *shapes, type=np.float32):
    return [rng.standard_normal(shape).astype(type) for shape in shapes]


def _wide(array):
    return array.astype(np.float64)


def _softmax(logits):
    powers = np.exp(logits - logits.max(-1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(-1, keepdims=True)


def _dense(rng, seed, t):
    x, w, b = _floats(rng, (t, 96), (96, 160), (160,))
    return (x, w, b, 0.75), [np.maximum(0.75 * (_wide(x) @ w) + b, 0)]


def _scores(rng, seed, t):
    q, k = _floats(rng, (3, t, 24), (3, 24, t))
    return (q, k), [_wide(q) @ k]


def _projection(rng, seed, t):
    x, w = _floats(rng, (t, 256), (192, 256), type=np.float16)
    return (x, w), [_wide(x) @ _wide(w).T]


def _update(rng, seed, t):
    x, w, y = _floats(rng, (t, 40), (40, 72), (t, 72))
    return (x, w, y), [_wide(x) @ w + y]


def _slices(rng, seed, t):
    x, w, b = _floats(rng, (16384, t), (16384, 24), (24,))
    return (x, w, b, 0.75, 0.5), [np.maximum(0.75 * (_wide(x).T @ w + 0.5) + b, 0)]


def _slices_batch(rng, seed, b, t):
    q, k = _floats(rng, (b, t, 16384), (b, 16384, 24))
    return (q, k), [_wide(q) @ k]


def _slices_half(rng, seed, t):
    x, w, y = _floats(rng, (t, 32768), (32768, 24), (t, 24), type=np.float16)
    return (x, w, y), [_wide(x) @ _wide(w) + y]


def _slices_update(rng, seed, t):
    x, v, w, y = _floats(rng, (t, 16384), (16384, 24), (16384, 24), (t, 24))
    return (x, v, w, y), [_wide(x) @ v + _wide(x) @ w + y]


def _mixed(rng, seed, t):
    x, w, v = _floats(rng, (t, 96), (96, 160), (160, 24))
    w /= 10
    probabilities = _softmax(_wide(x) @ w)
    return (x, w, v), [probabilities, probabilities @ v]


def _rows(rng, seed, t):
    x, y, gamma = _floats(rng, (t, 160), (t, 160), (160,))
    total = _wide(x) + y
    root = 1 / np.sqrt((total * total).mean(1) + 1e-5)
    return (x, y, gamma), [total, total * root[:, None] * gamma, root, _softmax(_wide(y))]


def _pair(rng, seed, t):
    x, v, w = _floats(rng, (t, 64), (64, 96), (64, 160))
    return (x, v, w), [_wide(x) @ v, _wide(x) @ w]


def _packed_weights(seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((128, 72)).astype(np.float16), (
        rng.standard_normal((72, 128)) / 4
    ).astype(np.float32)


def _packed_text(seed):
    v, w = (array.tobytes().hex().upper() for array in _packed_weights(seed))
    return PACKED.replace("0xV", f"0x{v}").replace("0xW", f"0x{w}")


def _packed(rng, seed, t):
    (x,) = _floats(rng, (t, 128), type=np.float16)
    v, w = _packed_weights(seed)
    return (x,), [_wide(x) @ _wide(v), _wide(x) @ _wide(np.exp(_wide(w)).astype(np.float16)).T]


def _many_arguments(rng, seed, t):
    # As many tensors as IREE passes, and as many constants as it passes beside them on the CPU.
    x, w, *tensors = _floats(rng, (t, 64), (64, 96), *[(t, 96)] * 13)
    scalars = [float(value) for value in _floats(rng, (28,))[0]]
    return (x, w, *tensors, *scalars), [_wide(x) @ w + sum(map(_wide, tensors)) + sum(scalars)]


def _phases(rng, seed, t):
    x, w = _floats(rng, (t, 64), (64, 96))
    return (x, w), [_wide(x) @ w]


def _residual(rng, seed, t):
    x, w, b, y = _floats(rng, (t, 80), (112, 80), (112,), (t, 112))
    return (x, w, b, y), [_wide(x) @ w.T + b + y]


def _loop(rng, seed, t):
    x, w = _floats(rng, (t, 64), (64, 64))
    w /= 8
    return (x, w), [_wide(x) @ w @ w @ w]


def linear_layers(seed):
    """Two products of PyTorch's with biases, and a residual, in float32 with random weights."""
    import torch
    from torch import nn

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(48, 144), nn.Linear(144, 48)

        def forward(self, x):
            return x + self.down(self.up(x))

    torch.manual_seed(seed)
    return Layers().eval()


def bert_layer(seed):
    """A layer of a transformer, in float32 with random weights."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, width=64, heads=4):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

        def forward(self, x):
            b, t, width = x.shape
            q, k, v = (
                f(x).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v)
            )
            weights = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, -1)
            x = self.first(x + self.o((weights @ v).transpose(1, 2).reshape(b, t, width)))
            return self.second(x + self.down(nn.functional.gelu(self.up(x))))

    torch.manual_seed(seed)
    return Layer().eval()


def _imported(name, model, example, shapes):
    """A model as PyTorch's importer gives it."""
    from iree.compiler import ir
    from iree.compiler.extras import fx_importer

    import torch

    program = torch.export.export(model, (torch.from_numpy(example),), dynamic_shapes=(shapes,))
    with ir.Context() as context:
        importer = fx_importer.FxImporter(context=context)
        importer.import_program(program, func_name=name, import_symbolic_shape_expressions=True)
        return str(importer.module)


def _evaluated(model, x):
    import torch

    with torch.no_grad():
        return (x,), [model.double()(torch.from_numpy(_wide(x))).numpy()]


def _linear_text(seed):
    from torch.export import Dim

    return _imported(
        "linear", linear_layers(seed), np.ones((7, 48), np.float32), {0: Dim("T", min=2, max=128)}
    )


def _linear(rng, seed, t):
    return _evaluated(linear_layers(seed), *_floats(rng, (t, 48)))


def _bert_text(seed):
    from torch.export import Dim

    return _imported(
        "bert",
        bert_layer(seed),
        np.ones((3, 7, 64), np.float32),
        {0: Dim("B", min=1, max=8), 1: Dim("T", min=2, max=128)},
    )


def _bert(rng, seed, batch, length):
    return _evaluated(bert_layer(seed), *_floats(rng, (batch, length, 64)))


CASES = {
    "dense": Case(lambda seed: DENSE, _dense, 2e-6),
    "scores": Case(lambda seed: SCORES, _scores, 2e-6),
    "projection": Case(lambda seed: PROJECTION, _projection, 5e-4),
    "update": Case(lambda seed: UPDATE, _update, 2e-6),
    "slices": Case(
        lambda seed: SLICES,
        _slices,
        5e-6,
        sizes=([0], [1], [4], [7], [16], [53], [64], [128], [132], [133], [150]),
        has_slices=True,
    ),
    "slices_batch": Case(
        lambda seed: SLICES_BATCH,
        _slices_batch,
        5e-6,
        sizes=([1, 5], [2, 0], [3, 17], [4, 64], [5, 3]),
        has_slices=True,
    ),
    "slices_half": Case(
        lambda seed: SLICES_HALF,
        _slices_half,
        1e-3,
        sizes=([0], [1], [5], [16], [17]),
        has_slices=True,
    ),
    "slices_update": Case(
        lambda seed: SLICES_UPDATE,
        _slices_update,
        5e-6,
        dispatches=2,
        sizes=([0], [1], [37], [128], [129]),
        has_slices=True,
    ),
    "mixed": Case(lambda seed: MIXED, _mixed, 5e-6, dispatches=2, flags=("--paths=simt,mma",)),
    "rows": Case(lambda seed: ROWS, _rows, 2e-6),
    "pair": Case(lambda seed: PAIR, _pair, 2e-6, dispatches=2),
    "many": Case(
        lambda seed: iree_many.text(13, 28),
        _many_arguments,
        2e-6,
        sizes=([0], [1], [53], [128], [130]),
    ),
    "packed": Case(
        _packed_text,
        _packed,
        1e-3,
        dispatches=2,
        flags=("--paths=simt,mma,wgmma", "--pack-weights"),
    ),
    "phases": Case(lambda seed: PHASES, _phases, 2e-6),
    "residual": Case(lambda seed: RESIDUAL, _residual, 2e-6),
    "loop": Case(lambda seed: LOOP, _loop, 5e-6, dispatches=3, in_text=1, sizes=SIZES[1:]),
    "linear": Case(_linear_text, _linear, 2e-6, dispatches=2, sizes=SIZES[2:-1]),
    "bert": Case(
        _bert_text, _bert, 2e-6, dispatches=8, sizes=([1, 2], [3, 7], [8, 53], [5, 64], [2, 128])
    ),
}


def program(name):
    return os.path.join(sysconfig.get_path("scripts"), name)


def run(command, **arguments):
    return subprocess.run(command, capture_output=True, text=True, **arguments)


#: What iree-compile is told of a target.
TARGETS = {
    "cuda": ["--iree-hal-target-device=cuda", "--iree-cuda-target=sm_89"],
    "llvm-cpu": [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
    ],
}


@dataclass
class Compiled:
    """module: for IREE's runtime. kernels: the library for the emulator. output: FTuner's, in MLIR."""

    name: str
    target: str
    seed: int
    module: str = ""
    kernels: str = ""
    output: str = ""


def _iree_compile(path, options, output):
    """Problems of iree-compile."""
    answer = run([program("iree-compile"), path, *options, "-o", output])
    return (
        [f"iree-compile {' '.join(options)}: {answer.stderr[:2000]}"] if answer.returncode else []
    )


#: torch.export, and PyTorch's random numbers, are for one thread.
_PYTORCH = threading.Lock()


class _Build:
    """Files and options of one compilation."""

    def __init__(self, tests, name, seed, target, label):
        self.tests, self.stem = tests, f"{name}.{target}.{label}"
        with _PYTORCH:
            text = CASES[name].text(seed)
        self.source = tests.write(f"{self.stem}.mlir", text)
        self.options = TARGETS[target]
        self.importer = ["--iree-input-type=torch"] if "torch." in text else []
        self.compiled = Compiled(
            name,
            target,
            seed,
            tests.path(f"{self.stem}.vmfb"),
            tests.path(f"lib{self.stem}.so"),
            tests.path(f"{self.stem}.ftuner.mlir"),
        )

    def phase(self, phase):
        """IREE's module of a phase, in generic form; problems."""
        output = self.tests.path(f"{self.stem}.{phase}.mlir")
        options = [
            *self.options,
            *self.importer,
            f"--compile-to={phase}",
            "--mlir-print-op-generic",
        ]
        return output, _iree_compile(self.source, options, output)

    def translate(self, path, *options):
        """Problems of ftuner-translate."""
        answer = self.tests.tool(
            "ftuner-translate",
            path,
            f"--iree-target={self.compiled.target}",
            f"--device={DEVICE}",
            "-o",
            self.compiled.output,
            f"--emulated-kernels={self.compiled.kernels}",
            *options,
        )
        return [answer.stderr] if answer.returncode else []


def compile_case(tests, name, seed, target="cuda", phase=None, flags=()):
    """A case for a target, by one of IREE's phases where it is given. Returns (Compiled, problems)."""
    build = _Build(tests, name, seed, target, "".join([str(phase), *flags]))
    path, options, problems = build.source, build.options, []
    if phase:
        path, problems = build.phase(phase)
        options = [*options, f"--compile-from={phase}"]
    problems = problems or build.translate(path, "--ftuner-to-iree", *CASES[name].flags, *flags)
    problems = problems or _iree_compile(build.compiled.output, options, build.compiled.module)
    return build.compiled, problems


def compile_by_spec(tests, name, seed, target="cuda"):
    """A case for a target, by iree-compile from the case itself, with a transform spec. Returns (Compiled, problems)."""
    build = _Build(tests, name, seed, target, "spec")
    path, problems = build.phase("preprocessing")
    problems = problems or build.translate(path, "--ftuner-to-iree-spec")
    options = [
        *build.options,
        *build.importer,
        f"--iree-preprocessing-transform-spec-filename={build.compiled.output}",
    ]
    after = tests.path(f"{build.stem}.after.mlir")
    problems = problems or _iree_compile(
        build.source, [*options, "--compile-to=preprocessing"], after
    )
    if problems:
        return build.compiled, problems
    with open(after) as file:
        found = file.read().count("flow.dispatch @ftuner_kernels")
    wanted = CASES[name].in_text or CASES[name].dispatches
    if found != wanted:
        problems.append(f"expected {wanted} dispatches, but got {found}")
    return build.compiled, problems or _iree_compile(build.source, options, build.compiled.module)


def run_compiled(tests, compiled, driver, seed, sizes=None, kernels=None):
    """Runs a module at sizes in a process of its own, with the kernels of the module unless others are given."""
    libraries = os.path.join(tests.bin_dir, "..", "lib")
    environment = {
        **os.environ,
        "FTRT_TRACE": "1",
        "FTRT_EMULATED_LIBRARIES": compiled.kernels if kernels is None else kernels,
    }
    plugin = ""
    if compiled.target == "cuda":
        environment["LD_LIBRARY_PATH"] = os.path.join(libraries, "cuda-emulator")
    else:
        plugin = os.path.join(libraries, "libftuner_iree_plugin.so")
    sizes = list(CASES[compiled.name].sizes) if sizes is None else sizes
    return run(
        [
            sys.executable,
            __file__,
            compiled.name,
            compiled.module,
            driver,
            plugin,
            json.dumps([compiled.seed, seed, sizes]),
        ],
        env=environment,
    )


def _without_slices(launched):
    """Launches without the kernels whose slices a sum adds, for which the sum stands. Returns (names, problems).

    Each sum comes behind a launch of its kernel; what does not depend on either may run between them.
    """
    names, waiting, problems = [], Counter(), []
    for name in launched:
        kernel = name.removesuffix("_sum")
        if name == kernel:
            waiting[name] += 1
        elif waiting[kernel]:
            waiting[kernel] -= 1
            names.remove(kernel)
        else:
            problems.append(f"{name} is not launched behind {kernel}: {launched}")
        names.append(name)
    return names, problems


def check_run(tests, compiled, driver, seed):
    """Runs a module at its sizes. Returns (largest error, the kernel that gives the result of each product, problems)."""
    case = CASES[compiled.name]
    sizes = list(case.sizes)
    answer = run_compiled(tests, compiled, driver, seed)
    if answer.returncode != 0:
        return 0, [], [f"seed {seed}: {answer.stderr[-2000:]}"]
    rows, problems = [json.loads(line) for line in answer.stdout.splitlines()], []
    if [row["size"] for row in rows] != sizes:
        problems.append(f"expected sizes {sizes}, but got {rows}")
    for row in rows:
        if row["shapes"] != row["wanted"] or not all(
            error <= case.tolerance for error in row["errors"]
        ):
            problems.append(f"seed {seed}: {row}")
    # Nothing is launched for no rows.
    launched = [
        line.split()[1].rstrip(":")
        for line in answer.stderr.splitlines()
        if line.startswith("launch ")
    ]
    launched, found = _without_slices(launched)
    problems += found
    wanted = case.dispatches * sum(0 not in size for size in sizes)
    sums = [kernel for kernel in launched if kernel.endswith("_sum")]
    if bool(sums) != case.has_slices:
        problems.append(
            f"expected {'some' if case.has_slices else 'no'} sums of slices, but got {launched}"
        )
    if len(launched) != wanted:
        problems.append(f"expected {wanted} launches, but got {launched}")
    return max((max(row["errors"]) for row in rows), default=0), launched, problems


def check_words(tests, compiled, driver, missing):
    """What is wrong with FTRT_EMULATED_LIBRARIES is told in words; `missing` for a kernel that no library has."""
    problems = []
    for given, words in (
        ("", missing),
        ("/nonexistent/libx.so", "FTRT_EMULATED_LIBRARIES: /nonexistent/libx.so"),
        (
            os.path.join(tests.bin_dir, "..", "lib", "libftrt.so.1"),
            "expected a library of FTuner's",
        ),
    ):
        answer = run_compiled(tests, compiled, driver, 1, [[5]], given)
        if answer.returncode == 0 or words not in answer.stderr:
            problems.append(
                f"'{given}': expected '{words}', but got {answer.returncode}: {answer.stderr[-500:]}"
            )
    return problems


def run_with_odd_address(path, driver, plugin):
    """Runs `update` on a tensor that begins 4 bytes behind an aligned address; fails where results are wrong."""
    import iree.runtime as runtime

    runtime.flags.parse_flags(f"--executable_plugin={plugin}")
    config = runtime.Config(driver)
    module = runtime.load_vm_module(runtime.VmModule.mmap(config.vm_instance, path), config)
    memory = np.zeros(8 * 40 + 64, np.float32)
    start = -memory.ctypes.data % 64 // 4 + 1
    x = memory[start : start + 8 * 40].reshape(8, 40)
    x[...] = np.arange(8 * 40).reshape(8, 40) % 7
    buffer = config.device.allocator.import_host_allocation(
        x,
        int(runtime.MemoryType.DEVICE_LOCAL | runtime.MemoryType.HOST_VISIBLE),
        int(runtime.BufferUsage.DEFAULT | runtime.BufferUsage.MAPPING),
    )
    view = runtime.HalBufferView(buffer, x.shape, int(runtime.HalElementType.FLOAT_32))
    result = module.update(
        runtime.DeviceArray(config.device, view),
        np.ones((40, 72), np.float32),
        np.ones((8, 72), np.float32),
    )
    np.testing.assert_array_equal(result.to_host(), np.tile(x.sum(1, keepdims=True) + 1, 72))


def main():
    import iree.runtime as runtime

    name, path, driver, plugin, rest = sys.argv[1:]
    module_seed, seed, sizes = json.loads(rest)
    if sizes == "odd address":
        return run_with_odd_address(path, driver, plugin)
    if plugin:
        runtime.flags.parse_flags(f"--executable_plugin={plugin}")
    module, rng = runtime.load_vm_flatbuffer_file(path, driver=driver), np.random.default_rng(seed)
    for size in sizes:
        arguments, expected = CASES[name].arguments(rng, module_seed, *size)
        results = getattr(module, name)(*arguments)
        results = [
            result.to_host() for result in (results if isinstance(results, tuple) else (results,))
        ]
        errors = [
            float(np.linalg.norm(result - wanted) / max(np.linalg.norm(wanted), 1e-30))
            for result, wanted in zip(results, expected)
        ]
        print(
            json.dumps(
                {
                    "size": size,
                    "shapes": [list(result.shape) for result in results],
                    "wanted": [list(wanted.shape) for wanted in expected],
                    "errors": errors,
                }
            )
        )


if __name__ == "__main__":
    main()
