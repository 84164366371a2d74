"""Operators of PyTorch in terms of operators that torch-mlir lowers as PyTorch means them.

Each module has `RULES`, which `ftuner.frontend.torch.exporting.decompositions` collects: the replaced operators with
functions of the same arguments. A function that returns NotImplemented leaves the operator as it is.
"""
