//===- KernelSignature.h - The parameters of a kernel -----------*- C++ -*-===//
//
// The kernel ABI (docs/abi.md) in one place: which parameters a kernel has, in
// which order, what each is called, what a host passes for it and how the
// kernel reads it. In order:
//
//   pointers   of the buffers
//   sizes      i32; those that are dynamic, and so on
//   strides    i32
//   scalars    by value; one of 64 bits as two i32, the low half first, so that
//              a host that passes nothing but pointers and i32 can launch the
//              kernel
//   maps       128 bytes by value; a host encodes them from other parameters
//   parts      i32
//
// Parts come last: the kernels of one workload have the same parameters, but
// those of one part lack the last one. A launch with more parameters than the
// kernel has passes the first ones.
//
// A new kind of parameter is a case of `ukernel::ParameterKind`, an `add…` and
// a way to read it here, and what `ukernel.launch` passes for it, `valuesOf`.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_KERNEL_KERNELSIGNATURE_H
#define FTUNER_KERNEL_KERNELSIGNATURE_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <optional>
#include <string>

namespace ftuner {

struct KernelParameter {
  ukernel::ParameterKind kind = ukernel::ParameterKind::Pointer;
  /// "lhs", "m", "lhs_stride0"; both halves of a scalar have its name. Empty
  /// where a description has none.
  std::string name;
  /// Of the elements behind a pointer or a tensor map, or of the whole scalar;
  /// i32 otherwise. A tensor map of tf32 rounds f32 to it.
  /// Null where a description has none.
  mlir::Type type;
  /// Of a pointer.
  std::optional<ukernel::ParameterAccess> access;
  /// Of a tensor map: how it is encoded.
  ukernel::TensorMapAttr map;

  // What it stands for; a description does not tell.

  /// The operand that a pointer, a stride, a scalar or a tensor map is of, and
  /// a size that is no axis.
  std::optional<unsigned> operand;
  /// The axis of a size, the dimension of the operand, or the number of the map
  /// among those of the operand.
  unsigned index = 0;
};

class KernelSignature {
public:
  //===--------------------------------------------------------------------===//
  // Description
  //===--------------------------------------------------------------------===//

  // Parameters are put in the order of the ABI; those of one kind stay as they
  // were added.
  void addPointer(unsigned operand, const llvm::Twine &name,
                  mlir::Type elementType, ukernel::ParameterAccess access);
  /// The extent of an axis.
  void addAxisSize(unsigned axis, const llvm::Twine &name,
                   mlir::MLIRContext *context);
  /// The size of an operand's dimension.
  void addSize(unsigned operand, unsigned dim, const llvm::Twine &name,
               mlir::MLIRContext *context);
  void addStride(unsigned operand, unsigned dim, const llvm::Twine &name,
                 mlir::MLIRContext *context);
  /// An integer, float or index of up to 64 bits. A boolean goes as a byte.
  void addScalar(unsigned operand, const llvm::Twine &name, mlir::Type type);
  /// A map of an operand that has a pointer, unless there is an equal one.
  /// `sizes` and `strides`, but that of the innermost dimension, are fixed or
  /// parameters that were added; see TensorMapAttr. Returns its number among
  /// those of the operand.
  unsigned addTensorMap(const TensorMap &described,
                        llvm::ArrayRef<mlir::Attribute> sizes,
                        llvm::ArrayRef<mlir::Attribute> strides);
  /// The number of blocks of the first of two parts.
  void addPart(mlir::MLIRContext *context);

  llvm::ArrayRef<KernelParameter> getParameters() const { return parameters; }
  /// `parameters` of #ukernel.entry.
  mlir::ArrayAttr toAttribute(mlir::MLIRContext *context) const;
  /// What the entry of a kernel describes.
  static KernelSignature of(ukernel::EntryAttr entry);

  //===--------------------------------------------------------------------===//
  // In the kernel
  //===--------------------------------------------------------------------===//

  /// The type of the gpu.func: a memref without dimensions for a pointer, an
  /// !llvm.ptr for a tensor map.
  mlir::FunctionType getFunctionType(mlir::MLIRContext *context) const;
  /// The memref of an operand that has a pointer; null for another.
  mlir::Value pointer(mlir::gpu::GPUFuncOp func, unsigned operand) const;
  // Of type index; null where it is no parameter.
  mlir::Value axisSize(mlir::ImplicitLocOpBuilder &b, mlir::gpu::GPUFuncOp func,
                       unsigned axis) const;
  mlir::Value size(mlir::ImplicitLocOpBuilder &b, mlir::gpu::GPUFuncOp func,
                   unsigned operand, unsigned dim) const;
  mlir::Value stride(mlir::ImplicitLocOpBuilder &b, mlir::gpu::GPUFuncOp func,
                     unsigned operand, unsigned dim) const;
  mlir::Value part(mlir::ImplicitLocOpBuilder &b,
                   mlir::gpu::GPUFuncOp func) const;
  /// The scalar of an operand, of its own type; null where it is no parameter.
  mlir::Value scalar(mlir::ImplicitLocOpBuilder &b, mlir::gpu::GPUFuncOp func,
                     unsigned operand, mlir::Type type) const;

  /// The address of a map, by its number among those of the operand.
  mlir::Value tensorMap(mlir::gpu::GPUFuncOp func, unsigned operand,
                        unsigned number) const;

  bool hasAxisSize(unsigned axis) const;
  bool hasSize(unsigned operand, unsigned dim) const;
  bool hasPart() const;
  bool hasTensorMaps() const;

  //===--------------------------------------------------------------------===//
  // On the host
  //===--------------------------------------------------------------------===//

  /// What `ukernel.launch` takes but for the parts.
  struct LaunchOperands {
    llvm::SmallVector<mlir::Value> args, sizes, strides;
  };
  /// For the operands of the host, by number; `sizeOf` gives the size that a
  /// parameter stands for.
  LaunchOperands launchOperands(
      mlir::ImplicitLocOpBuilder &b, mlir::ValueRange operands,
      llvm::function_ref<mlir::Value(const KernelParameter &)> sizeOf) const;
  /// The operand of the launch for each parameter; both halves of a scalar have
  /// the same, and tensor maps, which are encoded from other parameters, none.
  /// Emits an error if the launch has more or fewer than these.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  valuesOf(ukernel::LaunchOp launch) const;

private:
  void add(KernelParameter parameter);
  /// The number of a parameter.
  std::optional<unsigned> find(ukernel::ParameterKind kind,
                               std::optional<unsigned> operand,
                               unsigned index = 0) const;
  mlir::Value toIndex(mlir::ImplicitLocOpBuilder &b, mlir::gpu::GPUFuncOp func,
                      std::optional<unsigned> number) const;

  llvm::SmallVector<KernelParameter> parameters;
};

} // namespace ftuner

#endif // FTUNER_KERNEL_KERNELSIGNATURE_H
