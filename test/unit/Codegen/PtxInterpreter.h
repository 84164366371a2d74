//===- PtxInterpreter.h - Runs PTX for its addresses ------------*- C++ -*-===//
//
// Runs the integers of a kernel's PTX, one warp at a time, and notes what the
// warp executes: instructions, and the addresses of its lanes. Floats are not
// computed and memory is not kept, so a kernel whose addresses or conditions
// come from memory cannot be run.
//
// Lanes whose branches part run in the reverse postorder of the blocks and meet
// again at the first block that all reach, as on a GPU.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TEST_UNIT_CODEGEN_PTXINTERPRETER_H
#define FTUNER_TEST_UNIT_CODEGEN_PTXINTERPRETER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ftuner {

/// An instruction that a warp executed.
struct PtxEvent {
  /// e.g. "ld.shared.v4.b32".
  std::string opcode;
  /// Bytes that a lane moves; 0 of what does not access memory.
  int64_t bytes = 0;
  /// Byte address of each lane, −1 for those that do not take part; of
  /// asynchronous copies the target, of ldmatrix the row that the lane gives.
  std::array<int64_t, 32> address;
  /// Of asynchronous copies.
  std::array<int64_t, 32> source;
  /// Of asynchronous copies: how many bytes they read is computed.
  bool isSized = false;
};

/// What a warp executes between two barriers.
using PtxPhase = std::vector<PtxEvent>;

/// A block of a launch.
struct PtxBlockOfLaunch {
  unsigned number, numBlocks;
  /// The kernel's, in order.
  llvm::ArrayRef<uint64_t> parameters;
};

class PtxInterpreter {
public:
  /// Parses the one entry of a PTX module.
  static llvm::Expected<PtxInterpreter> parse(llvm::StringRef text);
  PtxInterpreter(PtxInterpreter &&);
  ~PtxInterpreter();

  /// Address of the first byte of shared memory.
  static constexpr int64_t sharedBase = int64_t(1) << 32;

  /// Runs a warp from the start until it has met `barriers` barriers, or to its
  /// end, and returns the phases.
  llvm::Expected<std::vector<PtxPhase>>
  run(const PtxBlockOfLaunch &block, unsigned warp, unsigned barriers) const;

private:
  struct Kernel;
  explicit PtxInterpreter(std::unique_ptr<Kernel> kernel);
  std::unique_ptr<Kernel> kernel;
};

} // namespace ftuner

#endif // FTUNER_TEST_UNIT_CODEGEN_PTXINTERPRETER_H
