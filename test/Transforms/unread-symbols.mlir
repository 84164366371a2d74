// RUN: ftuner-opt %s --ukernel-attach-device=device=h200 --ukernel-form-workloads --split-input-file --verify-diagnostics

// A range that no shape reads, and the name that was meant.

// expected-warning @below {{no shape has the size 'U', so its range in 'ukernel.symbols' changes nothing; did you mean 'T'?}}
module attributes {ukernel.symbols = {U = #ukernel.range<1 to 64>, N = #ukernel.range<1 to 8>}} {
  func.func @f(%x: tensor<?x?xf32> {ukernel.shape = ["T", "N"]}) -> tensor<?x?xf32> {
    return %x : tensor<?x?xf32>
  }
}

// -----

// Weights likewise; nothing is like this name.
// expected-warning @below {{no shape has the size 'sequences', so its range with weights in 'ukernel.symbols' changes nothing}}
module attributes {ukernel.symbols = {sequences = #ukernel.range<1 to 64 weights [7 : 0.5, 8 : 0.5]>}} {
  func.func @f(%x: tensor<?xf32> {ukernel.shape = ["B"]}) -> tensor<?xf32> {
    return %x : tensor<?xf32>
  }
}

// -----

// Every name is read.
module attributes {ukernel.symbols = {B = #ukernel.range<1 to 64>}} {
  func.func @f(%x: tensor<?xf32> {ukernel.shape = ["B"]}) -> tensor<?xf32> {
    return %x : tensor<?xf32>
  }
}
