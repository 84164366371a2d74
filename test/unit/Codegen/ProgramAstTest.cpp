//===- ProgramAstTest.cpp - Trees of every path's programs ----------------===//
//
// Loops and statements of programs, against what else the models say of them:
// `work`, whose counts are compared with emitted kernels, threads, and the
// arithmetic of tiles and grids.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Schedule/ProgramAst.h"
#include "../RandomSeed.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Schedule/ProgramFeatures.h"
#include "Products.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace ftuner;

//===----------------------------------------------------------------------===//
// Trees
//===----------------------------------------------------------------------===//

namespace {
/// The loop i with a statement, and in it the loop j with another.
struct Example {
  ProgramAst ast;

  Example() {
    AstBuffer matrix;
    matrix.name = "matrix";
    matrix.strides = {10, 1};
    matrix.elements = 80;
    AstBuffer row = matrix;
    row.name = "row";
    row.strides = {1, 0};
    row.elements = 8;
    ast.addBuffer(matrix);
    ast.addBuffer(row);
    ProgramAst::Nest i(ast, {{"i", 8, LoopBinding::Grid, 0}});
    AstStatement &start = ast.addStatement("A");
    start.accesses.push_back({1, false, true});
    ProgramAst::Nest j(ast, {{"j", 10, LoopBinding::Serial, 1, 1, true}});
    AstStatement &add = ast.addStatement("B");
    add[AstOperation::FloatAdd] = 1;
    add.accesses.push_back({0, true, false});
    add.accesses.push_back({1, true, true});
  }

  double feature(size_t statement, llvm::StringRef name) const {
    auto names = programFeatureNames();
    size_t at = llvm::find(names, name) - names.begin();
    EXPECT_LT(at, names.size()) << name.str();
    return programFeatures(ast)[statement].at(at);
  }
};
} // namespace

TEST(ProgramAst, StatementsHaveTheirPlacesInTheSequence) {
  // i A · j B ·
  EXPECT_EQ(Example().ast.ordering(), (llvm::SmallVector<int64_t, 8>{1, 4}));
}

TEST(ProgramAst, IsWrittenAsJson) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  json.object([&] { Example().ast.write(json); });
  auto value = llvm::cantFail(llvm::json::parse(text));
  const llvm::json::Object &ast = *value.getAsObject();
  const llvm::json::Object &loop = *(*ast.getArray("loops"))[1].getAsObject();
  EXPECT_EQ(loop.getString("binding"), "serial");
  EXPECT_EQ(loop.getInteger("length"), 10);
  const llvm::json::Object &add =
      *(*ast.getArray("statements"))[1].getAsObject();
  EXPECT_EQ(*add.getArray("loops"), (llvm::json::Array{0, 1}));
  EXPECT_EQ(add.getObject("operations")->getNumber("float-add"), 1);
  EXPECT_EQ(*ast.getArray("ordering"), (llvm::json::Array{1, 4}));
}

TEST(ProgramAst, DistancesFollowFromStepsAndStrides) {
  Example example;
  const ProgramAst &ast = example.ast;
  const AstStatement &add = ast.statements()[1];
  EXPECT_EQ(ast.distance(add.accesses[0], 0), 10);
  EXPECT_EQ(ast.distance(add.accesses[0], 1), 1);
  EXPECT_EQ(ast.distance(add.accesses[1], 0), 1);
  EXPECT_EQ(ast.distance(add.accesses[1], 1), 0);
  EXPECT_EQ(ast.iterations(add), 80);
  EXPECT_EQ(ast.bytesRead(AstMemory::Global), 4 * (80 + 80));
  EXPECT_EQ(ast.bytesWritten(AstMemory::Global), 4 * (8 + 80));
}

TEST(ProgramAst, BlocksAndThreadsHaveMemoryOfTheirOwn) {
  ProgramAst ast;
  AstBuffer buffer;
  buffer.memory = AstMemory::Shared;
  buffer.strides = {16, 1};
  buffer.tile = {4, 16};
  unsigned shared = ast.addBuffer(buffer);
  buffer.memory = AstMemory::Registers;
  unsigned own = ast.addBuffer(buffer);
  ProgramAst::Nest loops(ast, {{"grid", 8, LoopBinding::Grid, 0, 1},
                               {"step", 2, LoopBinding::Serial, 1, 16},
                               {"thread", 4, LoopBinding::Thread, 0, 1},
                               {"point", 16, LoopBinding::Unrolled, 1, 1}});
  auto distances = [&](unsigned of) {
    llvm::SmallVector<int64_t> result;
    for (unsigned loop = 0; loop < 4; ++loop)
      result.push_back(ast.distance({of, true, false}, loop));
    return result;
  };
  // A step fills the same tile again.
  EXPECT_EQ(distances(shared), (llvm::SmallVector<int64_t>{0, 0, 16, 1}));
  EXPECT_EQ(distances(own), (llvm::SmallVector<int64_t>{0, 0, 0, 1}));
}

//===----------------------------------------------------------------------===//
// Features
//===----------------------------------------------------------------------===//

TEST(ProgramFeatures, AreAsManyAsTheirNames) {
  auto names = programFeatureNames();
  EXPECT_EQ(names.size(), kNumProgramFeatures);
  llvm::StringSet<> different;
  for (const std::string &name : names)
    EXPECT_TRUE(different.insert(name).second) << name;
}

TEST(ProgramFeatures, AreThoseOfTheExample) {
  Example example;
  auto magnitude = [](double value) {
    return static_cast<float>(std::log2(1 + value));
  };
  auto expect = [&](llvm::StringRef name, double value) {
    EXPECT_EQ(example.feature(1, name), magnitude(value)) << name.str();
  };
  expect("float-add", 80);
  expect("iterations", 80);
  expect("loops", 2);
  expect("parallel.number", 1);
  expect("parallel.product", 8);
  expect("blocks.x", 8);
  expect("threads.x", 1);
  // The matrix has more lines than the row: 80 numbers next to each other.
  expect("buffer0.bytes", 320);
  expect("buffer0.bytes-once", 320);
  expect("buffer0.lines", 5);
  expect("buffer0.stride", 1);
  EXPECT_EQ(example.feature(1, "buffer0.read"), 1);
  EXPECT_EQ(example.feature(1, "buffer0.reuse-none"), 1);
  // The row's element is the same in all iterations of j.
  EXPECT_EQ(example.feature(1, "buffer1.both"), 1);
  EXPECT_EQ(example.feature(1, "buffer1.reuse-loop"), 1);
  expect("buffer1.bytes-once", 32);
  expect("buffer1.reuse-iterations", 1);
  expect("buffer1.reuse-bytes", 8);
  expect("buffer1.reuse-count", 10);
  expect("buffer1.bytes-by-reuse", 32);
  EXPECT_EQ(example.feature(1, "buffer2.bytes"), 0);
  EXPECT_EQ(example.feature(1, "buffer2.reuse-none"), 0);
  // An addition for each 8 bytes of an iteration; 80 for 352.
  expect("intensity0", 1. / 8);
  expect("intensity9", 80. / 352);
  EXPECT_EQ(example.feature(1, "parallel.inner-space"), 1);
}

namespace {
/// A row of 6 columns that lie 32 numbers apart is read by 4 blocks with 3
/// turns each, all of the same row; each turn adds to the same sum.
struct Strided {
  ProgramAst ast;

  Strided() {
    AstBuffer column;
    column.strides = {0, 32};
    column.elements = 6 * 32;
    AstBuffer sum;
    sum.memory = AstMemory::Registers;
    sum.strides = {0, 0};
    sum.elements = 1;
    ast.addBuffer(column);
    ast.addBuffer(sum);
    ProgramAst::Nest loops(ast, {{"block", 4, LoopBinding::Grid, 0},
                                 {"turn", 3, LoopBinding::Serial, 0, 1, true},
                                 {"column", 6, LoopBinding::Unrolled, 1}});
    AstStatement &add = ast.addStatement("add");
    add[AstOperation::FloatAdd] = 2;
    add.accesses.push_back({0, true, false});
    add.accesses.push_back({1, true, true});
  }
};
} // namespace

TEST(ProgramFeatures, AreThoseOfStridedAccesses) {
  ProgramAst ast = Strided().ast;
  auto names = programFeatureNames();
  ProgramFeatures features = programFeatures(ast).front();
  auto expect = [&](llvm::StringRef name, double value) {
    auto at = llvm::find(names, name);
    ASSERT_NE(at, names.end()) << name.str();
    EXPECT_FLOAT_EQ(features.at(at - names.begin()),
                    static_cast<float>(std::log2(1 + value)))
        << name.str();
  };
  // Of 128 bytes from one to the next: a line of 64 bytes each, in all 72
  // iterations, and 6 different ones.
  expect("buffer0.bytes", 4 * 72);
  expect("buffer0.bytes-once", 4 * 6);
  expect("buffer0.lines", 72);
  expect("buffer0.lines-once", 6);
  expect("buffer0.stride", 32);
  // A turn comes back behind 6 iterations, which have touched 6 numbers and a
  // sum.
  expect("buffer0.reuse-iterations", 6);
  expect("buffer0.reuse-bytes", 4 * 6 + 4);
  expect("buffer0.reuse-count", 3);
  expect("buffer0.bytes-by-reuse", 4 * 72 / 3.);
  expect("buffer0.lines-once-by-reuse", 6 / 3.);
  // The sum comes back in the innermost loop.
  expect("buffer1.reuse-iterations", 1);
  expect("buffer1.reuse-bytes", 8);
  expect("buffer1.reuse-count", 6);
  expect("buffer1.lines", 1);
  // Operations for each byte from the inside out: 2 of 8, 12 and 36 and 144 of
  // 28; ten numbers at equal distances over these four.
  double curve[] = {2 / 8., 12 / 28., 36 / 28., 144 / 28.};
  for (int i = 0; i < 10; ++i) {
    int below = std::min(i / 3, 2);
    double share = i / 3. - below;
    expect("intensity" + std::to_string(i),
           curve[below] * (1 - share) + curve[below + 1] * share);
  }
  expect("unrolled.product", 6);
  expect("unrolled-run", 6);
  // A thread's register lies within blocks, and no threads are said.
  expect("allocation.bytes", 4);
  expect("allocation.outside", 4);
  expect("allocation.inside", 18);
  expect("allocation.all", 72);
}

TEST(ProgramAst, LongTreesHaveNeighboursJoined) {
  ProgramAst ast;
  AstBuffer buffer;
  buffer.strides = {1};
  buffer.elements = 8;
  for (int i = 0; i < 3; ++i)
    ast.addBuffer(buffer);
  {
    ProgramAst::Nest loop(ast, {{"i", 8, LoopBinding::Grid, 0}});
    auto add = [&](const char *name, unsigned from, unsigned to) {
      AstStatement &statement = ast.addStatement(name);
      statement[AstOperation::FloatAdd] = 1;
      statement.accesses.push_back({from, true, from == to});
      if (from != to)
        statement.accesses.push_back({to, false, true});
    };
    add("A", 0, 1);
    add("B", 1, 2);
    add("sum", 2, 2);
    add("C", 0, 1);
    ProgramAst::Nest inner(ast, {{"j", 2, LoopBinding::Serial}});
    add("D", 0, 1);
  }
  double written = ast.bytesWritten(AstMemory::Global);
  ast.joinStatements(5);
  EXPECT_EQ(ast.statements().size(), 5u);
  ast.joinStatements(2);
  // The sum is not elementwise, and D lies in a loop of its own.
  ASSERT_EQ(ast.statements().size(), 4u);
  const AstStatement &joined = ast.statements().front();
  EXPECT_EQ(joined.name, "A, B");
  EXPECT_EQ(joined[AstOperation::FloatAdd], 2);
  ASSERT_EQ(joined.accesses.size(), 3u);
  EXPECT_TRUE(joined.accesses[1].reads && joined.accesses[1].writes);
  EXPECT_EQ(ast.bytesWritten(AstMemory::Global), written);
  EXPECT_EQ(ast.ordering(), (llvm::SmallVector<int64_t, 8>{1, 3, 5, 8}));
  EXPECT_EQ(ast.statements().back().name, "D");
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {
/// Blocks that are visited, one in so many.
constexpr unsigned kEvery = 41;

class PathAst : public ::testing::Test {
protected:
  using Visit = llvm::function_ref<void(const Workload &, const KernelFamily &,
                                        const Shape &)>;
  /// Visits random legal families of a path and shapes of whole tiles.
  void forEachProgram(const CodegenModel &path, Workload workload,
                      Visit visit) {
    if (llvm::errorToBool(path.supports(workload, device)))
      return;
    auto space = path.createSpace(workload, device);
    unsigned number = 0;
    for (int64_t alignment : {16, 1})
      space->forEachBlock(alignment, [&](const KernelFamily &block,
                                         const UKernel &, BlockKind) {
        if (number++ % kEvery != 0)
          return;
        unsigned schedules = 0;
        space->forEachSchedule(block, [&](const KernelFamily &family) {
          if (llvm::errorToBool(path.check(workload, family, device)))
            return true;
          Shape shape;
          for (unsigned axis = 0; axis < workload.axes.size(); ++axis)
            shape.push_back(family.tiles.front()[axis] *
                            (1 + static_cast<int64_t>(random() % 3)));
          visit(workload, family, shape);
          // Clusters come behind many other schedules.
          return ++schedules < 3 || family.clusterBlocks() > 1;
        });
      });
  }

  /// What follows from the sizes of a product alone, worked out by hand.
  void expectFeaturesOfSizes(const Workload &workload,
                             const KernelFamily &family, const Shape &shape,
                             const ProgramAst &ast) {
    auto all = programFeatures(ast);
    double m = static_cast<double>(shape[0]), n = static_cast<double>(shape[1]),
           k = static_cast<double>(shape[2]);
    double bytes = bytesOf(workload.operands.front().elementType);
    for (auto [statement, features] : llvm::zip_equal(ast.statements(), all)) {
      auto expect = [&, &name = statement.name, &features = features](
                        llvm::StringRef feature, double value) {
        auto at = featureNumbers.find(feature);
        ASSERT_NE(at, featureNumbers.end()) << feature.str();
        EXPECT_NEAR(features.at(at->second), std::log2(1 + value), 1e-5)
            << name << " " << feature.str();
      };
      double blocks = m / static_cast<double>(family.tiles.front()[0]) * n /
                      static_cast<double>(family.tiles.front()[1]) *
                      static_cast<double>(family.clusterBlocks());
      if (statement.name == "multiply") {
        expect("float-multiply-add", m * n * k);
        expect("iterations", m * n * k);
        expect("blocks.x", blocks);
      } else if (statement.name == "store") {
        // Of two buffers, the output has lines, and each element once.
        expect("iterations", m * n);
        expect("allocation.all", m * n);
        expect("allocation.bytes", 4 * m * n);
      } else if (statement.name == "copy rhs" || statement.name == "copy lhs") {
        bool isLhs = statement.name == "copy lhs";
        double elements = (isLhs ? m : n) * k;
        const AstBuffer &from =
            ast.buffers()[statement.accesses.front().buffer];
        EXPECT_EQ(from.elements, elements);
        EXPECT_EQ(static_cast<double>(from.elementBytes), bytes);
        // The whole operand is read, by as many blocks as lie along the other
        // axis; which of five buffers it is, lines tell.
        bool isFound = false;
        for (int buffer = 0; buffer < 2; ++buffer) {
          std::string name = "buffer" + std::to_string(buffer) + ".";
          auto valueOf = [&, &features = features](llvm::StringRef feature) {
            return features.at(featureNumbers.at(name + feature.str()));
          };
          isFound |= valueOf("read") == 1 &&
                     std::abs(valueOf("bytes-once") -
                              std::log2(1 + bytes * elements)) < 1e-5;
        }
        EXPECT_TRUE(isFound) << statement.name;
      }
    }
  }

  static double product(const ProgramAst &ast, const AstStatement &statement,
                        LoopBinding binding) {
    double lengths = 1;
    for (unsigned loop : statement.loops)
      if (ast.loops()[loop].binding == binding)
        lengths *= static_cast<double>(ast.loops()[loop].length);
    return lengths;
  }

  const DeviceSpec device = llvm::cantFail(loadDeviceSpec("h200"));
  const llvm::StringMap<size_t> featureNumbers = [] {
    llvm::StringMap<size_t> numbers;
    for (const auto &[number, name] : llvm::enumerate(programFeatureNames()))
      numbers[name] = number;
    return numbers;
  }();
  RandomSeed seed;
  std::mt19937 random{seed};
};

double pointsOf(llvm::ArrayRef<int64_t> shape) {
  double points = 1;
  for (int64_t size : shape)
    points *= static_cast<double>(size);
  return points;
}
} // namespace

TEST_F(PathAst, ProductsComputeAndCopyWhatTheirWorkSays) {
  for (auto [type, sum] : {std::pair(ElementType::F32, ElementType::F32),
                           {ElementType::F16, ElementType::F32}})
    for (bool transposesRhs : {false, true})
      for (const CodegenModel *path : codegenModels()) {
        Workload workload =
            Workload::matmul({1, 4096}, {1, 4096}, {1, 4096},
                             /*transposeLhs=*/false, transposesRhs);
        setTypes(workload, type, sum);
        unsigned programs = 0, exact = 0, clusters = 0;
        forEachProgram(
            *path, workload,
            [&](const Workload &workload, const KernelFamily &family,
                const Shape &shape) {
              SCOPED_TRACE(family.str());
              ++programs;
              clusters += family.clusterBlocks() > 1;
              auto parts = describeProgram(
                  workload, {&family, partitionShape(family, shape)}, shape,
                  device);
              ASSERT_EQ(parts.size(), 1u);
              const ProgramAst &ast = parts.front().ast;
              ASSERT_EQ(ast.statements().size(), ast.ordering().size());
              EXPECT_LE(ast.statements().size(), 7u);
              const AstStatement *multiply = nullptr;
              double copied = 0;
              for (const AstStatement &statement : ast.statements()) {
                if (statement.name == "multiply")
                  multiply = &statement;
                if (llvm::StringRef(statement.name).starts_with("copy"))
                  copied += ast.iterations(statement) *
                            static_cast<double>(
                                ast.buffers()[statement.accesses.front().buffer]
                                    .elementBytes);
              }
              ASSERT_TRUE(multiply);
              EXPECT_EQ(ast.iterations(*multiply), pointsOf(shape));
              EXPECT_LE(product(ast, *multiply, LoopBinding::Thread),
                        family.threads());
              EXPECT_EQ(product(ast, *multiply, LoopBinding::Grid),
                        parts.front().blocks);
              // The last threads and vectors of a row may have nothing to copy.
              BlockWork work = path->work(workload, family, 0, device);
              double steps = static_cast<double>(shape[2]) /
                             static_cast<double>(family.tiles.front()[2]);
              double said = work.globalBytes * steps * parts.front().blocks;
              EXPECT_GE(copied, said);
              if (llvm::all_of(family.tiles.front(), [](int64_t size) {
                    return llvm::isPowerOf2_64(size);
                  })) {
                EXPECT_EQ(copied, said);
                ++exact;
              } else {
                EXPECT_LE(copied, said * 2);
              }
              double output = static_cast<double>(shape[0] * shape[1]) * 4;
              EXPECT_EQ(ast.bytesWritten(AstMemory::Global), output);
              for (const ProgramFeatures &features : programFeatures(ast))
                for (float feature : features)
                  EXPECT_TRUE(std::isfinite(feature) && feature >= 0);
              expectFeaturesOfSizes(workload, family, shape, ast);
            });
        if (!llvm::errorToBool(path->supports(workload, device))) {
          EXPECT_TRUE(programs > 3 && exact > 0) << path->name().str();
          EXPECT_TRUE(path->name() != "wgmma" || clusters > 0);
        }
      }
}

TEST_F(PathAst, SlicesAreAddedUp) {
  Workload workload = Workload::matmul({1, 4096}, {1, 4096}, {1, 65536});
  const CodegenModel *path = findCodegenModel("simt");
  unsigned programs = 0;
  forEachProgram(*path, workload,
                 [&](const Workload &workload, const KernelFamily &single,
                     const Shape &shape) {
                   KernelFamily family = single;
                   family.reduceSplit = 4;
                   if (llvm::errorToBool(path->check(workload, family, device)))
                     return;
                   ++programs;
                   Shape longer = shape;
                   longer[2] *= 4;
                   auto parts = describeProgram(
                       workload, {&family, partitionShape(family, longer)},
                       longer, device);
                   const ProgramAst &ast = parts.front().ast;
                   double points = static_cast<double>(longer[0] * longer[1]);
                   // Four partial sums of each element, and the sum.
                   EXPECT_EQ(ast.bytesWritten(AstMemory::Global),
                             4 * (4 * points + 256 * std::ceil(points / 256)));
                   EXPECT_EQ(ast.statements().back().name, "store sums");
                 });
  EXPECT_GT(programs, 3u);
}

TEST_F(PathAst, SlicesOfRowsAreLaunchesOfTheirOwn) {
  Workload workload = Workload::rowSums({1, 512}, {1, std::nullopt});
  const CodegenModel *path = findCodegenModel("rows");
  unsigned programs = 0;
  forEachProgram(
      *path, workload,
      [&](const Workload &workload, const KernelFamily &single,
          const Shape &shape) {
        KernelFamily family = single;
        family.reduceSplit = 4;
        if (llvm::errorToBool(path->check(workload, family, device)))
          return;
        SCOPED_TRACE(family.str());
        ++programs;
        Shape longer = {shape[0], 64 * shape[1]};
        auto parts =
            describeProgram(workload, {&family, partitionShape(family, longer)},
                            longer, device);
        const ProgramAst &ast = parts.front().ast;
        unsigned launches = 0;
        std::vector<std::string> names;
        for (const ProgramAst::Node &node : ast.nodes()) {
          launches += node.isLoop && !node.parent;
          if (!node.isLoop)
            names.push_back(ast.statements()[node.number].name);
        }
        EXPECT_EQ(launches, 2u);
        // The first launch leaves a number of each row and slice, which the
        // second one reads, each of its blocks all of them.
        auto has = [&](llvm::StringRef start) {
          return llvm::any_of(names, [&](llvm::StringRef name) {
            return name.starts_with(start);
          });
        };
        EXPECT_TRUE(has("reduce") && has("join") && has("leave") &&
                    has("merge"));
        double rows = static_cast<double>(longer[0]), slices = 0, merged = 0;
        for (const AstStatement &statement : ast.statements())
          for (const AstAccess &access : statement.accesses)
            if (llvm::StringRef(ast.buffers()[access.buffer].name)
                    .ends_with("of slices"))
              (access.writes ? slices : merged) += ast.iterations(statement);
        EXPECT_EQ(slices, 4 * rows);
        EXPECT_EQ(merged, 4 * 4 * rows);
      });
  EXPECT_GT(programs, 0u);
}

TEST_F(PathAst, RowsReadWhatTheirWorkSays) {
  Workload workload = Workload::rowSums({1, 512}, {1, std::nullopt});
  const CodegenModel *path = findCodegenModel("rows");
  unsigned held = 0, streamed = 0;
  forEachProgram(*path, workload,
                 [&](const Workload &workload, const KernelFamily &family,
                     const Shape &shape) {
                   SCOPED_TRACE(family.str());
                   for (int64_t length : {shape[1], 8 * shape[1]}) {
                     Shape longer = {shape[0], length};
                     auto parts = describeProgram(
                         workload, {&family, partitionShape(family, longer)},
                         longer, device);
                     ASSERT_EQ(parts.size(), 1u);
                     const ProgramAst &ast = parts.front().ast;
                     bool isHeld = llvm::any_of(
                         ast.statements(), [](const auto &statement) {
                           return statement.name == "load";
                         });
                     ++(isHeld ? held : streamed);
                     BlockWork work = path->work(workload, family, 0, device);
                     double steps =
                         static_cast<double>(longer[1]) /
                         static_cast<double>(family.tiles.front()[1]);
                     // Each element once, whether it is held or not: there is
                     // one reduction.
                     EXPECT_EQ(ast.bytesRead(AstMemory::Global),
                               work.globalBytes * steps * parts.front().blocks);
                   }
                 });
  EXPECT_GT(held, 3u);
  EXPECT_GT(streamed, 3u);
}
