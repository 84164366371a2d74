// A matcher for each product, by its operators, and a call in its place.
// RUN: ftuner-translate %s --ftuner-to-iree-spec --device=h200 -o %t.mlir 2>&1 | FileCheck %s --check-prefix=WARNING
// RUN: FileCheck %s --input-file=%t.mlir --implicit-check-not=ukernel
// RUN: ftuner-translate %s --ftuner-to-iree-spec --device=h200 --pack-weights 2>&1 | FileCheck %s --check-prefix=PACKED
// RUN: ftuner-translate %s --ftuner-to-iree-spec --iree-target=llvm-cpu --device=h200 2>/dev/null | FileCheck %s --check-prefix=CPU
// RUN: ftuner-opt --mlir-print-op-generic %s -o %t.generic.mlir
// RUN: ftuner-translate %t.generic.mlir --ftuner-to-iree-spec --device=h200 2>/dev/null | cmp - %t.mlir
// RUN: not ftuner-translate %S/Inputs/iree-no-product.mlir --ftuner-to-iree-spec --device=h200 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not ftuner-translate %s --ftuner-to-iree-spec 2>&1 | FileCheck %s --check-prefix=DEVICE

// PACKED: warning: a transform spec packs no weights: option --pack-weights has no effect

// NOTHING: error: expected a product that a transform spec of IREE can find, but got none
// DEVICE: error: {{.*}}device

// CHECK: module attributes {transform.with_named_sequence} {
// CHECK: "hal.executable.source"(){{.*}}sym_name = "ftuner_kernels"
// CHECK: "util.func"() <{function_type = (tensor<?x64xf32>, tensor<64x96xf32>, tensor<?x96xf32>) -> tensor<?x96xf32>, sym_name = "ftuner_product_2", sym_visibility = "private"}>
// CHECK-NOT: cf.assert
// CHECK: "flow.dispatch"
// CHECK: "util.return"

// With bias and residual, of transposed weights.
// CHECK-LABEL: transform.named_sequence @match_ftuner_product_0(%root: !transform.any_op {transform.readonly})
// CHECK: transform.iree.match.cast_compatible_dag_from_root %root {
// CHECK-NEXT: ^bb0(%[[W:.*]]: tensor<96x64xf32>, %[[WE:.*]]: tensor<64x96xf32>, %[[E:.*]]: tensor<?x96xf32>, %[[X:.*]]: tensor<?x64xf32>, %[[BIAS:.*]]: tensor<96xf32>, %[[REST:.*]]: tensor<?x96xf32>):
// CHECK-NEXT: %[[T:.*]] = linalg.transpose ins(%[[W]] : tensor<96x64xf32>) outs(%[[WE]] : tensor<64x96xf32>) permutation = [1, 0]
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %[[F:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[E]] : tensor<?x96xf32>)
// CHECK-NEXT: %[[P:.*]] = linalg.matmul ins(%[[X]], %[[T]] : {{.*}}) outs(%[[F]] :
// CHECK-NEXT: %[[B:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[BIAS]] :
// CHECK: linalg.generic {{.*}} ins(%[[B]], %[[REST]] :
// CHECK: } : (!transform.any_op) -> (!transform.any_value, !transform.any_value)
// CHECK: transform.named_sequence @replace_ftuner_product_0
// CHECK: transform.util.import_symbol @ftuner_kernels into %module if undefined
// CHECK: transform.util.import_symbol @ftuner_product_0 into %module if undefined
// CHECK: transform.util.cast_and_call %function(%ins) -> %out after %root

// The product alone, where the epilogue holds a constant; the same twice is
// found by one; one that adds to what is there.
// CHECK-LABEL: @match_ftuner_product_1(
// CHECK: linalg.fill
// CHECK: linalg.matmul
// CHECK-NEXT: } :
// CHECK-LABEL: @match_ftuner_product_2(
// CHECK-NEXT: transform.iree
// CHECK-NEXT: ^bb0
// CHECK-NEXT: linalg.matmul
// CHECK-NEXT: } :
// CHECK-NOT: named_sequence @match

// Larger ones first.
// CHECK: @__transform_main
// CHECK: foreach_match in %function @match_ftuner_product_0 -> @replace_ftuner_product_0
// CHECK: apply_dce
// CHECK: foreach_match in %function @match_ftuner_product_1
// CHECK: foreach_match in %function @match_ftuner_product_2
// CHECK: apply_registered_pass "inline"

// CPU: "stream.executable"
// CPU: "util.func"
// CPU: @match_ftuner_product_0

module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128>, S = #ukernel.range<16 to 512 step 16>}} {
  func.func @whole(%x: tensor<?x64xf32> {ukernel.shape = ["T", 64]}, %w: tensor<96x64xf32>, %bias: tensor<96xf32>, %rest: tensor<?x96xf32> {ukernel.shape = ["T", 96]}) -> tensor<?x96xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x64xf32>
    %we = tensor.empty() : tensor<64x96xf32>
    %wt = linalg.transpose ins(%w : tensor<96x64xf32>) outs(%we : tensor<64x96xf32>) permutation = [1, 0]
    %e = tensor.empty(%t) : tensor<?x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
    %p = linalg.matmul ins(%x, %wt : tensor<?x64xf32>, tensor<64x96xf32>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
    %b = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%p, %bias : tensor<?x96xf32>, tensor<96xf32>) outs(%e : tensor<?x96xf32>) {
    ^bb0(%a: f32, %c: f32, %old: f32):
      %sum = arith.addf %a, %c : f32
      linalg.yield %sum : f32
    } -> tensor<?x96xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%b, %rest : tensor<?x96xf32>, tensor<?x96xf32>) outs(%e : tensor<?x96xf32>) {
    ^bb0(%a: f32, %c: f32, %old: f32):
      %sum = arith.addf %a, %c : f32
      linalg.yield %sum : f32
    } -> tensor<?x96xf32>
    return %r : tensor<?x96xf32>
  }

  func.func @relu(%x: tensor<?x64xf32> {ukernel.shape = ["S", 64]}, %w: tensor<64x96xf32>, %v: tensor<64x96xf32>) -> (tensor<?x96xf32>, tensor<?x96xf32>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x64xf32>
    %e = tensor.empty(%t) : tensor<?x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
    %p = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x96xf32>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
    %q = linalg.matmul ins(%x, %v : tensor<?x64xf32>, tensor<64x96xf32>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
    // WARNING: iree-spec.mlir:[[# @LINE + 1]]:{{[0-9]+}}: warning: IREE cannot find an operator that captures a value or holds a constant: the product before it is replaced alone
    %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
        ins(%p : tensor<?x96xf32>) outs(%e : tensor<?x96xf32>) {
    ^bb0(%a: f32, %old: f32):
      %y = arith.maximumf %a, %zero : f32
      linalg.yield %y : f32
    } -> tensor<?x96xf32>
    return %r, %q : tensor<?x96xf32>, tensor<?x96xf32>
  }

  func.func @update(%x: tensor<?x64xf32> {ukernel.shape = ["T", 64]}, %w: tensor<64x96xf32>, %y: tensor<?x96xf32> {ukernel.shape = ["T", 96]}) -> tensor<?x96xf32> {
    %r = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x96xf32>) outs(%y : tensor<?x96xf32>) -> tensor<?x96xf32>
    return %r : tensor<?x96xf32>
  }
}
