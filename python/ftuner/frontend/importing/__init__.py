"""Lowering of models by torch-mlir, for `ftuner.frontend.torch` and `ftuner.frontend.onnx`."""
