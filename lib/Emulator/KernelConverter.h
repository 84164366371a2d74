//===- KernelConverter.h - State of one kernel's conversion -----*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_KERNELCONVERTER_H
#define FTUNER_LIB_EMULATOR_KERNELCONVERTER_H

#include "ConvertNVVMToHost.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace ftuner::emulator {

/// Converts the functions of one module in place. The module holds one kernel
/// and what it uses.
class KernelConverter {
public:
  KernelConverter(mlir::ModuleOp module, SiteTable &sites);

  mlir::LogicalResult convert(const Instrumentation &instrumentation,
                              HostKernel &info);

private:
  // Memory spaces (ConvertNVVMToHost.cpp).
  mlir::LogicalResult convertGlobals(HostKernel &info);
  void flattenAddressSpaces();
  mlir::LogicalResult convertOp(mlir::Operation *op);
  mlir::LogicalResult convertLLVMOp(mlir::Operation *op);
  mlir::LogicalResult convertCall(mlir::LLVM::CallOp call);
  /// GPUs do not trap where the quotient does not exist; hosts do.
  void convertDivision(mlir::Operation *op);
  mlir::LogicalResult convertIntrinsicCall(mlir::LLVM::CallIntrinsicOp call);
  mlir::LogicalResult convertAddressOf(mlir::LLVM::AddressOfOp op);
  void convertFunction(mlir::LLVM::LLVMFuncOp function);
  void emitEntry(mlir::LLVM::LLVMFuncOp kernel, const HostKernel &info);

  // NVVM operations (ConvertNVVMOps.cpp).
  mlir::LogicalResult convertNVVMOp(mlir::Operation *op);
  mlir::LogicalResult convertBarrier(mlir::Operation *op);
  mlir::LogicalResult convertWarpOp(mlir::Operation *op);
  bool convertSpecialRegister(mlir::Operation *op);
  /// Has `op` executed only where `predicate` holds. It must not have results.
  void guard(mlir::Operation *op, mlir::Value predicate);

  // Mbarriers and what comes with them (ConvertMbarrierOps.cpp).
  /// Converts `op` if it is one of them, or fails; null where it is not.
  std::optional<mlir::LogicalResult> convertMbarrierOp(mlir::Operation *op);
  mlir::LogicalResult convertArrival(mlir::Operation *op);
  mlir::LogicalResult convertMbarrierWait(mlir::Operation *op);
  mlir::LogicalResult convertClusterBarrier(mlir::Operation *op);
  mlir::LogicalResult convertSetRegisters(mlir::NVVM::SetMaxRegisterOp op);

  /// Converts bulk copies (ConvertBulkCopies.cpp).
  std::optional<mlir::LogicalResult> convertBulkOp(mlir::Operation *op);
  /// Calls the function for copies to one block, or, with a mask, to several.
  void issueLoad(mlir::Operation *op, llvm::StringRef toOne,
                 llvm::StringRef toSeveral,
                 llvm::SmallVector<mlir::Value> &arguments, mlir::Value mask);
  mlir::LogicalResult
  convertTensorLoad(mlir::NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp op);
  mlir::LogicalResult
  convertTensorStore(mlir::NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp op);

  // Matrix operations of a warp (ConvertMatrixOps.cpp).
  mlir::LogicalResult convertMma(mlir::NVVM::MmaOp op);
  /// Converts ldmatrix and stmatrix.
  mlir::LogicalResult convertMatrixCopy(mlir::Operation *op);
  mlir::LogicalResult convertToTF32(mlir::NVVM::ConvertFloatToTF32Op op);
  /// Room for the registers of one matrix operation of the function around
  /// `op`.
  mlir::Value matrixRegisters(mlir::Operation *op);
  /// Stores `values` of 32 bits each in such room, before `op`.
  mlir::Value storeRegisters(mlir::Operation *op, mlir::ValueRange values);
  /// Replaces the result of `op`, one value or a record, by the registers from
  /// number `first` on.
  void replaceByRegisters(mlir::Operation *op, mlir::Value registers,
                          unsigned first);

  /// Converts the asynchronous products of `kernel` and the uses of their
  /// results, and takes what it erases out of `ops` (ConvertWarpgroupOps.cpp).
  mlir::LogicalResult
  convertProducts(mlir::LLVM::LLVMFuncOp kernel,
                  llvm::SmallVector<mlir::Operation *> &ops);
  /// An empty assembly that only ties its results to its operands.
  mlir::LogicalResult convertTiedAssembly(mlir::LLVM::InlineAsmOp op);

  /// Counts the instructions of each basic block, and has it tell when it is
  /// entered (CountInstructions.cpp).
  void countInstructions(mlir::LLVM::LLVMFuncOp function,
                         std::vector<InstructionCounts> &blocks);

  // Checks of memory accesses (InstrumentAccesses.cpp).
  mlir::LogicalResult instrumentOp(mlir::Operation *op);
  void instrumentAccess(mlir::Operation *op, mlir::Value address,
                        mlir::Type type, std::optional<uint64_t> alignment,
                        unsigned kind);
  void instrumentMasked(mlir::Operation *op, mlir::Value address,
                        mlir::Value mask, mlir::Type vectorType, unsigned kind);
  void instrumentRange(mlir::Operation *op, mlir::Value address,
                       mlir::Value bytes, unsigned kind);

  // Helpers.
  mlir::LogicalResult reject(mlir::Operation *op);
  /// The record of the running thread in the function around `op`.
  mlir::Value thread(mlir::Operation *op);
  /// A value of the thread's registers at `offset`.
  mlir::Value loadRegister(mlir::Operation *op, size_t offset, mlir::Type type);
  mlir::Value i32(mlir::OpBuilder &builder, mlir::Location loc, int64_t value);
  mlir::Value i64(mlir::OpBuilder &builder, mlir::Location loc, int64_t value);
  /// Calls a runtime function on the running thread, before `op`.
  mlir::LLVM::CallOp callRuntime(mlir::Operation *op, llvm::StringRef name,
                                 mlir::Type result,
                                 llvm::ArrayRef<mlir::Value> arguments);
  mlir::LLVM::LLVMFuncOp declare(llvm::StringRef name, mlir::Type result,
                                 llvm::ArrayRef<mlir::Type> arguments);
  mlir::Value site(mlir::Operation *op);

  mlir::ModuleOp module;
  mlir::MLIRContext *context;
  SiteTable &sites;
  mlir::Type i32Type, i64Type, voidType, pointerType;
  /// The thread and the room for registers of each function.
  llvm::DenseMap<mlir::Operation *, mlir::Value> threads, registerArrays;
  llvm::DenseMap<mlir::Operation *, uint32_t> siteOf;
  /// Offset of each shared global in the block's static shared memory; the
  /// dynamic one has none.
  struct SharedGlobal {
    bool isDynamic;
    uint64_t offset;
  };
  llvm::DenseMap<mlir::StringAttr, SharedGlobal> sharedGlobals;
};

/// Returns whether anything in `module` orders some threads of a block but not
/// all.
bool hasPartialOrder(mlir::ModuleOp module);

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_KERNELCONVERTER_H
