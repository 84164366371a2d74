//===- EmittedKernel.cpp - Kernels of given families as PTX ---------------===//
#include "EmittedKernel.h"
#include "FTuner/InitAll.h"
#include "FTuner/Kernel/Measure/KernelCompiler.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Workload/Contraction.h"
#include "Products.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace ftuner;

static ElementType sumType(ElementType multiplied) {
  return multiplied == ElementType::I8 ? ElementType::I32 : ElementType::F32;
}

/// In memory, of what is multiplied as the type.
static ElementType storedType(ElementType multiplied) {
  return multiplied == ElementType::TF32 ? ElementType::F32 : multiplied;
}

static constexpr unsigned kBatchAxis = 3;

static std::string prologueText(const EmittedPrologue &prologue) {
  std::string text;
  if (prologue.type)
    text += " from " + nameOf(*prologue.type).str();
  if (prologue.addsScalar)
    text += " + scalar";
  if (prologue.addsAlongSpace)
    text += " + space";
  if (prologue.addsAlongReduce)
    text += " + reduce";
  return text;
}

Workload EmittedCase::workload() const {
  auto range = [&](int64_t extent) {
    return isDynamic ? SizeRange{1, std::nullopt, 1} : SizeRange::fixed(extent);
  };
  Workload workload = Workload::matmul({1, std::nullopt, 1}, range(n), range(k),
                                       transposeLhs, transposeRhs);
  if (batch != 0) {
    workload.axes.push_back({"B", SizeRange::fixed(batch)});
    for (auto [number, operand] : llvm::enumerate(workload.operands))
      if (number > 1 || isBatched(number))
        operand.axes.insert(operand.axes.begin(), kBatchAxis);
    setContraction(workload, ContractionParts());
  }
  setTypes(workload, multiplied, sumType(multiplied));
  ContractionParts parts = contractionParts(workload);
  parts.truncatesFactors = isTruncated;
  llvm::SmallVector<Operand> inputs;
  for (unsigned factor : {0, 1}) {
    const EmittedPrologue &prologue = prologues[factor];
    if (prologue.type) {
      workload.operands[factor].elementType = *prologue.type;
      workload.operands[factor].elementBytes = bytesOf(*prologue.type);
      parts.prologues[factor].push_back(
          {OperationKind::Cast, *prologue.type, storedType(multiplied), 1});
    }
    unsigned space = factor == 0 ? matmulAxes.m : matmulAxes.n;
    int64_t sums = 0;
    for (const auto &[isRead, axes] :
         {std::pair(prologue.addsScalar, llvm::SmallVector<unsigned>()),
          std::pair(prologue.addsAlongSpace,
                    llvm::SmallVector<unsigned>{space}),
          std::pair(prologue.addsAlongReduce,
                    llvm::SmallVector<unsigned>{matmulAxes.k})}) {
      if (!isRead)
        continue;
      inputs.push_back(
          Operand(OperandRole::Input, axes, storedType(multiplied)));
      ++sums;
    }
    if (sums > 0)
      parts.prologues[factor].push_back({OperationKind::Add,
                                         storedType(multiplied),
                                         storedType(multiplied), double(sums)});
  }
  workload.operands.insert(workload.operands.begin() + 2, inputs.begin(),
                           inputs.end());
  setContraction(workload, parts);
  return workload;
}

std::string EmittedCase::str() const {
  std::string type;
  if (multiplied != ElementType::F32)
    type = nameOf(multiplied).str() + (isTruncated ? " truncated " : " ");
  std::string before;
  for (unsigned factor : {0, 1})
    if (std::string text = prologueText(prologues[factor]); !text.empty())
      before += (factor == 0 ? ", lhs" : ", rhs") + text;
  if (batch != 0)
    before += ", batch of " + std::to_string(batch) + (sharesRhs ? " lhs" : "");
  return llvm::formatv("{0} {1}{2}{3} {4} n = {5}, k = {6}{7}{8}", device, type,
                       transposeLhs ? "T" : "N", transposeRhs ? "T" : "N",
                       family.str(), n, k, isDynamic ? " dynamic" : "", before);
}

namespace {
/// Text of the operands and of the contraction of a product.
class OperatorText {
public:
  explicit OperatorText(const EmittedCase &emitted)
      : emitted(emitted), sum(nameOf(sumType(emitted.multiplied))),
        multiplied(nameOf(storedType(emitted.multiplied))),
        isInteger(emitted.multiplied == ElementType::I8),
        n(emitted.isDynamic ? "?" : std::to_string(emitted.n)),
        k(emitted.isDynamic ? "?" : std::to_string(emitted.k)) {}

  std::string str();

private:
  /// The loops of maps; and dimensions, sizes or axes, behind that of a batch.
  std::string loops() const { return emitted.batch ? "m, n, k, b" : "m, n, k"; }
  std::string sizes(bool isBatched, const std::string &sizes) const {
    return isBatched ? std::to_string(emitted.batch) + "x" + sizes : sizes;
  }
  static std::string axes(bool isBatched, const std::string &axes) {
    return isBatched ? "b, " + axes : axes;
  }
  /// Adds an operand that the contraction reads.
  void addOperand(const std::string &name, const std::string &type,
                  const std::string &axes, llvm::StringRef element);
  void addInputs(unsigned factor);
  /// Lines that make what is multiplied, of the sum's type; the value's name.
  std::string computeFactor(unsigned factor);

  const EmittedCase &emitted;
  llvm::StringRef sum, multiplied;
  bool isInteger;
  std::string n, k;
  std::vector<std::string> names, types, maps, arguments, body;
  /// The block's arguments of each factor's inputs.
  std::array<std::vector<std::string>, 2> added;
};
} // namespace

void OperatorText::addOperand(const std::string &name, const std::string &type,
                              const std::string &axes,
                              llvm::StringRef element) {
  names.push_back("%" + name);
  types.push_back(type);
  maps.push_back("affine_map<(" + loops() + ") -> (" + axes + ")>");
  arguments.push_back("%" + llvm::StringRef(name).lower() +
                      "_: " + element.str());
}

void OperatorText::addInputs(unsigned factor) {
  const EmittedPrologue &prologue = emitted.prologues[factor];
  std::string side = factor == 0 ? "L" : "R";
  std::string extent = factor == 0 ? "?" : n;
  auto add = [&](const std::string &name, const std::string &type,
                 const std::string &axes) {
    addOperand(side + name, type, axes, multiplied);
    added[factor].push_back("%" + llvm::StringRef(side + name).lower() + "_");
  };
  auto vectorOf = [&](const std::string &size) {
    return "memref<" + size + "x" + multiplied.str() + ">";
  };
  if (prologue.addsScalar)
    add("scalar", multiplied.str(), "");
  if (prologue.addsAlongSpace)
    add("space", vectorOf(extent), factor == 0 ? "m" : "n");
  if (prologue.addsAlongReduce)
    add("reduce", vectorOf(k), "k");
}

std::string OperatorText::computeFactor(unsigned factor) {
  const EmittedPrologue &prologue = emitted.prologues[factor];
  std::string side = factor == 0 ? "a" : "b", value = "%" + side + "_";
  auto add = [&](const std::string &operation) {
    std::string result = "%" + side + std::to_string(body.size());
    body.push_back("      " + result + " = " + operation + "\n");
    value = result;
  };
  auto cast = [&](llvm::StringRef from, llvm::StringRef to) {
    auto bits = [](llvm::StringRef type) {
      int64_t count = 0;
      type.take_back(type.ends_with("8") ? 1 : 2).getAsInteger(10, count);
      return count;
    };
    bool isWider = bits(from) < bits(to);
    if (from == to)
      return;
    std::string name = llvm::StringRef(from).starts_with("i")
                           ? llvm::StringRef(to).starts_with("i")
                                 ? isWider ? "extsi" : "trunci"
                                 : "sitofp"
                       : isWider ? "extf"
                                 : "truncf";
    add("arith." + name + " " + value + " : " + from.str() + " to " + to.str());
  };
  if (prologue.type)
    cast(nameOf(*prologue.type), multiplied);
  for (const std::string &number : added[factor])
    add(std::string("arith.add") + (isInteger ? "i " : "f ") + value + ", " +
        number + " : " + multiplied.str());
  cast(multiplied, sum);
  return value;
}

/// The product on buffers, in a function.
std::string OperatorText::str() {
  for (unsigned factor : {0, 1}) {
    const EmittedPrologue &prologue = emitted.prologues[factor];
    llvm::StringRef element =
        prologue.type ? nameOf(*prologue.type) : multiplied;
    bool isTransposed =
        factor == 0 ? emitted.transposeLhs : emitted.transposeRhs;
    std::string rows = factor == 0 ? "?" : k, columns = factor == 0 ? k : n;
    std::string axes = factor == 0 ? "m, k" : "k, n";
    if (isTransposed) {
      std::swap(rows, columns);
      axes = factor == 0 ? "k, m" : "n, k";
    }
    bool isBatched = emitted.isBatched(factor);
    addOperand(factor == 0 ? "A" : "B",
               "memref<" + sizes(isBatched, rows + "x" + columns) + "x" +
                   element.str() + ">",
               this->axes(isBatched, axes), element);
  }
  for (unsigned factor : {0, 1})
    addInputs(factor);
  std::string lhs = computeFactor(0), rhs = computeFactor(1);
  std::string inputs;
  auto join = [](llvm::ArrayRef<std::string> parts) {
    return llvm::join(parts, ", ");
  };
  auto all = [](const std::vector<std::string> &parts) {
    return llvm::ArrayRef(parts);
  };
  if (names.size() > 2)
    inputs = " inputs(" + join(all(names).drop_front(2)) + " : " +
             join(all(types).drop_front(2)) + ")";
  std::vector<std::string> parameters;
  for (auto [name, type] : llvm::zip(names, types))
    parameters.push_back(name + ": " + type);
  bool isBatched = emitted.batch != 0;
  std::string output =
      "memref<" + sizes(isBatched, "?x" + n) + "x" + sum.str() + ">";
  bool isTf32 = emitted.multiplied == ElementType::TF32;
  return llvm::formatv(
      R"(
func.func @f({0}, %O: {1}) {{
  ukernel.workload ins(%A, %B : {2}){3} outs(%O : {1})
      maps = [{4}, affine_map<({12}) -> ({13})>]{5} contract {{
    ^bb0({6}, %c: {7}):
{8}      %product = arith.mul{9} {10}, {11} : {7}
      %sum = arith.add{9} %c, %product : {7}
      ukernel.yield %sum : {7}
    }
  return
}
)",
      join(parameters), output, join(all(types).take_front(2)), inputs,
      join(maps),
      !isTf32               ? ""
      : emitted.isTruncated ? " precision = tf32 truncated"
                            : " precision = tf32",
      join(arguments), sum, llvm::join(body, ""), isInteger ? "i" : "f", lhs,
      rhs, loops(), axes(isBatched, "m, n"));
}

static std::string operatorText(const EmittedCase &emitted) {
  return OperatorText(emitted).str();
}

llvm::Expected<EmittedPtx> ftuner::emit(MLIRContext &context,
                                        const EmittedCase &emitted) {
  auto failed = [&](llvm::Error error) {
    return llvm::createStringError(emitted.str() + ": " +
                                   llvm::toString(std::move(error)));
  };
  llvm::Expected<DeviceSpec> device = loadDeviceSpec(emitted.device);
  if (!device)
    return failed(device.takeError());
  llvm::Expected<KernelCompiler> compiler =
      KernelCompiler::create(&context, *device, buildKernelLoweringPipeline);
  if (!compiler)
    return failed(compiler.takeError());
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(operatorText(emitted), &context);
  ukernel::OperatorOpInterface op;
  if (module)
    module->walk([&](ukernel::OperatorOpInterface found) { op = found; });
  if (!op)
    return failed(llvm::createStringError(operatorText(emitted)));
  auto kernels = compiler->compile({{op, emitted.family, "k"}});
  if (!kernels.front())
    return failed(kernels.front().takeError());
  EmittedPtx kernel;
  kernel.ptx = kernels.front()->ptx.text;
  kernel.threads = kernels.front()->entry.getThreads();
  for (const KernelParameter &parameter :
       kernels.front()->signature.getParameters())
    kernel.parameters.push_back(parameter.name);
  return kernel;
}

std::unique_ptr<MLIRContext> ftuner::makeContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry);
  context->loadAllAvailableDialects();
  return context;
}
