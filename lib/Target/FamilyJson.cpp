//===- FamilyJson.cpp - Families and covers as JSON -----------------------===//
#include "FamilyJson.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "llvm/ADT/STLExtras.h"

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
    for (auto [name, value] :
         llvm::zip(path.scheduleFields(), family.schedule.fields()))
      json.attribute(name, value);
  });
  json.attribute("axis", family.combineAxis);
  json.attribute("reduce_split", family.reduceSplit);
  if (family.balancedSms)
    json.attribute("balanced_sms", family.balancedSms);
  json.attributeArray("ukernels", [&] {
    for (unsigned part = 0; part < family.tiles.size(); ++part)
      json.object([&] { writeUKernel(json, family.ukernel(part)); });
  });
}

void ftuner::writeCover(llvm::json::OStream &json, const KernelFamily &family,
                        const Cover &cover) {
  json.attributeArray("blocks", [&] {
    json.value(cover.first);
    if (family.tiles.size() > 1)
      json.value(cover.second);
  });
  json.attribute("padded", cover.padded);
}
