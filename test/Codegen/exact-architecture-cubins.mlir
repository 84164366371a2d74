// Cubins of kernels that need an exact architecture are for it alone, and those
// of other kernels never.

// REQUIRES: ptxas

// RUN: ftuner-test-opt %S/exact-architecture.mlir --ftuner-front-end=device=h200 -o %t.portable.mlir
// RUN: sed 's/#ukernel.scalar/#ukernel.exact/g' %t.portable.mlir > %t.mlir
// RUN: ftuner-test-translate %t.mlir --ftuner-to-library --cubins=sm_90a -o %t.so
// RUN: %python %S/Inputs/images.py %{bin}/../lib/libftrt.so.1 %t.so | FileCheck %s
// RUN: ftuner-test-translate %t.mlir --ftuner-to-library --cubins=auto -o %t.so
// RUN: %python %S/Inputs/images.py %{bin}/../lib/libftrt.so.1 %t.so | FileCheck %s
// RUN: not ftuner-test-translate %t.mlir --ftuner-to-library --cubins=sm_90 -o %t.so 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not ftuner-test-translate %t.mlir --ftuner-to-library --cubins=sm_100a -o %t.so 2>&1 | FileCheck %s --check-prefix=NEWER
// RUN: not ftuner-test-translate %t.portable.mlir --ftuner-to-library --cubins=sm_90a -o %t.so 2>&1 | FileCheck %s --check-prefix=PORTABLE
// RUN: not ftuner-test-translate %t.mlir --ftuner-to-library --cubins=sm_90b -o %t.so 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK: {{^}}cubin for 90 exactly
// CHECK-NEXT: PTX for 90 exactly

// NUMBER: error: expected the architecture 'sm_90a', whose instructions kernels have, but got 'sm_90'
// NEWER: error: expected the architecture 'sm_90a', whose instructions kernels have, but got 'sm_100a'
// PORTABLE: error: expected the architecture 'sm_90', since no kernel has instructions of one architecture alone, but got 'sm_90a'
// UNKNOWN: error: option --cubins: expected architectures such as 'sm_90' or 'sm_90a', but got 'sm_90b'
