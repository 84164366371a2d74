// RUN: not ftuner-opt %s --ukernel-attach-device 2>&1 | FileCheck %s

// A device attribute that is no device.
// CHECK: error: {{.*}}#ukernel.device:{{[0-9]+}}: field '{{.*}}': expected
module attributes {ukernel.device = #ukernel.device<"x", {name = "x", sm_count = 4 : i64}>} {}
