//===- KernelPasses.cpp - LLVM passes over kernels ------------------------===//
//
// LLVM's passes for -O3 that change kernels, in their order. Kernels have no
// calls, come without redundancies from MLIR, and are one nest of loops: most
// passes of the default pipeline find nothing in them, and two fifths of its
// time go there. ptxas optimizes what comes out once more.
//
//===----------------------------------------------------------------------===//
#include "KernelPasses.h"

#include "llvm/Analysis/InlineCost.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Inliner.h"
#include "llvm/Transforms/IPO/SCCP.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/CorrelatedValuePropagation.h"
#include "llvm/Transforms/Scalar/DivRemPairs.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/Reassociate.h"
#include "llvm/Transforms/Scalar/SCCP.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Scalar/SpeculativeExecution.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace {
/// Asks for loops to be unrolled that say no more than that they must not be
/// unrolled at run time: those within a step of a kernel's main loop.
struct RequestUnrolling : PassInfoMixin<RequestUnrolling> {
  static PreservedAnalyses run(Function &function,
                               FunctionAnalysisManager &analyses) {
    for (Loop *loop :
         analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
      if (getBooleanLoopAttribute(loop, "llvm.loop.unroll.runtime.disable"))
        addStringMetadataToLoop(loop, "llvm.loop.unroll.full", 1);
    return PreservedAnalyses::all();
  }
};
} // namespace

/// A loop is one body to compile: unrolling comes last.
static FunctionPassManager buildPipeline() {
  constexpr unsigned level = 3;
  FunctionPassManager passes;
  passes.addPass(SROAPass(SROAOptions::ModifyCFG));
  passes.addPass(InstCombinePass());
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(SpeculativeExecutionPass(/*OnlyIfDivergentTarget=*/true));
  passes.addPass(CorrelatedValuePropagationPass());
  passes.addPass(
      SimplifyCFGPass(SimplifyCFGOptions().convertSwitchRangeToICmp(true)));
  passes.addPass(InstCombinePass());
  passes.addPass(ReassociatePass());
  LICMOptions certain;
  certain.AllowSpeculation = false;
  LoopPassManager loops;
  loops.addPass(LICMPass(certain));
  loops.addPass(LoopRotatePass());
  loops.addPass(LICMPass(LICMOptions()));
  passes.addPass(createFunctionToLoopPassAdaptor(std::move(loops),
                                                 /*UseMemorySSA=*/true));
  passes.addPass(InstCombinePass());
  passes.addPass(createFunctionToLoopPassAdaptor(IndVarSimplifyPass()));
  passes.addPass(GVNPass());
  passes.addPass(SCCPPass());
  passes.addPass(CorrelatedValuePropagationPass());
  passes.addPass(ADCEPass());
  passes.addPass(SimplifyCFGPass(SimplifyCFGOptions()
                                     .forwardSwitchCondToPhi(true)
                                     .convertSwitchRangeToICmp(true)
                                     .convertSwitchToArithmetic(true)
                                     .convertSwitchToLookupTable(true)
                                     .needCanonicalLoops(false)
                                     .hoistCommonInsts(true)
                                     .sinkCommonInsts(false)));
  passes.addPass(DivRemPairsPass());
  passes.addPass(RequestUnrolling());
  passes.addPass(
      LoopUnrollPass(LoopUnrollOptions(level, /*OnlyWhenForced=*/true)));
  // Addresses of unrolled copies do not depend on the loop around them.
  passes.addPass(InstCombinePass());
  passes.addPass(createFunctionToLoopPassAdaptor(LICMPass(LICMOptions()),
                                                 /*UseMemorySSA=*/true));
  return passes;
}

void ftuner::optimizeKernel(Module &module, TargetMachine &machine) {
  PassBuilder builder(&machine);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  ModulePassManager passes;
  // What the target wants first.
  builder.invokePipelineStartEPCallbacks(passes, OptimizationLevel::O3);
  // A kernel that was written by hand may call functions.
  passes.addPass(ModuleInlinerWrapperPass(
      getInlineParams(/*OptLevel=*/3, /*SizeOptLevel=*/0)));
  passes.addPass(GlobalDCEPass());
  passes.addPass(IPSCCPPass());
  passes.addPass(createModuleToFunctionPassAdaptor(buildPipeline()));
  passes.run(module, modules);
}
