//===- KernelTree.cpp - The tree of a fallback kernel ---------------------===//
#include "FTuner/Analysis/KernelTree.h"
#include "FTuner/Analysis/IntegerArithmetic.h"
#include "FTuner/Dialect/UKernel/IR/Computations.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"
#include <map>

using namespace mlir;
using namespace ftuner;

static constexpr int64_t kLanes = 32;
/// Minimum distance between the addresses of two loaded indices.
static constexpr int64_t kLineBytes = 64;
/// Places of the iteration space at which distances are looked at.
static constexpr int64_t kPlaces = 5;

namespace {

/// An open loop of the tree, with the loop of the kernel that it stands for.
struct OpenLoop {
  unsigned number;
  int64_t length;
  /// Threads from one iteration to the next; 0 of a loop inside a thread.
  int64_t threadStep = 0;
  scf::ForOp loop = nullptr;
};

/// One point of the iteration space: an iteration of each open loop.
using Place = SmallVector<int64_t, 12>;

/// Known numbers of values; no number for a value that cannot be computed.
using Numbers = DenseMap<Value, std::optional<int64_t>>;

/// Values of indices at a place.
class Evaluator {
public:
  Evaluator(const Numbers &parameters, int64_t threads,
            ArrayRef<OpenLoop> loops, const Place &place)
      : known(parameters), threads(threads), loops(loops), place(place) {
    for (auto [loop, position] : llvm::zip_equal(loops, place))
      thread += loop.threadStep * position;
  }

  std::optional<int64_t> evaluate(Value value) {
    auto it = known.find(value);
    if (it != known.end())
      return it->second;
    std::optional<int64_t> result = compute(value);
    known[value] = result;
    return result;
  }
  std::optional<int64_t> evaluate(OpFoldResult value) {
    if (std::optional<int64_t> constant = getConstantIntValue(value))
      return constant;
    return evaluate(cast<Value>(value));
  }
  /// The number of an element in its buffer.
  std::optional<int64_t> addressOf(Value memref, ValueRange indices);
  /// Places of the indices that were loaded.
  ArrayRef<int64_t> loadedPlaces() const { return loaded; }

private:
  std::optional<int64_t> compute(Value value);

  Numbers known;
  int64_t threads, thread = 0;
  ArrayRef<OpenLoop> loops;
  const Place &place;
  SmallVector<int64_t, 2> loaded;
};

/// Sizes and strides of a buffer that a kernel's parameters describe.
struct View {
  SmallVector<OpFoldResult> sizes, strides;
};

class FallbackReader {
public:
  FallbackReader(gpu::GPUModuleOp kernel, const LaunchNumbers &launch)
      : kernel(kernel), launch(launch) {}

  llvm::Expected<PartAst> read();

private:
  llvm::Error bindParameters();
  llvm::Error fail(const llvm::Twine &text) {
    return llvm::createStringError("kernel '" + kernel.getName() +
                                   "': " + text);
  }
  /// The loops over blocks and threads, the outermost first.
  SmallVector<std::pair<AstLoop, int64_t>> pointLoops(Value point,
                                                      int64_t points);
  llvm::Error readBlock(Block &block);
  llvm::Error readLoop(scf::ForOp loop);
  std::optional<int64_t> evaluate(Value value) {
    return Evaluator(parameters, threads, open, Place(open.size(), 0))
        .evaluate(value);
  }
  bool isFirstLane(scf::IfOp op) const;
  AstStatement &addStatement(StringRef name, ValueRange results,
                             Block *block = nullptr);
  void addOperation(Operation &op, AstStatement &statement);
  void addAccess(Value memref, ValueRange indices, bool reads, bool writes,
                 AstStatement &statement);
  void addRegisters(unsigned buffer, bool reads, bool writes,
                    AstStatement &statement);
  unsigned bufferOf(Value memref);

  /// Loops that are open while the object lives.
  class Scope {
  public:
    Scope(FallbackReader &reader, const AstLoop &loop, int64_t threadStep,
          scf::ForOp forOp = nullptr)
        : reader(reader), nest(reader.ast, loop) {
      reader.open.push_back(
          {reader.ast.openLoops().back(), loop.length, threadStep, forOp});
    }
    ~Scope() { reader.open.pop_back(); }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    FallbackReader &reader;
    ProgramAst::Nest nest;
  };

  gpu::GPUModuleOp kernel;
  const LaunchNumbers &launch;
  ProgramAst ast;
  int64_t threads = 1;
  /// The lane, if a warp computes a point; null if a thread does.
  Value lane;
  Numbers parameters;
  /// The block that a thread with a point runs.
  Block *guardedBlock = nullptr;
  std::map<unsigned, std::string> names;
  SmallVector<OpenLoop> open;
  DenseMap<Value, unsigned> buffers;
  /// Registers with the values that a loop carries, by loop.
  DenseMap<Operation *, unsigned> registers;
  /// Operations that a statement has computed.
  DenseSet<Operation *> seen;
};
} // namespace

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

/// None for buffers that are neither a parameter nor a constant.
static std::optional<View> viewOf(Value memref) {
  MLIRContext *context = memref.getContext();
  View view;
  if (auto cast = memref.getDefiningOp<memref::ReinterpretCastOp>()) {
    view.sizes = cast.getMixedSizes();
    view.strides = cast.getMixedStrides();
    return view;
  }
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!type || !type.hasStaticShape())
    return std::nullopt;
  auto [strides, offset] = type.getStridesAndOffset();
  Builder b(context);
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides)) {
    view.sizes.push_back(b.getIndexAttr(size));
    view.strides.push_back(b.getIndexAttr(stride));
  }
  return view;
}

std::optional<int64_t> Evaluator::addressOf(Value memref, ValueRange indices) {
  std::optional<View> view = viewOf(memref);
  if (!view || view->sizes.size() != indices.size())
    return std::nullopt;
  int64_t address = 0, dense = 1;
  for (size_t dim = indices.size(); dim-- > 0;) {
    std::optional<int64_t> index = evaluate(indices[dim]);
    std::optional<int64_t> size = evaluate(view->sizes[dim]);
    if (!index || !size)
      return std::nullopt;
    address += *index * evaluate(view->strides[dim]).value_or(dense);
    dense *= *size;
  }
  return address;
}

std::optional<int64_t> Evaluator::compute(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    for (auto [loop, position] : llvm::zip_equal(loops, place))
      if (scf::ForOp forOp = loop.loop;
          forOp && forOp.getInductionVar() == argument) {
        std::optional<int64_t> first = evaluate(forOp.getLowerBound()),
                               step = evaluate(forOp.getStep());
        if (first && step)
          return *first + position * *step;
      }
    return std::nullopt;
  }
  Operation *op = value.getDefiningOp();
  if (isa<gpu::BlockIdOp>(op))
    return thread / threads;
  if (isa<gpu::ThreadIdOp>(op))
    return thread % threads;
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::ExtUIOp, arith::TruncIOp>(op))
    return evaluate(op->getOperand(0));
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    std::optional<int64_t> condition = evaluate(select.getCondition());
    return condition ? evaluate(*condition != 0 ? select.getTrueValue()
                                                : select.getFalseValue())
                     : std::nullopt;
  }
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    std::optional<View> view = viewOf(dim.getSource());
    std::optional<int64_t> number = dim.getConstantIndex();
    return view && number && *number < int64_t(view->sizes.size())
               ? evaluate(view->sizes[*number])
               : std::nullopt;
  }
  if (auto choice = dyn_cast<scf::IfOp>(op); choice && choice.elseBlock()) {
    std::optional<int64_t> condition = evaluate(choice.getCondition());
    if (!condition)
      return std::nullopt;
    Block *taken = *condition != 0 ? choice.thenBlock() : choice.elseBlock();
    return evaluate(taken->getTerminator()->getOperand(
        cast<OpResult>(value).getResultNumber()));
  }
  // A loaded index counts as its place in the buffer.
  if (auto load = dyn_cast<memref::LoadOp>(op);
      load && load.getMemRefType().getElementType().isIntOrIndex()) {
    std::optional<int64_t> address =
        addressOf(load.getMemRef(), load.getIndices());
    if (address)
      loaded.push_back(*address);
    return address;
  }
  if (op->getNumOperands() != 2 || op->getNumResults() != 1)
    return std::nullopt;
  std::optional<int64_t> lhs = evaluate(op->getOperand(0)),
                         rhs = evaluate(op->getOperand(1));
  return lhs && rhs ? foldInteger(op, *lhs, *rhs) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// Adds an operation, unless it is on indices.
void FallbackReader::addOperation(Operation &op, AstStatement &statement) {
  if (llvm::any_of(op.getOperandTypes(), llvm::IsaPred<IndexType>))
    return;
  if (std::optional<Operations> operations = operationsOf(op))
    statement.add(*operations);
}

void FallbackReader::addRegisters(unsigned buffer, bool reads, bool writes,
                                  AstStatement &statement) {
  for (AstAccess &access : statement.accesses)
    if (access.buffer == buffer) {
      access.reads |= reads;
      access.writes |= writes;
      return;
    }
  statement.accesses.push_back({buffer, reads, writes});
}

unsigned FallbackReader::bufferOf(Value memref) {
  auto [it, isNew] = buffers.try_emplace(memref, 0);
  if (!isNew)
    return it->second;
  AstBuffer buffer;
  Type type = cast<MemRefType>(memref.getType()).getElementType();
  buffer.elementBytes =
      llvm::divideCeil(type.isIndex() ? 64 : type.getIntOrFloatBitWidth(), 8);
  buffer.elements = 1;
  if (std::optional<View> view = viewOf(memref)) {
    Evaluator evaluator(parameters, threads, open, Place(open.size(), 0));
    for (OpFoldResult size : view->sizes)
      buffer.elements *=
          static_cast<double>(evaluator.evaluate(size).value_or(1));
  }
  if (auto cast = memref.getDefiningOp<memref::ReinterpretCastOp>()) {
    if (auto argument = dyn_cast<BlockArgument>(cast.getSource()))
      buffer.name = names[argument.getArgNumber()];
  } else if (auto global = memref.getDefiningOp<memref::GetGlobalOp>()) {
    buffer.name = global.getName().str();
  }
  return it->second = ast.addBuffer(std::move(buffer));
}

/// Returns the number that occurs most often; the first one of several.
static int64_t modeOf(ArrayRef<int64_t> numbers) {
  int64_t best = numbers.front(), maxCount = 0;
  for (int64_t number : numbers)
    if (auto count = llvm::count(numbers, number); count > maxCount) {
      maxCount = count;
      best = number;
    }
  return best;
}

void FallbackReader::addAccess(Value memref, ValueRange indices, bool reads,
                               bool writes, AstStatement &statement) {
  AstAccess access{bufferOf(memref), reads, writes};
  int64_t line = kLineBytes / ast.buffers()[access.buffer].elementBytes;
  for (size_t moved = 0; moved < open.size(); ++moved) {
    if (open[moved].length < 2)
      continue;
    SmallVector<int64_t> distances;
    bool isKnown = true, isLoaded = false;
    for (int64_t number = 0; number < kPlaces; ++number) {
      Place place;
      for (const OpenLoop &loop : open)
        place.push_back(number * (loop.length - 1) / (kPlaces - 1));
      place[moved] = std::min(place[moved], open[moved].length - 2);
      Evaluator here(parameters, threads, open, place);
      std::optional<int64_t> from = here.addressOf(memref, indices);
      Place next = place;
      ++next[moved];
      Evaluator there(parameters, threads, open, next);
      std::optional<int64_t> to = there.addressOf(memref, indices);
      isLoaded |= here.loadedPlaces() != there.loadedPlaces();
      isKnown &= from && to;
      distances.push_back(isKnown ? *to - *from : line);
    }
    int64_t distance = isKnown ? modeOf(distances) : line;
    if (isKnown && isLoaded && std::abs(distance) < line)
      distance = line;
    access.isDataDependent |= isLoaded || !isKnown;
    if (distance != 0)
      access.apart.push_back({open[moved].number, distance});
  }
  // The same elements once more are those in a register.
  for (AstAccess &other : statement.accesses)
    if (other.buffer == access.buffer && other.apart == access.apart &&
        other.reads != access.reads) {
      other.reads |= access.reads;
      other.writes |= access.writes;
      return;
    }
  statement.accesses.push_back(std::move(access));
}

/// Adds a statement that computes values. It has the operations on which the
/// values depend and that no other statement has computed; if a block is given,
/// only operations in that block.
AstStatement &FallbackReader::addStatement(StringRef name, ValueRange results,
                                           Block *block) {
  // Buffers are added, which does not move the statement.
  AstStatement &statement = ast.addStatement(name.str());
  SmallVector<Value> worklist(results);
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *owner = value.getDefiningOp();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      owner = argument.getOwner()->getParentOp();
      auto loop = dyn_cast<scf::ForOp>(owner);
      if (loop && argument != loop.getInductionVar())
        addRegisters(registers.lookup(owner), true, false, statement);
      continue;
    }
    if (isa<scf::ForOp>(owner)) {
      addRegisters(registers.lookup(owner), true, false, statement);
      continue;
    }
    if (block && !block->findAncestorOpInBlock(*owner)) {
      // Values that lanes have combined are in the registers of their loop.
      worklist.append(owner->operand_begin(), owner->operand_end());
      continue;
    }
    if (!seen.insert(owner).second)
      continue;
    if (auto load = dyn_cast<memref::LoadOp>(owner)) {
      addAccess(load.getMemRef(), load.getIndices(), true, false, statement);
      worklist.append(load.getIndices().begin(), load.getIndices().end());
      continue;
    }
    if (auto choice = dyn_cast<scf::IfOp>(owner)) {
      worklist.push_back(choice.getCondition());
      for (Region &region : choice->getRegions())
        if (!region.empty())
          worklist.append(region.front().getTerminator()->operand_begin(),
                          region.front().getTerminator()->operand_end());
      continue;
    }
    // Operations outside of the guarded block only combine captured sizes.
    if (guardedBlock->findAncestorOpInBlock(*owner))
      addOperation(*owner, statement);
    worklist.append(owner->operand_begin(), owner->operand_end());
  }
  return statement;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

bool FallbackReader::isFirstLane(scf::IfOp op) const {
  auto compare = op.getCondition().getDefiningOp<arith::CmpIOp>();
  return lane && compare &&
         compare.getPredicate() == arith::CmpIPredicate::eq &&
         compare.getLhs() == lane && matchPattern(compare.getRhs(), m_Zero());
}

llvm::Error FallbackReader::readLoop(scf::ForOp loop) {
  std::optional<int64_t> low = evaluate(loop.getLowerBound()),
                         high = evaluate(loop.getUpperBound()),
                         step = evaluate(loop.getStep());
  if (!low || !high || !step || *step < 1)
    return fail("the length of a loop does not follow from the launch");
  int64_t length = llvm::divideCeil(std::max<int64_t>(*high - *low, 0), *step);
  bool carries = loop.getNumResults() > 0;
  auto outer = dyn_cast<scf::ForOp>(loop->getParentOp());
  bool goesOn =
      carries && outer && llvm::all_of(loop.getInitArgs(), [&](Value value) {
        auto argument = dyn_cast<BlockArgument>(value);
        return argument && argument.getOwner() == outer.getBody();
      });
  if (goesOn) {
    registers[loop] = registers.lookup(outer);
  } else if (carries) {
    AstBuffer buffer;
    buffer.name = "sums";
    buffer.memory = AstMemory::Registers;
    Type type = loop.getResult(0).getType();
    buffer.elementBytes =
        type.isIntOrFloat() ? llvm::divideCeil(type.getIntOrFloatBitWidth(), 8)
                            : 8;
    buffer.elements = static_cast<double>(loop.getNumResults());
    unsigned number = registers[loop] = ast.addBuffer(std::move(buffer));
    AstStatement &start = addStatement("initialize", loop.getInitArgs());
    addRegisters(number, false, true, start);
  }
  // The outermost loop of a warp's point is where lanes part.
  bool parts = lane && !outer;
  std::optional<Scope> lanes;
  if (parts)
    lanes.emplace(*this,
                  AstLoop{"lane", kLanes, LoopBinding::Thread, std::nullopt, 1,
                          /*isReduction=*/true},
                  1);
  {
    Scope scope(*this,
                {"loop", length, LoopBinding::Serial, std::nullopt, 1,
                 /*isReduction=*/carries},
                0, loop);
    if (llvm::Error error = readBlock(*loop.getBody()))
      return error;
    auto yielded = loop.getBody()->getTerminator()->getOperands();
    bool isInner = llvm::all_of(yielded, [](Value value) {
      return value.getDefiningOp<scf::ForOp>() != nullptr;
    });
    if (carries && !isInner) {
      AstStatement &add = addStatement("accumulate", yielded);
      addRegisters(registers[loop], true, true, add);
    }
  }
  if (!parts || !carries)
    return llvm::Error::success();
  // Up to what the first lane stores, lanes join what they have.
  AstStatement &join = ast.addStatement("join");
  for (Operation *op = loop->getNextNode(); op && !isa<scf::IfOp>(op);
       op = op->getNextNode()) {
    seen.insert(op);
    addOperation(*op, join);
  }
  addRegisters(registers[loop], true, true, join);
  return llvm::Error::success();
}

llvm::Error FallbackReader::readBlock(Block &block) {
  for (Operation &op : block) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (llvm::Error error = readLoop(loop))
        return error;
    } else if (auto choice = dyn_cast<scf::IfOp>(op)) {
      for (Region &region : choice->getRegions())
        if (!region.empty())
          if (llvm::Error error = readBlock(region.front()))
            return error;
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      auto choice = dyn_cast<scf::IfOp>(store->getParentOp());
      bool isOfFirst = choice && isFirstLane(choice);
      AstStatement &statement =
          addStatement("store", store.getValueToStore(),
                       isOfFirst ? store->getBlock() : nullptr);
      addAccess(store.getMemRef(), store.getIndices(), false, true, statement);
    } else if (op.getNumRegions() > 0 || isa<memref::AllocaOp>(op)) {
      return fail("unknown statement " + op.getName().getStringRef());
    }
  }
  return llvm::Error::success();
}

SmallVector<std::pair<AstLoop, int64_t>>
FallbackReader::pointLoops(Value point, int64_t points) {
  int64_t unit = lane ? kLanes : 1, all = points * unit;
  // Ends of rows, matrices and so on, in threads.
  SmallVector<int64_t> ends;
  int64_t end = unit;
  for (bool goesOn = true; goesOn;) {
    goesOn = false;
    for (Operation *user : point.getUsers())
      if (auto division = dyn_cast<arith::DivUIOp>(user);
          division && division.getLhs() == point)
        if (std::optional<int64_t> extent = evaluate(division.getRhs());
            extent && *extent > 0) {
          ends.push_back(end *= *extent);
          point = division;
          goesOn = true;
          break;
        }
  }
  bool isOneBlock = all <= threads;
  SmallVector<int64_t> kept = {unit};
  int64_t ofBlock = isOneBlock ? all : threads;
  for (int64_t some : ends)
    if (some > kept.back() && some < ofBlock && some % kept.back() == 0 &&
        ofBlock % some == 0)
      kept.push_back(some);
  size_t numThreadLoops = kept.size();
  kept.push_back(ofBlock);
  for (int64_t some : ends)
    if (some > kept.back() && some < all && some % kept.back() == 0 &&
        all % some == 0)
      kept.push_back(some);
  kept.push_back(isOneBlock ? all : llvm::alignTo(all, kept.back()));
  SmallVector<std::pair<AstLoop, int64_t>> loops;
  for (size_t number = kept.size() - 1; number-- > 0;) {
    bool isThread = number < numThreadLoops;
    loops.push_back(
        {{isThread ? "thread" : "block", kept[number + 1] / kept[number],
          isThread ? LoopBinding::Thread : LoopBinding::Grid},
         kept[number]});
  }
  return loops;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

llvm::Error FallbackReader::bindParameters() {
  auto entry = kernel->getAttrOfType<ukernel::EntryAttr>(
      ukernel::UKernelDialect::kEntryAttrName);
  auto funcs = kernel.getOps<gpu::GPUFuncOp>();
  if (!entry || !llvm::hasSingleElement(funcs))
    return fail("expected one function with parameters");
  gpu::GPUFuncOp func = *funcs.begin();
  threads = entry.getThreads();
  if (func.getNumArguments() != entry.getParameters().size())
    return fail("expected its function to have the parameters of its entry");
  size_t size = 0, stride = 0;
  for (auto [number, attribute] : llvm::enumerate(entry.getParameters())) {
    auto parameter = cast<DictionaryAttr>(attribute);
    Value argument = func.getArgument(number);
    StringRef kind = parameter.getAs<StringAttr>("kind").getValue();
    auto bind = [&parameters = parameters, argument](
                    ArrayRef<std::optional<int64_t>> numbers, size_t next) {
      if (next < numbers.size() && numbers[next])
        parameters[argument] = *numbers[next];
    };
    if (kind == stringifyParameterKind(ukernel::ParameterKind::Size))
      bind(launch.sizes, size++);
    else if (kind == stringifyParameterKind(ukernel::ParameterKind::Stride))
      bind(launch.strides, stride++);
    else if (auto name = parameter.getAs<StringAttr>("name"))
      names[number] = name.str();
  }
  return llvm::Error::success();
}

llvm::Expected<PartAst> FallbackReader::read() {
  if (llvm::Error error = bindParameters())
    return error;
  Block &body = (*kernel.getOps<gpu::GPUFuncOp>().begin()).getBody().front();
  scf::IfOp guarded;
  for (Operation &op : body) {
    if (auto choice = dyn_cast<scf::IfOp>(op))
      guarded = choice;
    if (auto rest = dyn_cast<arith::RemUIOp>(op);
        rest && rest.getLhs().getDefiningOp<gpu::ThreadIdOp>() &&
        getConstantIntValue(rest.getRhs()) == kLanes)
      lane = rest;
  }
  auto compare =
      guarded ? guarded.getCondition().getDefiningOp<arith::CmpIOp>() : nullptr;
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::ult)
    return fail("expected a thread for each point");
  std::optional<int64_t> points = evaluate(compare.getRhs());
  if (!points)
    return fail("the number of its points does not follow from the launch");
  if (*points == 0)
    return fail("nothing is launched");
  PartAst part;
  std::vector<std::unique_ptr<Scope>> scopes;
  double blocks = 1;
  for (const auto &[loop, step] : pointLoops(compare.getLhs(), *points)) {
    if (loop.binding == LoopBinding::Grid)
      blocks *= static_cast<double>(loop.length);
    scopes.push_back(std::make_unique<Scope>(*this, loop, step));
  }
  guardedBlock = guarded.thenBlock();
  llvm::Error error = readBlock(*guardedBlock);
  while (!scopes.empty())
    scopes.pop_back();
  if (error)
    return error;
  ast.joinStatements();
  part.blocks = blocks;
  part.ast = std::move(ast);
  return part;
}

llvm::Expected<PartAst> ftuner::describeFallback(gpu::GPUModuleOp kernel,
                                                 const LaunchNumbers &launch) {
  return FallbackReader(kernel, launch).read();
}
