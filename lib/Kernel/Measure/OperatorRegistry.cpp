//===- OperatorRegistry.cpp - Operators behind workloads ------------------===//
#include "FTuner/Kernel/Measure/OperatorRegistry.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Kernel/KernelBuilder.h"
#include "FTuner/Measure/MeasurementLog.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ftuner;

/// A function of the operator alone, with its operands as arguments but for
/// what is constant.
static std::unique_ptr<OperatorRegistry::Entry>
makeEntry(ukernel::OperatorOpInterface op) {
  auto entry = std::make_unique<OperatorRegistry::Entry>();
  entry->module = ModuleOp::create(op.getLoc());
  auto b = OpBuilder::atBlockEnd(entry->module->getBody());
  auto type = FunctionType::get(b.getContext(),
                                SmallVector<Type>(op->getOperandTypes()), {});
  auto func = func::FuncOp::create(b, op.getLoc(), "operator", type);
  Block *body = func.addEntryBlock();
  b.setInsertionPointToStart(body);
  IRMapping mapping;
  for (auto [operand, argument] :
       llvm::zip_equal(op->getOperands(), body->getArguments())) {
    Operation *constant = constantOf(operand);
    mapping.map(operand,
                constant ? b.clone(*constant)->getResult(0) : Value(argument));
  }
  entry->op = cast<ukernel::OperatorOpInterface>(b.clone(*op, mapping));
  // Kernels differ by none of these.
  entry->op.setPlanAttr({});
  entry->op.setRangesAttr({});
  entry->op->removeAttr(ukernel::UKernelDialect::kExtentsAttrName);
  func::ReturnOp::create(b, op.getLoc());
  return entry;
}

const Workload &OperatorRegistry::add(ukernel::OperatorOpInterface op,
                                      StringRef name) {
  std::unique_ptr<Entry> made = makeEntry(op);
  for (const std::unique_ptr<Entry> &entry : entries)
    if (computeTheSame(entry->op, made->op))
      return entry->workload;
  made->workload = toWorkload(made->op);
  made->workload.name = name.str();
  entries.push_back(std::move(made));
  return entries.back()->workload;
}

static bool areAlike(const Workload &lhs, const Workload &rhs) {
  if (measurementKey(lhs) != measurementKey(rhs))
    return false;
  return llvm::all_of_zip(lhs.axes, rhs.axes, [](const Axis &a, const Axis &b) {
    return a.range.isFixed() == b.range.isFixed() &&
           (!a.range.isFixed() || a.range.min == b.range.min);
  });
}

const OperatorRegistry::Entry *
OperatorRegistry::find(const Workload &workload) const {
  for (const std::unique_ptr<Entry> &entry : entries)
    if (&entry->workload == &workload)
      return entry.get();
  for (const std::unique_ptr<Entry> &entry : entries)
    if (areAlike(entry->workload, workload))
      return entry.get();
  return nullptr;
}
