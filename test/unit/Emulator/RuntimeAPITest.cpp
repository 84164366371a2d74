//===- RuntimeAPITest.cpp - Launches from compiled host code --------------===//
#include "EmulatorTest.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/Support/TargetSelect.h"

using namespace ftuner::emulator;

namespace {
const char *const kKernel = R"(
  llvm.func @add(%out: !llvm.ptr, %x: f32) attributes {gpu.kernel} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %bid = nvvm.read.ptx.sreg.ctaid.x : i32
    %dim = nvvm.read.ptx.sreg.ntid.x : i32
    %offset = llvm.mul %bid, %dim : i32
    %i = llvm.add %offset, %tid : i32
    %p = llvm.getelementptr %out[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %old = llvm.load %p : !llvm.ptr -> f32
    %new = llvm.fadd %old, %x : f32
    llvm.store %new, %p : f32, !llvm.ptr
    llvm.return
  }
)";

/// Host code as a compiler would emit it, in C-like functions of their own.
const char *const kHost = R"(
  llvm.func @ftrt_launch(!llvm.ptr, i32, i32, i32, !llvm.ptr, !llvm.ptr) -> i32
  llvm.func @ftrt_fail(!llvm.ptr) -> i32
  llvm.func @ftrt_last_error() -> !llvm.ptr
  llvm.func @run(%kernel: !llvm.ptr, %grid: i32, %block: i32, %stream: !llvm.ptr, %parameters: !llvm.ptr) -> i32 attributes {llvm.emit_c_interface} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %r = llvm.call @ftrt_launch(%kernel, %grid, %block, %zero, %stream, %parameters) : (!llvm.ptr, i32, i32, i32, !llvm.ptr, !llvm.ptr) -> i32
    llvm.return %r : i32
  }
  llvm.func @give_up(%message: !llvm.ptr) -> i32 {
    %r = llvm.call @ftrt_fail(%message) : (!llvm.ptr) -> i32
    llvm.return %r : i32
  }
  llvm.func @last_error() -> !llvm.ptr {
    %r = llvm.call @ftrt_last_error() : () -> !llvm.ptr
    llvm.return %r : !llvm.ptr
  }
)";

TEST_F(EmulatorTest, HostCodeLaunchesThroughTheRuntimeAPI) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  mlir::registerBuiltinDialectTranslation(context);
  mlir::registerLLVMDialectTranslation(context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kHost, &context);
  ASSERT_TRUE(module);
  auto engine = mlir::ExecutionEngine::create(*module);
  ASSERT_TRUE(bool(engine)) << llvm::toString(engine.takeError());
  (*engine)->registerSymbols([](llvm::orc::MangleAndInterner mangle) {
    const RuntimeAPI &api = getRuntimeAPI();
    llvm::orc::SymbolMap symbols;
    auto define = [&](const char *name, auto *function) {
      symbols[mangle(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                               llvm::JITSymbolFlags::Exported};
    };
    define("ftrt_launch", api.launch);
    define("ftrt_fail", api.fail);
    define("ftrt_last_error", api.lastError);
    return symbols;
  });
  auto emulator = create(kKernel);
  ASSERT_TRUE(emulator) << error;

  auto find = [&](llvm::StringRef name) {
    auto symbol = (*engine)->lookup(name);
    EXPECT_TRUE(bool(symbol)) << llvm::toString(symbol.takeError());
    return symbol ? *symbol : nullptr;
  };
  auto run = reinterpret_cast<int32_t (*)(ftrt_kernel *, uint32_t, uint32_t,
                                          void *, void **)>(find("run"));
  auto giveUp = reinterpret_cast<int32_t (*)(const char *)>(find("give_up"));
  auto getLastError = reinterpret_cast<const char *(*)()>(find("last_error"));

  std::vector<float> out = randomFloats(4 * 32), expected = out;
  float *pointer = out.data(), x = 0.75f;
  void *parameters[] = {&pointer, &x};
  ftrt_kernel add = {"add", nullptr, nullptr};
  ftrt_kernel missing = {"missing", nullptr, nullptr};
  std::vector<std::string> launched;
  emulator->setLaunchObserver(
      [&](llvm::StringRef kernel, const LaunchConfig &config) {
        launched.push_back(kernel.str() + " " + std::to_string(config.grid.x) +
                           " " + std::to_string(config.block.x));
      });
  EXPECT_EQ(run(&add, 4, 32, emulator.get(), parameters), FTRT_SUCCESS);
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], expected[i] + x);
  EXPECT_EQ(run(&add, 0, 32, emulator.get(), parameters), FTRT_SUCCESS);
  EXPECT_EQ(out[0], expected[0] + x);

  EXPECT_EQ(launched, (std::vector<std::string>{"add 4 32", "add 0 32"}));

  EXPECT_EQ(run(&missing, 1, 32, emulator.get(), parameters),
            FTRT_ERROR_UNKNOWN_KERNEL);
  EXPECT_STREQ(getLastError(), "unknown kernel 'missing'");
  EXPECT_EQ(run(&add, 1, 2000, emulator.get(), parameters),
            FTRT_ERROR_LAUNCH_FAILED);
  EXPECT_CONTAINS(std::string(getLastError()), "expected a block of");
  EXPECT_EQ(run(&add, 1, 32, nullptr, parameters), FTRT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(giveUp("sizes do not fit"), FTRT_ERROR_HOST);
  EXPECT_STREQ(getRuntimeAPI().lastError(), "sizes do not fit");
}
} // namespace
