//===- ProgramFeatures.cpp - Numbers of a program's statements ------------===//
#include "FTuner/Schedule/ProgramFeatures.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cmath>

using namespace ftuner;

static constexpr double kLineBytes = 64;
static constexpr size_t kBuffers = 5, kCurvePoints = 10;

namespace {
/// Position of the innermost of some loops.
enum class Position {
  None,
  InnerSpace,
  MiddleSpace,
  OuterSpace,
  InnerReduce,
  MiddleReduce,
  OuterReduce,
  Mixed
};
constexpr size_t kPositions = 8;

/// How a statement comes back to what it has accessed.
enum class Reuse { Loop, Serial, None };
constexpr size_t kReuses = 3;

/// Figures of one access over all iterations.
struct AccessFigures {
  bool reads = false, writes = false;
  double bytes = 0, uniqueBytes = 0, lines = 0, uniqueLines = 0;
  Reuse reuse = Reuse::None;
  double reuseIterations = 0, reuseBytes = 0, reuseCount = 0;
  double stride = 0;
};

/// Appends numbers, or the names of them.
class Writer {
public:
  explicit Writer(ProgramFeatures *values, std::vector<std::string> *names)
      : values(values), names(names) {}

  void magnitude(const llvm::Twine &name, double value) {
    add(name, std::log2(1 + std::max(value, 0.)));
  }
  void flag(const llvm::Twine &name, bool value) { add(name, value ? 1 : 0); }
  size_t size() const { return count; }

private:
  void add(const llvm::Twine &name, double value) {
    if (values)
      (*values)[count] = static_cast<float>(value);
    if (names)
      names->push_back(name.str());
    ++count;
  }

  ProgramFeatures *values;
  std::vector<std::string> *names;
  size_t count = 0;
};

/// The numbers of one statement.
class StatementFeatures {
public:
  StatementFeatures(const ProgramAst &ast, const AstStatement &statement)
      : ast(ast), statement(statement) {}

  void write(Writer &writer);

private:
  const AstLoop &loop(size_t depth) const {
    return ast.loops()[statement.loops[depth]];
  }
  size_t depth() const { return statement.loops.size(); }
  /// Iterations of the loops from a depth on.
  double iterationsFrom(size_t first) const {
    double product = 1;
    for (size_t i = first; i < depth(); ++i)
      product *= static_cast<double>(loop(i).length);
    return product;
  }
  /// Elements that the loops from a depth on access, each once.
  double uniqueElements(const AstAccess &access, size_t first) const {
    double product = 1;
    for (size_t i = first; i < depth(); ++i)
      if (ast.distance(access, statement.loops[i]) != 0)
        product *= static_cast<double>(loop(i).length);
    const AstBuffer &buffer = ast.buffers()[access.buffer];
    return buffer.elements > 0 && buffer.memory == AstMemory::Global
               ? std::min(product, std::max(buffer.elements, 1.))
               : product;
  }
  double bytesOf(const AstAccess &access) const {
    return static_cast<double>(ast.buffers()[access.buffer].elementBytes);
  }
  double touchedBytes(size_t first) const {
    double bytes = 0;
    for (const AstAccess &access : statement.accesses)
      bytes += uniqueElements(access, first) * bytesOf(access);
    return bytes;
  }
  Position positionOf(llvm::ArrayRef<size_t> depths) const;
  void writeLoops(Writer &writer, const llvm::Twine &name,
                  llvm::ArrayRef<LoopBinding> bindings) const;
  void findReuse(const AstAccess &access, AccessFigures &figures) const;
  AccessFigures figuresOf(const AstAccess &access) const;
  void writeGpu(Writer &writer) const;
  void writeAccess(Writer &writer, const llvm::Twine &name,
                   const AccessFigures *figures) const;
  void writeCurve(Writer &writer) const;
  void writeAllocation(Writer &writer) const;

  const ProgramAst &ast;
  const AstStatement &statement;
};
} // namespace

Position StatementFeatures::positionOf(llvm::ArrayRef<size_t> depths) const {
  if (depths.empty())
    return Position::None;
  auto areAll = [&](bool isReduction) {
    return llvm::all_of(
        depths, [&](size_t i) { return loop(i).isReduction == isReduction; });
  };
  bool isReduction = areAll(true);
  if (!isReduction && !areAll(false))
    return Position::Mixed;
  // Among the loops of the same kind, by the one that lies innermost.
  llvm::SmallVector<size_t, 12> alike;
  for (size_t i = 0; i < depth(); ++i)
    if (loop(i).isReduction == isReduction)
      alike.push_back(i);
  size_t last = depths.back();
  if (last == alike.back())
    return isReduction ? Position::InnerReduce : Position::InnerSpace;
  if (last == alike.front())
    return isReduction ? Position::OuterReduce : Position::OuterSpace;
  return isReduction ? Position::MiddleReduce : Position::MiddleSpace;
}

void StatementFeatures::writeLoops(Writer &writer, const llvm::Twine &name,
                                   llvm::ArrayRef<LoopBinding> bindings) const {
  static constexpr std::array<const char *, kPositions> names = {
      "none",         "inner-space",   "middle-space", "outer-space",
      "inner-reduce", "middle-reduce", "outer-reduce", "mixed"};
  llvm::SmallVector<size_t, 8> depths;
  double product = 1;
  for (size_t i = 0; i < depth(); ++i)
    if (llvm::is_contained(bindings, loop(i).binding)) {
      depths.push_back(i);
      product *= static_cast<double>(loop(i).length);
    }
  writer.magnitude(name + ".number", static_cast<double>(depths.size()));
  writer.magnitude(name + ".product", depths.empty() ? 0 : product);
  writer.magnitude(
      name + ".length",
      depths.empty() ? 0 : static_cast<double>(loop(depths.back()).length));
  Position position = positionOf(depths);
  for (size_t i = 0; i < kPositions; ++i)
    writer.flag(name + "." + names[i], static_cast<size_t>(position) == i);
}

void StatementFeatures::writeGpu(Writer &writer) const {
  double blocks = 1, threads = 1, strips = 1;
  for (size_t i = 0; i < depth(); ++i) {
    auto length = static_cast<double>(loop(i).length);
    switch (loop(i).binding) {
    case LoopBinding::Grid:
      blocks *= length;
      break;
    case LoopBinding::Thread:
      threads *= length;
      break;
    case LoopBinding::VirtualThread:
      strips *= length;
      break;
    default:
      break;
    }
  }
  writer.flag("is-gpu", true);
  writer.magnitude("blocks.x", blocks);
  writer.magnitude("blocks.y", 1);
  writer.magnitude("blocks.z", 1);
  writer.magnitude("threads.x", threads);
  writer.magnitude("threads.y", 1);
  writer.magnitude("threads.z", 1);
  writer.magnitude("virtual-threads", strips);
}

/// From the innermost loop outwards, the first one that comes back to the same
/// elements; else another access of the statement to the buffer.
void StatementFeatures::findReuse(const AstAccess &access,
                                  AccessFigures &figures) const {
  for (size_t i = depth(); i-- > 0;) {
    if (loop(i).length == 1 || ast.distance(access, statement.loops[i]) != 0)
      continue;
    figures.reuse = Reuse::Loop;
    figures.reuseIterations = iterationsFrom(i + 1);
    figures.reuseBytes = touchedBytes(i + 1);
    figures.reuseCount = static_cast<double>(loop(i).length);
    return;
  }
  double others = 0;
  for (const AstStatement &other : ast.statements())
    for (const AstAccess &candidate : other.accesses)
      if (candidate.buffer == access.buffer && &candidate != &access)
        ++others;
  if (others == 0)
    return;
  figures.reuse = Reuse::Serial;
  figures.reuseIterations = iterationsFrom(0);
  figures.reuseBytes = touchedBytes(0);
  figures.reuseCount = others;
}

AccessFigures StatementFeatures::figuresOf(const AstAccess &access) const {
  AccessFigures figures;
  figures.reads = access.reads;
  figures.writes = access.writes;
  double bytes = bytesOf(access);
  double iterations = iterationsFrom(0);
  figures.bytes = iterations * bytes;
  figures.uniqueBytes = uniqueElements(access, 0) * bytes;
  // Loops inside of the innermost one that moves stay at one element.
  double same = 1;
  for (size_t i = depth(); i-- > 0;) {
    if (int64_t distance = ast.distance(access, statement.loops[i])) {
      figures.stride = static_cast<double>(std::abs(distance));
      break;
    }
    same *= static_cast<double>(loop(i).length);
  }
  if (figures.stride == 0) {
    figures.lines = figures.uniqueLines = 1;
  } else {
    double share = std::min(1., figures.stride * bytes / kLineBytes);
    figures.lines = std::max(1., iterations / same * share);
    figures.uniqueLines = std::max(
        1., std::min(uniqueElements(access, 0) * share, figures.lines));
  }
  findReuse(access, figures);
  return figures;
}

void StatementFeatures::writeAccess(Writer &writer, const llvm::Twine &name,
                                    const AccessFigures *figures) const {
  AccessFigures none;
  const AccessFigures &access = figures ? *figures : none;
  writer.flag(name + ".read", access.reads && !access.writes);
  writer.flag(name + ".written", access.writes && !access.reads);
  writer.flag(name + ".both", access.reads && access.writes);
  writer.magnitude(name + ".bytes", access.bytes);
  writer.magnitude(name + ".bytes-once", access.uniqueBytes);
  writer.magnitude(name + ".lines", access.lines);
  writer.magnitude(name + ".lines-once", access.uniqueLines);
  static constexpr std::array<const char *, kReuses> reuses = {"loop", "serial",
                                                               "none"};
  for (size_t i = 0; i < kReuses; ++i)
    writer.flag(name + ".reuse-" + reuses[i],
                figures && static_cast<size_t>(access.reuse) == i);
  writer.magnitude(name + ".reuse-iterations", access.reuseIterations);
  writer.magnitude(name + ".reuse-bytes", access.reuseBytes);
  writer.magnitude(name + ".reuse-count", access.reuseCount);
  double count = std::max(access.reuseCount, 1.);
  writer.magnitude(name + ".bytes-by-reuse", access.bytes / count);
  writer.magnitude(name + ".bytes-once-by-reuse", access.uniqueBytes / count);
  writer.magnitude(name + ".lines-by-reuse", access.lines / count);
  writer.magnitude(name + ".lines-once-by-reuse", access.uniqueLines / count);
  writer.magnitude(name + ".stride", access.stride);
}

/// Operations of the loops from each depth on for each byte that they touch, at
/// equal distances from the innermost loop to the outermost one.
void StatementFeatures::writeCurve(Writer &writer) const {
  double operations = 0;
  for (double count : statement.operations)
    operations += count;
  llvm::SmallVector<double, 12> curve;
  for (size_t first = depth() + 1; first-- > 0;) {
    double bytes = std::max(touchedBytes(first), 1.);
    curve.push_back(operations * iterationsFrom(first) / bytes);
  }
  for (size_t i = 0; i < kCurvePoints; ++i) {
    double at = static_cast<double>(i * (curve.size() - 1)) /
                static_cast<double>(kCurvePoints - 1);
    auto below = static_cast<size_t>(at);
    size_t above = std::min(below + 1, curve.size() - 1);
    double share = at - static_cast<double>(below);
    writer.magnitude("intensity" + llvm::Twine(i),
                     curve[below] * (1 - share) + curve[above] * share);
  }
}

void StatementFeatures::writeAllocation(Writer &writer) const {
  double bytes = 0, outside = 1, inside = 1;
  for (const AstAccess &access : statement.accesses) {
    if (!access.writes)
      continue;
    const AstBuffer &buffer = ast.buffers()[access.buffer];
    bytes = buffer.elements * bytesOf(access);
    outside = inside = 1;
    // A block's memory is allocated within the grid, a thread's within threads.
    for (unsigned number : statement.loops) {
      const AstLoop &loop = ast.loops()[number];
      bool isOutside = (buffer.memory != AstMemory::Global &&
                        loop.binding == LoopBinding::Grid) ||
                       (buffer.memory == AstMemory::Registers &&
                        loop.binding == LoopBinding::Thread);
      (isOutside ? outside : inside) *= static_cast<double>(loop.length);
    }
  }
  writer.magnitude("allocation.bytes", bytes);
  writer.magnitude("allocation.outside", outside);
  writer.magnitude("allocation.inside", inside);
  writer.magnitude("allocation.all", outside * inside);
}

void StatementFeatures::write(Writer &writer) {
  double iterations = iterationsFrom(0);
  for (size_t i = 0; i < kNumAstOperations; ++i)
    writer.magnitude(nameOf(static_cast<AstOperation>(i)),
                     statement.operations[i] * iterations);
  writeLoops(writer, "vectorized", {LoopBinding::Vectorized});
  writeLoops(writer, "unrolled", {LoopBinding::Unrolled});
  writeLoops(writer, "parallel", {LoopBinding::Grid, LoopBinding::Thread});
  writeGpu(writer);

  llvm::SmallVector<AccessFigures, kBuffers> accesses;
  for (const AstAccess &access : statement.accesses)
    accesses.push_back(figuresOf(access));
  llvm::stable_sort(accesses, [](const auto &a, const auto &b) {
    return std::pair(a.lines, a.bytes) > std::pair(b.lines, b.bytes);
  });
  for (size_t i = 0; i < kBuffers; ++i)
    writeAccess(writer, "buffer" + llvm::Twine(i),
                i < accesses.size() ? &accesses[i] : nullptr);
  writeCurve(writer);
  writeAllocation(writer);
  writer.magnitude("iterations", iterations);
  writer.magnitude("loops", static_cast<double>(depth()));
  double unrolled = 1;
  for (size_t i = depth(); i-- > 0;) {
    if (loop(i).binding == LoopBinding::Serial)
      break;
    if (loop(i).binding == LoopBinding::Unrolled ||
        loop(i).binding == LoopBinding::VirtualThread)
      unrolled *= static_cast<double>(loop(i).length);
  }
  writer.magnitude("unrolled-run", unrolled);
}

std::vector<std::string> ftuner::programFeatureNames() {
  ProgramAst ast;
  AstStatement statement;
  std::vector<std::string> names;
  Writer writer(nullptr, &names);
  StatementFeatures(ast, statement).write(writer);
  return names;
}

std::vector<ProgramFeatures> ftuner::programFeatures(const ProgramAst &ast) {
  std::vector<ProgramFeatures> features;
  for (const AstStatement &statement : ast.statements()) {
    Writer writer(&features.emplace_back(), nullptr);
    StatementFeatures(ast, statement).write(writer);
  }
  return features;
}
