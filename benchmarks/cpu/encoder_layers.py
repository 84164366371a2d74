"""Launches of the implementations of BERT's layers, for replay_models.py.

Nobody published lists of launches. These follow from the sources of the libraries at the time (2021):

* TorchScript: operators as they are written. `aten::linear` of three dimensions is a product and, as a kernel of its own, an
  add of the bias (aten/src/ATen/native/Linear.cpp: only two dimensions took `addmm`). `matmul` of four dimensions copies
  permuted queries, keys and values. Copies, biases and masks take single elements (memory_rows.strided_launches_of).
* XLA fuses elementwise operators into what is behind them, but nothing behind a reduction into it, and computes no
  exponential twice. So the softmax is a maximum, exponentials with their sum, and a division; a norm is a sum of tensors with
  its mean, a variance, and the rest. Biases belong to the copies, the GELU and the sums.
* FasterTransformer: queries, keys and values are three products; one kernel adds their biases and transposes; one adds bias and
  residual and normalizes; one adds the bias and computes the GELU. In f16, with heads of 64 elements and up to 384 tokens, one
  kernel is all of attention (FusedAttentionLayer.cu), else there are two products, a softmax with scale and mask, and a
  transpose.
"""

from __future__ import annotations

from predicted_operators import Operator

LAYERS, WIDTH, HEADS = 12, 768, 12
#: The longest sequences of FasterTransformer's fused attention.
MAX_FUSED = 384
IMPLEMENTATIONS = ("torchscript", "xla", "ft")


def layer_of(implementation, dtype, batch, seq):
    """Launches of one layer, in their order."""
    tokens, heads, of_head = batch * seq, batch * HEADS, WIDTH // HEADS
    of_tokens, of_wide, scores = (tokens, WIDTH), (tokens, 4 * WIDTH), (heads * seq, seq)

    def half(extents):
        """Extents of a pass that only reads: half of the rows, read and written, have its bytes."""
        return max(1, extents[0] // 2), extents[1]

    linear = Operator("linear", "product", (1, tokens, WIDTH, WIDTH))
    up = Operator("linear", "product", (1, tokens, 4 * WIDTH, WIDTH))
    down = Operator("linear", "product", (1, tokens, WIDTH, 4 * WIDTH))
    gelu = Operator("gelu", "gelu", of_wide)
    copy = Operator("copy", "relu", of_tokens)
    multiply = Operator("scores", "product", (heads, seq, seq, of_head))
    softmax = Operator("softmax", "softmax", scores)
    sums = Operator("values", "product", (heads, seq, of_head, seq))
    residual = Operator("residual", "add", of_tokens)
    if implementation == "torchscript":
        bias, wide_bias = (
            Operator("bias", "strided", of_tokens),
            Operator("bias", "strided", of_wide),
        )
        scale, mask = Operator("scale", "relu", scores), Operator("mask", "strided", scores)
        copy = Operator("copy", "strided", of_tokens)
        norm = Operator("norm", "layernorm", of_tokens)
        return [
            *[linear, bias] * 3,
            *[copy] * 3,
            multiply,
            scale,
            mask,
            softmax,
            sums,
            copy,
            linear,
            bias,
            residual,
            norm,
            up,
            wide_bias,
            gelu,
            down,
            bias,
            residual,
            norm,
        ]
    if implementation == "xla":
        normalize = [
            residual,
            Operator("variance", "relu", half(of_tokens)),
            Operator("norm", "relu", of_tokens),
        ]
        return [
            *[linear, copy] * 3,
            multiply,
            Operator("maximum", "relu", half(scores)),
            Operator("exponentials", "relu", scores),
            Operator("division", "relu", scores),
            sums,
            copy,
            linear,
            *normalize,
            up,
            gelu,
            down,
            *normalize,
        ]
    bias = Operator("bias", "relu", (3 * tokens, WIDTH))
    # Reads rows once, as the fused norm of memory_rows does, but moves three tensors where that moves four.
    norm = Operator("norm", "add_rmsnorm", (max(1, tokens * 3 // 4), WIDTH))
    is_fused = dtype == "f16" and seq <= MAX_FUSED
    attention = (
        [Operator("attention", "attention", (heads, seq, of_head))]
        if is_fused
        else [multiply, softmax, sums, copy]
    )
    return [*[linear] * 3, bias, *attention, linear, norm, up, gelu, down, norm]
