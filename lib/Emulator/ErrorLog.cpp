//===- ErrorLog.cpp - Errors of one launch --------------------------------===//
#include "ErrorLog.h"
#include <algorithm>

using namespace ftuner::emulator;

std::string ftuner::emulator::formatIndex(const uint32_t (&index)[3]) {
  return "(" + std::to_string(index[0]) + "," + std::to_string(index[1]) + "," +
         std::to_string(index[2]) + ")";
}

std::string ftuner::emulator::formatThread(const Fiber &anyOfBlock,
                                           uint32_t linearIndex) {
  const uint32_t (&dim)[3] = anyOfBlock.registers.blockDim;
  uint32_t index[3] = {linearIndex % dim[0], linearIndex / dim[0] % dim[1],
                       linearIndex / dim[0] / dim[1]};
  return formatIndex(index);
}

std::string ErrorLog::siteText(uint32_t site) const {
  std::string text = describeSite(site);
  return text.empty() ? text : " at " + text;
}

void ErrorLog::report(const Fiber &fiber, ErrorKind kind, uint32_t site,
                      const llvm::Twine &text) {
  ++errors;
  std::lock_guard<std::mutex> lock(mutex);
  if (messages.size() >= kMaxTexts ||
      !seen.insert({static_cast<unsigned>(kind), site}).second)
    return;
  messages.push_back("block " + formatIndex(fiber.registers.blockId) +
                     " thread " + formatIndex(fiber.registers.threadId) + ": " +
                     text.str() + siteText(site));
}
