// Parts of tensors that chains read where they lie. A loop of one trip lies in
// memory as either neighbor does, but its neighbors do not lie as one loop.

// RUN: ftuner-run %s --device=h100 --args=2x1x10x8xf32 --check --check-bounds | FileCheck %s
// RUN: ftuner-run %s --device=v100 --args=2x1x10x8xf32 --check --misalign=2 | FileCheck %s
// CHECK: result 0: 2x1x9x7xf32, relative error

func.func @part(%x: tensor<2x1x10x8xf32>) -> tensor<2x1x9x7xf32> {
  %part = tensor.extract_slice %x[0, 0, 1, 1] [2, 1, 9, 7] [1, 1, 1, 1] : tensor<2x1x10x8xf32> to tensor<2x1x9x7xf32>
  %empty = tensor.empty() : tensor<2x1x9x7xf32>
  %y = linalg.exp ins(%part : tensor<2x1x9x7xf32>) outs(%empty : tensor<2x1x9x7xf32>) -> tensor<2x1x9x7xf32>
  return %y : tensor<2x1x9x7xf32>
}
