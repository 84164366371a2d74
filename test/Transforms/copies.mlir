// A remark on each copy that stays says what it copies, and why no operator reads
// or writes the elements in place; explanations have the same.
// RUN: ftuner-opt %s --split-input-file --ukernel-form-workloads=leave-pointwise --ukernel-form-pointwise --verify-diagnostics -o /dev/null
// RUN: ftuner-translate %S/Inputs/copies-explained.mlir --ftuner-to-ptx --device=h100 --max-kernels=1 --remarks=copy -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARKS
// RUN: ftuner-translate %S/Inputs/copies-explained.mlir --ftuner-explain --device=h100 --max-kernels=1 --size T=8 --all | FileCheck %s --check-prefix=EXPLAIN
// RUN: ftuner-translate %S/Inputs/copies-explained.mlir --ftuner-explain --device=h100 --max-kernels=1 --size T=8 --json | FileCheck %s --check-prefix=JSON

// Bufferization leaves copies, too.
// REMARKS: copies-explained.mlir:{{[0-9]+}}:8: remark: copy: elements are transposed, since the function returns the result (256 * T bytes)
// REMARKS: copies-explained.mlir:{{[0-9]+}}:8: remark: copy: elements are copied, since no operator writes them into the function's result (64 bytes)
// REMARKS: copies-explained.mlir:{{[0-9]+}}:8: remark: copy: elements are copied, since an operator or a loop overwrites the copy (128 bytes)

// EXPLAIN: Function returned, all of it
// EXPLAIN: copy: ukernel.pointwise at copies-explained.mlir:{{.*}} (returned_0): elements are transposed, since the function returns the result; T * 512 bytes read and written
// EXPLAIN: Function sliced, all of it
// EXPLAIN: copy: linalg.generic at copies-explained.mlir:{{.*}} (sliced_fallback_0): elements are copied, since no operator writes them into the function's result; 128 bytes read and written

// JSON: "copied": "elements are transposed, since the function returns the result"

// Results of the function, of branches and of loops.
func.func @returned(%x: tensor<?x64xf32>) -> tensor<64x?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%n) : tensor<64x?xf32>
  // expected-remark @below {{copy: elements are transposed, since the function returns the result (256 * arg0_dim0 bytes)}}
  %r = linalg.transpose ins(%x : tensor<?x64xf32>) outs(%e : tensor<64x?xf32>) permutation = [1, 0]
  return %r : tensor<64x?xf32>
}

// -----

func.func @repeated(%x: tensor<8xf16>, %b: i1, %y: tensor<8x5xf16>) -> tensor<8x5xf16> {
  %e = tensor.empty() : tensor<8x5xf16>
  %r = scf.if %b -> tensor<8x5xf16> {
    // expected-remark @below {{copy: elements are repeated, since a loop or a branch returns the result (80 bytes)}}
    %s = linalg.broadcast ins(%x : tensor<8xf16>) outs(%e : tensor<8x5xf16>) dimensions = [1]
    scf.yield %s : tensor<8x5xf16>
  } else {
    scf.yield %y : tensor<8x5xf16>
  }
  return %r : tensor<8x5xf16>
}

// -----

// Two results of one copy.
#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>
#i = affine_map<(i, j) -> (i)>
func.func @both(%x: tensor<8xf32>, %y: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  // expected-remark @below {{copy: elements are repeated, since the function returns the result; elements are transposed, since the function returns the result (512 bytes)}}
  %r:2 = linalg.generic {indexing_maps = [#i, #ji, #ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<8xf32>, tensor<8x8xf32>) outs(%e, %e : tensor<8x8xf32>, tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32, %p: f32):
    linalg.yield %a, %b : f32, f32
  } -> (tensor<8x8xf32>, tensor<8x8xf32>)
  return %r#0, %r#1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Readers.
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
func.func @gathered(%y: tensor<4x8xf32>, %i: tensor<5xi64>) -> tensor<5x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  // expected-remark @below {{copy: elements are transposed, since 'linalg.generic', which is not a uKernel, reads the result (128 bytes)}}
  %t = linalg.transpose ins(%y : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  %o = tensor.empty() : tensor<5x4xf32>
  // expected-remark @below {{fallback: }}
  %r = linalg.generic {indexing_maps = [#i, #ij], iterator_types = ["parallel", "parallel"]} ins(%i : tensor<5xi64>) outs(%o : tensor<5x4xf32>) {
  ^bb0(%v: i64, %q: f32):
    %j = linalg.index 1 : index
    %n = arith.index_cast %v : i64 to index
    %w = tensor.extract %t[%n, %j] : tensor<8x4xf32>
    linalg.yield %w : f32
  } -> tensor<5x4xf32>
  return %r : tensor<5x4xf32>
}

// -----

func.func @inserted(%y: tensor<4x8xf32>, %x: tensor<16x4xf32>) -> tensor<16x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  // expected-remark @below {{copy: elements are transposed, since the result is a part of another tensor (128 bytes)}}
  %t = linalg.transpose ins(%y : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  %r = tensor.insert_slice %t into %x[0, 0] [8, 4] [1, 1] : tensor<8x4xf32> into tensor<16x4xf32>
  return %r : tensor<16x4xf32>
}

// -----

func.func @joined(%x: tensor<4x8x16xf32>) -> tensor<32x16xf32> {
  %e = tensor.empty() : tensor<8x4x16xf32>
  // expected-remark @below {{copy: elements are transposed, since 'tensor.collapse_shape' joins dimensions of the result (2048 bytes)}}
  %r = linalg.transpose ins(%x : tensor<4x8x16xf32>) outs(%e : tensor<8x4x16xf32>) permutation = [1, 0, 2]
  %c = tensor.collapse_shape %r [[0, 1], [2]] : tensor<8x4x16xf32> into tensor<32x16xf32>
  %o = tensor.empty() : tensor<32x16xf32>
  %s = linalg.exp ins(%c : tensor<32x16xf32>) outs(%o : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %s : tensor<32x16xf32>
}

// -----

func.func @several(%x: tensor<16x32xf32>) -> (tensor<32x16xf32>, tensor<32x16xf32>) {
  %e = tensor.empty() : tensor<32x16xf32>
  // expected-remark @below {{copy: elements are transposed, since several operators read the result (2048 bytes)}}
  %r = linalg.transpose ins(%x : tensor<16x32xf32>) outs(%e : tensor<32x16xf32>) permutation = [1, 0]
  %s = linalg.exp ins(%r : tensor<32x16xf32>) outs(%e : tensor<32x16xf32>) -> tensor<32x16xf32>
  %t = linalg.log ins(%r : tensor<32x16xf32>) outs(%e : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %s, %t : tensor<32x16xf32>, tensor<32x16xf32>
}

// -----

func.func @operand(%x: tensor<16x32xf32>, %w: tensor<16x16xf32>) -> tensor<32x16xf32> {
  %e = tensor.empty() : tensor<32x16xf32>
  // expected-remark @below {{copy: elements are transposed, since 'ukernel.workload' does not read its operand transposed (2048 bytes)}}
  %r = linalg.transpose ins(%x : tensor<16x32xf32>) outs(%e : tensor<32x16xf32>) permutation = [1, 0]
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32x16xf32>) -> tensor<32x16xf32>
  %s = linalg.matmul ins(%r, %w : tensor<32x16xf32>, tensor<16x16xf32>) outs(%f : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %s : tensor<32x16xf32>
}

// -----

// Parts of concatenations.
func.func @parts(%x: tensor<4x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %s = tensor.extract_slice %y[1, 0] [4, 8] [1, 1] : tensor<8x8xf32> to tensor<4x8xf32>
  // expected-remark @below {{copy: a part of a concatenation is copied, since the part is an argument of the function (128 bytes)}}
  // expected-remark @below {{copy: a part of a concatenation is copied, since 'tensor.extract_slice', which makes the part, is not an operator (128 bytes)}}
  %c = tensor.concat dim(0) %x, %s : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}

// -----

// Reshapes do not hide what they view.
func.func @reshaped(%x: tensor<32xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<32xf32>
  %w = linalg.log ins(%x : tensor<32xf32>) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %x2 = tensor.expand_shape %x [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %w2 = tensor.expand_shape %w [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  // expected-remark @below {{copy: a part of a concatenation is copied, since the part is an argument of the function (128 bytes)}}
  // expected-remark @below {{copy: a part of a concatenation is copied, since 'tensor.expand_shape', which makes the part, is not an operator (128 bytes)}}
  %c = tensor.concat dim(0) %x2, %w2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}

// -----

func.func @read_too(%y: tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %z = linalg.exp ins(%y : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %w = linalg.log ins(%y : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark @below {{copy: a part of a concatenation is copied, since other operators read the part, too (128 bytes)}}
  %c = tensor.concat dim(0) %z, %w : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %c, %z : tensor<8x8xf32>, tensor<4x8xf32>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
func.func @several_results(%y: tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %z:2 = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x8xf32>) outs(%e, %e : tensor<4x8xf32>, tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32, %p: f32):
    %a = math.exp %v : f32
    %b = arith.addf %a, %v : f32
    linalg.yield %a, %b : f32, f32
  } -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %w = linalg.log ins(%y : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark @below {{copy: a part of a concatenation is copied, since 'ukernel.pointwise', which computes the part, has several results (128 bytes)}}
  %c = tensor.concat dim(0) %z#0, %w : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %c, %z#1 : tensor<8x8xf32>, tensor<4x8xf32>
}

// -----

func.func @outside(%y: tensor<4x8xf32>, %x: tensor<8x8xf32>, %b: i1) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %u = linalg.exp ins(%y : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = scf.if %b -> tensor<8x8xf32> {
    %w = linalg.log ins(%y : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
    // expected-remark @below {{copy: a part of a concatenation is copied, since the part comes from outside of a loop or a branch (128 bytes)}}
    %c = tensor.concat dim(0) %w, %u : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    scf.yield %c : tensor<8x8xf32>
  } else {
    scf.yield %x : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}

// -----

func.func @carried(%y: tensor<4x8xf32>, %x: tensor<8x8xf32>, %n: index) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%s = %x, %t = %y) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
    %e = tensor.empty() : tensor<4x8xf32>
    %u = linalg.exp ins(%t : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
    %w = linalg.log ins(%t : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
    // expected-remark @below {{copy: a part of a concatenation is copied, since a loop carries the part (128 bytes)}}
    %c = tensor.concat dim(0) %t, %u : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    scf.yield %c, %w : tensor<8x8xf32>, tensor<4x8xf32>
  }
  return %r#0 : tensor<8x8xf32>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
func.func @over(%y: tensor<4x8xf32>, %a: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %z = linalg.exp ins(%y : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark @below {{fallback: }}
  %p = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x8xf32>) outs(%a : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %b = arith.addf %v, %o : f32
    linalg.yield %b : f32
  } -> tensor<4x8xf32>
  // expected-remark @below {{copy: a part of a concatenation is copied, since 'linalg.generic' cannot write the part into another tensor (128 bytes)}}
  %c = tensor.concat dim(0) %z, %p : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}
