//===- UKernelDialect.td - The ukernel dialect --------------*- tablegen -*-===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_UKERNELDIALECT
#define FTUNER_DIALECT_UKERNEL_IR_UKERNELDIALECT

include "mlir/IR/OpBase.td"

def UKernel_Dialect : Dialect {
  let name = "ukernel";
  let cppNamespace = "::ftuner::ukernel";
  let summary = "Operators with dynamic shapes as compositions of uKernels";
  let description = [{
    An operator starts as a `ukernel.workload` on tensors: a contraction with its
    fused epilogue. A `ukernel.plan` holds the kernel families that the search
    chose for it. After bufferization each family becomes a `ukernel.kernel`: a
    `ukernel.combine` of one or two `ukernel.tile`, each of which reads its
    operands through `ukernel.pad`; `ukernel.launch` runs it from the host.

    Attributes on other operations:

    * `ukernel.shape` on an argument of a function: one entry for each dimension,
      the name of a symbol or a size. One name means one size at run time.
      `dialect_c1`: an array of non-empty strings and non-negative integers.
      `dialect_c2`: the argument is a ranked shaped value of that rank.
      `dialect_c3`: integers equal the static sizes, and are not on dynamic ones.
      `dialect_c4`: one symbol does not stand for two different static sizes.
    * `ukernel.symbols` on a module: a dictionary of `#ukernel.range`
      (`dialect_c5`). A symbol without an entry is open.
    * `ukernel.device` on a module: `#ukernel.device` (`dialect_c6`).
    * `ukernel.entry` on a `gpu.module`: `#ukernel.entry` (`dialect_c7`).
    * `ukernel.abi_type` on a function: its type on tensors (`dialect_c8`).
    * `ukernel.extents` on a `ukernel.workload`: where the extents of its axes
      come from. `dialect_c10`: one entry for each axis, either `unit` or an
      array of a positive factor and the names of symbols, `[16, "T"]` for
      16 · T; one name is one size for all axes.
    * `ukernel.padded_rows` on a `ukernel.workload` or `ukernel.row_reduction`:
      the numbers of the operands whose rows along the innermost dimension begin
      at multiples of 32 bytes and may be read and written up to the next one
      (`dialect_c11`: an array of numbers of operands with dimensions).
    * Nothing else on a module: a misspelt `ukernel.symbols` would cost speed
      silently (`dialect_c9`).

    ```mlir
    module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128>}} {
      func.func @f(%a: tensor<?x768xf32> {ukernel.shape = ["T", 768]}) { return }
    }
    ```
  }];
  // Attributes of codegen paths are printed and parsed beside the dialect's own.
  let useDefaultAttributePrinterParser = 0;
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();

    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser,
                                     ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attribute,
                        ::mlir::DialectAsmPrinter &printer) const override;

    /// How the dialect reads and makes the schedules of a codegen path.
    struct SchedulePath {
      std::function<::mlir::Attribute(::mlir::AsmParser &)> parse;
      std::function<::mlir::Attribute(::mlir::MLIRContext *,
                                      const ::ftuner::Schedule &)> make;
    };
    /// Adds the attribute of a codegen path: one with ScheduleAttrInterface and
    /// a `get` from the core's schedule. Dialect extensions call it.
    template <typename AttrT>
    void addSchedule() {
      addAttributes<AttrT>();
      schedulePaths[AttrT::getMnemonic()] = {
          [](::mlir::AsmParser &parser) { return AttrT::parse(parser, {}); },
          [](::mlir::MLIRContext *context,
             const ::ftuner::Schedule &schedule) -> ::mlir::Attribute {
            return AttrT::get(context, schedule);
          }};
    }
    /// The attribute of a schedule; null if its path has added none.
    ::ftuner::ukernel::ScheduleAttrInterface
    makeSchedule(const ::ftuner::Schedule &schedule) const;

    /// Returns the core's value that an attribute stands for. `decode` makes it
    /// at the first request: attributes are immutable and live as long as the
    /// dialect, so the value never changes. Each kind of attribute stands for
    /// values of one type. Threads may ask at the same time.
    template <typename T>
    const T &decodeOnce(::mlir::Attribute attribute,
                        ::llvm::function_ref<T()> decode) {
      std::lock_guard<std::mutex> lock(decodedMutex);
      std::shared_ptr<void> &value = decoded[attribute];
      if (!value)
        value = std::make_shared<T>(decode());
      return *static_cast<const T *>(value.get());
    }

    /// Function argument: symbolic shape, e.g. ["T", 768].
    static constexpr ::llvm::StringLiteral kShapeAttrName = "ukernel.shape";
    /// Module: ranges of the symbols, a dictionary of #ukernel.range.
    static constexpr ::llvm::StringLiteral kSymbolsAttrName = "ukernel.symbols";
    /// Module: the device that the module is compiled for, #ukernel.device.
    static constexpr ::llvm::StringLiteral kDeviceAttrName = "ukernel.device";
    /// Function: its type on tensors, before bufferization (the host ABI).
    static constexpr ::llvm::StringLiteral kAbiTypeAttrName = "ukernel.abi_type";
    /// Workload: for each axis a factor and symbols, or unit where the extent
    /// is not a product of symbols.
    static constexpr ::llvm::StringLiteral kExtentsAttrName = "ukernel.extents";
    /// Workload: numbers of the operands with padded rows
    /// (FTuner/Workload/Operand.h), an array of 64-bit integers.
    static constexpr ::llvm::StringLiteral kPaddedRowsAttrName = "ukernel.padded_rows";
    /// gpu.module: launch descriptor of its kernel, #ukernel.entry.
    static constexpr ::llvm::StringLiteral kEntryAttrName = "ukernel.entry";

  private:
    /// By the name of the path.
    ::llvm::StringMap<SchedulePath> schedulePaths;
    ::llvm::DenseMap<::mlir::Attribute, std::shared_ptr<void>> decoded;
    std::mutex decodedMutex;

  public:
  }];
}

#endif
