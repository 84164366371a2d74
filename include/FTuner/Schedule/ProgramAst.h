//===- ProgramAst.h - A kernel as loops and statements ----------*- C++ -*-===//
//
// What a learned cost model reads of a program (CDMPP, EuroSys 2024, section
// 4.1): the loops that a kernel runs, and the statements in them, before loops
// are unrolled and lanes are numbered. A codegen path writes it beside the work
// of a block (CodegenModel::describeBlock), so it is not guessed from code.
//
//   ProgramAst ast;
//   ProgramAst::Nest grid(ast, {{"M", 8, Binding::Grid, axis 0, step 64}, …});
//   { ProgramAst::Nest copy(ast, {…}); ast.addStatement("copy lhs"); }
//   …
//
// Positions. A loop along an axis moves by `step` elements of it in each
// iteration; a buffer says how far apart its elements are along each axis. So
// the distance of an access between two iterations of a loop is a product, and
// nobody writes it down.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_PROGRAMAST_H
#define FTUNER_SCHEDULE_PROGRAMAST_H

#include "FTuner/Workload/Workload.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace ftuner {

struct DeviceSpec;
struct KernelFamily;
struct Program;

/// Executor of the iterations of a loop.
enum class LoopBinding {
  Serial,        ///< one after the other, by a branch
  Grid,          ///< blocks
  Thread,        ///< threads of a block
  VirtualThread, ///< strips of a thread
  Unrolled,      ///< one after the other, without a branch
  Vectorized     ///< one instruction
};
/// "serial", "grid", "thread", "virtual-thread", "unrolled", "vectorized".
llvm::StringRef nameOf(LoopBinding binding);

struct AstLoop {
  std::string name;
  int64_t length = 1;
  LoopBinding binding = LoopBinding::Serial;
  /// The axis of the workload that it runs along, none for others, and the
  /// elements of it from one iteration to the next.
  std::optional<unsigned> axis = std::nullopt;
  int64_t step = 1;
  /// True if iterations add to the same elements.
  bool isReduction = false;
};

enum class AstMemory { Global, Shared, Registers };
/// "global", "shared", "registers".
llvm::StringRef nameOf(AstMemory memory);

/// A buffer that statements read and write.
struct AstBuffer {
  std::string name;
  AstMemory memory = AstMemory::Global;
  int64_t elementBytes = 4;
  /// Elements of it between neighbours along each axis of the workload; 0 along
  /// those that it lacks.
  llvm::SmallVector<int64_t, 5> strides;
  /// Elements of a tile along each axis, after which positions begin anew.
  /// Empty for a whole operand.
  llvm::SmallVector<int64_t, 5> tile = {};
  /// Elements of it, each once; of registers those of a thread, of shared
  /// memory those of all stages.
  double elements = 0;
};

/// One access of a statement in each iteration of its loops.
struct AstAccess {
  unsigned buffer = 0;
  bool reads = false, writes = false;
  /// Loops, by their numbers, whose iterations are so many elements apart,
  /// whatever the axes say.
  llvm::SmallVector<std::pair<unsigned, int64_t>, 1> apart = {};
  /// True if the place follows from elements that were loaded.
  bool isDataDependent = false;
};

/// Operations of a statement, apart as features have them.
enum class AstOperation {
  FloatMultiplyAdd,
  FloatAdd,
  FloatMultiply,
  FloatDivide,
  FloatCompare,
  FloatMath,
  FloatOther,
  IntMultiplyAdd,
  IntAdd,
  IntMultiply,
  IntDivide,
  IntCompare,
  IntMath,
  IntOther,
  Boolean,
  Select
};
inline constexpr size_t kNumAstOperations = 16;
/// e.g. "float-multiply-add".
llvm::StringRef nameOf(AstOperation operation);

/// A computation at each point of the loops around it.
struct AstStatement {
  std::string name;
  std::array<double, kNumAstOperations> operations = {};
  llvm::SmallVector<AstAccess, 4> accesses = {};
  /// Numbers of the loops around it, from the outermost one on.
  llvm::SmallVector<unsigned, 12> loops = {};

  double &operator[](AstOperation operation) {
    return operations[static_cast<size_t>(operation)];
  }
  double operator[](AstOperation operation) const {
    return operations[static_cast<size_t>(operation)];
  }
  /// Adds what a computation says of its points.
  void add(llvm::ArrayRef<Operations> operations, double times = 1);
};

/// Statements from which on a tree has neighbours joined.
inline constexpr size_t kMostAstStatements = 12;

/// Loops and statements of one launch, or of a sequence of launches, in the
/// order in which they run.
class ProgramAst {
public:
  /// Loops around what is added while the object lives.
  class Nest {
  public:
    Nest(ProgramAst &ast, llvm::ArrayRef<AstLoop> loops);
    ~Nest() { ast.open.truncate(ast.open.size() - count); }
    Nest(const Nest &) = delete;
    Nest &operator=(const Nest &) = delete;

  private:
    ProgramAst &ast;
    size_t count;
  };

  /// A loop or a statement, in pre-order.
  struct Node {
    bool isLoop;
    unsigned number;
    /// The loop around it.
    std::optional<unsigned> parent;
  };

  /// Reads what `write` has written; AstTemplate.h says what is checked.
  static llvm::Expected<ProgramAst> read(llvm::StringRef json);

  unsigned addBuffer(AstBuffer buffer);
  AstStatement &addStatement(std::string name);

  /// Numbers of the loops around what is added next.
  llvm::ArrayRef<unsigned> openLoops() const { return open; }
  llvm::ArrayRef<AstLoop> loops() const { return allLoops; }
  llvm::ArrayRef<AstBuffer> buffers() const { return allBuffers; }
  llvm::ArrayRef<AstStatement> statements() const { return allStatements; }
  llvm::ArrayRef<Node> nodes() const { return order; }

  /// Elements of the buffer between two iterations of a loop: 0 where they
  /// access the same one.
  int64_t distance(const AstAccess &access, unsigned loop) const;
  /// Times that a statement runs.
  double iterations(const AstStatement &statement) const;
  /// Bytes that all statements write to, or read from, a memory.
  double bytesWritten(AstMemory memory) const;
  double bytesRead(AstMemory memory) const;

  /// Positions of the statements in the tree's sequence: nodes in pre-order,
  /// and a marker behind each statement (CDMPP, section 4.2). The loop i with
  /// the statement A and the loop j with B is i A · j B ·, so 1 and 4.
  llvm::SmallVector<int64_t, 8> ordering() const;

  /// Joins neighbouring elementwise statements, those that read nothing that
  /// they write, from the first on, until there are no more than `most`.
  /// Nothing else is joined, so there may be more still. Predictors have an
  /// output for each number of statements.
  void joinStatements(size_t most = kMostAstStatements);

  /// Writes `loops`, `buffers`, `statements` and `ordering` as fields of the
  /// open object.
  void write(llvm::json::OStream &json) const;
  /// For people: a line for each statement, one for loops that hold but each
  /// other.
  void print(llvm::raw_ostream &os, unsigned indent = 0) const;

private:
  std::vector<AstLoop> allLoops;
  std::vector<AstBuffer> allBuffers;
  std::vector<AstStatement> allStatements;
  std::vector<Node> order;
  llvm::SmallVector<unsigned, 12> open;

  friend class AstTemplate;
};

/// The tree of one part of a program: blocks of two heights run code of their
/// own.
struct PartAst {
  /// Its number in the family.
  unsigned part = 0;
  ProgramAst ast;
  /// Blocks that run it.
  double blocks = 0;
};

/// The trees of a program for a shape, of each part that has blocks. A launch
/// that adds up slices of a product is part of each, and the launches of sliced
/// rows lie one behind the other in a tree. The family must pass `check` for
/// the device.
std::vector<PartAst> describeProgram(const Workload &workload,
                                     const Program &program,
                                     llvm::ArrayRef<int64_t> shape,
                                     const DeviceSpec &device);

/// An operand of a workload of this shape, row-major.
AstBuffer globalBuffer(const Workload &workload, unsigned operand,
                       llvm::ArrayRef<int64_t> shape);

} // namespace ftuner

#endif // FTUNER_SCHEDULE_PROGRAMAST_H
