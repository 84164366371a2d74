"""Ways into the compiler: PyTorch, ONNX, IREE, and the importers that they share.

`ftuner.torch`, `ftuner.onnx_backend` and `ftuner.iree` have the public names.
"""
