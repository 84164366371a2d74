// The assembler neither spills registers of these kernels nor serializes their
// products, of which it tells by advisories of numbers C75...

// REQUIRES: ptxas

// RUN: ftuner-translate %S/wgmma.mlir --ftuner-to-ptx --device=h100 --paths=wgmma -o %t.ptx
// RUN: %ptxas -arch=sm_90a -v %t.ptx -o %t.cubin > %t.log 2>&1
// RUN: FileCheck %s --input-file=%t.log --implicit-check-not=C75 --implicit-check-not="{{[1-9][0-9]* bytes spill}}"

// CHECK: Used {{[0-9]+}} registers
