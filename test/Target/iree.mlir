// One dispatch for each workload, exports in a chain, and nothing of FTuner's
// is left.
// RUN: ftuner-translate %s --ftuner-to-iree --device=h200 --paths=simt,mma -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir --implicit-check-not=ukernel
// RUN: ftuner-opt %s "--ftuner-to-iree=device=h200 paths=simt,mma" --allow-unregistered-dialect -o %t.opt.mlir
// RUN: cmp %t.mlir %t.opt.mlir
// Who computes what.
// RUN: ftuner-translate %s --ftuner-to-iree --device=h200 --paths=simt,mma -o %t.reported.mlir --report=%t.json
// RUN: cmp %t.mlir %t.reported.mlir
// RUN: FileCheck %s --input-file=%t.json --check-prefix=REPORT
// What IREE prints is what it reads.
// RUN: ftuner-opt %t.mlir --allow-unregistered-dialect -o %t.again.mlir
// RUN: cmp %t.mlir %t.again.mlir
// The kernels are in it as text.
// RUN: %python -c "import re, sys; text = open(sys.argv[1]).read(); print(bytes.fromhex(re.search('0x([0-9A-F]+)', text).group(1)).decode())" %t.mlir | FileCheck %s --check-prefix=PTX

// RUN: not ftuner-opt %s --ftuner-to-iree=device=h200 2>&1 | FileCheck %s --check-prefix=REGISTERED
// RUN: not ftuner-translate %s --ftuner-to-iree 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: not ftuner-translate %s --ftuner-to-ptx --device=h200 --emulated-kernels=%t.so 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: not ftuner-translate %s --ftuner-to-iree --device=h200 --emulated-kernels=%t.so 2>&1 | FileCheck %s --check-prefix=FILE

// RUN: not ftuner-translate %s --ftuner-to-ptx --device=h200 --report=%t.json 2>&1 | FileCheck %s --check-prefix=REPORT-ALONE
// RUN: not ftuner-translate %s --ftuner-to-iree --device=h200 --report=%t.json 2>&1 | FileCheck %s --check-prefix=REPORT-FILE

// REPORT-ALONE: error: option --report has no effect without --ftuner-to-iree or --ftuner-explain
// REPORT-FILE: error: option -o: expected the name of a file beside --report
// REGISTERED: error: expected --allow-unregistered-dialect
// DEVICE: error: {{.*}}device
// ALONE: error: option --emulated-kernels has no effect without --ftuner-to-iree
// FILE: error: option -o: expected the name of a file beside --emulated-kernels

// CHECK: "hal.executable.source"() <{objects = #hal.executable.objects<{#hal.executable.target<"cuda", "cuda-nvptx-fb"> = [#hal.executable.object<{path = "ftuner_kernels.ptx", data = dense<"0x{{[0-9A-F]+}}"> : vector<{{[0-9]+}}xi8>}>]}>, sym_name = "ftuner_kernels", sym_visibility = "private"}>
// CHECK: "hal.executable.export"() <{condition_fallback = @[[NEXT:product_0_[0-9a-f]+_k[0-9]+]], layout = #hal.pipeline.layout<constants = [[CONSTANTS:[0-9]+]], bindings = [#hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer>]>, ordinal = 0 : index, sym_name = "[[FIRST:product_0_[0-9a-f]+_k[0-9]+]]"
// CHECK-SAME: workgroup_size = [{{[0-9]+}} : index, 1 : index, 1 : index]
// CHECK-NEXT: ^bb0(%{{[a-z0-9]+}}: !hal.device, %{{[a-z0-9]+}}: index, %[[BLOCKS:[a-z0-9]+]]: index):
// CHECK: %[[LEAST:.*]] = arith.minui %[[BLOCKS]], %{{.*}} : index
// CHECK-NEXT: "hal.return"(%[[BLOCKS]], %[[LEAST]], %[[LEAST]]) : (index, index, index) -> ()
// CHECK: ^bb0(%{{[a-z0-9]+}}: !hal.device, %[[NUMBER:[a-z0-9]+]]: index, %{{[a-z0-9]+}}: index):
// CHECK: %[[MEANT:[0-9]+]] = arith.cmpi eq, %[[NUMBER]]
// CHECK-NEXT: "hal.return"(%[[MEANT]]) : (i1) -> ()
// CHECK: ordinal = 1 : index, sym_name = "[[NEXT]]"
// CHECK: "hal.executable.source_end"() : () -> ()

// The bias is in the kernel; the softmax stays, as rows are none of the paths.
// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[A:.*]]: tensor<?x64xf32>, %[[B:.*]]: tensor<64x96xf32>, %[[BIAS:.*]]: tensor<96xf32>, %[[SCALE:.*]]: f32)
// CHECK: %[[M:.*]] = tensor.dim %[[A]]
// CHECK: %[[COUNTS:.*]]:2 = scf.index_switch
// CHECK: %[[BITS:.*]] = arith.bitcast %[[SCALE]] : f32 to i32
// CHECK: %[[PRODUCT:.*]] = "flow.dispatch"(%{{.*}}, %[[COUNTS]]#0, %[[A]], %[[B]], %[[BIAS]], %{{.*}}, %[[BITS]]
// CHECK-SAME: entry_points = [@ftuner_kernels::@[[FIRST]]]
// CHECK-SAME: tied_operands = [-1 : index]
// CHECK-SAME: tensor<?x64xf32>, tensor<64x96xf32>, tensor<96xf32>, i32, i32
// CHECK-NOT: flow.dispatch
// CHECK: linalg.softmax {{.*}} ins(%[[PRODUCT]]

// Equal workloads have the same kernels.
// CHECK-LABEL: func.func @twice(
// CHECK: "flow.dispatch"{{.*}}@ftuner_kernels::@[[TWICE:.*]]]
// CHECK: "flow.dispatch"{{.*}}@ftuner_kernels::@[[TWICE]]]

// 2 * 64 * 96 of the product, 2 * 96 of what follows it.
// REPORT: "dispatches": 3
// REPORT: "kernels": {{[1-9]}}
// REPORT: "name": "product"
// REPORT: "operator": "ukernel.workload",
// REPORT-NEXT: "location": "iree.mlir:{{[0-9:]+}}",
// REPORT-NEXT: "flops": "T * 12480"
// REPORT: "left":
// REPORT: "operator": "linalg.softmax",
// REPORT: "contraction": false,
// REPORT-NEXT: "flops": "T * 480"
// REPORT: "not_counted": []
// REPORT: "T": 1
// REPORT: "T": 128
// REPORT-NEXT: }
// REPORT-NEXT: "flops": 1658880,
// REPORT-NEXT: "share": 0.96296{{[0-9]*}},
// REPORT-NEXT: "contraction_flops": 1597440,
// REPORT-NEXT: "contraction_share": 1
// REPORT: "name": "twice"
// REPORT-COUNT-2: "flops": "65536"

// PTX: .visible .entry product_0_{{[0-9a-f]+}}_k
// PTX: .visible .entry twice_0_{{[0-9a-f]+}}_k
// PTX-NOT: .visible .entry twice_1_k

module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128>}} {
  func.func @product(%a: tensor<?x64xf32> {ukernel.shape = ["T", 64]}, %b: tensor<64x96xf32>, %bias: tensor<96xf32>, %scale: f32) -> tensor<?x96xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x64xf32>
    %e = tensor.empty(%m) : tensor<?x96xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
    %p = linalg.matmul ins(%a, %b : tensor<?x64xf32>, tensor<64x96xf32>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%p, %bias : tensor<?x96xf32>, tensor<96xf32>) outs(%e : tensor<?x96xf32>) {
    ^bb0(%x: f32, %y: f32, %old: f32):
      %scaled = arith.mulf %x, %scale : f32
      %sum = arith.addf %scaled, %y : f32
      linalg.yield %sum : f32
    } -> tensor<?x96xf32>
    %r = linalg.softmax dimension(1) ins(%s : tensor<?x96xf32>) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
    return %r : tensor<?x96xf32>
  }

  func.func @twice(%a: tensor<8x64xf32>, %b: tensor<64x64xf32>) -> tensor<8x64xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
    %p = linalg.matmul ins(%a, %b : tensor<8x64xf32>, tensor<64x64xf32>) outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
    %q = linalg.matmul ins(%p, %b : tensor<8x64xf32>, tensor<64x64xf32>) outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
    return %q : tensor<8x64xf32>
  }
}
