//===- LibraryModule.cpp - The module object of a library -----------------===//
//
// Writes the structures of FTuner/Runtime/ftrt.h as constants of LLVM IR.
//
//===----------------------------------------------------------------------===//
#include "LibraryModule.h"
#include "FTuner/RuntimeClient/ImageArchitecture.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/Module.h"
#include <cstddef>

using namespace llvm;

namespace ftuner {

// The layouts that are written below.
static_assert(sizeof(ftrt_image) == 24 && offsetof(ftrt_image, kind) == 0 &&
              offsetof(ftrt_image, architecture) == 4 &&
              offsetof(ftrt_image, data) == 8 &&
              offsetof(ftrt_image, bytes) == 16);
static_assert(sizeof(ftrt_module) == 56 &&
              offsetof(ftrt_module, abi_version) == 0 &&
              offsetof(ftrt_module, image_count) == 4 &&
              offsetof(ftrt_module, name) == 8 &&
              offsetof(ftrt_module, images) == 16 &&
              offsetof(ftrt_module, kernels) == 24 &&
              offsetof(ftrt_module, kernel_count) == 32 &&
              offsetof(ftrt_module, manifest) == 40 &&
              offsetof(ftrt_module, handle) == 48);

namespace {
/// Data of images starts at multiples of this many bytes.
constexpr uint64_t kImageAlignment = 16;
/// How the lowering of host code names the object of a kernel.
constexpr StringLiteral kKernelPrefix = "ftrt_kernel_";

class ModuleObjectWriter {
public:
  ModuleObjectWriter(Module &code)
      : code(code), pointer(PointerType::getUnqual(code.getContext())),
        i32(Type::getInt32Ty(code.getContext())),
        i64(Type::getInt64Ty(code.getContext())) {}

  void write(const PtxImages &ptx, const LibraryContents &contents,
             const LibraryOptions &options);

private:
  Constant *int32(uint64_t value) { return ConstantInt::get(i32, value); }
  Constant *int64(uint64_t value) { return ConstantInt::get(i64, value); }
  /// Constant data, or null for an empty array.
  Constant *addArray(Type *type, ArrayRef<Constant *> values, StringRef name);
  /// Zero-terminated text or bytes.
  Constant *addBytes(StringRef bytes, StringRef name);
  Constant *makeImage(uint32_t kind, uint32_t architecture, Constant *data,
                      uint64_t bytes) {
    return ConstantStruct::getAnon(
        {int32(kind), int32(architecture), data, int64(bytes)});
  }
  std::vector<Constant *> makeImages(const PtxImages &ptx,
                                     const LibraryContents &contents,
                                     const LibraryOptions &options);
  std::vector<Constant *> makeKernels(const PtxImages &ptx,
                                      GlobalVariable *module);

  Module &code;
  PointerType *pointer;
  Type *i32, *i64;
};
} // namespace

Constant *ModuleObjectWriter::addArray(Type *type, ArrayRef<Constant *> values,
                                       StringRef name) {
  if (values.empty())
    return ConstantPointerNull::get(pointer);
  auto *array = ArrayType::get(type, values.size());
  return new GlobalVariable(code, array, /*isConstant=*/true,
                            GlobalValue::InternalLinkage,
                            ConstantArray::get(array, values), name);
}

Constant *ModuleObjectWriter::addBytes(StringRef bytes, StringRef name) {
  Constant *data = ConstantDataArray::getString(code.getContext(), bytes,
                                                /*AddNull=*/true);
  auto *global = new GlobalVariable(code, data->getType(), /*isConstant=*/true,
                                    GlobalValue::InternalLinkage, data, name);
  global->setAlignment(Align(kImageAlignment));
  return global;
}

std::vector<Constant *>
ModuleObjectWriter::makeImages(const PtxImages &ptx,
                               const LibraryContents &contents,
                               const LibraryOptions &options) {
  std::vector<Constant *> images;
  for (const LibraryCubin &cubin : options.cubins)
    images.push_back(
        makeImage(FTRT_IMAGE_CUBIN, toImageArchitecture(cubin.architecture),
                  addBytes(cubin.bytes,
                           "ftrt_cubin_" + cubin.architecture.name().substr(3)),
                  cubin.bytes.size()));
  auto addPtx = [&](const PtxModule &image, StringRef name) {
    images.push_back(makeImage(FTRT_IMAGE_PTX,
                               toImageArchitecture(image.target.architecture),
                               addBytes(image.text, name),
                               image.text.size() + 1)); // With its zero.
  };
  addPtx(ptx.own, "ftrt_ptx");
  if (ptx.portable)
    addPtx(*ptx.portable, "ftrt_ptx_portable");
  if (contents.hostImageSymbol.empty())
    return images;
  auto *image = new GlobalVariable(
      code, ArrayType::get(Type::getInt8Ty(code.getContext()), 0),
      /*isConstant=*/false, GlobalValue::ExternalLinkage, nullptr,
      contents.hostImageSymbol);
  image->setVisibility(GlobalValue::HiddenVisibility);
  images.push_back(
      makeImage(FTRT_IMAGE_HOST, 0, image, sizeof(ftrt_host_image)));
  return images;
}

/// Returns the objects of the kernels, in their order in PTX. Host code has the
/// objects of the kernels that it launches.
std::vector<Constant *>
ModuleObjectWriter::makeKernels(const PtxImages &ptx, GlobalVariable *module) {
  std::vector<Constant *> kernels;
  for (StringRef entry : ptx.entries()) {
    std::string name = (kKernelPrefix + entry).str();
    GlobalVariable *object = code.getNamedGlobal(name);
    if (!object) {
      Constant *fields =
          ConstantStruct::getAnon({addBytes(entry, name + "_name"), module,
                                   ConstantPointerNull::get(pointer)});
      object = new GlobalVariable(code, fields->getType(),
                                  /*isConstant=*/false,
                                  GlobalValue::InternalLinkage, fields, name);
    }
    kernels.push_back(object);
  }
  return kernels;
}

void ModuleObjectWriter::write(const PtxImages &ptx,
                               const LibraryContents &contents,
                               const LibraryOptions &options) {
  std::vector<Constant *> images = makeImages(ptx, contents, options);
  GlobalVariable *declared = code.getNamedGlobal(contents.moduleSymbol);
  if (!declared)
    declared = new GlobalVariable(code, pointer, /*isConstant=*/false,
                                  GlobalValue::ExternalLinkage, nullptr,
                                  contents.moduleSymbol);
  std::vector<Constant *> kernels = makeKernels(ptx, declared);
  Constant *object = ConstantStruct::getAnon(
      {int32(FTRT_ABI_VERSION), int32(images.size()),
       addBytes(options.name, "ftrt_module_name"),
       addArray(images.front()->getType(), images, "ftrt_images"),
       addArray(pointer, kernels, "ftrt_kernels"), int64(kernels.size()),
       addBytes(contents.manifest, "ftrt_manifest"),
       ConstantPointerNull::get(pointer)});

  auto *defined = new GlobalVariable(
      code, object->getType(), /*isConstant=*/false,
      GlobalValue::ExternalLinkage, object, contents.moduleSymbol);
  declared->replaceAllUsesWith(defined);
  defined->takeName(declared);
  declared->eraseFromParent();
  if (options.isShared && contents.moduleSymbol != kSharedModuleSymbol)
    GlobalAlias::create(kSharedModuleSymbol, defined);
}

void addModuleObject(Module &code, const PtxImages &ptx,
                     const LibraryContents &contents,
                     const LibraryOptions &options) {
  ModuleObjectWriter(code).write(ptx, contents, options);
}

void limitExports(Module &code, const StringSet<> &exports,
                  StringRef moduleSymbol) {
  for (GlobalVariable &global : code.globals())
    // LLVM's own, such as llvm.compiler.used, keep their meaning.
    if (!global.isDeclaration() && global.getName() != moduleSymbol &&
        !global.getName().starts_with("llvm."))
      global.setLinkage(GlobalValue::InternalLinkage);
  for (Function &function : code) {
    if (function.isDeclaration())
      continue;
    if (!exports.contains(function.getName()))
      function.setLinkage(GlobalValue::InternalLinkage);
    // Calls within the library stay in it, even if another library has the
    // name.
    function.setDSOLocal(true);
  }
}

} // namespace ftuner
