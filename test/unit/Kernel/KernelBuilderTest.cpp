//===- KernelBuilderTest.cpp - Kernels without a dispatch -----------------===//
#include "FTuner/Kernel/KernelBuilder.h"
#include "FTuner/Analysis/FunctionWork.h"
#include "FTuner/Conversion/Passes.h"
#include "FTuner/Transforms/Passes.h"
#include "KernelTest.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

using namespace ftuner;
using ukernel::ParameterKind;

namespace {

std::string textOf(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream(text) << *op;
  return text;
}

class KernelBuilderTest : public KernelTest {
protected:
  /// Builds in a module of its own, or leaves the text of the first error.
  mlir::FailureOr<EmittedKernel> build(ukernel::OperatorOpInterface op,
                                       ukernel::FamilyAttr family,
                                       llvm::StringRef name,
                                       mlir::StringAttr workload = {}) {
    target = mlir::ModuleOp::create(op.getLoc());
    auto b = mlir::OpBuilder::atBlockEnd(target->getBody());
    error.clear();
    mlir::ScopedDiagnosticHandler handler(&context,
                                          [&](mlir::Diagnostic &diagnostic) {
                                            if (error.empty())
                                              error = diagnostic.str();
                                            return mlir::success();
                                          });
    return buildGpuModule(b, op, family, name, device, workload);
  }

  mlir::OwningOpRef<mlir::ModuleOp> target;
  std::string error;
};

TEST_F(KernelBuilderTest, BuildsWhatTheDispatcherAndTheConversionDo) {
  mlir::OwningOpRef<mlir::ModuleOp> dispatched = module->clone();
  mlir::PassManager pm(&context);
  pm.addPass(createUKernelDispatchWorkloadsPass());
  pm.addPass(createConvertUKernelToGPUPass());
  ASSERT_TRUE(mlir::succeeded(pm.run(*dispatched)));
  unsigned count = 0;
  for (auto expected : dispatched->getOps<mlir::gpu::GPUModuleOp>()) {
    ++count;
    expected->removeAttr(kWorkAttrName);
    // f_0_k1: operator 0, family 1.
    llvm::StringRef name = expected.getName();
    unsigned number = name[2] - '0', family = name.back() - '0';
    auto emitted = build(ops[number], families[family], name,
                         mlir::StringAttr::get(&context, name.take_front(3)));
    ASSERT_TRUE(mlir::succeeded(emitted)) << error;
    EXPECT_EQ(textOf(emitted->module), textOf(expected));
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*target)));
    // The kernel that it was emitted from is gone.
    EXPECT_EQ(target->getBody()->getOperations().size(), 1u);
  }
  EXPECT_EQ(count, 4u);
}

TEST_F(KernelBuilderTest, KernelsOfAWorkloadDifferInThePartAlone) {
  for (auto [op, numParameters] : {std::pair(ops[0], 4u), {ops[1], 6u}}) {
    auto pair = build(op, families[0], "k");
    ASSERT_TRUE(mlir::succeeded(pair)) << error;
    KernelSignature two = pair->signature;
    auto single = build(op, families[1], "k");
    ASSERT_TRUE(mlir::succeeded(single)) << error;
    KernelSignature one = single->signature;
    EXPECT_EQ(one.getParameters().size(), numParameters);
    ASSERT_EQ(two.getParameters().size(), numParameters + 1);
    auto ofOne = one.toAttribute(&context).getValue();
    EXPECT_EQ(two.toAttribute(&context).getValue().drop_back(), ofOne);
    EXPECT_EQ(two.getParameters().back().kind, ParameterKind::Part);
  }
}

TEST_F(KernelBuilderTest, SignaturesSurviveTheirAttribute) {
  mlir::Builder b(&context);
  KernelSignature signature;
  // Not in the order of the ABI.
  signature.addPart(&context);
  signature.addScalar(2, "scale", b.getF32Type());
  signature.addScalar(3, "offset", b.getF64Type());
  signature.addScalar(4, "flag", b.getI1Type());
  signature.addScalar(5, "index", b.getIndexType());
  signature.addStride(0, 1, "in_stride1", &context);
  signature.addSize(1, 0, "out_size0", &context);
  signature.addAxisSize(2, "k", &context);
  signature.addPointer(0, "in", b.getBF16Type(),
                       ukernel::ParameterAccess::Read);
  signature.addPointer(1, "out", b.getI8Type(),
                       ukernel::ParameterAccess::ReadWrite);
  std::vector<ParameterKind> kinds;
  for (const KernelParameter &parameter : signature.getParameters())
    kinds.push_back(parameter.kind);
  EXPECT_EQ(kinds, (std::vector<ParameterKind>{
                       ParameterKind::Pointer, ParameterKind::Pointer,
                       ParameterKind::Size, ParameterKind::Size,
                       ParameterKind::Stride, ParameterKind::Scalar,
                       ParameterKind::ScalarLow, ParameterKind::ScalarHigh,
                       ParameterKind::Scalar, ParameterKind::ScalarLow,
                       ParameterKind::ScalarHigh, ParameterKind::Part}));
  mlir::FunctionType type = signature.getFunctionType(&context);
  EXPECT_EQ(type.getInput(0), mlir::MemRefType::get({}, b.getBF16Type()));
  EXPECT_EQ(type.getInput(5), b.getF32Type());
  for (unsigned number : {2u, 3u, 4u, 6u, 7u, 9u, 10u, 11u})
    EXPECT_EQ(type.getInput(number), b.getI32Type()) << number;
  EXPECT_EQ(type.getInput(8), b.getI8Type());

  mlir::ArrayAttr attribute = signature.toAttribute(&context);
  auto entry = ukernel::EntryAttr::get(&context, 32, 0, 4, attribute,
                                       /*uses=*/{});
  EXPECT_EQ(KernelSignature::of(entry).toAttribute(&context), attribute);
}

TEST_F(KernelBuilderTest, SaysWhatCannotBeBuilt) {
  auto bad = ukernel::FamilyAttr::get(
      &context, families[1].getSchedule(), 0,
      {mlir::DenseI64ArrayAttr::get(&context, {16, 16})}, {}, 1, 0);
  EXPECT_TRUE(mlir::failed(build(ops[0], bad, "k")));
  EXPECT_EQ(error,
            "'ukernel.workload' op expected a family of 3 axes, but got 2");

  // A tile that the path does not take; nothing is left behind.
  auto odd = ukernel::FamilyAttr::get(
      &context, families[0].getSchedule(), 0,
      {mlir::DenseI64ArrayAttr::get(&context, {12, 32, 6})}, {}, 1, 0);
  EXPECT_TRUE(mlir::failed(build(ops[0], odd, "k")));
  EXPECT_NE(error.find("simt: expected tiles of contiguous axes to be "
                       "multiples of the vector width"),
            std::string::npos)
      << error;
  EXPECT_TRUE(target->getBody()->empty());
}

TEST_F(KernelBuilderTest, CopiesWhatIsNotContiguous) {
  ukernel::OperatorOpInterface op = ops[0];
  auto b = mlir::OpBuilder::atBlockBegin(op->getBlock());
  auto layout = mlir::StridedLayoutAttr::get(&context, 0,
                                             {mlir::ShapedType::kDynamic, 2});
  auto type = mlir::MemRefType::get({mlir::ShapedType::kDynamic, 40},
                                    b.getF32Type(), layout);
  auto func = op->getParentOfType<mlir::FunctionOpInterface>();
  mlir::Value strided = func.getFunctionBody().addArgument(type, op.getLoc());
  op->setOperand(0, strided);
  EXPECT_TRUE(mlir::failed(build(op, families[1], "k")));
  EXPECT_NE(error.find("expected operand 'lhs' to be contiguous along its last "
                       "dimension, but got"),
            std::string::npos)
      << error;
  makeInnermostContiguous(op);
  EXPECT_TRUE(mlir::succeeded(build(op, families[1], "k"))) << error;
}

} // namespace
