//===- Passes.td - Passes that run pipelines ----------------*- tablegen -*-===//
#ifndef FTUNER_PIPELINES_PASSES
#define FTUNER_PIPELINES_PASSES

include "mlir/Pass/PassBase.td"

def UKernelPtxasFeedbackPass : Pass<"ukernel-ptxas-feedback", "::mlir::ModuleOp"> {
  let summary = "Reject planned families whose kernels spill, and let the search answer again";
  let description = [{
    Lowers a copy of the module as far as operators on buffers, and compiles and
    assembles the kernel of every operator and family of its plan that some size
    needs. A family is rejected if a kernel of it spills registers, or needs more of
    them than the device has for one block. Plans with such a family get it in
    `ukernel.rejected`, and the pipeline of option `search` replaces them; this
    repeats until no family is rejected. After eight rounds, or where the search
    finds no plan without the rejected families, the last plan stays and a
    warning names its families that spill.

    Figures of the families in the end are in `ukernel.measured`, in their order
    (an empty dictionary where no shape needs the family); the plan's statistics
    count the rounds and the rejected families. Rejections are remarks. Without
    ptxas, or for a processor that it does not know, the pass fails.

    ```mlir
    ukernel.plan @plan_0 <families = […], choices = […], general = 0, unaligned_general = 1>
    // becomes
    ukernel.plan @plan_0 <families = […], choices = […], general = 0, unaligned_general = 1,
        statistics = {ptxas_rejected = 1.0 : f64, ptxas_rounds = 2.0 : f64}>
      {ukernel.measured = [{registers = 96 : i64, spill_bytes = 0 : i64}, …],
       ukernel.rejected = [#ukernel.family<…>]}
    ```
  }];
  let options = [
    ListOption<"search", "search", "::mlir::OpPassManager",
               "Pipeline of the search, e.g. builtin.module(ukernel-plan-workloads)">];
}

#endif
