"""Models of other frameworks as linalg on tensors, which `ftuner.compile` takes.

`torch_mlir` lowers what torch-mlir's importers give, for `ftuner.torch.export` and for `onnx`, which
reads files of ONNX.
"""
