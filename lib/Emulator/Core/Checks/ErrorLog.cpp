//===- ErrorLog.cpp - Errors of one launch --------------------------------===//
#include "Checks/ErrorLog.h"
#include "Checks/Text.h"

using namespace ftuner::emulator;

std::string ftuner::emulator::formatIndex(const uint32_t (&index)[3]) {
  return joinText("(", index[0], ",", index[1], ",", index[2], ")");
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

std::string ErrorLog::summary(const std::string &kernel) const {
  if (count() == 0)
    return "";
  std::string text =
      joinText("kernel '", kernel, "': ", count(),
               isFull() ? " errors or more" : " errors", " in emulation");
  for (const std::string &message : messages)
    text += "\n  " + message;
  return text;
}

void ErrorLog::report(const Fiber &fiber, ErrorKind kind, uint32_t site,
                      const std::string &text, const std::string &siteWords) {
  ++errors;
  std::lock_guard<std::mutex> lock(mutex);
  if (messages.size() >= kMaxTexts || !seen.insert({kind, site}).second)
    return;
  std::string where = siteText(site);
  messages.push_back(joinText("block ", formatIndex(fiber.registers.blockId),
                              " thread ", formatIndex(fiber.registers.threadId),
                              ": ", text, where.empty() ? "" : siteWords,
                              where));
}
