"""Configurations of ONNX's operators, how they run beside onnxruntime, and what is written about them.

case        a configuration of an operator: operands with sizes, attributes; which configurations are tried.
pointwise … the configurations of each family of operators.
trials      a configuration with sizes unknown, known, or some of each; models of several trials.
outcome     runs a model of several trials beside onnxruntime, or ONNX's text where that departs.
workers     processes that may crash or hang.
table       the page of the docs.
chains      random graphs of one to three operators, for the fuzzer.
"""

from __future__ import annotations


def all_operators() -> list[str]:
    """The operators of all families."""
    from . import case, layout, pointwise, products, reductions, windows

    del layout, pointwise, products, reductions, windows
    return sorted(case.FAMILIES)
