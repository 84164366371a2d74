// Constant weights in the order in which blocks of wgmma read them.

// RUN: ftuner-opt %s --ukernel-attach-device=device=h100 --ukernel-form-workloads --ukernel-pack-weights --remarks-filter=.* --remark-format=emitRemark 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: ftuner-opt %s --ukernel-attach-device=device=h100 --ukernel-form-workloads --ukernel-pack-weights=any-constant=true | FileCheck %s --check-prefix=ANY
// No path of another device, nor of a list without wgmma, knows the order.
// RUN: ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-form-workloads --ukernel-pack-weights | FileCheck %s --check-prefix=NONE
// RUN: ftuner-opt %s --ukernel-attach-device=device=h100 --ukernel-form-workloads --ukernel-pack-weights=paths=simt,mma | FileCheck %s --check-prefix=NONE
// RUN: not ftuner-opt %s --ukernel-attach-device=device=h100 --ukernel-form-workloads --ukernel-pack-weights=paths=other 2>&1 | FileCheck %s --check-prefix=OTHER
// Planned and lowered, it is one image for one architecture.
// RUN: ftuner-opt %s "--ftuner-front-end=device=h100 paths=simt,mma,wgmma pack-weights=true max-kernels=3" --remarks-filter=ukernel-plan-workloads --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=PLANNED

// Element i of the literal, 128 of k for each of eight columns, is i modulo 256.
// Columns follow each other by runs of 16 elements.
// CHECK-LABEL: func.func @bytes
// CHECK: %[[W:.*]] = arith.constant dense<"0x
// CHECK-SAME: 000102030405060708090A0B0C0D0E0F808182838485868788898A8B8C8D8E8F0001
// CHECK-SAME: > : tensor<8x128xi8>
// CHECK: ukernel.workload ins({{.*}}, %[[W]] :
// CHECK-SAME: packed

// One for both that read it.
// CHECK-LABEL: func.func @twice
// CHECK-COUNT-1: arith.constant dense<
// CHECK-NOT: arith.constant dense<
// CHECK: packed
// CHECK: packed
// CHECK-LABEL: func.func @of_argument
// CHECK-NOT: packed

// REMARK-DAG: constant weights are not packed: {{.*}}whole steps of 128 bytes and whole groups of 8
// REMARK-DAG: constant weights are not packed: {{.*}}wgmma: expected a product of f16, bf16, tf32 or i8
// REMARK-DAG: constant weights are not packed: expected numbers that the program holds

// ANY-LABEL: func.func @computed
// ANY: tensor.expand_shape {{.*}} into tensor<2x8x8x1x8xf16>
// ANY: linalg.transpose {{.*}} permutation = [0, 3, 1, 4, 2]
// ANY: tensor.collapse_shape {{.*}} into tensor<1024xf16>
// ANY: %[[W:.*]] = tensor.expand_shape {{.*}} into tensor<128x8xf16>
// ANY: ukernel.workload ins({{.*}}, %[[W]] :
// ANY-SAME: packed

// NONE-NOT: {{ packed }}

// OTHER: error: expected {{.*}}'other'

// PLANNED-DAG: no plan for other architectures
// PLANNED-DAG: ukernel.workload plan({{.*}}packed

#ranges = {T = #ukernel.range<1 to 64>}
module attributes {ukernel.symbols = #ranges} {
  func.func @bytes(%x: tensor<?x128xi8> {ukernel.shape = ["T", 128]}) -> tensor<?x8xi32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %w = arith.constant dense<"0x000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F404142434445464748494A4B4C4D4E4F505152535455565758595A5B5C5D5E5F606162636465666768696A6B6C6D6E6F707172737475767778797A7B7C7D7E7F808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9FA0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBFC0C1C2C3C4C5C6C7C8C9CACBCCCDCECFD0D1D2D3D4D5D6D7D8D9DADBDCDDDEDFE0E1E2E3E4E5E6E7E8E9EAEBECEDEEEFF0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F404142434445464748494A4B4C4D4E4F505152535455565758595A5B5C5D5E5F606162636465666768696A6B6C6D6E6F707172737475767778797A7B7C7D7E7F808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9FA0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBFC0C1C2C3C4C5C6C7C8C9CACBCCCDCECFD0D1D2D3D4D5D6D7D8D9DADBDCDDDEDFE0E1E2E3E4E5E6E7E8E9EAEBECEDEEEFF0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F404142434445464748494A4B4C4D4E4F505152535455565758595A5B5C5D5E5F606162636465666768696A6B6C6D6E6F707172737475767778797A7B7C7D7E7F808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9FA0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBFC0C1C2C3C4C5C6C7C8C9CACBCCCDCECFD0D1D2D3D4D5D6D7D8D9DADBDCDDDEDFE0E1E2E3E4E5E6E7E8E9EAEBECEDEEEFF0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F404142434445464748494A4B4C4D4E4F505152535455565758595A5B5C5D5E5F606162636465666768696A6B6C6D6E6F707172737475767778797A7B7C7D7E7F808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9FA0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBFC0C1C2C3C4C5C6C7C8C9CACBCCCDCECFD0D1D2D3D4D5D6D7D8D9DADBDCDDDEDFE0E1E2E3E4E5E6E7E8E9EAEBECEDEEEFF0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF"> : tensor<8x128xi8>
    %m = tensor.dim %x, %c0 : tensor<?x128xi8>
    %e = tensor.empty(%m) : tensor<?x8xi32>
    %i = linalg.fill ins(%zero : i32) outs(%e : tensor<?x8xi32>) -> tensor<?x8xi32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<?x128xi8>, tensor<8x128xi8>) outs(%i : tensor<?x8xi32>) {
    ^bb0(%p: i8, %q: i8, %s: i32):
      %xe = arith.extsi %p : i8 to i32
      %ye = arith.extsi %q : i8 to i32
      %u = arith.muli %xe, %ye : i32
      %v = arith.addi %s, %u : i32
      linalg.yield %v : i32
    } -> tensor<?x8xi32>
    return %r : tensor<?x8xi32>
  }
  func.func @twice(%x: tensor<?x64xf16> {ukernel.shape = ["T", 64]}, %y: tensor<16x64xf16>) -> (tensor<?x8xf32>, tensor<16x8xf32>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %w = arith.constant dense<"0x000000300034003600380039003A003B003C803C003D803D003E803E003F803F004040408040C040004140418041C041004240428042C042004340438043C04300442044404460448044A044C044E04400452045404560458045A045C045E04500462046404660468046A046C046E04600472047404760478047A047C047E0470048104820483048404850486048704880489048A048B048C048D048E048F0480049104920493049404950496049704980499049A049B049C049D049E049F049004A000000300034003600380039003A003B003C803C003D803D003E803E003F803F004040408040C040004140418041C041004240428042C042004340438043C04300442044404460448044A044C044E04400452045404560458045A045C045E04500462046404660468046A046C046E04600472047404760478047A047C047E0470048104820483048404850486048704880489048A048B048C048D048E048F0480049104920493049404950496049704980499049A049B049C049D049E049F049004A000000300034003600380039003A003B003C803C003D803D003E803E003F803F004040408040C040004140418041C041004240428042C042004340438043C04300442044404460448044A044C044E04400452045404560458045A045C045E04500462046404660468046A046C046E04600472047404760478047A047C047E0470048104820483048404850486048704880489048A048B048C048D048E048F0480049104920493049404950496049704980499049A049B049C049D049E049F049004A000000300034003600380039003A003B003C803C003D803D003E803E003F803F004040408040C040004140418041C041004240428042C042004340438043C04300442044404460448044A044C044E04400452045404560458045A045C045E04500462046404660468046A046C046E04600472047404760478047A047C047E0470048104820483048404850486048704880489048A048B048C048D048E048F0480049104920493049404950496049704980499049A049B049C049D049E049F049004A000000300034003600380039003A003B003C803C003D803D003E803E003F803F004040408040C040004140418041C041004240428042C042004340438043C04300442044404460448044A044C044E04400452045404560458045A045C045E04500462046404660468046A046C046E04600472047404760478047A047C047E0470048104820483048404850486048704880489048A048B048C048D048E048F0480049104920493049404950496049704980499049A049B049C049D049E049F049004A000000300034003600380039003A003B003C803C003D803D003E803E003F803F004040408040C040004140418041C041004240428042"> : tensor<64x8xf16>
    %m = tensor.dim %x, %c0 : tensor<?x64xf16>
    %e = tensor.empty(%m) : tensor<?x8xf32>
    %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<?x64xf16>, tensor<64x8xf16>) outs(%i : tensor<?x8xf32>) {
    ^bb0(%p: f16, %q: f16, %s: f32):
      %xe = arith.extf %p : f16 to f32
      %ye = arith.extf %q : f16 to f32
      %u = arith.mulf %xe, %ye : f32
      %v = arith.addf %s, %u : f32
      linalg.yield %v : f32
    } -> tensor<?x8xf32>
    %e2 = tensor.empty() : tensor<16x8xf32>
    %i2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<16x8xf32>) -> tensor<16x8xf32>
    %r2 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%y, %w : tensor<16x64xf16>, tensor<64x8xf16>) outs(%i2 : tensor<16x8xf32>) {
    ^bb0(%p: f16, %q: f16, %s: f32):
      %xe = arith.extf %p : f16 to f32
      %ye = arith.extf %q : f16 to f32
      %u = arith.mulf %xe, %ye : f32
      %v = arith.addf %s, %u : f32
      linalg.yield %v : f32
    } -> tensor<16x8xf32>
    return %r, %r2 : tensor<?x8xf32>, tensor<16x8xf32>
  }
  func.func @of_argument(%x: tensor<?x64xf16> {ukernel.shape = ["T", 64]}, %w: tensor<64x8xf16>) -> tensor<?x8xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32

    %m = tensor.dim %x, %c0 : tensor<?x64xf16>
    %e = tensor.empty(%m) : tensor<?x8xf32>
    %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<?x64xf16>, tensor<64x8xf16>) outs(%i : tensor<?x8xf32>) {
    ^bb0(%p: f16, %q: f16, %s: f32):
      %xe = arith.extf %p : f16 to f32
      %ye = arith.extf %q : f16 to f32
      %u = arith.mulf %xe, %ye : f32
      %v = arith.addf %s, %u : f32
      linalg.yield %v : f32
    } -> tensor<?x8xf32>
    return %r : tensor<?x8xf32>
  }
  func.func @ragged(%x: tensor<?x64xf16> {ukernel.shape = ["T", 64]}) -> tensor<?x12xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %w = arith.constant dense<1.5> : tensor<64x12xf16>
    %m = tensor.dim %x, %c0 : tensor<?x64xf16>
    %e = tensor.empty(%m) : tensor<?x12xf32>
    %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x12xf32>) -> tensor<?x12xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<?x64xf16>, tensor<64x12xf16>) outs(%i : tensor<?x12xf32>) {
    ^bb0(%p: f16, %q: f16, %s: f32):
      %xe = arith.extf %p : f16 to f32
      %ye = arith.extf %q : f16 to f32
      %u = arith.mulf %xe, %ye : f32
      %v = arith.addf %s, %u : f32
      linalg.yield %v : f32
    } -> tensor<?x12xf32>
    return %r : tensor<?x12xf32>
  }
  func.func @on_cuda_cores(%x: tensor<?x64xf32> {ukernel.shape = ["T", 64]}) -> tensor<?x8xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %w = arith.constant dense<1.5> : tensor<64x8xf32>
    %m = tensor.dim %x, %c0 : tensor<?x64xf32>
    %e = tensor.empty(%m) : tensor<?x8xf32>
    %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<?x64xf32>, tensor<64x8xf32>) outs(%i : tensor<?x8xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %u = arith.mulf %p, %q : f32
      %v = arith.addf %s, %u : f32
      linalg.yield %v : f32
    } -> tensor<?x8xf32>
    return %r : tensor<?x8xf32>
  }
  func.func @computed(%x: tensor<?x128xf16> {ukernel.shape = ["T", 128]}) -> tensor<?x8xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant dense<1.5> : tensor<128x8xf16>
    %none = tensor.empty() : tensor<128x8xf16>
    %w = linalg.map {math.exp} ins(%one : tensor<128x8xf16>) outs(%none : tensor<128x8xf16>)
    %m = tensor.dim %x, %c0 : tensor<?x128xf16>
    %e = tensor.empty(%m) : tensor<?x8xf32>
    %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<?x128xf16>, tensor<128x8xf16>) outs(%i : tensor<?x8xf32>) {
    ^bb0(%p: f16, %q: f16, %s: f32):
      %xe = arith.extf %p : f16 to f32
      %ye = arith.extf %q : f16 to f32
      %u = arith.mulf %xe, %ye : f32
      %v = arith.addf %s, %u : f32
      linalg.yield %v : f32
    } -> tensor<?x8xf32>
    return %r : tensor<?x8xf32>
  }
}
