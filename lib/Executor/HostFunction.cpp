//===- HostFunction.cpp - Compiled host code of a function ----------------===//
#include "HostFunction.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "Jit.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace ftuner {

/// Appends a pointer to each value, as packed functions take them.
static void packValues(std::vector<void *> &packed, AbiValues &values) {
  for (int64_t &size : values.sizes)
    packed.push_back(&size);
  for (uint64_t &scalar : values.scalars)
    packed.push_back(&scalar);
}

HostFunction::HostFunction(std::unique_ptr<ExecutionEngine> jit,
                           std::string name, emulator::RuntimeAPI api)
    : jit(std::move(jit)), name(std::move(name)), api(api) {}
HostFunction::HostFunction(HostFunction &&) = default;
HostFunction::~HostFunction() = default;

llvm::Expected<HostFunction>
HostFunction::create(ModuleOp module, StringRef name,
                     const emulator::RuntimeAPI &api) {
  OwningOpRef<ModuleOp> host = module.clone();
  PassManager pm(module.getContext());
  buildHostLoweringPipeline(pm);
  if (failed(pm.run(*host)))
    return llvm::createStringError("cannot lower the host code of function '" +
                                   name + "'");
  auto address = [](auto *function) {
    return reinterpret_cast<void *>(function);
  };
  auto jit = createJit(
      *host, {{"ftrt_launch", address(api.launch)},
              {"ftrt_tensor_map_encode", address(api.encodeTensorMap)},
              {"ftrt_image_is_exact", address(api.imageIsExact)},
              {"ftrt_fail", address(api.fail)},
              {"ftrt_fail_sizes", address(api.failSizes)},
              {"ftrt_last_error", address(api.lastError)}});
  if (!jit)
    return jit.takeError();
  return HostFunction(std::move(*jit), name.str(), api);
}

llvm::Expected<HostFunction::Packed>
HostFunction::lookup(const llvm::Twine &suffix) const {
  return jit->lookupPacked((name + suffix).str());
}

llvm::Error HostFunction::fail(const llvm::Twine &text) const {
  return llvm::createStringError(text + " failed: " + api.lastError());
}

llvm::Expected<std::vector<Tensor>>
HostFunction::createResults(const Signature &signature, AbiValues values,
                            int64_t offset) const {
  auto function = lookup("_result_sizes");
  if (!function)
    return function.takeError();
  size_t count = 0;
  for (const SignatureType &type : signature.results)
    count += type.shape.size();
  std::vector<int64_t> sizes(count, 0);
  int64_t *out = sizes.data();
  int32_t code = 0;
  std::vector<void *> packed;
  packValues(packed, values);
  packed.insert(packed.end(), {&out, &code});
  (*function)(packed.data());
  if (code != FTRT_SUCCESS)
    return fail("computing the sizes of the results");
  std::vector<Tensor> results;
  llvm::ArrayRef<int64_t> rest = sizes;
  for (const SignatureType &type : signature.results) {
    llvm::Expected<Tensor> tensor =
        Tensor::create(type.type, rest.take_front(type.shape.size()),
                       llvm::alignTo(offset, getByteSize(type.type)));
    if (!tensor)
      return tensor.takeError();
    results.push_back(std::move(*tensor));
    rest = rest.drop_front(type.shape.size());
  }
  return results;
}

llvm::Expected<int64_t> HostFunction::getWorkspaceSize(AbiValues values) const {
  auto function = lookup("_workspace_size");
  if (!function)
    return function.takeError();
  int64_t bytes = 0;
  std::vector<void *> packed;
  packValues(packed, values);
  packed.push_back(&bytes);
  (*function)(packed.data());
  if (bytes < 0)
    return fail("computing the size of the workspace");
  return bytes;
}

llvm::Error HostFunction::call(std::vector<void *> buffers, AbiValues values,
                               void *workspace, void *stream) const {
  auto function = lookup("");
  if (!function)
    return function.takeError();
  int32_t code = 0;
  std::vector<void *> packed;
  for (void *&buffer : buffers)
    packed.push_back(&buffer);
  packValues(packed, values);
  packed.insert(packed.end(), {&workspace, &stream, &code});
  (*function)(packed.data());
  if (code != FTRT_SUCCESS)
    return fail("running function '" + name + "'");
  return llvm::Error::success();
}

} // namespace ftuner
