//===- FamilyJson.h - Families and partitions as JSON ---------------*- C++
//-*-===//
//
// Fields that the manifest, explanations and logs of measurements share
// (docs/manifest.md).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_FAMILYJSON_H
#define FTUNER_SCHEDULE_FAMILYJSON_H

#include "FTuner/Schedule/KernelFamily.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace ftuner {

/// A field with an array of sizes.
void writeSizes(llvm::json::OStream &json, llvm::StringRef name,
                llvm::ArrayRef<int64_t> sizes);

/// `block_tile`, `register_tile` and `workers`, as fields of the open object.
void writeUKernel(llvm::json::OStream &json, const UKernel &ukernel);

/// `path`, `schedule` (the fields that the path names), `axis`, `reduce_split`,
/// `reduce_axes` where axis 2 is not the only one, `balanced_sms` where
/// partitions are balanced, and `ukernels`, as fields of the open object.
void writeFamily(llvm::json::OStream &json, const KernelFamily &family);

/// Reads what `writeFamily` writes; other fields of the object are left aside.
/// What follows from block tiles and schedule (register tiles, workers) is not
/// read. An error names the field.
llvm::Expected<KernelFamily> parseFamily(const llvm::json::Object &json);

/// `blocks`, one count for each uKernel of the family, and `padded`.
void writePartition(llvm::json::OStream &json, const KernelFamily &family,
                    const Partition &partition);

} // namespace ftuner

#endif // FTUNER_SCHEDULE_FAMILYJSON_H
