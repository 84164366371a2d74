//===- GridIRTest.cpp - The mapping of blocks to tiles as IR --------------===//
//
// Builds functions of what the host counts and of what a block on the device
// finds out, on extents that are arguments or constants, and evaluates them
// operation by operation with the folders of `arith`.
//
//===----------------------------------------------------------------------===//
#include "../RandomSeed.h"
#include "FTuner/Dialect/UKernel/Utils/IndexArithmetic.h"
#include "GridCases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace ftuner;
using ftuner::ukernel::IndexArithmetic;

namespace {

/// A function of indices that is built once and evaluated often.
class EvaluatedFunction {
public:
  explicit EvaluatedFunction(MLIRContext *context)
      : module(ModuleOp::create(UnknownLoc::get(context))),
        builder(UnknownLoc::get(context), context) {
    builder.setInsertionPointToStart(module->getBody());
    function =
        func::FuncOp::create(builder, "f", builder.getFunctionType({}, {}));
    builder.setInsertionPointToStart(function.addEntryBlock());
  }

  ImplicitLocOpBuilder &b() { return builder; }

  Value argument() {
    Block &body = function.getBody().front();
    return body.addArgument(builder.getIndexType(), builder.getLoc());
  }

  /// Ends the function.
  void returnAll(ArrayRef<Value> values) {
    func::ReturnOp::create(builder, values);
    function.setType(
        builder.getFunctionType(function.getBody().front().getArgumentTypes(),
                                ValueRange(values).getTypes()));
    ASSERT_TRUE(succeeded(verify(function)));
  }

  /// Results for the arguments; booleans are 0 and 1.
  void evaluate(ArrayRef<int64_t> arguments, SmallVector<int64_t> &results) {
    Block &body = function.getBody().front();
    DenseMap<Value, Attribute> known;
    for (auto [argument, value] :
         llvm::zip_equal(body.getArguments(), arguments))
      known[argument] = builder.getIndexAttr(value);
    for (Operation &op : body.without_terminator()) {
      auto operands = llvm::map_to_vector(
          op.getOperands(), [&](Value operand) { return known[operand]; });
      SmallVector<OpFoldResult> folded;
      ASSERT_TRUE(succeeded(op.fold(operands, folded)) && folded.size() == 1)
          << "no value of " << op.getName().getStringRef().str();
      known[op.getResult(0)] = isa<Attribute>(folded[0])
                                   ? cast<Attribute>(folded[0])
                                   : known[cast<Value>(folded[0])];
    }
    results.clear();
    for (Value value : body.getTerminator()->getOperands()) {
      auto attribute = cast<IntegerAttr>(known[value]);
      results.push_back(
          static_cast<int64_t>(attribute.getValue().getZExtValue()));
    }
  }

private:
  OwningOpRef<ModuleOp> module;
  ImplicitLocOpBuilder builder;
  func::FuncOp function;
};

/// Arguments for dynamic extents, constants for the others.
SmallVector<Value> extentsOf(EvaluatedFunction &function, const Shape &shape,
                             ArrayRef<bool> isDynamic) {
  SmallVector<Value> extents;
  for (auto [extent, dynamic] : llvm::zip_equal(shape, isDynamic))
    extents.push_back(
        dynamic ? function.argument()
                : arith::ConstantIndexOp::create(function.b(), extent));
  return extents;
}

SmallVector<int64_t> dynamicOf(const Shape &shape, ArrayRef<bool> isDynamic) {
  SmallVector<int64_t> values;
  for (auto [extent, dynamic] : llvm::zip_equal(shape, isDynamic))
    if (dynamic)
      values.push_back(extent);
  return values;
}

/// The host's side of a grid.
class HostGrid {
public:
  HostGrid(MLIRContext *context, const GridCase &c, ArrayRef<bool> isDynamic)
      : function(context), isDynamic(isDynamic) {
    SmallVector<Value> extents = extentsOf(function, c.shape, isDynamic);
    IndexArithmetic math(function.b());
    auto [firstBlocks, blocks] = launchOf(math, c.grid, extents);
    function.returnAll({firstBlocks, blocks});
  }

  LaunchFacts launch(const Shape &shape) {
    SmallVector<int64_t> results;
    function.evaluate(dynamicOf(shape, isDynamic), results);
    if (results.size() != 2)
      return {-1, -1};
    return {results[0], results[1]};
  }

private:
  EvaluatedFunction function;
  ArrayRef<bool> isDynamic;
};

/// The device's side.
class DeviceGrid {
public:
  DeviceGrid(MLIRContext *context, const GridCase &c, ArrayRef<bool> isDynamic)
      : function(context), isDynamic(isDynamic), batches(c.shape.size() - 3) {
    const Grid &grid = c.grid;
    SmallVector<Value> extents = extentsOf(function, c.shape, isDynamic);
    Value block = function.argument(), blocks = function.argument();
    Value firstBlocks = function.argument();
    IndexArithmetic math(function.b());
    TilePosition<IndexArithmetic> position =
        positionOf(math, grid, extents, block, [&] { return blocks; });
    Value zero = math.constant(0);
    // A kernel of two parts branches.
    Value inFirst = math.atMost(zero, zero);
    TileOffsets<IndexArithmetic> first =
        offsetsOf(math, grid, position, std::nullopt);
    TileOffsets<IndexArithmetic> second = first;
    if (grid.secondHeight != 0) {
      inFirst = isInFirstPart(math, grid, position, firstBlocks);
      second = offsetsOf(math, grid, position, firstBlocks);
    }
    Value slice = position.slice.value_or(zero);
    auto [reduceFirst, reduceLength] =
        reduceRangeOf(math, grid, slice, extents[matmulAxes.k]);
    SmallVector<Value> results = {inFirst,     first.row,     first.column,
                                  second.row,  second.column, slice,
                                  reduceFirst, reduceLength};
    for (std::optional<Value> element : position.batch)
      results.push_back(element.value_or(zero));
    function.returnAll(results);
  }

  TileFacts tile(const Shape &shape, const LaunchFacts &launch, int64_t block) {
    SmallVector<int64_t> arguments = dynamicOf(shape, isDynamic), results;
    arguments.append({block, launch.blocks, launch.firstBlocks});
    function.evaluate(arguments, results);
    TileFacts facts = {};
    if (results.size() != 8 + batches)
      return facts;
    facts.isInSecondPart = results[0] == 0;
    facts.row = results[facts.isInSecondPart ? 3 : 1];
    facts.column = results[facts.isInSecondPart ? 4 : 2];
    facts.slice = results[5];
    facts.reduceFirst = results[6];
    facts.reduceLength = results[7];
    facts.batch.append(results.begin() + 8, results.end());
    return facts;
  }

private:
  EvaluatedFunction function;
  ArrayRef<bool> isDynamic;
  size_t batches;
};

class GridIR : public testing::Test {
protected:
  GridIR() : cases(seed), random(seed) {
    context.loadDialect<arith::ArithDialect, func::FuncDialect>();
  }

  /// A few shapes that a kernel with these static extents serves.
  std::vector<GridCase> servedBy(const GridCase &first,
                                 ArrayRef<bool> isDynamic) {
    std::vector<GridCase> result = {first};
    for (int round = 0; round < 4; ++round) {
      GridCase other = {first.grid, cases.shapeOf(first.grid)};
      for (size_t axis = 0; axis < isDynamic.size(); ++axis)
        if (!isDynamic[axis])
          other.shape[axis] = first.shape[axis];
      result.push_back(other);
    }
    return result;
  }

  SmallVector<bool> anyDynamic(size_t axes) {
    SmallVector<bool> isDynamic;
    for (size_t axis = 0; axis < axes; ++axis)
      isDynamic.push_back(random() % 4 != 0);
    return isDynamic;
  }

  RandomSeed seed;
  GridCases cases;
  std::mt19937_64 random;
  MLIRContext context{MLIRContext::Threading::DISABLED};
};

} // namespace

TEST_F(GridIR, HostCountsWhatCoversEachElementOnce) {
  for (int round = 0; round < 1000; ++round) {
    GridCase first = cases.next();
    SmallVector<bool> isDynamic = anyDynamic(first.shape.size());
    HostGrid host(&context, first, isDynamic);
    for (const GridCase &c : servedBy(first, isDynamic)) {
      // The blocks are placed in numbers, by the host's counts.
      LaunchFacts launch = host.launch(c.shape);
      auto tileOf = [&](int64_t block) {
        return tileInNumbers(c, launch, block);
      };
      ASSERT_NO_FATAL_FAILURE(expectEachElementOnce(c, {launch, tileOf}));
      ASSERT_EQ(launch, launchInNumbers(c)) << c;
    }
  }
}

TEST_F(GridIR, BlocksOnTheDeviceWriteEachElementOnce) {
  for (int round = 0; round < 300; ++round) {
    GridCase first = cases.next();
    SmallVector<bool> isDynamic = anyDynamic(first.shape.size());
    DeviceGrid device(&context, first, isDynamic);
    for (const GridCase &c : servedBy(first, isDynamic)) {
      LaunchFacts launch = launchInNumbers(c);
      auto tileOf = [&](int64_t block) {
        return device.tile(c.shape, launch, block);
      };
      ASSERT_NO_FATAL_FAILURE(expectEachElementOnce(c, {launch, tileOf}));
    }
  }
}

TEST_F(GridIR, HostAndDeviceAgreeWithNumbersOnLargeShapes) {
  for (int round = 0; round < 1000; ++round) {
    GridCase c = cases.nextLarge();
    SCOPED_TRACE(testing::Message() << c);
    SmallVector<bool> isDynamic = anyDynamic(c.shape.size());
    HostGrid host(&context, c, isDynamic);
    DeviceGrid device(&context, c, isDynamic);
    LaunchFacts launch = launchInNumbers(c);
    ASSERT_EQ(host.launch(c.shape), launch);
    for (int i = 0; i < 10; ++i) {
      int64_t block = i == 0   ? launch.blocks - 1
                      : i == 1 ? 0
                               : static_cast<int64_t>(random() % launch.blocks);
      ASSERT_EQ(device.tile(c.shape, launch, block),
                tileInNumbers(c, launch, block))
          << "block " << block;
    }
  }
}
