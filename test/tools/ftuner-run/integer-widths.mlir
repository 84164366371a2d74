// Integers of any width compute what they are: constants, on either side of a
// product, and intermediates. uKernels take those that fill their bytes, and
// smaller constants, which become bytes; others are products of
// fallback kernels, which remarks name.
// RUN: ftuner-run %s --function=right_i3 --device=h200 --executor=emulator --check --check-bounds --args=9x8xi8 | FileCheck %s --check-prefixes=SAME,UKERNEL
// RUN: ftuner-run %s --function=right_i4 --device=h200 --executor=emulator --check --check-bounds --args=9x8xi8 | FileCheck %s --check-prefixes=SAME,UKERNEL
// RUN: ftuner-run %s --function=right_i12 --device=h200 --executor=emulator --check --check-bounds --args=9x8xi8 | FileCheck %s --check-prefix=SAME
// RUN: ftuner-run %s --function=right_i24 --device=h200 --executor=emulator --check --check-bounds --args=9x8xi8 | FileCheck %s --check-prefix=SAME
// RUN: ftuner-run %s --function=right_i33 --device=h200 --executor=emulator --check --check-bounds --args=9x8xi8 | FileCheck %s --check-prefix=SAME
// RUN: ftuner-run %s --function=left_i4 --device=h200 --executor=emulator --check --check-bounds --args=8x6xi8 | FileCheck %s --check-prefixes=SAME,UKERNEL
// RUN: ftuner-run %s --function=between_i20 --device=h200 --executor=emulator --check --check-bounds --args=7x11xi64 | FileCheck %s --check-prefix=SAME
// RUN: ftuner-run %s --function=between_i40 --device=h200 --executor=emulator --check --check-bounds --args=7x11xi64 | FileCheck %s --check-prefix=SAME
// RUN: ftuner-run %s --function=between_i48 --device=h200 --executor=emulator --check --check-bounds --args=7x11xi64 | FileCheck %s --check-prefix=SAME
// SAME: result 0: {{.*}}, relative error 0 (tolerance 0)
// UKERNEL: launches: {{.*}}{{right|left}}_i{{[34]}}_0_k
// RUN: ftuner-translate %s --ftuner-to-ptx --device=h200 --remarks -o %t.ptx 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK: is a contraction of elements of type i33: uKernels take integers of 8, 16, 32 or 64 bits

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

func.func @right_i3(%x: tensor<9x8xi8>) -> tensor<9x6xi32> {
  %w = arith.constant dense<[[0, 1, -4, 3, -1, -4], [-2, -3, 1, 3, -1, 2], [-3, -1, -4, -1, 2, 0], [-2, 2, -2, -3, -2, 3], [-2, -2, -4, -4, -1, -1], [-2, -2, 0, 1, -1, -1], [-2, -1, 2, 0, -4, 1], [2, -2, -2, 0, -3, 1]]> : tensor<8x6xi3>
  %z = arith.constant 0 : i32
  %e = tensor.empty() : tensor<9x6xi32>
  %i = linalg.fill ins(%z : i32) outs(%e : tensor<9x6xi32>) -> tensor<9x6xi32>
  %r = linalg.matmul ins(%x, %w : tensor<9x8xi8>, tensor<8x6xi3>) outs(%i : tensor<9x6xi32>) -> tensor<9x6xi32>
  return %r : tensor<9x6xi32>
}

func.func @right_i4(%x: tensor<9x8xi8>) -> tensor<9x6xi32> {
  %w = arith.constant dense<[[1, -8, 2, -6, 1, 3], [1, 7, 2, -3, 7, 7], [-3, -7, 0, -8, 3, 4], [-8, 5, 3, 4, -8, 6], [-7, -3, -2, -5, -1, 6], [3, 3, 0, 6, -5, 3], [1, -7, 5, -6, -2, 2], [3, -4, 2, 0, -6, 1]]> : tensor<8x6xi4>
  %z = arith.constant 0 : i32
  %e = tensor.empty() : tensor<9x6xi32>
  %i = linalg.fill ins(%z : i32) outs(%e : tensor<9x6xi32>) -> tensor<9x6xi32>
  %r = linalg.matmul ins(%x, %w : tensor<9x8xi8>, tensor<8x6xi4>) outs(%i : tensor<9x6xi32>) -> tensor<9x6xi32>
  return %r : tensor<9x6xi32>
}

func.func @right_i12(%x: tensor<9x8xi8>) -> tensor<9x6xi32> {
  %w = arith.constant dense<[[547, 460, -595, -1408, -829, 485], [1915, -725, -1651, -1385, 1277, -1788], [-104, 768, 1, 1684, 1407, -856], [-1592, -1780, 1995, 689, -352, -979], [-961, 1342, -1175, -666, 1511, 1007], [-826, -1567, 1397, 367, -892, 1664], [-662, 1667, 1950, 554, 1876, 196], [336, 1802, 1259, -848, -1126, 1040]]> : tensor<8x6xi12>
  %z = arith.constant 0 : i32
  %e = tensor.empty() : tensor<9x6xi32>
  %i = linalg.fill ins(%z : i32) outs(%e : tensor<9x6xi32>) -> tensor<9x6xi32>
  %r = linalg.matmul ins(%x, %w : tensor<9x8xi8>, tensor<8x6xi12>) outs(%i : tensor<9x6xi32>) -> tensor<9x6xi32>
  return %r : tensor<9x6xi32>
}

func.func @right_i24(%x: tensor<9x8xi8>) -> tensor<9x6xi32> {
  %w = arith.constant dense<[[49395, -42973, 74355, 40894, -1270, -42783], [-66634, 38938, -18616, 45051, 53681, 41812], [4719, -73457, 3244, 64005, 84068, -81004], [-9863, 5271, 56620, 85192, -16377, 37319], [-20569, -12969, -852, 80312, -43169, 62216], [-86965, 34335, 53390, -24283, -4566, 86067], [-18256, 31356, -14286, 41163, 79721, 86590], [3472, 1195, -18206, 78837, 592, 17077]]> : tensor<8x6xi24>
  %z = arith.constant 0 : i32
  %e = tensor.empty() : tensor<9x6xi32>
  %i = linalg.fill ins(%z : i32) outs(%e : tensor<9x6xi32>) -> tensor<9x6xi32>
  %r = linalg.matmul ins(%x, %w : tensor<9x8xi8>, tensor<8x6xi24>) outs(%i : tensor<9x6xi32>) -> tensor<9x6xi32>
  return %r : tensor<9x6xi32>
}

func.func @right_i33(%x: tensor<9x8xi8>) -> tensor<9x6xi64> {
  %w = arith.constant dense<[[1762, -44788, 27908, 5492, -2355, 45827], [-52813, 48763, -46439, -37925, 4903, 35105], [-15851, -69334, 85861, 19217, -44957, 71685], [62265, 45385, 84471, 20308, -10658, 73508], [55020, 76950, -19037, -82760, -38725, -48051], [63733, 25623, 73596, 80424, -42620, -32581], [89819, -42675, 75377, -79027, 33623, -30692], [-46551, -75807, -54997, -60947, -6809, -42409]]> : tensor<8x6xi33>
  %z = arith.constant 0 : i64
  %e = tensor.empty() : tensor<9x6xi64>
  %i = linalg.fill ins(%z : i64) outs(%e : tensor<9x6xi64>) -> tensor<9x6xi64>
  %r = linalg.matmul ins(%x, %w : tensor<9x8xi8>, tensor<8x6xi33>) outs(%i : tensor<9x6xi64>) -> tensor<9x6xi64>
  return %r : tensor<9x6xi64>
}

func.func @left_i4(%x: tensor<8x6xi8>) -> tensor<9x6xi32> {
  %w = arith.constant dense<[[7, -2, -7, 5, 6, 3, 4, -6], [-2, -1, 3, -8, 3, 4, 0, 5], [-5, 3, -7, 1, -5, 1, 2, 1], [3, -4, 5, 5, 3, 6, -4, -3], [4, 7, -2, -4, -6, 3, -8, 4], [-5, 2, -4, 2, 4, 5, 5, -1], [7, 1, 7, 4, 4, -3, 0, 1], [7, 0, 5, -8, 2, 1, 7, 1], [-4, 7, -8, -5, 6, -1, 1, -7]]> : tensor<9x8xi4>
  %z = arith.constant 0 : i32
  %e = tensor.empty() : tensor<9x6xi32>
  %i = linalg.fill ins(%z : i32) outs(%e : tensor<9x6xi32>) -> tensor<9x6xi32>
  %r = linalg.matmul {cast = #linalg.type_fn<cast_unsigned>} ins(%w, %x : tensor<9x8xi4>, tensor<8x6xi8>) outs(%i : tensor<9x6xi32>) -> tensor<9x6xi32>
  return %r : tensor<9x6xi32>
}

func.func @between_i20(%x: tensor<?x11xi64>) -> (tensor<?xi64>, tensor<?xi64>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0 : i64
  %m = tensor.dim %x, %c0 : tensor<?x11xi64>
  %e = tensor.empty(%m) : tensor<?x11xi20>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x11xi64>) outs(%e : tensor<?x11xi20>) {
  ^bb0(%a: i64, %o: i20):
    %c = arith.trunci %a : i64 to i20
    linalg.yield %c : i20
  } -> tensor<?x11xi20>
  %n = tensor.empty(%m) : tensor<?xi64>
  %f = linalg.fill ins(%z : i64) outs(%n : tensor<?xi64>) -> tensor<?xi64>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%t : tensor<?x11xi20>) outs(%f : tensor<?xi64>) {
  ^bb0(%a: i20, %o: i64):
    %c = arith.extsi %a : i20 to i64
    %s = arith.addi %o, %c : i64
    linalg.yield %s : i64
  } -> tensor<?xi64>
  %least = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%t : tensor<?x11xi20>) outs(%f : tensor<?xi64>) {
  ^bb0(%a: i20, %o: i64):
    %c = arith.extsi %a : i20 to i64
    %s = arith.minsi %o, %c : i64
    linalg.yield %s : i64
  } -> tensor<?xi64>
  return %sum, %least : tensor<?xi64>, tensor<?xi64>
}

func.func @between_i40(%x: tensor<?x11xi64>) -> (tensor<?xi64>, tensor<?xi64>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0 : i64
  %m = tensor.dim %x, %c0 : tensor<?x11xi64>
  %e = tensor.empty(%m) : tensor<?x11xi40>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x11xi64>) outs(%e : tensor<?x11xi40>) {
  ^bb0(%a: i64, %o: i40):
    %c = arith.trunci %a : i64 to i40
    linalg.yield %c : i40
  } -> tensor<?x11xi40>
  %n = tensor.empty(%m) : tensor<?xi64>
  %f = linalg.fill ins(%z : i64) outs(%n : tensor<?xi64>) -> tensor<?xi64>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%t : tensor<?x11xi40>) outs(%f : tensor<?xi64>) {
  ^bb0(%a: i40, %o: i64):
    %c = arith.extsi %a : i40 to i64
    %s = arith.addi %o, %c : i64
    linalg.yield %s : i64
  } -> tensor<?xi64>
  %least = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%t : tensor<?x11xi40>) outs(%f : tensor<?xi64>) {
  ^bb0(%a: i40, %o: i64):
    %c = arith.extsi %a : i40 to i64
    %s = arith.minsi %o, %c : i64
    linalg.yield %s : i64
  } -> tensor<?xi64>
  return %sum, %least : tensor<?xi64>, tensor<?xi64>
}

func.func @between_i48(%x: tensor<?x11xi64>) -> (tensor<?xi64>, tensor<?xi64>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0 : i64
  %m = tensor.dim %x, %c0 : tensor<?x11xi64>
  %e = tensor.empty(%m) : tensor<?x11xi48>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x11xi64>) outs(%e : tensor<?x11xi48>) {
  ^bb0(%a: i64, %o: i48):
    %c = arith.trunci %a : i64 to i48
    linalg.yield %c : i48
  } -> tensor<?x11xi48>
  %n = tensor.empty(%m) : tensor<?xi64>
  %f = linalg.fill ins(%z : i64) outs(%n : tensor<?xi64>) -> tensor<?xi64>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%t : tensor<?x11xi48>) outs(%f : tensor<?xi64>) {
  ^bb0(%a: i48, %o: i64):
    %c = arith.extsi %a : i48 to i64
    %s = arith.addi %o, %c : i64
    linalg.yield %s : i64
  } -> tensor<?xi64>
  %least = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%t : tensor<?x11xi48>) outs(%f : tensor<?xi64>) {
  ^bb0(%a: i48, %o: i64):
    %c = arith.extsi %a : i48 to i64
    %s = arith.minsi %o, %c : i64
    linalg.yield %s : i64
  } -> tensor<?xi64>
  return %sum, %least : tensor<?xi64>, tensor<?xi64>
}
