// RUN: not ftuner-opt %s --ukernel-attach-device 2>&1 | FileCheck %s
// RUN: ftuner-opt %S/../tools/Inputs/matmul.mlir --ftuner-front-end=device=t4 -o %t.plan.mlir
// RUN: not ftuner-opt %t.plan.mlir --ukernel-attach-device=device=a100 2>&1 | FileCheck %s --check-prefix=PLANNED
// RUN: ftuner-opt %t.plan.mlir --ukernel-attach-device=device=t4 -o %t.same.mlir
// RUN: ftuner-opt %S/../tools/Inputs/matmul.mlir --ftuner-compile=device=t4 -o %t.compiled.mlir
// RUN: not ftuner-opt %t.compiled.mlir --ukernel-attach-device=device=a100 2>&1 | FileCheck %s --check-prefix=PLANNED

// Plans and kernels of one device are not for another.
// PLANNED: error: expected device 't4', but got 'a100'
// PLANNED: note: made for 't4' already

// A device attribute that is no device.
// CHECK: error: {{.*}}#ukernel.device:{{[0-9]+}}: field '{{.*}}': expected
module attributes {ukernel.device = #ukernel.device<"x", {name = "x", sm_count = 4 : i64}>} {}
