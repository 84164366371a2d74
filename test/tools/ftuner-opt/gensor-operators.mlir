// Walks of Gensor construct convolutions of points and products with vectors,
// and blocks read long pieces of a matrix that a vector multiplies.

// RUN: ftuner-opt %s "--ftuner-front-end=device=rtx4090 strategy=gensor" | FileCheck %s
// RUN: ftuner-run %s --function=points --args=2x64x28x28xf32,96x64x1x1xf32 --device=rtx4090 --strategy=gensor --executor=emulator --check --check-bounds --check-races
// RUN: ftuner-run %s --function=vector --args=300x1000xf32,1000xf32 --device=rtx4090 --strategy=gensor --executor=emulator --check --check-bounds --check-races
// RUN: ftuner-run %s --function=column --args=300x1000xf32,1000x1xf32 --device=rtx4090 --strategy=gensor --executor=emulator --check --check-bounds --check-races

// CHECK: ukernel.plan @plan_0 {{.*}}steps = {{[1-9]}}
// CHECK: ukernel.plan @plan_1 <families = [<{{[^<]*}}<threads{{[^>]*}}>{{.*}}tiles = {{\[\[[0-9]+, [0-9]+, 128]]}}{{.*}}steps = {{[1-9]}}
// CHECK: ukernel.plan @plan_2 <families = [<{{[^<]*}}<threads{{[^>]*}}>{{.*}}tiles = {{\[\[[0-9]+, [0-9]+, (64|128)]]}}{{.*}}steps = {{[1-9]}}

func.func @points(%i: tensor<2x64x28x28xf32>, %k: tensor<96x64x1x1xf32>) -> tensor<2x96x28x28xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x96x28x28xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<2x96x28x28xf32>) -> tensor<2x96x28x28xf32>
  %p = linalg.conv_2d_nchw_fchw ins(%i, %k : tensor<2x64x28x28xf32>, tensor<96x64x1x1xf32>) outs(%s : tensor<2x96x28x28xf32>) -> tensor<2x96x28x28xf32>
  return %p : tensor<2x96x28x28xf32>
}
func.func @vector(%a: tensor<300x1000xf32>, %b: tensor<1000xf32>) -> tensor<300xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<300xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<300xf32>) -> tensor<300xf32>
  %p = linalg.matvec ins(%a, %b : tensor<300x1000xf32>, tensor<1000xf32>) outs(%s : tensor<300xf32>) -> tensor<300xf32>
  return %p : tensor<300xf32>
}
func.func @column(%a: tensor<300x1000xf32>, %b: tensor<1000x1xf32>) -> tensor<300x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<300x1xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<300x1xf32>) -> tensor<300x1xf32>
  %p = linalg.matmul ins(%a, %b : tensor<300x1000xf32>, tensor<1000x1xf32>) outs(%s : tensor<300x1xf32>) -> tensor<300x1xf32>
  return %p : tensor<300x1xf32>
}
