// Convolutions through the operator interface, as products whose axis m is fused
// of images, rows and columns, and k of taps and channels, on the tensor cores of
// the mma path: searched, bufferized, dispatched, emitted and run, and held
// against upstream's own lowering of linalg's convolutions on padded images.
// Blocks' threads run in another order each time; races and bounds are checked.

// RUN: rm -rf %t && mkdir %t
// DEFINE: %{write} = %python %S/convolution.py
// DEFINE: %{device} = h200
// DEFINE: %{name} =
// DEFINE: %{args} =
// DEFINE: %{run} = ftuner-test-run %t/%{name}.mlir --device=%{device} --paths=mma --args=%{args} --check --reference=%t/%{name}-linalg.mlir --check-bounds --check-races --thread-order=shuffled

// The search plans for any number of images; vectors of 8 channels are copied
// asynchronously.
// RUN: %{write} %t/plain --image=12x14x32 --filter=24x3x3 --padding=1,1
// RUN: ftuner-test-opt %t/plain.mlir --ukernel-attach-device=device=h200 --ukernel-plan-workloads=paths=mma | FileCheck %s --check-prefix=PLAN
// PLAN: ukernel.plan @plan_0 <families = [<#ukernel.mma<warps = {{.*}}, stages = {{[3-6]}}, access = 16
// RUN: ftuner-test-opt %t/plain.mlir --ftuner-compile="device=h200 paths=mma" | FileCheck %s --check-prefix=PARAMETERS
// Of sizes, that of m alone is not known.
// PARAMETERS: gpu.module @conv_0_k0
// PARAMETERS-SAME: name = "output", type = f32}, {kind = "size", name = "m", type = i32}, {kind = "part"
// RUN: split-file %s %t/files
// RUN: ftuner-test-opt %t/files/dynamic.mlir --ftuner-compile="device=h200 paths=mma" | FileCheck %s --check-prefix=SIZES
// Of the image those of rows and columns, and of loops all but the first.
// SIZES: gpu.module @conv_0_k0
// SIZES-SAME: {kind = "size", name = "m", type = i32}, {kind = "size", name = "n", type = i32}, {kind = "size", name = "k", type = i32}, {kind = "size", name = "lhs_size1", type = i32}, {kind = "size", name = "lhs_size2", type = i32}, {kind = "size", name = "p", type = i32}, {kind = "size", name = "q", type = i32}, {kind = "size", name = "s", type = i32}, {kind = "size", name = "c", type = i32}, {kind = "stride"

// ONE: result 0: {{.*}}relative error
// ONE: launches: 1 (conv_0_k
// TWO: result 0: {{.*}}relative error
// TWO: launches: 2 (conv_0_k0: {{[0-9]+}} x 32, conv_0_k0_sum:

// REDEFINE: %{name} = plain
// REDEFINE: %{args} = 3x12x14x32xf16,24x3x3x32xf16
// RUN: %{run} | FileCheck %s --check-prefix=ONE
// REDEFINE: %{args} = 1x12x14x32xf16,24x3x3x32xf16
// RUN: %{run} | FileCheck %s --check-prefix=ONE
// REDEFINE: %{args} = 0x12x14x32xf16,24x3x3x32xf16
// RUN: ftuner-test-run %t/plain.mlir --device=h200 --paths=mma --args=%{args} | FileCheck %s --check-prefix=NONE
// NONE: launches: 0

// Stride 2, more padding than windows need, and columns of the tile that no
// filter has.
// REDEFINE: %{name} = stride
// REDEFINE: %{args} = 2x15x13x8xf16,40x3x3x8xf16
// RUN: %{write} %t/stride --image=15x13x8 --filter=40x3x3 --stride=2,2 --padding=2,1
// RUN: %{run} | FileCheck %s --check-prefix=ONE
// REDEFINE: %{device} = a100
// RUN: %{run} | FileCheck %s --check-prefix=ONE
// REDEFINE: %{device} = t4
// RUN: %{run} | FileCheck %s --check-prefix=ONE
// REDEFINE: %{device} = h200

// Dilation, strides that differ, filters as [r, s, c, f].
// REDEFINE: %{name} = dilation
// REDEFINE: %{args} = 2x11x17x32xf16,3x3x32x48xf16
// RUN: %{write} %t/dilation --image=11x17x32 --filter=48x3x3 --stride=1,2 --dilation=2,1 --padding=2,0 --hwcf
// RUN: %{run} | FileCheck %s --check-prefix=ONE

// Windows of one tap, with a stride, and of 5 x 3.
// REDEFINE: %{name} = point
// REDEFINE: %{args} = 3x9x8x64xf16,72x1x1x64xf16
// RUN: %{write} %t/point --image=9x8x64 --filter=72x1x1 --stride=2,2
// RUN: %{run} | FileCheck %s --check-prefix=ONE
// REDEFINE: %{name} = tall
// REDEFINE: %{args} = 2x10x9x16xf16,16x5x3x16xf16
// RUN: %{write} %t/tall --image=10x9x16 --filter=16x5x3 --padding=2,1
// RUN: %{run} | FileCheck %s --check-prefix=ONE

// Fewer channels: vectors of 4 and of 2 elements, and single ones, which pass
// through registers. None reaches from one tap into the next.
// REDEFINE: %{name} = four
// REDEFINE: %{args} = 2x10x9x12xf16,5x3x12x16xf16
// RUN: %{write} %t/four --image=10x9x12 --filter=16x5x3 --padding=1,1 --hwcf
// RUN: %{run} | FileCheck %s --check-prefix=ONE
// RUN: ftuner-test-opt %t/four.mlir --ukernel-attach-device=device=h200 --ukernel-plan-workloads=paths=mma | FileCheck %s --check-prefix=FOUR
// FOUR: ukernel.plan @plan_0 <families = [<#ukernel.mma<warps = {{.*}}, access = 8
// REDEFINE: %{name} = two
// REDEFINE: %{args} = 2x10x9x6xf16,3x3x6x24xf16
// RUN: %{write} %t/two --image=10x9x6 --filter=24x3x3 --stride=2,2 --dilation=2,2 --padding=2,2 --hwcf
// RUN: %{run} | FileCheck %s --check-prefix=ONE
// REDEFINE: %{name} = odd
// REDEFINE: %{args} = 3x9x9x3xf16,20x3x3x3xf16
// RUN: %{write} %t/odd --image=9x9x3 --filter=20x3x3 --padding=1,1
// RUN: %{run} | FileCheck %s --check-prefix=ONE
// REDEFINE: %{name} = odd-tall
// REDEFINE: %{args} = 2x11x10x3xf16,13x5x3x3xf16
// RUN: %{write} %t/odd-tall --image=11x10x3 --filter=13x5x3 --stride=2,2 --padding=2,2
// RUN: %{run} | FileCheck %s --check-prefix=ONE

// A bias and what follows it; other types.
// REDEFINE: %{name} = bias
// REDEFINE: %{args} = 3x9x8x16xf16,24x3x3x16xf16,24xf32
// RUN: %{write} %t/bias --image=9x8x16 --filter=24x3x3 --padding=1,1 --bias
// RUN: %{run} | FileCheck %s --check-prefix=ONE
// REDEFINE: %{name} = bf16
// REDEFINE: %{args} = 2x9x8x16xbf16,24x3x3x16xbf16
// RUN: %{write} %t/bf16 --image=9x8x16 --filter=24x3x3 --padding=1,1 --type=bf16
// RUN: %{run} | FileCheck %s --check-prefix=ONE
// REDEFINE: %{name} = i8
// REDEFINE: %{args} = 2x9x8x32xi8,24x3x3x32xi8
// RUN: %{write} %t/i8 --image=9x8x32 --filter=24x3x3 --stride=2,1 --padding=1,1 --type=i8
// RUN: %{run} | FileCheck %s --check-prefix=ONE

// Slices of k that begin within a tap, added up by a second kernel.
// REDEFINE: %{name} = slices
// REDEFINE: %{args} = 2x6x7x48xf16,16x3x3x48xf16,16xf32
// RUN: %{write} %t/slices --image=6x7x48 --filter=16x3x3 --padding=1,1 --bias --family="#ukernel.mma<warps = [1, 1], stages = 3, access = 16>, axis = 0, tiles = [[32, 16, 32]], split = 4" --family="#ukernel.mma<warps = [1, 1], stages = 2, access = 1>, axis = 0, tiles = [[32, 16, 32]]"
// RUN: %{run} | FileCheck %s --check-prefix=TWO

// Nothing is known before the run but strides and padding.
// RUN: ftuner-test-run %t/files/dynamic.mlir --device=h200 --paths=mma --args=2x9x10x8xf16,24x3x3x8xf16,2x5x10x24xf32 --check --reference=%t/files/dynamic-linalg.mlir --check-bounds --check-races --thread-order=shuffled | FileCheck %s --check-prefix=ONE
// RUN: ftuner-test-run %t/files/dynamic.mlir --device=a100 --paths=mma --args=1x12x7x3xf16,9x5x2x3xf16,1x5x9x9xf32 --check --reference=%t/files/dynamic-linalg.mlir --check-bounds --check-races --thread-order=shuffled | FileCheck %s --check-prefix=ONE

// Part of a filter, whose taps are not next to each other: it is copied before
// the launch. Part of an image is read where it lies.
// RUN: ftuner-test-opt %t/files/parts.mlir --ukernel-attach-device=device=h200 --ukernel-plan-workloads=paths=mma --ukernel-prepare-host --ftuner-bufferize --ukernel-dispatch-workloads | FileCheck %s --check-prefix=COPY
// COPY: func.func @conv
// COPY: %[[TAPS:.*]] = memref.subview {{.*}} to memref<24x3x2x16xf16
// COPY: %[[DENSE:.*]] = memref.alloc() : memref<24x3x2x16xf16>
// COPY: linalg.copy ins(%[[TAPS]]
// COPY-SAME: outs(%[[DENSE]]
// COPY-NOT: linalg.copy
// RUN: ftuner-test-run %t/files/parts.mlir --device=h200 --paths=mma --args=2x9x10x16xf16,24x3x3x16xf16 --check --reference=%t/files/parts-linalg.mlir --check-bounds --check-races --thread-order=shuffled | FileCheck %s --check-prefix=PARTS
// PARTS: result 0: {{.*}}relative error

// Some channels of an image whose pixels lie far enough apart for wider vectors,
// of which k is a multiple: these would reach behind the channels, where the next
// tap is not.
// RUN: ftuner-test-run %t/files/channels.mlir --device=h200 --paths=mma --args=2x9x8x16xf16,3x2x12x16xf16 --check --reference=%t/files/channels-linalg.mlir --check-bounds --check-races --thread-order=shuffled | FileCheck %s --check-prefix=ONE

// Vectors of a family end where channels do; paths without windows.
// RUN: %{write} %t/wide --image=10x9x12 --filter=16x3x3 --family="#ukernel.mma<warps = [1, 1], stages = 2, access = 16>, axis = 0, tiles = [[32, 16, 32]]" --family="#ukernel.mma<warps = [1, 1], stages = 2, access = 1>, axis = 0, tiles = [[32, 16, 32]]"
// REDEFINE: %{name} = wide
// REDEFINE: %{args} = 1x10x9x12xf16,16x3x3x12xf16
// RUN: %{run} | FileCheck %s --check-prefix=ONE
// RUN: not ftuner-test-run %t/plain.mlir --device=h200 --paths=wgmma,rows,scalar --args=1x12x14x32xf16,24x3x3x32xf16 2>&1 | FileCheck %s --check-prefix=OTHERS
// OTHERS: scalar: expected axes of one loop
// OTHERS: wgmma: expected factors with dimensions of one axis each, but got windows over the lhs
// OTHERS: rows: expected axes of one loop

//--- dynamic.mlir
func.func @conv(%x: tensor<?x?x?x?xf16>, %w: tensor<?x?x?x?xf16>, %o: tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %y = test.convolution ins(%x, %w : tensor<?x?x?x?xf16>, tensor<?x?x?x?xf16>)
    init(%zero : f32) outs(%o : tensor<?x?x?x?xf32>)
    strides = [2, 1] dilations = [1, 2] padding = [1, 2] {
    ^bb0(%a: f16, %b: f16, %c: f32):
      %u = arith.extf %a : f16 to f32
      %v = arith.extf %b : f16 to f32
      %p = arith.mulf %u, %v : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x?x?x?xf32>
  return %y : tensor<?x?x?x?xf32>
}

//--- dynamic-linalg.mlir
func.func @conv(%x: tensor<?x?x?x?xf16>, %w: tensor<?x?x?x?xf16>, %o: tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %outside = arith.constant 0.0 : f16
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %image = tensor.pad %x low[0, 1, 2, 0] high[0, 1, 2, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %outside : f16
  } : tensor<?x?x?x?xf16> to tensor<?x?x?x?xf16>
  %y = linalg.conv_2d_nhwc_fhwc {strides = dense<[2, 1]> : tensor<2xi64>, dilations = dense<[1, 2]> : tensor<2xi64>}
    ins(%image, %w : tensor<?x?x?x?xf16>, tensor<?x?x?x?xf16>) outs(%f : tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  return %y : tensor<?x?x?x?xf32>
}

//--- parts.mlir
func.func @conv(%x: tensor<?x9x10x16xf16>, %w: tensor<24x3x3x16xf16>) -> tensor<?x7x7x24xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x9x10x16xf16>
  %o = tensor.empty(%n) : tensor<?x7x7x24xf32>
  %image = tensor.extract_slice %x[0, 0, 2, 0] [%n, 9, 8, 16] [1, 1, 1, 1] : tensor<?x9x10x16xf16> to tensor<?x9x8x16xf16>
  %taps = tensor.extract_slice %w[0, 0, 1, 0] [24, 3, 2, 16] [1, 1, 1, 1] : tensor<24x3x3x16xf16> to tensor<24x3x2x16xf16>
  %r = test.convolution ins(%image, %taps : tensor<?x9x8x16xf16>, tensor<24x3x2x16xf16>)
    init(%zero : f32) outs(%o : tensor<?x7x7x24xf32>)
    strides = [1, 1] dilations = [1, 1] padding = [0, 0] {
    ^bb0(%a: f16, %b: f16, %c: f32):
      %u = arith.extf %a : f16 to f32
      %v = arith.extf %b : f16 to f32
      %p = arith.mulf %u, %v : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x7x7x24xf32>
  return %r : tensor<?x7x7x24xf32>
}

//--- parts-linalg.mlir
func.func @conv(%x: tensor<?x9x10x16xf16>, %w: tensor<24x3x3x16xf16>) -> tensor<?x7x7x24xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x9x10x16xf16>
  %o = tensor.empty(%n) : tensor<?x7x7x24xf32>
  %image = tensor.extract_slice %x[0, 0, 2, 0] [%n, 9, 8, 16] [1, 1, 1, 1] : tensor<?x9x10x16xf16> to tensor<?x9x8x16xf16>
  %taps = tensor.extract_slice %w[0, 0, 1, 0] [24, 3, 2, 16] [1, 1, 1, 1] : tensor<24x3x3x16xf16> to tensor<24x3x2x16xf16>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x7x7x24xf32>) -> tensor<?x7x7x24xf32>
  %r = linalg.conv_2d_nhwc_fhwc {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%image, %taps : tensor<?x9x8x16xf16>, tensor<24x3x2x16xf16>) outs(%f : tensor<?x7x7x24xf32>) -> tensor<?x7x7x24xf32>
  return %r : tensor<?x7x7x24xf32>
}

//--- channels.mlir
func.func @conv(%x: tensor<?x9x8x16xf16>, %w: tensor<3x2x12x16xf16>) -> tensor<?x7x7x16xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x9x8x16xf16>
  %o = tensor.empty(%n) : tensor<?x7x7x16xf32>
  %image = tensor.extract_slice %x[0, 0, 0, 0] [%n, 9, 8, 12] [1, 1, 1, 1] : tensor<?x9x8x16xf16> to tensor<?x9x8x12xf16>
  %r = test.convolution ins(%image, %w : tensor<?x9x8x12xf16>, tensor<3x2x12x16xf16>)
    init(%zero : f32) outs(%o : tensor<?x7x7x16xf32>)
    strides = [1, 1] dilations = [1, 1] padding = [0, 0] hwcf {
    ^bb0(%a: f16, %b: f16, %c: f32):
      %u = arith.extf %a : f16 to f32
      %v = arith.extf %b : f16 to f32
      %p = arith.mulf %u, %v : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x7x7x16xf32>
  return %r : tensor<?x7x7x16xf32>
}

//--- channels-linalg.mlir
func.func @conv(%x: tensor<?x9x8x16xf16>, %w: tensor<3x2x12x16xf16>) -> tensor<?x7x7x16xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x9x8x16xf16>
  %o = tensor.empty(%n) : tensor<?x7x7x16xf32>
  %image = tensor.extract_slice %x[0, 0, 0, 0] [%n, 9, 8, 12] [1, 1, 1, 1] : tensor<?x9x8x16xf16> to tensor<?x9x8x12xf16>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x7x7x16xf32>) -> tensor<?x7x7x16xf32>
  %r = linalg.conv_2d_nhwc_hwcf {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%image, %w : tensor<?x9x8x12xf16>, tensor<3x2x12x16xf16>) outs(%f : tensor<?x7x7x16xf32>) -> tensor<?x7x7x16xf32>
  return %r : tensor<?x7x7x16xf32>
}
