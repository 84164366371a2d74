//===- AstTemplateTest.cpp - Trees as JSON --------------------------------===//
#include "FTuner/Schedule/AstTemplate.h"
#include "../DamagedText.h"
#include "../RandomSeed.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Schedule/ProgramFeatures.h"

#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace ftuner;

static std::string written(const ProgramAst &ast) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 1);
  json.object([&] { ast.write(json); });
  return text;
}

/// A matrix that blocks add up along its rows.
static constexpr const char *kSums = R"({
  "loops": [
    {"name": "m", "length": 8, "binding": "grid", "axis": 0, "step": 1},
    {"name": "k", "length": 32, "binding": "serial", "axis": 1, "step": 2, "is_reduction": true}
  ],
  "buffers": [
    {"name": "matrix", "memory": "global", "element_bytes": 4, "elements": 512, "strides": [64, 1]},
    {"name": "sum", "memory": "registers", "element_bytes": 4, "elements": 1, "strides": [1, 0]}
  ],
  "statements": [
    {"name": "start", "loops": [0], "operations": {},
     "accesses": [{"buffer": 1, "reads": false, "writes": true}]},
    {"name": "add", "loops": [0, 1], "operations": {"float-add": 2},
     "accesses": [{"buffer": 0, "reads": true, "writes": false, "distances": [64, 2]},
                  {"buffer": 1, "reads": true, "writes": true, "data_dependent": true,
                   "apart": [{"loop": 0, "distance": 3}]}]}
  ],
  "ordering": [1, 4]
})";

static std::string errorOf(llvm::StringRef json, size_t columns = 0) {
  auto read = AstTemplate::parse(json, columns);
  return read ? "" : llvm::toString(read.takeError());
}

static std::string replaced(llvm::StringRef text, llvm::StringRef from,
                            llvm::StringRef to) {
  size_t at = text.find(from);
  EXPECT_NE(at, llvm::StringRef::npos) << from.str();
  return (text.take_front(at) + to + text.drop_front(at + from.size())).str();
}

TEST(AstTemplate, ReadsLoopsBuffersAndStatements) {
  ProgramAst ast = llvm::cantFail(ProgramAst::read(kSums));
  ASSERT_EQ(ast.statements().size(), 2u);
  const AstStatement &add = ast.statements()[1];
  EXPECT_EQ(ast.iterations(add), 8 * 32);
  EXPECT_EQ(add[AstOperation::FloatAdd], 2);
  EXPECT_EQ(ast.distance(add.accesses[0], 0), 64);
  EXPECT_EQ(ast.distance(add.accesses[0], 1), 2);
  EXPECT_EQ(ast.distance(add.accesses[1], 0), 3);
  EXPECT_TRUE(add.accesses[1].isDataDependent);
  EXPECT_EQ(ast.bytesRead(AstMemory::Global), 4 * 8 * 32);
  EXPECT_EQ(ast.bytesWritten(AstMemory::Registers), 4 * (8 + 8 * 32));
  EXPECT_EQ(ast.ordering(), (llvm::SmallVector<int64_t, 8>{1, 4}));
}

TEST(AstTemplate, ProgramsOfAllPathsComeBack) {
  DeviceSpec device = llvm::cantFail(loadDeviceSpec("h200"));
  unsigned programs = 0, slices = 0;
  for (const CodegenModel *path : codegenModels())
    for (const Workload &workload :
         {Workload::matmul({1, 4096}, {1, 4096}, {1, 65536}),
          Workload::rowSums({1, 512}, {1, std::nullopt})}) {
      if (llvm::errorToBool(path->supports(workload, device)))
        continue;
      unsigned blocks = 0;
      auto space = path->createSpace(workload, device);
      space->forEachBlock(
          16, [&](const KernelFamily &block, const UKernel &, BlockKind) {
            if (blocks++ % 97 != 0)
              return;
            unsigned schedules = 0;
            space->forEachSchedule(block, [&](const KernelFamily &single) {
              KernelFamily family = single;
              if (workload.axes.size() == 3 && schedules % 2)
                family.reduceSplit = 4;
              if (llvm::errorToBool(path->check(workload, family, device)))
                return true;
              Shape shape;
              for (int64_t size : family.tiles.front())
                shape.push_back(size * 8);
              for (const PartAst &part : describeProgram(
                       workload, {&family, partitionShape(family, shape)},
                       shape, device)) {
                std::string text = written(part.ast);
                auto read = ProgramAst::read(text);
                if (!read) {
                  ADD_FAILURE() << llvm::toString(read.takeError()) << text;
                  continue;
                }
                ++programs;
                slices += text.find("apart") != std::string::npos;
                EXPECT_EQ(written(*read), text);
                EXPECT_EQ(read->nodes().size(), part.ast.nodes().size());
                EXPECT_EQ(programFeatures(*read), programFeatures(part.ast));
              }
              return ++schedules < 4;
            });
          });
    }
  EXPECT_GT(programs, 20u);
  EXPECT_GT(slices, 3u);
}

TEST(AstTemplate, ColumnsAreBoundRowByRow) {
  std::string text =
      replaced(kSums, "\"length\": 32", R"("length": {"column": 0})");
  text = replaced(text, "\"float-add\": 2", R"("float-add": {"column": 1})");
  text = replaced(text, ", \"distances\": [64, 2]", "");
  text = replaced(text, ",\n  \"ordering\": [1, 4]", "");
  auto read = AstTemplate::parse(text, 2);
  ASSERT_TRUE(!!read) << llvm::toString(read.takeError());
  for (double length : {7., 100.}) {
    llvm::cantFail(read->bind({length, 0.5}));
    const AstStatement &add = read->ast().statements()[1];
    EXPECT_EQ(read->ast().iterations(add), 8 * length);
    EXPECT_EQ(add[AstOperation::FloatAdd], 0.5);
  }
  EXPECT_EQ(llvm::toString(read->bind({2.5, 1})),
            "loops[1].length: expected a whole number of at least 0, but got "
            "2.5");
  EXPECT_EQ(llvm::toString(read->bind({1, -1})),
            "statements[1].operations.float-add: expected a number of at least "
            "0, but got -1");
  EXPECT_EQ(errorOf(text, 1),
            "statements[1].operations.float-add: expected a number, or "
            "{\"column\": …} with one of 1 columns, but got {\"column\":1}");
}

TEST(AstTemplate, DistancesOfRowsHaveABound) {
  std::string text = replaced(kSums, "\"step\": 2", R"("step": {"column": 0})");
  text = replaced(text, "[64, 1]", R"([64, {"column": 1}])");
  text = replaced(text, ", \"distances\": [64, 2]", "");
  text = replaced(text, ",\n  \"ordering\": [1, 4]", "");
  auto read = AstTemplate::parse(text, 2);
  ASSERT_TRUE(!!read) << llvm::toString(read.takeError());
  constexpr double kStep = 1 << 30, kStride = 1 << 23;
  llvm::cantFail(read->bind({kStep, kStride}));
  const ProgramAst &ast = read->ast();
  EXPECT_EQ(ast.distance(ast.statements()[1].accesses[0], 1), 1LL << 53);
  EXPECT_EQ(llvm::toString(read->bind({kStep, -2 * kStride})),
            "buffers[0].strides[1]: expected a distance of at most "
            "9007199254740992 between iterations of loops[1], but got a stride "
            "of -16777216 and a step of 1073741824");
}

TEST(AstTemplate, LoopsMayBeEmpty) {
  ProgramAst ast = llvm::cantFail(
      ProgramAst::read(replaced(kSums, "\"length\": 32", "\"length\": 0")));
  EXPECT_EQ(ast.iterations(ast.statements()[1]), 0);
  for (const ProgramFeatures &features : programFeatures(ast))
    for (float feature : features)
      EXPECT_TRUE(std::isfinite(feature));
}

TEST(AstTemplate, RefusesWhatIsNoTree) {
  EXPECT_EQ(errorOf(kSums), "");
  struct {
    const char *from, *to, *error;
  } cases[] = {
      {"\"length\": 8", "\"length\": -1",
       "loops[0].length: expected a whole number of at least 0, but got -1"},
      {"\"length\": 8", "\"length\": 2147483648",
       "loops[0].length: expected a whole number of at most 2147483647, but "
       "got "
       "2147483648"},
      {"\"step\": 1}", "\"step\": 8589934592}",
       "loops[0].step: expected a whole number of at most 2147483647, but got "
       "8589934592"},
      {"[64, 1]", "[9007199254740993e3, 1]",
       "buffers[0].strides[0]: expected a whole number of at most "
       "9007199254740992, but got 9.007199254740993e+18"},
      {"\"float-add\": 2", "\"float-add\": 1e308",
       "statements[1].operations.float-add: expected a number of at most "
       "1e+100, but got 1e+308"},
      {"\"elements\": 512", "\"elements\": 1e103",
       "buffers[0].elements: expected a number of at most 1e+100, but got "
       "1e+103"},
      {"[64, 1]", "[64, 9007199254740992]",
       "buffers[0].strides[1]: expected a distance of at most 9007199254740992 "
       "between iterations of loops[1], but got a stride of 9007199254740992 "
       "and a step of 2"},
      {"\"length\": 8, ", "", "loops[0]: the field 'length' is missing"},
      {"\"grid\"", "\"blocks\"",
       "loops[0].binding: expected one of serial, grid, thread, "
       "virtual-thread, unrolled, vectorized, but got 'blocks'"},
      {"\"step\": 1}", "\"steps\": 1}",
       "loops[0]: unknown field 'steps': expected name, length, binding, axis, "
       "step, is_reduction"},
      {"\"loops\": [0, 1]", "\"loops\": [1, 0]",
       "statements[1].loops: expected loops in the order in which they open: "
       "no other one, but got 0"},
      {"\"loops\": [0, 1]", "\"loops\": [0]",
       "loops[1]: expected a loop around a statement"},
      {"\"loops\": [0, 1]", "\"loops\": [0, 2]",
       "statements[1].loops[1]: expected the number of a loop, but got 2"},
      {"{\"buffer\": 0", "{\"buffer\": 2",
       "statements[1].accesses[0]: expected an object with the number of a "
       "buffer"},
      {"\"float-add\"", "\"float-sub\"",
       "statements[1].operations: unknown field 'float-sub': expected "
       "float-multiply-add, float-add, float-multiply, float-divide, "
       "float-compare, float-math, float-other, int-multiply-add, int-add, "
       "int-multiply, int-divide, int-compare, int-math, int-other, boolean, "
       "select"},
      {"[64, 2]", "[64, 4]",
       "statements[1].accesses[0].distances: expected 64, 2, as the tree says"},
      {"[1, 4]", "[1, 3]", "ordering: expected 1, 4, as the tree says"},
      {"\"strides\": [64, 1]", "\"strides\": [64, 1], \"tile\": [2]",
       "buffers[0]: expected a tile along 2 axes, but it has 1"},
  };
  for (const auto &one : cases)
    EXPECT_EQ(errorOf(replaced(kSums, one.from, one.to)), one.error);
}

TEST(AstTemplate, DamagedTextIsAnErrorOrATree) {
  RandomSeed seed;
  std::mt19937 random(seed);
  unsigned errors = 0;
  for (int i = 0; i < 3000; ++i) {
    auto read = ProgramAst::read(damage(kSums, random));
    if (!read) {
      ++errors;
      llvm::consumeError(read.takeError());
    } else {
      EXPECT_EQ(programFeatures(*read).size(), read->statements().size());
    }
  }
  EXPECT_GT(errors, 1000u);
}
