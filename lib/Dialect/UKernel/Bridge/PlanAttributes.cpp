//===- PlanAttributes.cpp - The core's data as attributes -----------------===//
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Schedule/CodegenModel.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

static Attribute fromJson(Builder &b, const llvm::json::Value &value) {
  switch (value.kind()) {
  case llvm::json::Value::Null:
    return b.getUnitAttr();
  case llvm::json::Value::Boolean:
    return b.getBoolAttr(*value.getAsBoolean());
  case llvm::json::Value::Number:
    if (std::optional<int64_t> integer = value.getAsInteger())
      return b.getI64IntegerAttr(*integer);
    return b.getF64FloatAttr(*value.getAsNumber());
  case llvm::json::Value::String:
    return b.getStringAttr(*value.getAsString());
  case llvm::json::Value::Array:
    return b.getArrayAttr(llvm::map_to_vector(
        *value.getAsArray(),
        [&](const llvm::json::Value &item) { return fromJson(b, item); }));
  case llvm::json::Value::Object:
    NamedAttrList fields;
    for (const auto &[key, field] : *value.getAsObject())
      fields.set(key.str(), fromJson(b, field));
    return fields.getDictionary(b.getContext());
  }
  llvm_unreachable("all kinds are handled");
}

static llvm::json::Value toJsonValue(Attribute attribute) {
  if (auto boolean = dyn_cast<BoolAttr>(attribute))
    return boolean.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return integer.getValue().getSExtValue();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto text = dyn_cast<StringAttr>(attribute))
    return text.getValue();
  if (auto array = dyn_cast<ArrayAttr>(attribute))
    return llvm::json::Array(llvm::map_range(array, toJsonValue));
  llvm::json::Object object;
  if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
    for (NamedAttribute field : dictionary)
      object[field.getName().getValue()] = toJsonValue(field.getValue());
    return object;
  }
  return nullptr;
}

ukernel::DeviceAttr ftuner::toAttribute(MLIRContext *context,
                                        const DeviceSpec &device) {
  Builder b(context);
  return ukernel::DeviceAttr::get(
      context, device.name, cast<DictionaryAttr>(fromJson(b, toJson(device))));
}

llvm::Expected<DeviceSpec> ftuner::toDeviceSpec(ukernel::DeviceAttr attribute) {
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}", toJsonValue(attribute.getFields()));
  return parseDeviceSpec(text, "#ukernel.device");
}

FailureOr<DeviceSpec> ftuner::deviceOf(ModuleOp module) {
  auto attribute = module->getAttrOfType<ukernel::DeviceAttr>(
      ukernel::UKernelDialect::kDeviceAttrName);
  if (!attribute)
    return module->emitOpError("expected a device: run "
                               "'ukernel-attach-device' first");
  llvm::Expected<DeviceSpec> device = toDeviceSpec(attribute);
  if (!device)
    return module->emitOpError() << llvm::toString(device.takeError());
  return std::move(*device);
}

//===----------------------------------------------------------------------===//
// Ranges, uKernels, families
//===----------------------------------------------------------------------===//

ukernel::RangeAttr ftuner::toAttribute(MLIRContext *context,
                                       const SizeRange &range,
                                       ArrayRef<SizeWeight> weights) {
  SmallVector<int64_t> sizes;
  SmallVector<double> values;
  for (const SizeWeight &entry : weights) {
    sizes.push_back(entry.size);
    values.push_back(entry.weight);
  }
  DenseF64ArrayAttr valuesAttr;
  if (!values.empty())
    valuesAttr = DenseF64ArrayAttr::get(context, values);
  return ukernel::RangeAttr::get(context, range.min,
                                 range.max.value_or(ShapedType::kDynamic),
                                 range.step, sizes, valuesAttr);
}

SizeRange ftuner::toSizeRange(ukernel::RangeAttr attribute) {
  SizeRange range{attribute.getMin(), std::nullopt, attribute.getStep()};
  if (!attribute.isOpen())
    range.max = attribute.getMax();
  return range;
}

std::vector<SizeWeight> ftuner::toWeights(ukernel::RangeAttr attribute) {
  std::vector<SizeWeight> weights;
  for (auto [size, weight] :
       llvm::zip_equal(attribute.getWeightSizes(), attribute.getWeightValues()))
    weights.push_back({size, weight});
  return weights;
}

/// Returns the axes of a set that has a bit for each axis; an empty list for
/// the default set of a family.
static SmallVector<int64_t> reduceList(uint32_t axes) {
  SmallVector<int64_t> list;
  if (axes == KernelFamily().reduceAxes)
    return list;
  for (unsigned axis = 0; axes >> axis; ++axis)
    if (axes >> axis & 1)
      list.push_back(axis);
  return list;
}

SmallVector<int64_t> ftuner::reduceAxesOf(const Workload &workload) {
  return reduceList(workload.reduceAxes().mask());
}

llvm::Expected<ukernel::FamilyAttr>
ftuner::toAttribute(MLIRContext *context, const KernelFamily &family) {
  auto *dialect = context->getOrLoadDialect<ukernel::UKernelDialect>();
  ukernel::ScheduleAttrInterface schedule =
      dialect->makeSchedule(family.schedule);
  if (!schedule)
    return llvm::createStringError(
        "expected a codegen path with an attribute, but got '" +
        family.path().name() + "'");
  auto tiles = llvm::map_to_vector(family.tiles, [&](const BlockTile &tile) {
    return DenseI64ArrayAttr::get(context, tile);
  });
  return ukernel::FamilyAttr::get(context, schedule, family.combineAxis, tiles,
                                  reduceList(family.reduceAxes),
                                  family.reduceSplit, family.balancedSms);
}

KernelFamily ftuner::toKernelFamily(ukernel::FamilyAttr attribute) {
  KernelFamily family;
  family.schedule = attribute.getSchedule().toSchedule();
  for (DenseI64ArrayAttr tile : attribute.getTiles())
    family.tiles.emplace_back(tile.asArrayRef().begin(),
                              tile.asArrayRef().end());
  family.combineAxis = attribute.getAxis();
  // A family without the default axes, which products reduce, only reduces the
  // axes that it names.
  bool hasDefaultAxes = family.reduceAxes >> attribute.getRank() == 0;
  if (!attribute.getReduce().empty() || !hasDefaultAxes)
    family.reduceAxes = 0;
  for (int64_t axis : attribute.getReduce())
    family.reduceAxes |= 1u << axis;
  family.reduceSplit = attribute.getSplit();
  family.balancedSms = attribute.getBalanced();
  return family;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Null where nothing was measured.
static DenseF64ArrayAttr toMeasured(MLIRContext *context,
                                    ArrayRef<double> microseconds) {
  if (llvm::all_of(microseconds, [](double time) { return time == 0; }))
    return {};
  return DenseF64ArrayAttr::get(context, microseconds);
}

static llvm::Expected<ukernel::RankingAttr>
toRankingAttribute(MLIRContext *context, const ShapeRanking &ranking) {
  SmallVector<ukernel::FamilyAttr> families;
  SmallVector<double> scores, microseconds, measured;
  for (const RankedProgram &program : ranking.programs) {
    llvm::Expected<ukernel::FamilyAttr> family =
        toAttribute(context, program.family);
    if (!family)
      return family.takeError();
    families.push_back(*family);
    scores.push_back(program.score);
    microseconds.push_back(program.microseconds);
    measured.push_back(program.measuredMicroseconds);
  }
  bool isPredicted =
      llvm::all_of(microseconds, [](double time) { return time > 0; });
  return ukernel::RankingAttr::get(
      context, ranking.shape, families, DenseF64ArrayAttr::get(context, scores),
      isPredicted ? DenseF64ArrayAttr::get(context, microseconds)
                  : DenseF64ArrayAttr(),
      toMeasured(context, measured));
}

static ShapeRanking toRanking(ukernel::RankingAttr attribute) {
  ShapeRanking ranking;
  ranking.shape.assign(attribute.getShape().begin(),
                       attribute.getShape().end());
  for (auto [familyAttr, score] : llvm::zip_equal(
           attribute.getFamilies(), attribute.getScores().asArrayRef())) {
    KernelFamily family = toKernelFamily(familyAttr);
    Partition partition = partitionShape(family, ranking.shape);
    ranking.programs.push_back({std::move(family), partition, score, 0});
  }
  if (DenseF64ArrayAttr times = attribute.getMicroseconds())
    for (auto [program, time] :
         llvm::zip_equal(ranking.programs, times.asArrayRef()))
      program.microseconds = time;
  if (DenseF64ArrayAttr times = attribute.getMeasured())
    for (auto [program, time] :
         llvm::zip_equal(ranking.programs, times.asArrayRef()))
      program.measuredMicroseconds = time;
  return ranking;
}

/// Null without predictions.
static ukernel::PredictionsAttr
toPredictionsAttribute(MLIRContext *context,
                       ArrayRef<ShapePrediction> predictions) {
  if (predictions.empty())
    return {};
  SmallVector<int64_t> sizes, families;
  SmallVector<double> microseconds, regrets, confidences, measured;
  for (const ShapePrediction &prediction : predictions) {
    llvm::append_range(sizes, prediction.shape);
    families.push_back(prediction.family);
    microseconds.push_back(prediction.microseconds);
    regrets.push_back(prediction.regret);
    confidences.push_back(prediction.confidence);
    measured.push_back(prediction.measuredMicroseconds);
  }
  auto toArray = [&](ArrayRef<double> values) {
    return DenseF64ArrayAttr::get(context, values);
  };
  return ukernel::PredictionsAttr::get(
      context, sizes, families, toArray(microseconds), toArray(regrets),
      toArray(confidences), toMeasured(context, measured));
}

static std::vector<ShapePrediction>
toPredictions(ukernel::PredictionsAttr attribute) {
  std::vector<ShapePrediction> predictions;
  for (size_t i = 0; i < attribute.getNumShapes(); ++i) {
    ShapePrediction &prediction = predictions.emplace_back();
    prediction.shape = Shape(attribute.getShape(i));
    prediction.family = attribute.getFamilies()[i];
    prediction.microseconds = attribute.getMicroseconds()[i];
    prediction.regret = attribute.getRegrets()[i];
    prediction.confidence = attribute.getConfidences()[i];
    if (DenseF64ArrayAttr measured = attribute.getMeasured())
      prediction.measuredMicroseconds = measured[i];
  }
  return predictions;
}

/// Names of the search that made the plan, by their keys in `search`.
static constexpr std::pair<llvm::StringLiteral, std::string Plan::*>
    searchNames[] = {{"strategy", &Plan::strategy},
                     {"cost_model", &Plan::costModel},
                     {"calibration", &Plan::calibration},
                     {"measurer", &Plan::measurer},
                     {"paths", &Plan::paths},
                     {"proven_paths", &Plan::provenPaths}};

/// Counts as integers, which print in full; other figures as floats.
static Attribute toStatistic(Builder &b, double value) {
  bool isCount = value == std::floor(value) && std::abs(value) < 1e15;
  if (isCount)
    return b.getI64IntegerAttr(static_cast<int64_t>(value));
  return b.getF64FloatAttr(value);
}

llvm::Expected<ukernel::PlanAttr> ftuner::toAttribute(MLIRContext *context,
                                                      const Plan &plan) {
  SmallVector<ukernel::FamilyAttr> families;
  for (const KernelFamily &family : plan.families) {
    llvm::Expected<ukernel::FamilyAttr> attribute =
        toAttribute(context, family);
    if (!attribute)
      return attribute.takeError();
    families.push_back(*attribute);
  }
  auto toChoices = [&](llvm::ArrayRef<DispatchEntry> entries) {
    return llvm::map_to_vector(entries, [&](const DispatchEntry &entry) {
      auto box = llvm::map_to_vector(entry.box, [&](const SizeRange &range) {
        return toAttribute(context, range);
      });
      return ukernel::ChoiceAttr::get(context, box, entry.family);
    });
  };
  Builder b(context);
  NamedAttrList search, statistics;
  for (auto [key, member] : searchNames)
    if (!(plan.*member).empty())
      search.set(key, b.getStringAttr(plan.*member));
  for (const SearchStatistic &statistic : plan.statistics)
    statistics.set(statistic.name, toStatistic(b, statistic.value));
  SmallVector<ukernel::RankingAttr> rankings;
  for (const ShapeRanking &ranking : plan.rankings) {
    llvm::Expected<ukernel::RankingAttr> attribute =
        toRankingAttribute(context, ranking);
    if (!attribute)
      return attribute.takeError();
    rankings.push_back(*attribute);
  }
  return ukernel::PlanAttr::get(
      context, families, toChoices(plan.entries), plan.generalFamily,
      toChoices(plan.unalignedEntries), plan.unalignedGeneralFamily,
      search.empty() ? DictionaryAttr() : search.getDictionary(context),
      statistics.empty() ? DictionaryAttr() : statistics.getDictionary(context),
      toPredictionsAttribute(context, plan.predictions), rankings);
}

static Plan decodePlan(ukernel::PlanAttr attribute) {
  Plan plan;
  for (ukernel::FamilyAttr family : attribute.getFamilies())
    plan.families.push_back(toKernelFamily(family));
  auto toEntries = [](ArrayRef<ukernel::ChoiceAttr> choices) {
    std::vector<DispatchEntry> entries;
    for (ukernel::ChoiceAttr choice : choices) {
      DispatchEntry &entry = entries.emplace_back();
      for (ukernel::RangeAttr range : choice.getBox())
        entry.box.push_back(toSizeRange(range));
      entry.family = choice.getFamily();
    }
    return entries;
  };
  plan.entries = toEntries(attribute.getChoices());
  plan.unalignedEntries = toEntries(attribute.getUnaligned());
  plan.generalFamily = attribute.getGeneral();
  plan.unalignedGeneralFamily = attribute.getUnalignedGeneral();
  if (DictionaryAttr statistics = attribute.getStatistics()) {
    for (NamedAttribute statistic : statistics) {
      std::string name = statistic.getName().str();
      if (auto value = dyn_cast<FloatAttr>(statistic.getValue()))
        plan.statistics.push_back({name, value.getValueAsDouble()});
      else if (auto count = dyn_cast<IntegerAttr>(statistic.getValue()))
        plan.statistics.push_back({name, static_cast<double>(count.getInt())});
    }
  }
  if (DictionaryAttr search = attribute.getSearch())
    for (auto [key, member] : searchNames)
      if (auto name = search.getAs<StringAttr>(key))
        plan.*member = name.str();
  if (ukernel::PredictionsAttr predictions = attribute.getPredictions())
    plan.predictions = toPredictions(predictions);
  for (ukernel::RankingAttr ranking : attribute.getRankings())
    plan.rankings.push_back(toRanking(ranking));
  return plan;
}

const Plan &ftuner::toPlan(ukernel::PlanAttr attribute) {
  return cast<ukernel::UKernelDialect>(attribute.getDialect())
      .decodeOnce<Plan>(attribute, [&] { return decodePlan(attribute); });
}

llvm::Expected<std::vector<KernelFamily>>
ftuner::rejectedFamilies(ukernel::PlanOp op) {
  std::vector<KernelFamily> rejected;
  Attribute attribute = op->getAttr(kRejectedAttrName);
  if (!attribute)
    return rejected;
  auto families = dyn_cast<ArrayAttr>(attribute);
  if (!families ||
      !llvm::all_of(families, llvm::IsaPred<ukernel::FamilyAttr>)) {
    std::string text;
    llvm::raw_string_ostream(text) << attribute;
    return llvm::createStringError(
        "'" + kRejectedAttrName +
        "' expected an array of #ukernel.family, but got " + text);
  }
  for (auto family : families.getAsRange<ukernel::FamilyAttr>())
    rejected.push_back(toKernelFamily(family));
  return rejected;
}
