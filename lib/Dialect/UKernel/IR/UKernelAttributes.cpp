//===- UKernelAttributes.cpp - Attributes ---------------------------------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Search/UKernel.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <array>
#include <charconv>
#include <cmath>

using namespace mlir;
using namespace ftuner::ukernel;

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// A list in brackets, possibly empty.
template <typename Attr>
static ParseResult parseList(AsmParser &parser, SmallVectorImpl<Attr> &list) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&]() -> ParseResult {
        return parser.parseCustomAttributeWithFallback(list.emplace_back());
      });
}

template <typename Attr>
static void printList(AsmPrinter &printer, ArrayRef<Attr> list) {
  printer << "[";
  llvm::interleaveComma(list, printer, [&](Attr attribute) {
    printer.printStrippedAttrOrType(attribute);
  });
  printer << "]";
}

/// Numbers in brackets. Upstream's array attribute prints six digits of each.
static ParseResult parseScores(AsmParser &parser, DenseF64ArrayAttr &scores) {
  SmallVector<double> values;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseFloat(values.emplace_back());
      }))
    return failure();
  scores = DenseF64ArrayAttr::get(parser.getContext(), values);
  return success();
}

static void printScores(AsmPrinter &printer, DenseF64ArrayAttr scores) {
  printer << "[";
  llvm::interleaveComma(scores.asArrayRef(), printer, [&](double score) {
    printer.printFloat(llvm::APFloat(score));
  });
  printer << "]";
}

/// The fewest digits that parse to the same number.
static void printFigure(AsmPrinter &printer, double figure) {
  std::array<char, 32> buffer;
  char *end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), figure).ptr;
  StringRef text(buffer.data(), end - buffer.data());
  auto [digits, exponent] = text.split('e');
  printer << digits;
  if (!digits.contains('.')) // Floats have a point.
    printer << ".0";
  if (!exponent.empty())
    printer << "e" << exponent;
}

/// Finite numbers in brackets, which print short.
static ParseResult parseFigures(AsmParser &parser, DenseF64ArrayAttr &figures) {
  return parseScores(parser, figures);
}

static void printFigures(AsmPrinter &printer, DenseF64ArrayAttr figures) {
  printer << "[";
  llvm::interleaveComma(figures.asArrayRef(), printer,
                        [&](double figure) { printFigure(printer, figure); });
  printer << "]";
}

/// `shapes = [[…], …], families = […]`.
static ParseResult parseShapes(AsmParser &parser,
                               SmallVectorImpl<int64_t> &sizes,
                               SmallVectorImpl<int64_t> &families) {
  SMLoc location;
  size_t numShapes = 0, rank = 0;
  auto parseShape = [&]() -> ParseResult {
    SMLoc shapeLocation = parser.getCurrentLocation();
    size_t before = sizes.size();
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
          return parser.parseInteger(sizes.emplace_back());
        }))
      return failure();
    size_t count = sizes.size() - before;
    if (numShapes++ == 0)
      rank = count;
    if (count == rank)
      return success();
    return parser.emitError(shapeLocation)
           << "expected shapes of " << rank << " sizes, but got one of "
           << count;
  };
  if (parser.parseKeyword("shapes") || parser.parseEqual() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseShape) ||
      parser.parseComma() || parser.parseKeyword("families") ||
      parser.parseEqual() || parser.getCurrentLocation(&location) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseInteger(families.emplace_back());
      }))
    return failure();
  if (numShapes == families.size())
    return success();
  return parser.emitError(location)
         << "expected one family for each of " << numShapes
         << " shapes, but got " << families.size();
}

static void printShapes(AsmPrinter &printer, ArrayRef<int64_t> sizes,
                        ArrayRef<int64_t> families) {
  size_t rank = sizes.size() / std::max<size_t>(families.size(), 1);
  printer << "shapes = [";
  for (size_t i = 0; i < families.size(); ++i) {
    printer << (i == 0 ? "[" : ", [");
    llvm::interleaveComma(sizes.slice(i * rank, rank), printer);
    printer << "]";
  }
  printer << "], families = [";
  llvm::interleaveComma(families, printer);
  printer << "]";
}

/// `unaligned = […],`, optional.
static ParseResult parseUnaligned(AsmParser &parser,
                                  SmallVectorImpl<ChoiceAttr> &choices) {
  if (failed(parser.parseOptionalKeyword("unaligned")))
    return success();
  return failure(parser.parseEqual() || parseList(parser, choices) ||
                 parser.parseComma());
}

static void printUnaligned(AsmPrinter &printer, ArrayRef<ChoiceAttr> choices) {
  if (choices.empty())
    return;
  printer << " unaligned = ";
  printList(printer, choices);
  printer << ",";
}

/// `, search = …`, `, statistics = …`, `, predictions = …` and
/// `, rankings = […]`, all optional, in this order.
static ParseResult parseFindings(AsmParser &parser, DictionaryAttr &search,
                                 DictionaryAttr &statistics,
                                 PredictionsAttr &predictions,
                                 SmallVectorImpl<RankingAttr> &rankings) {
  auto parseOptional = [&](StringRef keyword, auto &attribute) {
    return !attribute && succeeded(parser.parseOptionalKeyword(keyword));
  };
  while (succeeded(parser.parseOptionalComma())) {
    if (parseOptional("search", search)) {
      if (parser.parseEqual() || parser.parseAttribute(search))
        return failure();
    } else if (parseOptional("statistics", statistics)) {
      if (parser.parseEqual() || parser.parseAttribute(statistics))
        return failure();
    } else if (parseOptional("predictions", predictions)) {
      if (parser.parseEqual() ||
          parser.parseCustomAttributeWithFallback(predictions))
        return failure();
    } else {
      if (parser.parseKeyword("rankings") || parser.parseEqual())
        return failure();
      return parseList(parser, rankings);
    }
  }
  return success();
}

static void printFindings(AsmPrinter &printer, DictionaryAttr search,
                          DictionaryAttr statistics,
                          PredictionsAttr predictions,
                          ArrayRef<RankingAttr> rankings) {
  if (search)
    printer << ", search = " << search;
  if (statistics)
    printer << ", statistics = " << statistics;
  if (predictions) {
    printer << ", predictions = ";
    printer.printStrippedAttrOrType(predictions);
  }
  if (rankings.empty())
    return;
  printer << ", rankings = ";
  printList(printer, rankings);
}

#define GET_ATTRDEF_CLASSES
#include "FTuner/Dialect/UKernel/IR/UKernelAttributes.cpp.inc"

void UKernelDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "FTuner/Dialect/UKernel/IR/UKernelAttributes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// RangeAttr
//===----------------------------------------------------------------------===//

/// `?` or a number.
static ParseResult parseBound(AsmParser &parser, int64_t &bound) {
  if (succeeded(parser.parseOptionalQuestion())) {
    bound = ShapedType::kDynamic;
    return success();
  }
  return parser.parseInteger(bound);
}

static ParseResult parseWeights(AsmParser &parser,
                                SmallVectorImpl<int64_t> &sizes,
                                SmallVectorImpl<double> &weights) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&]() -> ParseResult {
        return failure(parser.parseInteger(sizes.emplace_back()) ||
                       parser.parseColon() ||
                       parser.parseFloat(weights.emplace_back()));
      });
}

Attribute RangeAttr::parse(AsmParser &parser, Type) {
  SMLoc location = parser.getCurrentLocation();
  int64_t min = 0, max = 0, step = 1;
  if (parser.parseLess() || parser.parseInteger(min) ||
      parser.parseKeyword("to") || parseBound(parser, max))
    return {};
  if (succeeded(parser.parseOptionalKeyword("step")) &&
      parser.parseInteger(step))
    return {};
  SmallVector<int64_t> sizes;
  SmallVector<double> values;
  DenseF64ArrayAttr weights;
  if (succeeded(parser.parseOptionalKeyword("weights"))) {
    if (parseWeights(parser, sizes, values))
      return {};
    weights = DenseF64ArrayAttr::get(parser.getContext(), values);
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<RangeAttr>(location, parser.getContext(), min, max,
                                      step, ArrayRef<int64_t>(sizes), weights);
}

void RangeAttr::print(AsmPrinter &printer) const {
  printer << "<" << getMin() << " to ";
  if (isOpen())
    printer << "?";
  else
    printer << getMax();
  if (getStep() != 1)
    printer << " step " << getStep();
  if (getWeights()) {
    printer << " weights [";
    llvm::interleaveComma(llvm::zip_equal(getWeightSizes(), getWeightValues()),
                          printer, [&](auto entry) {
                            printer << std::get<0>(entry) << " : ";
                            printer.printFloat(
                                llvm::APFloat(std::get<1>(entry)));
                          });
    printer << "]";
  }
  printer << ">";
}

LogicalResult RangeAttr::verify(EmitError emitError, int64_t min, int64_t max,
                                int64_t step, ArrayRef<int64_t> weightSizes,
                                DenseF64ArrayAttr weights) {
  if (min < 0)
    return emitError() << "expected min of at least 0, but got " << min;
  bool isOpen = max == ShapedType::kDynamic;
  if (!isOpen && max < min)
    return emitError() << "expected min <= max, but got " << min << " > "
                       << max;
  if (step < 1)
    return emitError() << "expected step of at least 1, but got " << step;
  size_t numWeights = weights ? weights.size() : 0;
  if (numWeights != weightSizes.size())
    return emitError() << "expected one weight for each of "
                       << weightSizes.size() << " sizes, but got "
                       << numWeights;
  if (!weights)
    return success();
  double sum = 0;
  for (auto [index, size] : llvm::enumerate(weightSizes)) {
    double weight = weights[index];
    if (!std::isfinite(weight) || weight < 0)
      return emitError() << "expected a finite weight of at least 0 for size "
                         << size << ", but got " << weight;
    if (size < min || (!isOpen && size > max) || (size - min) % step != 0)
      return emitError() << "expected weights for sizes of the range, but got "
                            "size "
                         << size;
    if (index > 0 && size <= weightSizes[index - 1])
      return emitError() << "expected ascending sizes, but got " << size
                         << " after " << weightSizes[index - 1];
    sum += weight;
  }
  if (!(sum > 0))
    return emitError() << "expected a positive weight";
  return success();
}

//===----------------------------------------------------------------------===//
// DeviceAttr, UKernelAttr, SimtAttr
//===----------------------------------------------------------------------===//

LogicalResult DeviceAttr::verify(EmitError emitError, StringRef name,
                                 DictionaryAttr fields) {
  if (name.empty())
    return emitError() << "expected a device with a name";
  auto field = fields.getAs<StringAttr>("name");
  if (!field || field.getValue() != name)
    return emitError() << "expected field 'name' to be \"" << name << "\"";
  return success();
}

LogicalResult UKernelAttr::verify(EmitError emitError, ArrayRef<int64_t> smem,
                                  ArrayRef<int64_t> reg, int64_t split) {
  if (smem.empty() || smem.size() != reg.size())
    return emitError() << "expected smem and reg of one rank, but got "
                       << smem.size() << " and " << reg.size() << " sizes";
  for (auto [axis, tile, registerTile] : llvm::enumerate(smem, reg)) {
    if (registerTile < 1)
      return emitError() << "expected reg of at least 1 on axis " << axis
                         << ", but got " << registerTile;
    if (tile < 1 || tile % registerTile != 0)
      return emitError() << "expected smem to be a positive multiple of reg "
                         << registerTile << " on axis " << axis << ", but got "
                         << tile;
  }
  if (split < 1)
    return emitError() << "expected split of at least 1, but got " << split;
  return success();
}

LogicalResult SimtAttr::verify(EmitError emitError, int64_t stages,
                               int64_t vector) {
  if (stages < 1)
    return emitError() << "expected at least 1 stage, but got " << stages;
  if (vector != 1 && vector != 2 && vector != 4)
    return emitError() << "expected vector of 1, 2 or 4, but got " << vector;
  return success();
}

//===----------------------------------------------------------------------===//
// FamilyAttr, ChoiceAttr, RankingAttr, PlanAttr, EntryAttr
//===----------------------------------------------------------------------===//

LogicalResult ftuner::ukernel::verifySharedLayout(EmitError emitError,
                                                  int64_t axis,
                                                  UKernelAttr first,
                                                  UKernelAttr second) {
  ArrayRef<int64_t> smem1 = first.getSmem(), smem2 = second.getSmem();
  ArrayRef<int64_t> reg1 = first.getReg(), reg2 = second.getReg();
  if (smem1.size() != smem2.size())
    return emitError() << "expected parts of " << smem1.size()
                       << " axes, but got one of " << smem2.size();
  for (int64_t other = 0, rank = smem1.size(); other < rank; ++other)
    if (other != axis &&
        (smem1[other] != smem2[other] || reg1[other] != reg2[other]))
      return emitError() << "expected parts with equal tiles on axis " << other;
  if (smem1[axis] / reg1[axis] != smem2[axis] / reg2[axis])
    return emitError() << "expected " << smem1[axis] / reg1[axis]
                       << " threads along axis " << axis
                       << " in both parts, but got "
                       << smem2[axis] / reg2[axis];
  if (first.getSplit() != second.getSplit())
    return emitError() << "expected split " << first.getSplit()
                       << " in both parts, but got " << second.getSplit();
  return success();
}

LogicalResult FamilyAttr::verify(EmitError emitError, Attribute path,
                                 int64_t axis, ArrayRef<UKernelAttr> parts,
                                 int64_t balanced) {
  if (parts.empty() || parts.size() > 2)
    return emitError() << "expected one or two parts, but got " << parts.size();
  size_t rank = parts.front().getSmem().size();
  if (axis < 0 || axis >= static_cast<int64_t>(rank))
    return emitError() << "expected axis below " << rank << ", but got "
                       << axis;
  if (balanced < 0 || balanced > ftuner::maxBalancedSms)
    return emitError() << "expected 1 to " << ftuner::maxBalancedSms
                       << " SMs to balance blocks over, but got " << balanced;
  if (parts.size() == 1) {
    if (balanced != 0)
      return emitError() << "expected two parts with balanced covers";
    return success();
  }
  if (balanced != 0 && parts[0].getSmem()[axis] >= parts[1].getSmem()[axis])
    return emitError() << "expected the lower part first with balanced covers, "
                          "but got heights "
                       << parts[0].getSmem()[axis] << " and "
                       << parts[1].getSmem()[axis];
  return verifySharedLayout(emitError, axis, parts[0], parts[1]);
}

LogicalResult ChoiceAttr::verify(EmitError emitError, ArrayRef<RangeAttr> box,
                                 int64_t family) {
  if (box.empty())
    return emitError() << "expected a box of at least one range";
  for (RangeAttr range : box)
    if (range.getStep() != 1 || range.getWeights())
      return emitError() << "expected ranges without step and weights, but got "
                         << range;
  for (RangeAttr range : box)
    if (range.getMin() > ftuner::maxExtent ||
        range.getMax() > ftuner::maxExtent)
      return emitError() << "expected ranges up to " << ftuner::maxExtent
                         << ", but got " << range;
  if (family < 0)
    return emitError() << "expected a family of at least 0, but got " << family;
  return success();
}

/// Predicted times are finite and above 0.
static LogicalResult verifyTimes(EmitError emitError,
                                 DenseF64ArrayAttr microseconds) {
  for (double time : microseconds.asArrayRef())
    if (!std::isfinite(time) || time <= 0)
      return emitError() << "expected finite microseconds above 0, but got "
                         << time;
  return success();
}

LogicalResult RankingAttr::verify(EmitError emitError, ArrayRef<int64_t> shape,
                                  ArrayRef<FamilyAttr> families,
                                  DenseF64ArrayAttr scores,
                                  DenseF64ArrayAttr microseconds) {
  if (families.empty() ||
      static_cast<int64_t>(families.size()) != scores.size())
    return emitError() << "expected families with one score for each, but got "
                       << families.size() << " families and " << scores.size()
                       << " scores";
  for (int64_t i = 0; i < scores.size(); ++i) {
    if (!std::isfinite(scores[i]))
      return emitError() << "expected finite scores, but got " << scores[i];
    if (i > 0 && scores[i] > scores[i - 1])
      return emitError() << "expected scores that do not ascend, but got "
                         << scores[i] << " after " << scores[i - 1];
  }
  if (microseconds) {
    if (microseconds.size() != scores.size())
      return emitError() << "expected microseconds for each of "
                         << families.size() << " families, but got "
                         << microseconds.size();
    if (failed(verifyTimes(emitError, microseconds)))
      return failure();
  }
  for (int64_t size : shape)
    if (size < 1)
      return emitError() << "expected sizes of at least 1, but got " << size;
  for (FamilyAttr family : families)
    if (size_t rank = family.getParts().front().getSmem().size();
        rank != shape.size())
      return emitError() << "expected families of " << shape.size()
                         << " axes, but got one of " << rank;
  return success();
}

LogicalResult PredictionsAttr::verify(EmitError emitError,
                                      ArrayRef<int64_t> sizes,
                                      ArrayRef<int64_t> families,
                                      DenseF64ArrayAttr microseconds,
                                      DenseF64ArrayAttr regrets,
                                      DenseF64ArrayAttr confidences) {
  size_t count = families.size();
  if (count == 0 || sizes.empty() || sizes.size() % count != 0)
    return emitError() << "expected shapes with a family for each, but got "
                       << sizes.size() << " sizes and " << count << " families";
  for (auto [name, figures] :
       {std::pair(StringRef("microseconds"), microseconds),
        std::pair(StringRef("regrets"), regrets),
        std::pair(StringRef("confidences"), confidences)})
    if (static_cast<size_t>(figures.size()) != count)
      return emitError() << "expected " << name << " for each of " << count
                         << " shapes, but got " << figures.size();
  for (int64_t size : sizes)
    if (size < 1)
      return emitError() << "expected sizes of at least 1, but got " << size;
  for (int64_t family : families)
    if (family < 0)
      return emitError() << "expected families of at least 0, but got "
                         << family;
  for (double regret : regrets.asArrayRef())
    if (!std::isfinite(regret) || regret < 0)
      return emitError() << "expected finite regrets of at least 0, but got "
                         << regret;
  for (double confidence : confidences.asArrayRef())
    if (!(confidence >= 0.5 && confidence <= 1))
      return emitError() << "expected confidences from 0.5 to 1, but got "
                         << confidence;
  return verifyTimes(emitError, microseconds);
}

LogicalResult PlanAttr::verify(EmitError emitError,
                               ArrayRef<FamilyAttr> families,
                               ArrayRef<ChoiceAttr> choices, int64_t general,
                               ArrayRef<ChoiceAttr> unaligned, int64_t fallback,
                               DictionaryAttr search, DictionaryAttr,
                               PredictionsAttr predictions,
                               ArrayRef<RankingAttr> rankings) {
  if (families.empty())
    return emitError() << "expected at least one family";
  size_t rank = families.front().getParts().front().getSmem().size();
  for (FamilyAttr family : families)
    if (size_t other = family.getParts().front().getSmem().size();
        other != rank)
      return emitError() << "expected families of " << rank
                         << " axes, but got one of " << other;
  auto verifyIndex = [&](StringRef what, int64_t index) -> LogicalResult {
    if (index >= 0 && index < static_cast<int64_t>(families.size()))
      return success();
    return emitError() << "expected " << what << " below " << families.size()
                       << ", but got " << index;
  };
  for (ChoiceAttr choice : llvm::concat<const ChoiceAttr>(choices, unaligned)) {
    if (failed(verifyIndex("the family of a choice", choice.getFamily())))
      return failure();
    if (choice.getBox().size() != rank)
      return emitError() << "expected boxes of " << rank
                         << " ranges, but got one of "
                         << choice.getBox().size();
  }
  for (RankingAttr ranking : rankings)
    if (ranking.getShape().size() != rank)
      return emitError() << "expected rankings of " << rank
                         << " sizes, but got one of "
                         << ranking.getShape().size();
  if (predictions) {
    if (predictions.getRank() != rank)
      return emitError() << "expected predictions of " << rank
                         << " sizes, but got some of " << predictions.getRank();
    for (int64_t family : predictions.getFamilies())
      if (failed(verifyIndex("the family of a prediction", family)))
        return failure();
  }
  if (search)
    for (NamedAttribute entry : search)
      if (!isa<StringAttr>(entry.getValue()))
        return emitError() << "expected strings in 'search', but got "
                           << entry.getName() << " = " << entry.getValue();
  if (failed(verifyIndex("general", general)) ||
      failed(verifyIndex("fallback", fallback)))
    return failure();
  // Wider accesses would leave operands that are not aligned for them.
  auto verifyScalar = [&](StringRef what, int64_t index) -> LogicalResult {
    auto simt = dyn_cast<SimtAttr>(families[index].getPath());
    if (!simt || simt.getVector() == 1)
      return success();
    return emitError() << "expected " << what
                       << " of vectors of 1 element, but family " << index
                       << " has vectors of " << simt.getVector();
  };
  for (ChoiceAttr choice : unaligned)
    if (failed(verifyScalar("unaligned families", choice.getFamily())))
      return failure();
  return verifyScalar("a fallback", fallback);
}

LogicalResult EntryAttr::verify(EmitError emitError, int64_t threads,
                                int64_t sharedMemoryBytes, int64_t alignment,
                                ArrayAttr parameters, FamilyAttr, StringAttr) {
  if (threads < 1 || threads > 1024)
    return emitError() << "expected 1 to 1024 threads, but got " << threads;
  if (sharedMemoryBytes < 0)
    return emitError() << "expected shared memory of at least 0 bytes, but got "
                       << sharedMemoryBytes;
  if (alignment < 1 || !llvm::isPowerOf2_64(alignment))
    return emitError() << "expected alignment to be a power of two, but got "
                       << alignment;
  for (Attribute parameter : parameters) {
    auto dictionary = dyn_cast<DictionaryAttr>(parameter);
    auto kind = dictionary ? dictionary.getAs<StringAttr>("kind") : nullptr;
    if (!kind ||
        !llvm::is_contained({"pointer", "size", "stride", "part", "scalar"},
                            kind.getValue()))
      return emitError() << "expected parameters of kind pointer, size, "
                            "stride, part or scalar, but got "
                         << parameter;
  }
  return success();
}
