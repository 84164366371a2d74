//===- FamilyJson.cpp - Families and partitions as JSON -------------------===//
#include "FTuner/Schedule/FamilyJson.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <optional>

using namespace ftuner;

void ftuner::writeSizes(llvm::json::OStream &json, llvm::StringRef name,
                        llvm::ArrayRef<int64_t> sizes) {
  json.attributeArray(name, [&] {
    for (int64_t size : sizes)
      json.value(size);
  });
}

void ftuner::writeUKernel(llvm::json::OStream &json, const UKernel &ukernel) {
  writeSizes(json, "block_tile", ukernel.blockTile);
  writeSizes(json, "register_tile", ukernel.registerTile);
  json.attribute("workers", ukernel.workers);
}

void ftuner::writeFamily(llvm::json::OStream &json,
                         const KernelFamily &family) {
  const CodegenModel &path = family.path();
  json.attribute("path", path.name());
  json.attributeObject("schedule", [&] {
    for (auto [field, value] :
         llvm::zip(path.scheduleFields(), family.schedule.fields()))
      json.attribute(field.name, value);
  });
  json.attribute("axis", family.combineAxis);
  json.attribute("reduce_split", family.reduceSplit);
  if (family.reduceAxes != KernelFamily().reduceAxes)
    json.attributeArray("reduce_axes", [&] {
      for (unsigned index = 0; index < 32; ++index)
        if (family.isReduceAxis(index))
          json.value(index);
    });
  if (family.balancedSms)
    json.attribute("balanced_sms", family.balancedSms);
  json.attributeArray("ukernels", [&] {
    for (unsigned part = 0; part < family.tiles.size(); ++part)
      json.object([&] { writeUKernel(json, family.ukernel(part)); });
  });
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static llvm::Error invalid(llvm::StringRef field, const llvm::Twine &expected) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "field '" + field + "': expected " + expected);
}

/// A whole number of at least `least`; `otherwise` where the field is absent.
static llvm::Expected<int64_t>
readNumber(const llvm::json::Object &json, llvm::StringRef field, int64_t least,
           std::optional<int64_t> otherwise = std::nullopt) {
  const llvm::json::Value *value = json.get(field);
  if (!value && otherwise)
    return *otherwise;
  std::optional<int64_t> number;
  if (value)
    number = value->getAsInteger();
  if (!number || *number < least)
    return invalid(field, "a whole number of at least " + llvm::Twine(least));
  return *number;
}

static llvm::Expected<Schedule> readSchedule(const llvm::json::Object &json) {
  std::optional<llvm::StringRef> name = json.getString("path");
  const CodegenModel *path = name ? findCodegenModel(*name) : nullptr;
  if (!path)
    return invalid("path", "one of " + codegenModelNames());
  const llvm::json::Object *fields = json.getObject("schedule");
  if (!fields)
    return invalid("schedule", "an object");
  llvm::SmallVector<int64_t> values;
  for (const ScheduleField &field : path->scheduleFields()) {
    llvm::Expected<int64_t> value = readNumber(*fields, field.name, 0);
    if (!value)
      return value.takeError();
    values.push_back(*value);
  }
  if (llvm::Error error = checkFields(*path, values))
    return error;
  return Schedule(*path, values);
}

static llvm::Error readTiles(const llvm::json::Object &json,
                             KernelFamily &family) {
  const llvm::json::Array *ukernels = json.getArray("ukernels");
  if (!ukernels || ukernels->empty() || ukernels->size() > 2)
    return invalid("ukernels", "one or two objects");
  for (const llvm::json::Value &item : *ukernels) {
    const llvm::json::Object *ukernel = item.getAsObject();
    const llvm::json::Array *sizes =
        ukernel ? ukernel->getArray("block_tile") : nullptr;
    if (!sizes || sizes->empty())
      return invalid("block_tile", "an array of sizes");
    BlockTile &tile = family.tiles.emplace_back();
    for (const llvm::json::Value &size : *sizes) {
      std::optional<int64_t> number = size.getAsInteger();
      if (!number || *number < 1)
        return invalid("block_tile", "sizes of at least 1");
      tile.push_back(*number);
    }
  }
  return llvm::Error::success();
}

llvm::Expected<KernelFamily>
ftuner::parseFamily(const llvm::json::Object &json) {
  KernelFamily family;
  llvm::Expected<Schedule> schedule = readSchedule(json);
  if (!schedule)
    return schedule.takeError();
  family.schedule = *schedule;
  if (llvm::Error error = readTiles(json, family))
    return error;
  llvm::Expected<int64_t> axis = readNumber(json, "axis", 0);
  if (!axis)
    return axis.takeError();
  llvm::Expected<int64_t> split = readNumber(json, "reduce_split", 1, 1);
  if (!split)
    return split.takeError();
  llvm::Expected<int64_t> sms = readNumber(json, "balanced_sms", 0, 0);
  if (!sms)
    return sms.takeError();
  family.combineAxis = static_cast<unsigned>(*axis);
  family.reduceSplit = *split;
  family.balancedSms = *sms;
  if (const llvm::json::Array *axes = json.getArray("reduce_axes")) {
    family.reduceAxes = 0;
    for (const llvm::json::Value &item : *axes) {
      std::optional<int64_t> number = item.getAsInteger();
      if (!number || *number < 0 || *number >= 32)
        return invalid("reduce_axes", "axes below 32");
      family.reduceAxes |= 1u << *number;
    }
  }
  return family;
}

void ftuner::writePartition(llvm::json::OStream &json,
                            const KernelFamily &family,
                            const Partition &partition) {
  json.attributeArray("blocks", [&] {
    json.value(partition.first);
    if (family.tiles.size() > 1)
      json.value(partition.second);
  });
  json.attribute("padded", partition.padded);
}
