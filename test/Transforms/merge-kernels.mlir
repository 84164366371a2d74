// RUN: ftuner-opt %s --ukernel-merge-kernels -split-input-file | FileCheck %s

// Names, places in the source and uses are no content: the first stays, serves
// all, and is launched by all.

// CHECK-LABEL: func.func @launches
// CHECK:         ukernel.launch @a::@a {{.*}} {ukernel.site = {location = "x.mlir:1:1", operator = "linalg.exp"}}
// CHECK-NEXT:    ukernel.launch @a::@a {{.*}} {ukernel.site = {location = "x.mlir:9:1", operator = "linalg.exp"}}
// CHECK-NEXT:    ukernel.launch @other::@other
// CHECK-NEXT:    ukernel.launch @data::@data
// CHECK-NEXT:    ukernel.launch @data::@data
// CHECK-NEXT:    ukernel.launch @more_data::@more_data
// CHECK-NEXT:    ukernel.launch @aligned::@aligned
// CHECK-NEXT:    ukernel.launch @bounded::@bounded
// CHECK:       gpu.module @a attributes {ukernel.entry = #ukernel.entry<{{.*}}, uses = [<family = <#[[S:.*]], axis = 0, tiles = {{\[\[}}16, 16, 8]]>, workload = "f_0">, <family = <#[[S]], axis = 0, tiles = {{\[\[}}16, 16, 8]]>, workload = "f_1">]>}
// CHECK-NOT:   gpu.module @b
// CHECK:       gpu.module @other
// CHECK:       gpu.module @data
// CHECK-NOT:   gpu.module @same_data
// CHECK:       gpu.module @more_data
// CHECK:       gpu.module @aligned
// CHECK:       gpu.module @bounded
#family = #ukernel.family<#ukernel.simt<threads = [8, 8], stages = 2, vector = 1>, axis = 0, tiles = [[16, 16, 8]]>
#entry = #ukernel.entry<threads = 64, shared_memory_bytes = 0, alignment = 4,
  parameters = [{kind = "pointer", name = "out", type = f32, access = "write"}]>
module {
  func.func @launches(%blocks: index, %out: memref<f32>) {
    ukernel.launch @a::@a blocks(%blocks) args(%out : memref<f32>) {ukernel.site = {operator = "linalg.exp", location = "x.mlir:1:1"}}
    ukernel.launch @b::@b blocks(%blocks) args(%out : memref<f32>) {ukernel.site = {operator = "linalg.exp", location = "x.mlir:9:1"}}
    ukernel.launch @other::@other blocks(%blocks) args(%out : memref<f32>)
    ukernel.launch @data::@data blocks(%blocks) args(%out : memref<f32>)
    ukernel.launch @same_data::@same_data blocks(%blocks) args(%out : memref<f32>)
    ukernel.launch @more_data::@more_data blocks(%blocks) args(%out : memref<f32>)
    ukernel.launch @aligned::@aligned blocks(%blocks) args(%out : memref<f32>)
    ukernel.launch @bounded::@bounded blocks(%blocks) args(%out : memref<f32>)
    return
  }
  gpu.module @a attributes {ukernel.entry = #ukernel.entry<threads = 64, shared_memory_bytes = 0, alignment = 4,
      parameters = [{kind = "pointer", name = "out", type = f32, access = "write"}],
      uses = [<family = #family, workload = "f_0">]>} {
    gpu.func @a(%out: memref<f32>) kernel {
      %one = arith.constant 1.0 : f32
      memref.store %one, %out[] : memref<f32>
      gpu.return
    }
  }
  gpu.module @b attributes {ukernel.entry = #ukernel.entry<threads = 64, shared_memory_bytes = 0, alignment = 4,
      parameters = [{kind = "pointer", name = "out", type = f32, access = "write"}],
      uses = [<family = #family, workload = "f_1">]>} {
    gpu.func @b(%value: memref<f32>) kernel {
      %some = arith.constant 1.0 : f32
      memref.store %some, %value[] : memref<f32>
      gpu.return
    }
  }
  gpu.module @other attributes {ukernel.entry = #entry} {
    gpu.func @other(%out: memref<f32>) kernel {
      %two = arith.constant 2.0 : f32
      memref.store %two, %out[] : memref<f32>
      gpu.return
    }
  }
  gpu.module @data attributes {ukernel.entry = #entry} {
    memref.global "private" constant @data0 : memref<2xf32> = dense<[1.0, 2.0]>
    gpu.func @data(%out: memref<f32>) kernel {
      %data = memref.get_global @data0 : memref<2xf32>
      %c0 = arith.constant 0 : index
      %x = memref.load %data[%c0] : memref<2xf32>
      memref.store %x, %out[] : memref<f32>
      gpu.return
    }
  }
  gpu.module @same_data attributes {ukernel.entry = #entry} {
    memref.global "private" constant @data0 : memref<2xf32> = dense<[1.0, 2.0]>
    gpu.func @same_data(%out: memref<f32>) kernel {
      %data = memref.get_global @data0 : memref<2xf32>
      %c0 = arith.constant 0 : index
      %x = memref.load %data[%c0] : memref<2xf32>
      memref.store %x, %out[] : memref<f32>
      gpu.return
    }
  }
  // Other elements.
  gpu.module @more_data attributes {ukernel.entry = #entry} {
    memref.global "private" constant @data0 : memref<2xf32> = dense<[3.0, 2.0]>
    gpu.func @more_data(%out: memref<f32>) kernel {
      %data = memref.get_global @data0 : memref<2xf32>
      %c0 = arith.constant 0 : index
      %x = memref.load %data[%c0] : memref<2xf32>
      memref.store %x, %out[] : memref<f32>
      gpu.return
    }
  }
  // Another launch: pointers must be aligned.
  gpu.module @aligned attributes {ukernel.entry = #ukernel.entry<threads = 64, shared_memory_bytes = 0, alignment = 16,
      parameters = [{kind = "pointer", name = "out", type = f32, access = "write"}]>} {
    gpu.func @aligned(%out: memref<f32>) kernel {
      %one = arith.constant 1.0 : f32
      memref.store %one, %out[] : memref<f32>
      gpu.return
    }
  }
  // Another block of threads.
  gpu.module @bounded attributes {ukernel.entry = #entry} {
    gpu.func @bounded(%out: memref<f32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %one = arith.constant 1.0 : f32
      memref.store %one, %out[] : memref<f32>
      gpu.return
    }
  }
}
