//===- HostFunction.h - Host functions and their failures -------*- C++ -*-===//
#ifndef FTUNER_LIB_CONVERSION_UKERNELTOLLVM_HOSTFUNCTION_H
#define FTUNER_LIB_CONVERSION_UKERNELTOLLVM_HOSTFUNCTION_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringMap.h"

namespace ftuner {

struct KernelParameter;

/// What host functions share: the runtime's functions and messages.
class HostRuntime {
public:
  /// `moduleSymbol` names the ftrt_module of the kernels; empty: there is none.
  HostRuntime(mlir::ModuleOp module, llvm::StringRef moduleSymbol);

  mlir::ModuleOp getModule() const { return module; }
  const mlir::LLVMTypeConverter &getTypes() const { return types; }
  mlir::Type getPointerType() const;

  // The functions ftrt_fail, ftrt_fail_sizes, ftrt_launch,
  // ftrt_tensor_map_encode and ftrt_image_is_exact. The second and the last two
  // came later (`expectFunction`).
  mlir::LLVM::LLVMFuncOp getFail();
  mlir::LLVM::LLVMFuncOp getFailSizes();
  mlir::LLVM::LLVMFuncOp getLaunch();
  mlir::LLVM::LLVMFuncOp getEncode();
  mlir::LLVM::LLVMFuncOp getImageIsExact();
  /// Pointer to the ftrt_module of the kernels, or null.
  mlir::Value getKernelModule(mlir::ImplicitLocOpBuilder &b);
  /// Pointer to a zero-terminated string.
  mlir::Value getString(mlir::ImplicitLocOpBuilder &b, llvm::StringRef text);
  /// Pointer to the static ftrt_kernel of a kernel.
  mlir::Value getKernel(mlir::ImplicitLocOpBuilder &b, llvm::StringRef name);
  /// The type of ftrt_tensor_map: the names of the kernel and the parameter,
  /// and numbers. The box begins with field `kTensorMapBox`.
  mlir::LLVM::LLVMStructType getTensorMapType();
  static constexpr unsigned kTensorMapBox = 4;
  /// Pointer to the static ftrt_tensor_map of a kernel's parameter.
  mlir::Value getTensorMap(mlir::ImplicitLocOpBuilder &b,
                           llvm::StringRef kernel,
                           const KernelParameter &parameter);

private:
  mlir::LLVM::LLVMFuncOp declare(llvm::StringRef name,
                                 llvm::ArrayRef<mlir::Type> inputs);
  /// Declares a function that older runtimes lack. In a library the loader
  /// takes its absence: the address is null.
  mlir::LLVM::LLVMFuncOp declareOptional(llvm::StringRef name,
                                         llvm::ArrayRef<mlir::Type> inputs);

  mlir::ModuleOp module;
  std::string moduleSymbol;
  mlir::LLVMTypeConverter types;
  llvm::StringMap<mlir::LLVM::GlobalOp> strings, kernels, tensorMaps;
};

/// Where a function returns early, the code becomes its result: as it is for
/// i32, negated for i64 (sizes).
void returnCode(mlir::ImplicitLocOpBuilder &b, mlir::func::FuncOp func,
                mlir::Value code);

/// Ends the block before the builder's position: if `condition` holds there,
/// the function fails with `message`, which has {0}, {1}, … for `sizes`, i64.
/// The builder continues after the check.
void failIf(mlir::ImplicitLocOpBuilder &b, HostRuntime &runtime,
            mlir::Value condition, llvm::StringRef message,
            mlir::ValueRange sizes = {});

/// Likewise: fails where the runtime that the library runs with lacks
/// `function`, one that may be absent.
void expectFunction(mlir::ImplicitLocOpBuilder &b, HostRuntime &runtime,
                    mlir::LLVM::LLVMFuncOp function);

/// Likewise: returns `code` unless it is 0.
void returnIfFailed(mlir::ImplicitLocOpBuilder &b, mlir::Value code);

/// Gives `func` and the functions of its sizes the host ABI. Their bodies stay
/// on memref, arith and cf.
mlir::LogicalResult lowerHostFunction(mlir::func::FuncOp func,
                                      HostRuntime &runtime);

/// Makes reshapes and slices ready for upstream's lowering, with assertions
/// that they fit their buffers.
void lowerViews(mlir::func::FuncOp func);

/// Turns assertions, launches and questions for the image of `func`, which has
/// the host ABI, into checks and calls. `entries` are the launch descriptors by
/// kernel.
mlir::LogicalResult
lowerRuntimeOps(mlir::func::FuncOp func, HostRuntime &runtime,
                const llvm::StringMap<mlir::Attribute> &entries);

} // namespace ftuner

#endif // FTUNER_LIB_CONVERSION_UKERNELTOLLVM_HOSTFUNCTION_H
