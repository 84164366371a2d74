//===- ScheduleAttr.h - The schedule of a path in IR ------------*- C++ -*-===//
//
// The attribute of every path, whose syntax and verification follow from the
// path's table (FTuner/Schedule/ScheduleTable.h):
//
//   #ukernel.mine<threads = [4, 16], stages = 2, swap_operands = true>
//
// Parameters that are not optional come first, in the order of the table; the
// others follow in any order and are printed in that of the table. It is
// verified that each number is legal, that lists have all their numbers
// (schedule_c1), and that the path's rules hold (schedule_c2); of block tiles,
// that the schedule can compute them (schedule_c3).
//
// FTUNER_DEFINE_CODEGEN_PATH(mine, MinePath), in namespace ftuner, defines the
// attribute and the two functions of CodegenPaths.def that are in IR: MinePath
// is the emitter, and mineModel() the model.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_IR_SCHEDULEATTR_H
#define FTUNER_CODEGEN_IR_SCHEDULEATTR_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "mlir/IR/AttributeSupport.h"
#include "mlir/IR/DialectRegistry.h"

namespace ftuner {

namespace detail {
struct ScheduleStorage : public mlir::AttributeStorage {
  using KeyTy = Schedule;

  explicit ScheduleStorage(const Schedule &schedule) : schedule(schedule) {}
  bool operator==(const KeyTy &key) const { return schedule == key; }
  static llvm::hash_code hashKey(const KeyTy &key);
  static ScheduleStorage *construct(mlir::AttributeStorageAllocator &allocator,
                                    const KeyTy &key) {
    return new (allocator.allocate<ScheduleStorage>()) ScheduleStorage(key);
  }

  Schedule schedule;
};

/// Reads what stands behind the mnemonic, and verifies it.
mlir::FailureOr<Schedule> parseSchedule(mlir::AsmParser &parser,
                                        const CodegenModel &path);
mlir::LogicalResult
emitIfError(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
            llvm::Error error);
} // namespace detail

/// The attribute that `DeclT` declares.
template <typename DeclT>
class ScheduleAttr
    : public mlir::Attribute::AttrBase<ScheduleAttr<DeclT>, mlir::Attribute,
                                       detail::ScheduleStorage,
                                       ukernel::ScheduleAttrInterface::Trait> {
  using Parent =
      mlir::Attribute::AttrBase<ScheduleAttr<DeclT>, mlir::Attribute,
                                detail::ScheduleStorage,
                                ukernel::ScheduleAttrInterface::Trait>;

public:
  using Parent::Parent;
  static constexpr llvm::StringLiteral name = DeclT::name;
  static llvm::StringRef getMnemonic() { return name.split('.').second; }

  static ScheduleAttr get(mlir::MLIRContext *context,
                          const Schedule &schedule) {
    return Parent::get(context, schedule);
  }
  static mlir::LogicalResult
  verifyInvariants(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                   const Schedule &schedule) {
    return detail::emitIfError(emitError, checkSchedule(schedule));
  }
  static mlir::Attribute parse(mlir::AsmParser &parser, mlir::Type) {
    mlir::FailureOr<Schedule> schedule =
        detail::parseSchedule(parser, DeclT::model());
    if (failed(schedule))
      return {};
    return get(parser.getContext(), *schedule);
  }
  void print(mlir::AsmPrinter &printer) const {
    printer << '<' << attributeText(toSchedule()) << '>';
  }

  // Of ScheduleAttrInterface.
  Schedule toSchedule() const { return this->getImpl()->schedule; }
  mlir::LogicalResult
  verifyTile(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
             llvm::ArrayRef<int64_t> tile) const {
    return detail::emitIfError(emitError,
                               DeclT::model().checkTile(toSchedule(), tile));
  }
};

/// Adds the attribute to the dialect.
template <typename DeclT>
void registerSchedule(mlir::DialectRegistry &registry) {
  registry.addExtension(
      +[](mlir::MLIRContext *, ukernel::UKernelDialect *dialect) {
        dialect->addSchedule<ScheduleAttr<DeclT>>();
      });
}

} // namespace ftuner

#define FTUNER_DEFINE_CODEGEN_PATH(PATH, EMITTER)                              \
  struct PATH##Attr {                                                          \
    static constexpr llvm::StringLiteral name = "ukernel." #PATH;              \
    static const CodegenModel &model() { return PATH##Model(); }               \
  };                                                                           \
  void PATH##Register(mlir::DialectRegistry &registry) {                       \
    registerSchedule<PATH##Attr>(registry);                                    \
  }                                                                            \
  const CodegenPath &PATH##Path() {                                            \
    static const EMITTER path;                                                 \
    return path;                                                               \
  }

#endif // FTUNER_CODEGEN_IR_SCHEDULEATTR_H
