//===- FamilyJson.cpp - Families and covers as JSON -----------------------===//
#include "FamilyJson.h"

using namespace ftuner;

void ftuner::writeSizes(llvm::json::OStream &json, llvm::StringRef name,
                        llvm::ArrayRef<int64_t> sizes) {
  json.attributeArray(name, [&] {
    for (int64_t size : sizes)
      json.value(size);
  });
}

void ftuner::writeUKernel(llvm::json::OStream &json, const UKernel &ukernel) {
  writeSizes(json, "shared_memory_tile", ukernel.smemTile);
  writeSizes(json, "register_tile", ukernel.regTile);
  json.attribute("reduce_split", ukernel.reduceSplit);
}

void ftuner::writeFamily(llvm::json::OStream &json,
                         const KernelFamily &family) {
  json.attribute("path", family.path);
  json.attribute("stages", family.stages);
  json.attribute("vector_width", family.vectorWidth);
  json.attribute("axis", family.combineAxis);
  if (family.balancedSms)
    json.attribute("balanced_sms", family.balancedSms);
  json.attributeArray("ukernels", [&] {
    for (const UKernel &part : family.parts)
      json.object([&] { writeUKernel(json, part); });
  });
}

void ftuner::writeCover(llvm::json::OStream &json, const KernelFamily &family,
                        const Cover &cover) {
  json.attributeArray("blocks", [&] {
    json.value(cover.first);
    if (family.parts.size() > 1)
      json.value(cover.second);
  });
  json.attribute("padded", cover.padded);
}
