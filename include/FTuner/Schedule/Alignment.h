//===- Alignment.h - Alignment of operands ----------------------*- C++ -*-===//
//
// Kernels may move some operands in vectors: inputs along whichever axis is
// contiguous, and what the epilogue reads and writes where it is contiguous
// along the same axis as the output. Vectors ask that pointers, rows and the
// contiguous extents of these operands are aligned. Pointers and strides are
// known on the host alone; what extents allow, a shape tells. Of a reduction of
// rows vectors move what lies along the axis of neighbouring lanes. Of a
// pointwise workload they move what lies in the order of the points, or along
// the last loop.
//
// Where rows of a fixed extent begin inside words, the epilogue goes by single
// elements, whatever factors do: an output of 50257 columns in f16 does not
// keep factors from being copied in vectors. Booleans that it reads and writes
// go by single elements at all sizes. So do factors that are read by windows
// with an odd number of neighbours in memory, such as images of 3 channels.
//
// Padded rows (`Operand::isPitched`) are aligned at all lengths. A vector
// that reaches beyond the end of such a row stays within its padding.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_ALIGNMENT_H
#define FTUNER_SCHEDULE_ALIGNMENT_H

#include "FTuner/Workload/Workload.h"

namespace ftuner {

/// Bytes of the widest access of one thread.
constexpr int64_t widestAccessBytes = 16;

/// Returns whether kernels of a contraction move the operands of the epilogue
/// in vectors: not if the extent along which such operands are contiguous is
/// fixed and their rows are not whole words of 4 bytes.
bool hasVectorEpilogue(const Workload &workload);
/// Returns whether kernels may move the operand in vectors.
bool isVectorAccess(const Workload &workload, const Operand &operand);

/// Bytes to which all rows of the shape are aligned in every operand that
/// vectors access, given aligned pointers: a power of two, at most
/// `widestAccessBytes`.
int64_t alignmentOf(const Workload &workload, llvm::ArrayRef<int64_t> shape);
/// The alignment that every size of the declared ranges has.
int64_t guaranteedAlignment(const Workload &workload);
/// The largest alignment that sizes of the ranges can have: the guaranteed one,
/// or else one that the dispatcher checks at run time.
int64_t reachableAlignment(const Workload &workload);
/// Returns the alignment of single elements: bytes of the largest type.
int64_t naturalAlignment(const Workload &workload);

} // namespace ftuner

#endif // FTUNER_SCHEDULE_ALIGNMENT_H
