// Powers of negative numbers: odd exponents keep the sign, even ones do not, and others are NaN. The reference is the
// C library's in f64.
// RUN: ftuner-run %s --function=powers --device=h200 --executor=emulator --check --args=4096xf32,4096xf32,3 --args=4096xf32,4096xf32,10 --args=513xf32,513xf32,11

#id = affine_map<(d0) -> (d0)>
func.func @powers(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: i32) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %three = arith.constant 3 : i64
  %size = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%size) : tensor<?xf32>
  %r:3 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e, %e, %e : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %o0: f32, %o1: f32, %o2: f32):
    %constant = math.fpowi %a, %three : f32, i64
    %scalar = math.fpowi %a, %n : f32, i32
    %whole = math.roundeven %b : f32
    %element = math.powf %a, %whole : f32
    linalg.yield %constant, %scalar, %element : f32, f32, f32
  } -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  return %r#0, %r#1, %r#2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
