// IREE encodes no tensor maps, so no kernel for it takes any, whatever options
// say; a plan that has some is refused.

// RUN: ftuner-translate %S/../Codegen/wgmma.mlir --ftuner-to-iree --device=h100 --paths=wgmma --tensor-maps=true | FileCheck %s
// CHECK: flow.dispatch

// RUN: not ftuner-translate %S/../Codegen/wgmma-copies.mlir --ftuner-to-iree --device=h100 2>&1 | FileCheck %s --check-prefix=PLANNED
// PLANNED: error: {{.*}}expected a family whose kernel takes no tensor maps
