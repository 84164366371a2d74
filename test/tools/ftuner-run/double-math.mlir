// RUN: ftuner-run %s --function=half --device=h200 --check --args=257xf64 | FileCheck %s
// RUN: ftuner-run %s --function=brain --device=h200 --check --args=257xf64,-0.7 | FileCheck %s
// RUN: ftuner-run %s --function=brain --executor=reference --args=257xf64,-0.7
// RUN: ftuner-translate %s --ftuner-to-library --emulator --device=h200 -o %t.so

// Functions of f64 beside conversions of f64 to f16 and bf16, in kernels and on
// the host: both may need the same intrinsic functions.
// CHECK: result 0: 257x{{b?}}f16, relative error 0 (
#id = affine_map<(i) -> (i)>

func.func @half(%x: tensor<?xf64>) -> tensor<?xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %e = tensor.empty(%n) : tensor<?xf16>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf64>) outs(%e : tensor<?xf16>) {
  ^bb0(%a: f64, %o: f16):
    %h = arith.truncf %a : f64 to f16
    %ha = math.absf %h : f16
    %hs = math.sqrt %ha : f16
    %back = arith.extf %hs : f16 to f64
    %f = math.floor %a : f64
    %c = math.ceil %a : f64
    %t = math.trunc %a : f64
    %m = math.fma %f, %c, %t : f64
    %s = math.copysign %m, %a : f64
    %q = arith.addf %s, %back : f64
    %y = arith.truncf %q : f64 to f16
    linalg.yield %y : f16
  } -> tensor<?xf16>
  return %r : tensor<?xf16>
}

func.func @brain(%x: tensor<?xf64>, %d: f64) -> tensor<?xbf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %e = tensor.empty(%n) : tensor<?xbf16>
  %da = math.absf %d : f64
  %dt = arith.truncf %da : f64 to bf16
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf64>) outs(%e : tensor<?xbf16>) {
  ^bb0(%a: f64, %o: bf16):
    %b = math.absf %a : f64
    %s = math.sqrt %b : f64
    %c = arith.truncf %s : f64 to bf16
    %y = arith.addf %c, %dt : bf16
    linalg.yield %y : bf16
  } -> tensor<?xbf16>
  return %r : tensor<?xbf16>
}
