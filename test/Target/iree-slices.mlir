// Slices of k are the result of a dispatch of their own, in front of the one
// that adds them up.
// RUN: ftuner-translate %s --ftuner-to-iree --device=h200 -o %t.mlir --report=%t.json
// RUN: FileCheck %s --input-file=%t.mlir --implicit-check-not=ukernel
// RUN: FileCheck %s --input-file=%t.json --check-prefix=REPORT
// RUN: ftuner-translate %s --ftuner-to-iree --iree-target=llvm-cpu --device=h200 | FileCheck %s --check-prefix=CPU

// One dispatch without slices: for those who ask for it, and in specs.
// RUN: ftuner-translate %s --ftuner-to-iree --device=h200 --split-k=false | FileCheck %s --check-prefix=WHOLE --implicit-check-not=_sum
// RUN: ftuner-translate %s --ftuner-to-iree-spec --device=h200 | FileCheck %s --check-prefix=WHOLE --implicit-check-not=_sum
// WHOLE: "flow.dispatch"
// WHOLE-NOT: "flow.dispatch"

// The kernels that sum slices, then those that give the result: the latter
// read the slices, too.
// CHECK: "hal.executable.export"() <{condition_fallback = @product_0_{{[0-9a-f]+}}_k{{[0-9]+}}, layout = #hal.pipeline.layout<constants = {{[0-9]+}}, bindings = [#hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer>]>, ordinal = 0 : index, sym_name = "[[SLICES:product_0_[0-9a-f]+_k[0-9]+]]"
// CHECK: "hal.executable.export"() <{condition_fallback = @{{.*}}, layout = #hal.pipeline.layout<constants = {{[0-9]+}}, bindings = [#hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer>]>, ordinal = {{[1-9]}} : index, sym_name = "[[SLICES]]_sum"

// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[A:.*]]: tensor<4096x?xf32>, %[[B:.*]]: tensor<4096x24xf32>, %[[BIAS:.*]]: tensor<24xf32>)
// CHECK: %[[M:.*]] = tensor.dim %[[A]]
// CHECK: %[[COUNTS:.*]]:5 = scf.index_switch %[[FAMILY:[0-9]+]]
// As many elements as all slices have, at least one; blocks of the sums, and of the slices.
// CHECK-NEXT: case
// CHECK: %[[POINTS:.*]] = arith.muli %{{.*}}, %c24
// CHECK: %[[SUMS:.*]] = arith.ceildivui %[[POINTS]], %c256
// CHECK: %[[ALL:.*]] = arith.muli %[[POINTS]], %c32
// CHECK: %[[ELEMENTS:.*]] = arith.maxui %[[ALL]], %c1
// CHECK: scf.yield %[[SUMS]], %{{.*}}, %{{.*}}, %{{.*}}, %[[ELEMENTS]]
// The last family has no slices: no blocks of theirs, and one element.
// CHECK: default {
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{c0[_0-9]*}}, %{{c0[_0-9]*}}, %{{c1[_0-9]*}} :
// CHECK: %[[PARTS:.*]] = "flow.dispatch"(%[[FAMILY]], %[[COUNTS]]#2, %[[A]], %[[B]],
// CHECK-SAME: %[[COUNTS]]#4) <{entry_points = [@ftuner_kernels::@[[SLICES]]]
// CHECK-SAME: -> tensor<?xf32>
// CHECK: "flow.dispatch"(%[[FAMILY]], %[[COUNTS]]#0, %[[A]], %[[B]], %[[BIAS]], %[[PARTS]],
// CHECK-SAME: -> tensor<?x24xf32>
// CHECK-NOT: "flow.dispatch"

// REPORT: "dispatches": 2
// REPORT: "name": "product"
// REPORT: "dispatches": [
// REPORT-COUNT-1: "operator": "ukernel.workload"
// REPORT-NOT: "operator": "ukernel.workload"

// CPU: "stream.executable.export"() <{function_ref = @product_0_{{[0-9a-f]+}}_slices
// CPU: "stream.executable.export"() <{function_ref = @product_0_{{[0-9a-f]+}},
// CPU-COUNT-2: "flow.dispatch"

module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128>}} {
  func.func @product(%a: tensor<4096x?xf32> {ukernel.shape = [4096, "T"]}, %b: tensor<4096x24xf32>, %bias: tensor<24xf32>) -> tensor<?x24xf32> {
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c1 : tensor<4096x?xf32>
    %e = tensor.empty(%m) : tensor<?x24xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x24xf32>) -> tensor<?x24xf32>
    %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%a, %b : tensor<4096x?xf32>, tensor<4096x24xf32>) outs(%f : tensor<?x24xf32>) -> tensor<?x24xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%p, %bias : tensor<?x24xf32>, tensor<24xf32>) outs(%e : tensor<?x24xf32>) {
    ^bb0(%x: f32, %y: f32, %old: f32):
      %sum = arith.addf %x, %y : f32
      linalg.yield %sum : f32
    } -> tensor<?x24xf32>
    return %r : tensor<?x24xf32>
  }
}
