// RUN: ftuner-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// Names of the version before (docs/renamings.md) are read with a warning, and
// printed as they are called now.

// CHECK: test.schedules = [
// CHECK-SAME: #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16>
// CHECK-SAME: #ukernel.wgmma<warpgroups = [1, 1], stages = 5, access = 16, producer_warpgroups = 1, tma = true, persistent = 132, ping_pong = true>
// CHECK-SAME: #ukernel.wgmma<warpgroups = [1, 1], stages = 5, access = 16, tma = true>
module attributes {test.schedules = [
  // expected-warning @+1 {{'groups' is called 'warpgroups' now; only this version reads the former name}}
  #ukernel.wgmma<groups = [2, 1], stages = 4, access = 16>,
  #ukernel.wgmma<warpgroups = [1, 1], stages = 5, access = 16,
    // expected-warning @+1 {{'producers' is called 'producer_warpgroups' now}}
    producers = 1,
    // expected-warning @+1 {{'tensor_maps' is called 'tma' now}}
    tensor_maps = true, persistent = 132,
    // expected-warning @+1 {{'turns' is called 'ping_pong' now}}
    turns = 2>,
  // expected-warning @+1 {{'turns' is called 'ping_pong' now}}
  #ukernel.wgmma<warpgroups = [1, 1], stages = 5, access = 16, tma = true, turns = 1>
]} {}

// -----

// Once is enough, by whichever name.
// expected-warning @below {{'producers' is called 'producer_warpgroups' now}}
// expected-error @below {{'producer_warpgroups' is given twice}}
module attributes {test.attribute = #ukernel.wgmma<warpgroups = [1, 1], stages = 4, access = 16, producers = 1, producer_warpgroups = 1>} {}

// -----

// expected-warning @below {{'turns' is called 'ping_pong' now}}
// expected-error @below {{wgmma: expected ping_pong of 0 or 1, but got 2}}
module attributes {test.attribute = #ukernel.wgmma<warpgroups = [1, 1], stages = 4, access = 16, persistent = 2, turns = 3>} {}
