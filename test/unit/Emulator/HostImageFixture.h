//===- HostImageFixture.h - Kernels compiled ahead of time ------*- C++ -*-===//
#ifndef FTUNER_TEST_UNIT_EMULATOR_HOSTIMAGEFIXTURE_H
#define FTUNER_TEST_UNIT_EMULATOR_HOSTIMAGEFIXTURE_H

#include "EmulatorTest.h"
#include "FTuner/Emulator/HostImage.h"
#include "FTuner/Runtime/EmulatorInterface.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/ExecutionEngine/Orc/ThreadSafeModule.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include <dlfcn.h>

namespace ftuner::emulator {

/// Compiles and links host images, and launches their kernels through the
/// library.
class HostImageFixture : public EmulatorTest {
protected:
  void SetUp() override {
    void *library = dlopen(FTRT_EMULATOR_PATH, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << dlerror();
    auto get = reinterpret_cast<decltype(&ftrt_emulator_get_interface)>(
        dlsym(library, FTRT_EMULATOR_GET_INTERFACE));
    ASSERT_TRUE(get);
    interface = get();
    ASSERT_TRUE(interface);
  }

  /// Compiles, or leaves the diagnostics in `error`.
  std::vector<std::string> compile(const std::string &text,
                                   const HostImageOptions &options) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    error.clear();
    mlir::ScopedDiagnosticHandler handler(&context,
                                          [&](mlir::Diagnostic &diagnostic) {
                                            error += diagnostic.str() + "\n";
                                            return mlir::success();
                                          });
    auto objects = compileHostImage(*module, options);
    EXPECT_EQ(mlir::failed(objects), !error.empty()) << error;
    return mlir::failed(objects) ? std::vector<std::string>() : *objects;
  }

  /// Links objects into this program, fills in the table, and returns the
  /// image.
  const ftrt_host_image *load(const std::vector<std::string> &objects,
                              const std::string &name) {
    auto created = llvm::orc::LLJITBuilder().create();
    EXPECT_TRUE(bool(created)) << llvm::toString(created.takeError());
    std::unique_ptr<llvm::orc::LLJIT> jit = std::move(*created);
    for (const std::string &object : objects)
      EXPECT_FALSE(jit->addObjectFile(
          llvm::MemoryBuffer::getMemBufferCopy(object, "object")));
    // The image is hidden: another part of the same library hands it out.
    llvm::SMDiagnostic diagnostic;
    auto context = std::make_unique<llvm::LLVMContext>();
    auto accessor = llvm::parseAssemblyString(
        "@" + name + " = external hidden constant i8\n" +
            "define ptr @get_image() { ret ptr @" + name + " }\n",
        diagnostic, *context);
    EXPECT_TRUE(accessor) << diagnostic.getMessage().str();
    EXPECT_FALSE(jit->addIRModule(
        llvm::orc::ThreadSafeModule(std::move(accessor), std::move(context))));
    auto get = jit->lookup("get_image");
    if (!get) {
      ADD_FAILURE() << llvm::toString(get.takeError());
      return nullptr;
    }
    jits.push_back(std::move(jit));
    auto *image = get->toPtr<const ftrt_host_image *(*)()>()();
    EXPECT_EQ(image->function_count, interface->function_count);
    std::copy_n(interface->functions, image->function_count, image->functions);
    return image;
  }

  const ftrt_host_image *compileAndLoad(const std::string &text) {
    HostImageOptions options;
    options.name = "model_image";
    return load(compile(text, options), options.name);
  }

  static const ftrt_host_kernel *find(const ftrt_host_image *image,
                                      const std::string &name) {
    for (uint32_t i = 0; i < image->kernel_count; ++i)
      if (image->kernels[i].name == name)
        return &image->kernels[i];
    return nullptr;
  }

  template <typename... Arguments>
  int32_t launch(const ftrt_host_kernel *kernel, uint32_t grid, uint32_t block,
                 uint32_t sharedBytes, Arguments... arguments) {
    void *parameters[] = {static_cast<void *>(&arguments)..., nullptr};
    char text[512] = "";
    int32_t code =
        interface->launch(kernel, grid, block, sharedBytes, parameters,
                          /*check=*/nullptr, text, sizeof(text));
    message = text;
    return code;
  }

  const ftrt_emulator_interface *interface = nullptr;
  std::string message;
  std::vector<std::unique_ptr<llvm::orc::LLJIT>> jits;
};

} // namespace ftuner::emulator

#endif // FTUNER_TEST_UNIT_EMULATOR_HOSTIMAGEFIXTURE_H
