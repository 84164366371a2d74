//===- ProgramAst.cpp - A kernel as loops and statements ------------------===//
#include "FTuner/Schedule/ProgramAst.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Schedule/Grid.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace ftuner;

llvm::StringRef ftuner::nameOf(LoopBinding binding) {
  switch (binding) {
  case LoopBinding::Serial:
    return "serial";
  case LoopBinding::Grid:
    return "grid";
  case LoopBinding::Thread:
    return "thread";
  case LoopBinding::VirtualThread:
    return "virtual-thread";
  case LoopBinding::Unrolled:
    return "unrolled";
  case LoopBinding::Vectorized:
    return "vectorized";
  }
  return "";
}

llvm::StringRef ftuner::nameOf(AstMemory memory) {
  switch (memory) {
  case AstMemory::Global:
    return "global";
  case AstMemory::Shared:
    return "shared";
  case AstMemory::Registers:
    return "registers";
  }
  return "";
}

llvm::StringRef ftuner::nameOf(AstOperation operation) {
  static constexpr std::array<llvm::StringRef, kNumAstOperations> names = {
      "float-multiply-add",
      "float-add",
      "float-multiply",
      "float-divide",
      "float-compare",
      "float-math",
      "float-other",
      "int-multiply-add",
      "int-add",
      "int-multiply",
      "int-divide",
      "int-compare",
      "int-math",
      "int-other",
      "boolean",
      "select"};
  return names[static_cast<size_t>(operation)];
}

//===----------------------------------------------------------------------===//
// Trees
//===----------------------------------------------------------------------===//

static AstOperation operationOf(const Operations &some) {
  bool isInt = isInteger(some.operandType);
  auto either = [isInt](AstOperation ofFloats, AstOperation ofInts) {
    return isInt ? ofInts : ofFloats;
  };
  using Kind = AstOperation;
  switch (some.kind) {
  case OperationKind::MultiplyAdd:
    return either(Kind::FloatMultiplyAdd, Kind::IntMultiplyAdd);
  case OperationKind::Add:
    return either(Kind::FloatAdd, Kind::IntAdd);
  case OperationKind::Multiply:
    return either(Kind::FloatMultiply, Kind::IntMultiply);
  case OperationKind::Divide:
    return either(Kind::FloatDivide, Kind::IntDivide);
  case OperationKind::Extreme:
  case OperationKind::Compare:
    return either(Kind::FloatCompare, Kind::IntCompare);
  case OperationKind::Function:
    return either(Kind::FloatMath, Kind::IntMath);
  case OperationKind::Bitwise:
    return some.resultType == ElementType::I1 ? Kind::Boolean : Kind::IntOther;
  case OperationKind::Select:
    return Kind::Select;
  case OperationKind::Cast:
    return isInt && isInteger(some.resultType) ? Kind::IntOther
                                               : Kind::FloatOther;
  }
  llvm_unreachable("every kind is one of a statement's");
}

void AstStatement::add(llvm::ArrayRef<Operations> operations, double times) {
  for (const Operations &some : operations)
    (*this)[operationOf(some)] += some.count * times;
}

ProgramAst::Nest::Nest(ProgramAst &ast, llvm::ArrayRef<AstLoop> loops)
    : ast(ast), count(loops.size()) {
  for (const AstLoop &loop : loops) {
    auto number = static_cast<unsigned>(ast.allLoops.size());
    ast.order.push_back(
        {true, number,
         ast.open.empty() ? std::nullopt : std::optional(ast.open.back())});
    ast.allLoops.push_back(loop);
    ast.open.push_back(number);
  }
}

unsigned ProgramAst::addBuffer(AstBuffer buffer) {
  allBuffers.push_back(std::move(buffer));
  return allBuffers.size() - 1;
}

AstStatement &ProgramAst::addStatement(std::string name) {
  order.push_back({false, static_cast<unsigned>(allStatements.size()),
                   open.empty() ? std::nullopt : std::optional(open.back())});
  AstStatement &statement = allStatements.emplace_back();
  statement.name = std::move(name);
  statement.loops.assign(open.begin(), open.end());
  return statement;
}

int64_t ProgramAst::distance(const AstAccess &access, unsigned number) const {
  const AstBuffer &buffer = allBuffers[access.buffer];
  const AstLoop &loop = allLoops[number];
  for (auto [other, distance] : access.apart)
    if (other == number)
      return distance;
  if (!loop.axis || *loop.axis >= buffer.strides.size())
    return 0;
  // Blocks have shared memory of their own, threads registers.
  if (buffer.memory != AstMemory::Global && loop.binding == LoopBinding::Grid)
    return 0;
  if (buffer.memory == AstMemory::Registers &&
      loop.binding == LoopBinding::Thread)
    return 0;
  if (!buffer.tile.empty() && loop.step >= buffer.tile[*loop.axis])
    return 0;
  return loop.step * buffer.strides[*loop.axis];
}

double ProgramAst::iterations(const AstStatement &statement) const {
  double count = 1;
  for (unsigned loop : statement.loops)
    count *= static_cast<double>(allLoops[loop].length);
  return count;
}

/// Bytes of the accesses to a memory that `counts` accepts.
static double
accessedBytes(const ProgramAst &ast, AstMemory memory,
              llvm::function_ref<bool(const AstAccess &)> counts) {
  double bytes = 0;
  for (const AstStatement &statement : ast.statements())
    for (const AstAccess &access : statement.accesses)
      if (const AstBuffer &buffer = ast.buffers()[access.buffer];
          buffer.memory == memory && counts(access))
        bytes += ast.iterations(statement) *
                 static_cast<double>(buffer.elementBytes);
  return bytes;
}

double ProgramAst::bytesWritten(AstMemory memory) const {
  return accessedBytes(*this, memory,
                       [](const AstAccess &access) { return access.writes; });
}

double ProgramAst::bytesRead(AstMemory memory) const {
  return accessedBytes(*this, memory,
                       [](const AstAccess &access) { return access.reads; });
}

llvm::SmallVector<int64_t, 8> ProgramAst::ordering() const {
  llvm::SmallVector<int64_t, 8> positions;
  int64_t position = 0;
  for (const Node &node : order) {
    if (!node.isLoop) {
      positions.push_back(position);
      ++position;
    }
    ++position;
  }
  return positions;
}

void ProgramAst::write(llvm::json::OStream &json) const {
  auto writeNumbers = [&](llvm::StringRef name,
                          llvm::ArrayRef<int64_t> numbers) {
    json.attributeArray(name, [&] {
      for (int64_t number : numbers)
        json.value(number);
    });
  };
  json.attributeArray("loops", [&] {
    for (const AstLoop &loop : allLoops)
      json.object([&] {
        json.attribute("name", loop.name);
        json.attribute("length", loop.length);
        json.attribute("binding", nameOf(loop.binding));
        if (loop.axis) {
          json.attribute("axis", static_cast<int64_t>(*loop.axis));
          json.attribute("step", loop.step);
        }
        if (loop.isReduction)
          json.attribute("is_reduction", true);
      });
  });
  json.attributeArray("buffers", [&] {
    for (const AstBuffer &buffer : allBuffers)
      json.object([&] {
        json.attribute("name", buffer.name);
        json.attribute("memory", nameOf(buffer.memory));
        json.attribute("element_bytes", buffer.elementBytes);
        json.attribute("elements", buffer.elements);
        writeNumbers("strides", buffer.strides);
        if (!buffer.tile.empty())
          writeNumbers("tile", buffer.tile);
      });
  });
  json.attributeArray("statements", [&] {
    for (const AstStatement &statement : allStatements)
      json.object([&] {
        json.attribute("name", statement.name);
        json.attributeArray("loops", [&] {
          for (unsigned loop : statement.loops)
            json.value(static_cast<int64_t>(loop));
        });
        json.attributeObject("operations", [&] {
          for (auto [number, count] : llvm::enumerate(statement.operations))
            if (count != 0)
              json.attribute(nameOf(static_cast<AstOperation>(number)), count);
        });
        json.attributeArray("accesses", [&] {
          for (const AstAccess &access : statement.accesses)
            json.object([&] {
              json.attribute("buffer", static_cast<int64_t>(access.buffer));
              json.attribute("reads", access.reads);
              json.attribute("writes", access.writes);
              if (access.isDataDependent)
                json.attribute("data_dependent", true);
              json.attributeArray("distances", [&] {
                for (unsigned loop : statement.loops)
                  json.value(distance(access, loop));
              });
              if (!access.apart.empty())
                json.attributeArray("apart", [&] {
                  for (const auto &one : access.apart)
                    json.object([&] {
                      json.attribute("loop", static_cast<int64_t>(one.first));
                      json.attribute("distance", one.second);
                    });
                });
            });
        });
      });
  });
  writeNumbers("ordering", ordering());
}

/// Returns whether a statement changes nothing that it or a later iteration
/// reads.
static bool isElementwise(const AstStatement &statement) {
  return llvm::none_of(statement.accesses, [](const AstAccess &access) {
    return access.reads && access.writes;
  });
}

/// Adds what a statement does to the one before it.
static void join(AstStatement &into, const AstStatement &from) {
  into.name += ", " + from.name;
  for (auto [sum, count] : llvm::zip_equal(into.operations, from.operations))
    sum += count;
  for (const AstAccess &access : from.accesses) {
    AstAccess *same = llvm::find_if(into.accesses, [&](AstAccess &known) {
      return known.buffer == access.buffer && known.apart == access.apart;
    });
    if (same == into.accesses.end()) {
      into.accesses.push_back(access);
      continue;
    }
    same->reads |= access.reads;
    same->writes |= access.writes;
    same->isDataDependent |= access.isDataDependent;
  }
}

void ProgramAst::joinStatements(size_t most) {
  for (size_t at = 1; at < order.size() && allStatements.size() > most;) {
    Node node = order[at], before = order[at - 1];
    if (node.isLoop || before.isLoop || node.parent != before.parent ||
        !isElementwise(allStatements[node.number]) ||
        !isElementwise(allStatements[before.number])) {
      ++at;
      continue;
    }
    join(allStatements[before.number], allStatements[node.number]);
    allStatements.erase(allStatements.begin() + node.number);
    order.erase(order.begin() + at);
    for (Node &other : order)
      if (!other.isLoop && other.number > node.number)
        --other.number;
  }
}

namespace {
/// Writes a tree for people.
class AstPrinter {
public:
  AstPrinter(const ProgramAst &ast, llvm::raw_ostream &os) : ast(ast), os(os) {}

  /// Prints the contents of a loop, or those outside of all loops.
  void print(std::optional<unsigned> parent, unsigned indent) const;

private:
  void printStatement(const AstStatement &statement, unsigned indent) const;
  void printAccesses(const AstStatement &statement, bool writes) const;

  const ProgramAst &ast;
  llvm::raw_ostream &os;
};
} // namespace

void AstPrinter::printAccesses(const AstStatement &statement,
                               bool writes) const {
  llvm::ListSeparator separator;
  for (const AstAccess &access : statement.accesses) {
    if (!(writes ? access.writes : access.reads))
      continue;
    const AstBuffer &buffer = ast.buffers()[access.buffer];
    os << separator << buffer.name;
    if (buffer.memory != AstMemory::Registers)
      os << " (" << nameOf(buffer.memory)
         << (access.isDataDependent ? ", at loaded places)" : ")");
  }
}

void AstPrinter::printStatement(const AstStatement &statement,
                                unsigned indent) const {
  os.indent(indent) << statement.name << ": ";
  printAccesses(statement, /*writes=*/true);
  os << " ←";
  if (llvm::any_of(statement.accesses,
                   [](const AstAccess &access) { return access.reads; }))
    os << " ";
  printAccesses(statement, /*writes=*/false);
  llvm::ListSeparator separator;
  for (auto [number, count] : llvm::enumerate(statement.operations))
    if (count != 0) {
      os << (llvm::StringRef(separator).empty() ? "; " : ", ")
         << llvm::format("%g", count) << " "
         << nameOf(static_cast<AstOperation>(number));
    }
  os << "\n";
}

void AstPrinter::print(std::optional<unsigned> parent, unsigned indent) const {
  auto childrenOf = [&](std::optional<unsigned> loop) {
    llvm::SmallVector<ProgramAst::Node> children;
    llvm::copy_if(
        ast.nodes(), std::back_inserter(children),
        [&](const ProgramAst::Node &node) { return node.parent == loop; });
    return children;
  };
  for (const ProgramAst::Node &child : childrenOf(parent)) {
    if (!child.isLoop) {
      printStatement(ast.statements()[child.number], indent);
      continue;
    }
    unsigned number = child.number;
    os.indent(indent);
    for (llvm::ListSeparator separator;;) {
      const AstLoop &loop = ast.loops()[number];
      os << separator << nameOf(loop.binding) << " " << loop.name << " "
         << loop.length;
      auto inner = childrenOf(number);
      if (inner.size() != 1 || !inner.front().isLoop)
        break;
      number = inner.front().number;
    }
    os << "\n";
    print(number, indent + 2);
  }
}

void ProgramAst::print(llvm::raw_ostream &os, unsigned indent) const {
  AstPrinter(*this, os).print(std::nullopt, indent);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

AstBuffer ftuner::globalBuffer(const Workload &workload, unsigned number,
                               llvm::ArrayRef<int64_t> shape) {
  const Operand &operand = workload.operands[number];
  AstBuffer buffer;
  switch (operand.role) {
  case OperandRole::Lhs:
    buffer.name = "lhs";
    break;
  case OperandRole::Rhs:
    buffer.name = "rhs";
    break;
  case OperandRole::Output:
    buffer.name = "output" + std::to_string(number);
    break;
  default:
    buffer.name = "input" + std::to_string(number);
    break;
  }
  buffer.elementBytes = operand.elementBytes;
  buffer.strides.assign(shape.size(), 0);
  buffer.elements = workload.elements(operand, shape);
  // Of a dimension that is no axis alone, the last term moves fastest.
  int64_t stride = 1;
  for (unsigned dim = operand.rank(); dim-- > 0;) {
    AffineForm position = operand.position(dim);
    int64_t extent = 1;
    for (const AffineForm::Term &term : position.terms) {
      int64_t length = shape[term.axis];
      int64_t coefficient = std::abs(term.coefficient);
      if (const Axis &axis = workload.axes[term.axis];
          term.loop != AffineForm::Term::wholeAxis &&
          term.loop < axis.loops.size() &&
          axis.loops[term.loop].range.isFixed())
        length = axis.loops[term.loop].range.min;
      int64_t &distance = buffer.strides[term.axis];
      if (distance == 0 || stride * coefficient < distance)
        distance = stride * coefficient;
      extent += (length - 1) * coefficient;
    }
    stride *= extent;
  }
  return buffer;
}

/// Blocks of each part along an axis.
static int64_t tilesAlong(const KernelFamily &family, unsigned part,
                          unsigned axis, const Partition &partition,
                          llvm::ArrayRef<int64_t> shape) {
  if (axis == family.combineAxis)
    return part == 0 ? partition.first : partition.second;
  return ceilDiv(shape[axis], family.tiles[part][axis]);
}

/// Adds up what slices have left, and applies the epilogue.
static void describeMerge(const Workload &workload, const KernelFamily &family,
                          llvm::ArrayRef<int64_t> shape, ProgramAst &ast) {
  constexpr int64_t kThreads = 256;
  double points = 1;
  for (unsigned axis : workload.spaceAxes().list())
    points *= static_cast<double>(shape[axis]);
  auto blocks =
      static_cast<int64_t>(std::ceil(points / static_cast<double>(kThreads)));
  // Slices, and points that are numbered along the axis of neighbours, stand
  // behind the workload's axes.
  unsigned slices = shape.size();
  unsigned neighbours = slices + 1;
  AstBuffer partial;
  partial.name = "slices";
  partial.elementBytes = bytesOf(workload.accumulatorType());
  partial.strides.assign(slices + 2, 0);
  partial.strides[slices] = static_cast<int64_t>(points);
  partial.strides[neighbours] = 1;
  partial.elements = points * static_cast<double>(family.reduceSplit);
  unsigned from = ast.addBuffer(partial);
  ProgramAst::Nest grid(
      ast, {{"points", blocks, LoopBinding::Grid, neighbours, kThreads},
            {"threads", kThreads, LoopBinding::Thread, neighbours, 1}});
  {
    ProgramAst::Nest loop(ast, {{"slices", family.reduceSplit,
                                 LoopBinding::Unrolled, slices, 1, true}});
    AstStatement &sum = ast.addStatement("add slices");
    sum.add(workload.reduction()->state->operationsOfMerge());
    sum.accesses.push_back({from, true, false});
  }
  AstStatement &store = ast.addStatement("store sums");
  if (const Computation *epilogue = workload.epilogue())
    store.add(epilogue->operations);
  for (unsigned number = 0; number < workload.operands.size(); ++number) {
    const Operand &operand = workload.operands[number];
    bool isOutput = operand.role == OperandRole::Output;
    if (!isOutput && operand.role != OperandRole::Extra)
      continue;
    AstBuffer buffer = globalBuffer(workload, number, shape);
    buffer.strides.resize(slices + 2, 0);
    buffer.strides[neighbours] = operand.contiguousAxis() ? 1 : 0;
    store.accesses.push_back({ast.addBuffer(buffer), !isOutput, isOutput});
  }
}

std::vector<PartAst> ftuner::describeProgram(const Workload &workload,
                                             const Program &program,
                                             llvm::ArrayRef<int64_t> shape,
                                             const DeviceSpec &device) {
  const KernelFamily &family = *program.family;
  const Partition &partition = program.partition;
  auto beside = static_cast<double>(blocksBeside(family, shape));
  const CodegenModel &path = family.path();
  std::vector<PartAst> parts;
  for (unsigned part = 0; part < family.tiles.size(); ++part) {
    int64_t along = part == 0 ? partition.first : partition.second;
    if (along == 0)
      continue;
    PartAst &result = parts.emplace_back();
    result.part = part;
    result.blocks = static_cast<double>(along) * beside;
    ProgramAst &ast = result.ast;
    {
      // From the outside in, as Grid.h numbers blocks.
      llvm::SmallVector<AstLoop> loops;
      auto space = workload.spaceAxes().list();
      auto addLoop = [&](unsigned axis) {
        loops.push_back({workload.axes[axis].name,
                         tilesAlong(family, part, axis, partition, shape),
                         LoopBinding::Grid, axis, family.tiles[part][axis]});
      };
      for (size_t number = 2; number < space.size(); ++number)
        addLoop(space[number]);
      if (family.reduceSplit > 1) {
        unsigned axis = workload.reduceAxes().list().front();
        int64_t tile = family.tiles[part][axis];
        int64_t slice = ceilBy(ceilDiv(shape[axis], family.reduceSplit), tile);
        loops.push_back({"slice", family.reduceSplit, LoopBinding::Grid, axis,
                         slice, true});
      }
      for (size_t number = 0; number < std::min<size_t>(2, space.size());
           ++number)
        addLoop(space[number]);
      bool hasLaunches = family.reduceSplit > 1 && path.sharesOutSlices();
      int64_t launches = hasLaunches ? 1 + path.laterLaunches(workload) : 1;
      for (int64_t launch = 0; launch < launches; ++launch) {
        ProgramAst::Nest grid(ast, loops);
        path.describeBlock(workload, family, part, shape, device, launch, ast);
      }
    }
    if (family.reduceSplit > 1 && !path.sharesOutSlices())
      describeMerge(workload, family, shape, ast);
    ast.joinStatements();
  }
  return parts;
}

void CodegenModel::describeBlock(const Workload &workload,
                                 const KernelFamily &family, unsigned part,
                                 llvm::ArrayRef<int64_t> shape,
                                 const DeviceSpec &, int64_t,
                                 ProgramAst &ast) const {
  UKernel block = ukernel(family, part);
  llvm::SmallVector<AstLoop> workers, points, steps;
  for (unsigned axis : workload.spaceAxes().list()) {
    int64_t own = std::max<int64_t>(block.registerTile[axis], 1);
    workers.push_back({"worker", block.blockTile[axis] / own,
                       LoopBinding::Thread, axis, own});
    points.push_back({"point", own, LoopBinding::Unrolled, axis, 1});
  }
  for (unsigned axis : workload.reduceAxes().list())
    steps.push_back({workload.axes[axis].name, shape[axis], LoopBinding::Serial,
                     axis, 1, /*isReduction=*/true});
  ProgramAst::Nest threads(ast, workers);
  ProgramAst::Nest own(ast, points);
  AstBuffer value;
  value.name = "value";
  value.memory = AstMemory::Registers;
  value.elementBytes = bytesOf(workload.accumulatorType());
  value.strides.assign(shape.size(), 0);
  value.elements = 1;
  unsigned result = ast.addBuffer(std::move(value));
  auto addGlobal = [&](unsigned number) {
    return ast.addBuffer(globalBuffer(workload, number, shape));
  };
  {
    ProgramAst::Nest reduce(ast, steps);
    AstStatement &compute = ast.addStatement("compute");
    for (const Computation &computation : workload.computations)
      compute.add(computation.operations);
    for (unsigned number = 0; number < workload.operands.size(); ++number)
      if (workload.operands[number].role != OperandRole::Output)
        compute.accesses.push_back({addGlobal(number), true, false});
    compute.accesses.push_back({result, true, true});
  }
  AstStatement &store = ast.addStatement("store");
  store.accesses.push_back({result, true, false});
  for (unsigned number = 0; number < workload.operands.size(); ++number)
    if (workload.operands[number].role == OperandRole::Output)
      store.accesses.push_back({addGlobal(number), false, true});
}
