//===- WgmmaAttr.cpp - The schedule of the wgmma path in IR ---------------===//
#include "WgmmaAttr.h"
#include "../WgmmaSpace.h"
#include "FTuner/Codegen/IR/ContractionSchedule.h"
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::ukernel;

// The dialect finds the attribute by its name (`addSchedule`).
[[maybe_unused]] static OptionalParseResult
generatedAttributeParser(AsmParser &parser, StringRef *mnemonic, Type type,
                         Attribute &value);
[[maybe_unused]] static LogicalResult
generatedAttributePrinter(Attribute def, AsmPrinter &printer);

/// What an attribute says beyond the defaults, in any order.
static ParseResult parseWgmmaOptions(AsmParser &parser, bool &swapOperands,
                                     int64_t &producers, bool &tensorMaps,
                                     SmallVector<int64_t> &cluster,
                                     int64_t &persistent, int64_t &turns) {
  swapOperands = tensorMaps = false;
  producers = persistent = 0;
  cluster = {1, 1};
  turns = 1;
  llvm::StringSet<> given;
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc place = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    if (!given.insert(name).second)
      return parser.emitError(place) << "'" << name << "' is given twice";
    auto read = [&](auto &value) {
      auto found = FieldParser<std::decay_t<decltype(value)>>::parse(parser);
      if (succeeded(found))
        value = *found;
      return success(succeeded(found));
    };
    if (name == "swap_operands") {
      if (failed(read(swapOperands)))
        return failure();
    } else if (name == "producers") {
      if (failed(read(producers)))
        return failure();
    } else if (name == "tensor_maps") {
      if (failed(read(tensorMaps)))
        return failure();
    } else if (name == "cluster") {
      cluster.clear();
      if (parser.parseCommaSeparatedList(
              AsmParser::Delimiter::Square, [&]() -> ParseResult {
                return parser.parseInteger(cluster.emplace_back());
              }))
        return failure();
    } else if (name == "persistent") {
      if (failed(read(persistent)))
        return failure();
    } else if (name == "turns") {
      if (failed(read(turns)))
        return failure();
    } else {
      return parser.emitError(place)
             << "expected 'swap_operands', 'producers', 'tensor_maps', "
                "'cluster', 'persistent' or 'turns', but got '"
             << name << "'";
    }
  }
  return success();
}

static void printWgmmaOptions(AsmPrinter &printer, bool swapOperands,
                              int64_t producers, bool tensorMaps,
                              ArrayRef<int64_t> cluster, int64_t persistent,
                              int64_t turns) {
  if (swapOperands)
    printer << ", swap_operands = true";
  if (producers != 0)
    printer << ", producers = " << producers;
  if (tensorMaps)
    printer << ", tensor_maps = true";
  if (llvm::any_of(cluster, [](int64_t blocks) { return blocks != 1; }))
    printer << ", cluster = [" << cluster << "]";
  if (persistent != 0)
    printer << ", persistent = " << persistent;
  if (turns != 1)
    printer << ", turns = " << turns;
}

#define GET_ATTRDEF_CLASSES
#include "WgmmaAttr.cpp.inc"

WgmmaAttr WgmmaAttr::get(MLIRContext *context, const Schedule &schedule) {
  WgmmaSchedule wgmma = WgmmaSchedule::of(schedule);
  return get(context, {wgmma.groupsM, wgmma.groupsN}, wgmma.stages,
             wgmma.accessBytes, wgmma.swapOperands, wgmma.producers,
             wgmma.tensorMaps, {wgmma.clusterM, wgmma.clusterN},
             wgmma.persistentBlocks, wgmma.turns);
}

Schedule WgmmaAttr::toSchedule() const {
  WgmmaSchedule wgmma;
  wgmma.groupsM = getGroups()[0];
  wgmma.groupsN = getGroups()[1];
  wgmma.stages = getStages();
  wgmma.accessBytes = getAccess();
  wgmma.swapOperands = getSwapOperands();
  wgmma.producers = getProducers();
  wgmma.tensorMaps = getTensorMaps();
  wgmma.clusterM = getCluster()[0];
  wgmma.clusterN = getCluster()[1];
  wgmma.persistentBlocks = getPersistent();
  wgmma.turns = getTurns();
  return wgmma.pack();
}

LogicalResult WgmmaAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> groups, int64_t stages,
                                int64_t access, bool swapOperands,
                                int64_t producers, bool tensorMaps,
                                ArrayRef<int64_t> cluster, int64_t persistent,
                                int64_t turns) {
  if (failed(verifyContractionSchedule(emitError, "group", groups, stages)))
    return failure();
  if (access != 1 && access != 4 && access != 8 && access != 16)
    return emitError() << "expected access of 1, 4, 8 or 16 bytes, but got "
                       << access;
  if (tensorMaps && access != kWgmmaProducedBytes)
    return emitError() << "expected access of " << kWgmmaProducedBytes
                       << " bytes with tensor maps, but got " << access;
  if (producers != 0 && producers != 1)
    return emitError() << "expected no producers or 1, but got " << producers;
  if (cluster.size() != 2 || cluster[0] < 1 || cluster[1] < 1 ||
      cluster[0] > kWgmmaMaxCluster || cluster[1] > kWgmmaMaxCluster ||
      cluster[0] * cluster[1] > kWgmmaMaxCluster)
    return emitError() << "expected a cluster of up to " << kWgmmaMaxCluster
                       << " blocks along m or n, but got [" << cluster << "]";
  if ((cluster[0] > 1 && !producers) ||
      (cluster[1] > 1 && !(producers && tensorMaps)))
    return emitError()
           << "expected a cluster of blocks with producers, along n "
              "with tensor maps, too";
  if (persistent < 0 || persistent % (cluster[0] * cluster[1]) != 0 ||
      (persistent > 0 && !(producers && tensorMaps)))
    return emitError() << "expected no persistent blocks, or whole clusters of "
                          "them with producers and tensor maps, but got "
                       << persistent;
  if (turns < 1 || turns > kWgmmaMaxTurns || (turns > 1 && persistent == 0))
    return emitError() << "expected 1 turn, or " << kWgmmaMaxTurns
                       << " of persistent blocks, but got " << turns;
  return success();
}

LogicalResult
WgmmaAttr::verifyTile(function_ref<InFlightDiagnostic()> emitError,
                      ArrayRef<int64_t> tile) const {
  if (failed(verifyContractionTile(emitError, tile)))
    return failure();
  WgmmaSchedule wgmma = WgmmaSchedule::of(toSchedule());
  for (unsigned factor : {0, 1}) {
    unsigned axis = tileAxes.space(factor);
    int64_t granule = wgmma.granuleAlong(factor) * wgmma.clusterAlong(factor),
            groups = wgmma.groupsAlong(factor);
    // Divided twice: the product may not fit.
    if (tile[axis] % granule != 0 || tile[axis] / granule % groups != 0)
      return emitError() << "expected the tile on axis " << axis
                         << " to be a multiple of " << granule
                         << " elements for each of " << groups
                         << " groups, but got " << tile[axis];
  }
  return success();
}

namespace ftuner {
void wgmmaRegister(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, UKernelDialect *dialect) {
    dialect->addSchedule<WgmmaAttr>();
  });
}
} // namespace ftuner
