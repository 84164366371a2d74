"""Whole models through torch.export and torch-mlir, as linalg on tensors."""
