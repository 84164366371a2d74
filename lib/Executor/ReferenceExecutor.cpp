//===- ReferenceExecutor.cpp - Runs functions lowered by upstream ------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Executor/Executor.h"
#include "Jit.h"
#include "Reference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/bit.h"
#include <chrono>
#include <csetjmp>
#include <cstring>

using namespace mlir;

namespace ftuner {

//===----------------------------------------------------------------------===//
// Assertions
//===----------------------------------------------------------------------===//

namespace {
/// Where a run returns to when an assertion fails. Compiled code holds nothing
/// that would need cleaning up, apart from memory that is lost then.
struct AssertionTrap {
  std::jmp_buf destination;
  volatile int64_t message = -1;
};
thread_local AssertionTrap *activeTrap = nullptr;
} // namespace

[[noreturn]] static void onAssertionFailed(int64_t message) {
  activeTrap->message = message;
  std::longjmp(activeTrap->destination, 1);
}

/// Calls compiled code; returns the index of the assertion that failed, or -1.
/// Holds no object with a destructor, since a failure jumps out of the call.
static int64_t callGuarded(void (*function)(void **), void **arguments) {
  AssertionTrap trap;
  activeTrap = &trap;
  if (setjmp(trap.destination) == 0)
    function(arguments);
  activeTrap = nullptr;
  return trap.message;
}

//===----------------------------------------------------------------------===//
// Arguments and results
//===----------------------------------------------------------------------===//

/// A memref as MLIR's C interface passes it: allocated and aligned pointer,
/// offset, sizes, strides; all of 8 bytes.
using Descriptor = std::vector<int64_t>;

static int64_t getDescriptorSize(size_t rank) { return 3 + 2 * rank; }

static Descriptor makeDescriptor(void *data, llvm::ArrayRef<int64_t> shape) {
  Descriptor descriptor(getDescriptorSize(shape.size()));
  descriptor[0] = descriptor[1] = reinterpret_cast<int64_t>(data);
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    descriptor[3 + dim] = shape[dim];
    descriptor[3 + shape.size() + dim] = stride;
    stride *= shape[dim];
  }
  return descriptor;
}

namespace {
/// Arguments in the form that promoted code takes.
struct PromotedArguments {
  std::vector<Tensor> tensors;
  std::vector<Descriptor> descriptors;
  std::vector<void *> descriptorPointers;
  std::vector<uint64_t> scalars;
  /// What invoking takes: a pointer to every argument.
  std::vector<void *> packed;
};
} // namespace

/// Floats become f64; everything is copied, since the reference may write to
/// its arguments.
static llvm::Error promoteArguments(llvm::ArrayRef<ArgumentValue> arguments,
                                    PromotedArguments &promoted) {
  // Pointers into the vectors must stay valid.
  promoted.tensors.reserve(arguments.size());
  promoted.descriptors.reserve(arguments.size());
  promoted.descriptorPointers.reserve(arguments.size());
  promoted.scalars.reserve(arguments.size());
  for (const ArgumentValue &argument : arguments) {
    if (!argument.isTensor) {
      promoted.scalars.push_back(
          isFloat(argument.scalarType)
              ? llvm::bit_cast<uint64_t>(argument.getScalarDouble())
              : argument.scalarBits);
      promoted.packed.push_back(&promoted.scalars.back());
      continue;
    }
    const Tensor &source = argument.tensor;
    bool floats = isFloat(source.getType());
    llvm::Expected<Tensor> tensor = Tensor::create(
        floats ? DataType::F64 : source.getType(), source.getShape());
    if (!tensor)
      return tensor.takeError();
    if (floats)
      for (int64_t i = 0, end = source.getNumElements(); i < end; ++i)
        tensor->setDouble(i, source.getDouble(i));
    else
      std::memcpy(tensor->data(), source.data(), source.getNumBytes());
    promoted.tensors.push_back(std::move(*tensor));
    promoted.descriptors.push_back(
        makeDescriptor(promoted.tensors.back().data(), source.getShape()));
    promoted.descriptorPointers.push_back(promoted.descriptors.back().data());
    promoted.packed.push_back(&promoted.descriptorPointers.back());
  }
  return llvm::Error::success();
}

/// Copies a result out of the memory that a descriptor refers to, rounding
/// floats to the result's type.
static llvm::Expected<Tensor> takeResult(const SignatureType &type,
                                         llvm::ArrayRef<int64_t> descriptor) {
  size_t rank = type.shape.size();
  llvm::ArrayRef<int64_t> shape = descriptor.slice(3, rank);
  llvm::ArrayRef<int64_t> strides = descriptor.slice(3 + rank, rank);
  llvm::Expected<Tensor> tensor = Tensor::create(type.type, shape);
  if (!tensor)
    return tensor.takeError();
  bool floats = isFloat(type.type);
  int64_t bytes = floats ? sizeof(double) : getByteSize(type.type);
  const char *base = reinterpret_cast<const char *>(descriptor[1]);
  llvm::SmallVector<int64_t> index(rank, 0);
  for (int64_t i = 0, end = tensor->getNumElements(); i < end; ++i) {
    int64_t position = descriptor[2];
    for (size_t dim = 0; dim < rank; ++dim)
      position += index[dim] * strides[dim];
    const char *source = base + position * bytes;
    if (floats) {
      double value;
      std::memcpy(&value, source, sizeof(value));
      tensor->setDouble(i, value);
    } else {
      std::memcpy(tensor->data() + i * bytes, source, bytes);
    }
    for (size_t dim = rank; dim-- > 0 && ++index[dim] == shape[dim];)
      index[dim] = 0;
  }
  return tensor;
}

//===----------------------------------------------------------------------===//
// Preparation
//===----------------------------------------------------------------------===//

/// Drops FTuner's attributes, which describe the tensors that go away.
static void dropAttributes(ModuleOp module) {
  auto dropOurs = [](auto attributes, auto remove) {
    for (NamedAttribute attribute : llvm::to_vector(attributes))
      if (attribute.getName().strref().starts_with("ukernel."))
        remove(attribute.getName());
  };
  dropOurs(module->getAttrs(),
           [&](StringAttr name) { module->removeAttr(name); });
  for (auto op : module.getOps<func::FuncOp>()) {
    dropOurs(op->getAttrs(), [&](StringAttr name) { op->removeAttr(name); });
    for (unsigned i = 0; i < op.getNumArguments(); ++i)
      dropOurs(function_interface_impl::getArgAttrs(op, i),
               [&](StringAttr name) { op.removeArgAttr(i, name); });
  }
}

/// Leaves the function and what it calls, under names that hide no function of
/// the program. Returns the function's new name.
static llvm::Expected<std::string> isolateFunction(ModuleOp module,
                                                   llvm::StringRef function) {
  for (auto op : module.getOps<func::FuncOp>())
    op.setVisibility(op.getName() == function
                         ? SymbolTable::Visibility::Public
                         : SymbolTable::Visibility::Private);
  PassManager pm(module.getContext());
  pm.addPass(createSymbolDCEPass());
  if (failed(pm.run(module)))
    return llvm::createStringError("cannot isolate function '" + function +
                                   "'");

  std::string entry;
  unsigned count = 0;
  for (auto op : module.getOps<func::FuncOp>()) {
    if (op.isExternal())
      return llvm::createStringError(
          "the reference cannot run the external function '" + op.getName() +
          "'");
    auto name = StringAttr::get(module.getContext(),
                                "ftuner_reference_" + std::to_string(count++));
    if (failed(SymbolTable::replaceAllSymbolUses(op, name, module)))
      return llvm::createStringError("cannot rename function '" + op.getName() +
                                     "'");
    if (op.isPublic())
      entry = name.str();
    op.setSymNameAttr(name);
  }
  return entry;
}

namespace {
class ReferenceExecutor : public Executor {
public:
  llvm::Error compile(ModuleOp module, const Signature &signature);
  llvm::Expected<RunResult>
  run(llvm::ArrayRef<ArgumentValue> arguments) override;

private:
  Signature signature;
  std::vector<std::string> messages;
  std::unique_ptr<ExecutionEngine> jit;
  void (*function)(void **) = nullptr;
};
} // namespace

llvm::Error ReferenceExecutor::compile(ModuleOp module,
                                       const Signature &functionSignature) {
  if (isCompiled(module))
    return llvm::createStringError(
        "the reference executor runs linalg on tensors, but got a "
        "compiled module");
  signature = functionSignature;
  OwningOpRef<ModuleOp> lowered = module.clone();
  dropAttributes(*lowered);
  llvm::Expected<std::string> entry = isolateFunction(*lowered, signature.name);
  if (!entry)
    return entry.takeError();
  if (failed(decomposeAggregates(*lowered)) ||
      failed(promoteFloats(*lowered)) ||
      failed(lowerReference(*lowered, messages)))
    return llvm::createStringError("upstream cannot lower function '" +
                                   signature.name + "' for the reference");
  auto engine = createJit(
      *lowered,
      {{kAssertionFunction, reinterpret_cast<void *>(&onAssertionFailed)}});
  if (!engine)
    return engine.takeError();
  jit = std::move(*engine);
  auto address = jit->lookupPacked("_mlir_ciface_" + *entry);
  if (!address)
    return address.takeError();
  function = *address;
  return llvm::Error::success();
}

llvm::Expected<RunResult>
ReferenceExecutor::run(llvm::ArrayRef<ArgumentValue> arguments) {
  PromotedArguments promoted;
  if (llvm::Error failure = promoteArguments(arguments, promoted))
    return failure;
  // Several results come as one struct of descriptors, without padding.
  int64_t resultSize = 0;
  for (const SignatureType &type : signature.results)
    resultSize += getDescriptorSize(type.shape.size());
  Descriptor descriptors(resultSize);
  void *resultPointer = descriptors.data();
  if (resultSize > 0)
    promoted.packed.insert(promoted.packed.begin(), &resultPointer);

  auto start = std::chrono::steady_clock::now();
  int64_t message = callGuarded(function, promoted.packed.data());
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  if (message >= 0)
    return llvm::createStringError("assertion failed in the reference: " +
                                   messages[message]);

  RunResult result;
  result.seconds = seconds.count();
  llvm::ArrayRef<int64_t> rest = descriptors;
  for (const SignatureType &type : signature.results) {
    int64_t size = getDescriptorSize(type.shape.size());
    llvm::Expected<Tensor> tensor = takeResult(type, rest.take_front(size));
    if (!tensor)
      return tensor.takeError();
    result.results.push_back(std::move(*tensor));
    rest = rest.drop_front(size);
  }
  return result;
}

llvm::Expected<std::unique_ptr<Executor>>
createReferenceExecutor(ModuleOp module, const Signature &signature) {
  auto executor = std::make_unique<ReferenceExecutor>();
  if (llvm::Error error = executor->compile(module, signature))
    return error;
  return executor;
}

} // namespace ftuner
