//===- PluginTest.cpp - FTuner in another program -------------------------===//
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "gtest/gtest.h"

using namespace mlir;

namespace {
constexpr const char *kMatmul = R"(
func.func @matmul(%a: tensor<?x40xf32>, %b: tensor<40x48xf32>,
                  %c: tensor<?x48xf32>) -> tensor<?x48xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x40xf32>, tensor<40x48xf32>)
                     outs(%c : tensor<?x48xf32>) -> tensor<?x48xf32>
  return %r : tensor<?x48xf32>
})";

/// Loads the plugin's passes once, as a program does.
void loadPasses() {
  static bool isLoaded = [] {
    llvm::Expected<PassPlugin> plugin = PassPlugin::load(FTUNER_PLUGIN);
    if (!plugin) {
      ADD_FAILURE() << llvm::toString(plugin.takeError());
      return false;
    }
    plugin->registerPassRegistryCallbacks();
    return true;
  }();
  ASSERT_TRUE(isLoaded);
}

/// Compiles a product with what `registry` and the plugin know.
void compileWith(DialectRegistry &registry) {
  loadPasses();
  llvm::Expected<DialectPlugin> plugin = DialectPlugin::load(FTUNER_PLUGIN);
  ASSERT_TRUE(static_cast<bool>(plugin)) << llvm::toString(plugin.takeError());
  EXPECT_EQ(plugin->getPluginName(), "FTuner");
  plugin->registerDialectRegistryCallbacks(registry);

  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kMatmul, &context);
  ASSERT_TRUE(module);
  auto pm = PassManager::on<ModuleOp>(&context);
  ASSERT_TRUE(succeeded(
      parsePassPipeline("ftuner-compile{device=h200 max-kernels=2}", pm)));
  ASSERT_TRUE(succeeded(pm.run(*module)));
  EXPECT_EQ(llvm::range_size(module->getOps<gpu::GPUModuleOp>()), 2);
}

TEST(Plugin, BringsAllThatItNeeds) {
  DialectRegistry registry;
  compileWith(registry);
}

TEST(Plugin, LeavesWhatIsRegistered) {
  DialectRegistry registry;
  registerAllDialects(registry);
  compileWith(registry);
}

TEST(Plugin, NamesUnknownOptions) {
  loadPasses();
  std::string complaint;
  llvm::raw_string_ostream stream(complaint);
  EXPECT_TRUE(failed(
      parsePassPipeline("builtin.module(ftuner-compile{wings=2})", stream)));
  EXPECT_NE(complaint.find("wings"), std::string::npos) << complaint;
}
} // namespace
