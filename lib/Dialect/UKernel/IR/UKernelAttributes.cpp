//===- UKernelAttributes.cpp - Attributes ---------------------------------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Schedule/CodegenModel.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <array>
#include <charconv>
#include <cmath>

using namespace mlir;
using namespace ftuner;
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

/// `, microseconds = […]` and `, measured = […]`, where they are.
static ParseResult parseTimes(AsmParser &parser,
                              DenseF64ArrayAttr &microseconds,
                              DenseF64ArrayAttr &measured) {
  while (succeeded(parser.parseOptionalComma())) {
    bool isPredicted = succeeded(parser.parseOptionalKeyword("microseconds"));
    if (!isPredicted && parser.parseKeyword("measured"))
      return failure();
    DenseF64ArrayAttr &times = isPredicted ? microseconds : measured;
    if (times)
      return parser.emitError(parser.getCurrentLocation(),
                              "expected times of one kind once");
    if (parser.parseEqual() || parseFigures(parser, times))
      return failure();
  }
  return success();
}

static void printTimes(AsmPrinter &printer, DenseF64ArrayAttr microseconds,
                       DenseF64ArrayAttr measured) {
  if (microseconds) {
    printer << ", microseconds = ";
    printFigures(printer, microseconds);
  }
  if (measured) {
    printer << ", measured = ";
    printFigures(printer, measured);
  }
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

static ParseResult parseSchedule(AsmParser &parser,
                                 ScheduleAttrInterface &schedule) {
  SMLoc location = parser.getCurrentLocation();
  Attribute attribute;
  if (parser.parseAttribute(attribute))
    return failure();
  schedule = dyn_cast<ScheduleAttrInterface>(attribute);
  if (schedule)
    return success();
  return parser.emitError(location)
         << "expected the schedule of a codegen path, but got " << attribute;
}

static void printSchedule(AsmPrinter &printer, ScheduleAttrInterface schedule) {
  printer << schedule;
}

/// "[[112, 64, 16], [128, 64, 16]]".
static ParseResult parseTiles(AsmParser &parser,
                              SmallVector<DenseI64ArrayAttr> &tiles) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&]() -> ParseResult {
        auto tile = dyn_cast_or_null<DenseI64ArrayAttr>(
            DenseI64ArrayAttr::parse(parser, {}));
        if (!tile)
          return failure();
        tiles.push_back(tile);
        return success();
      });
}

static void printTiles(AsmPrinter &printer, ArrayRef<DenseI64ArrayAttr> tiles) {
  printer << "[";
  llvm::interleaveComma(tiles, printer,
                        [&](DenseI64ArrayAttr tile) { tile.print(printer); });
  printer << "]";
}

/// ", reduce = [1], split = 4, balanced = 132": each of them may be absent.
static ParseResult parsePartition(AsmParser &parser,
                                  SmallVector<int64_t> &reduce, int64_t &split,
                                  int64_t &balanced) {
  split = 1;
  balanced = 0;
  if (failed(parser.parseOptionalComma()))
    return success();
  llvm::SMLoc location = parser.getCurrentLocation();
  StringRef keyword;
  do {
    location = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword) || parser.parseEqual())
      return failure();
    if (keyword == "reduce") {
      if (parser.parseCommaSeparatedList(
              AsmParser::Delimiter::Square, [&]() -> ParseResult {
                return parser.parseInteger(reduce.emplace_back());
              }))
        return failure();
    } else if (keyword == "split" || keyword == "balanced") {
      if (parser.parseInteger(keyword == "split" ? split : balanced))
        return failure();
    } else {
      return parser.emitError(location)
             << "expected 'reduce', 'split' or 'balanced', but got '" << keyword
             << "'";
    }
  } while (succeeded(parser.parseOptionalComma()));
  return success();
}

static void printPartition(AsmPrinter &printer, ArrayRef<int64_t> reduce,
                           int64_t split, int64_t balanced) {
  if (!reduce.empty()) {
    printer << ", reduce = [";
    llvm::interleaveComma(reduce, printer);
    printer << "]";
  }
  if (split != 1)
    printer << ", split = " << split;
  if (balanced != 0)
    printer << ", balanced = " << balanced;
}

#define GET_ATTRDEF_CLASSES
#include "FTuner/Dialect/UKernel/IR/UKernelAttributes.cpp.inc"

#include "FTuner/Dialect/UKernel/IR/ScheduleAttrInterface.cpp.inc"

#include "FTuner/Dialect/UKernel/IR/UKernelEnums.cpp.inc"

Attribute UKernelDialect::parseAttribute(DialectAsmParser &parser,
                                         Type type) const {
  llvm::SMLoc location = parser.getCurrentLocation();
  StringRef mnemonic;
  Attribute attribute;
  OptionalParseResult own =
      generatedAttributeParser(parser, &mnemonic, type, attribute);
  if (own.has_value())
    return attribute;
  if (auto path = schedulePaths.find(mnemonic); path != schedulePaths.end())
    return path->second.parse(parser);
  parser.emitError(location) << "unknown attribute `" << mnemonic
                             << "` in dialect `" << getNamespace() << "`";
  return {};
}

void UKernelDialect::printAttribute(Attribute attribute,
                                    DialectAsmPrinter &printer) const {
  if (succeeded(generatedAttributePrinter(attribute, printer)))
    return;
  auto schedule = cast<ScheduleAttrInterface>(attribute);
  printer << schedule.toSchedule().path().name();
  schedule.printFields(printer);
}

ScheduleAttrInterface
UKernelDialect::makeSchedule(const Schedule &schedule) const {
  auto path = schedulePaths.find(schedule.path().name());
  if (path == schedulePaths.end())
    return {};
  return cast<ScheduleAttrInterface>(path->second.make(getContext(), schedule));
}

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
// DeviceAttr
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
