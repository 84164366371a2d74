//===- Text.cpp - Messages from strings and numbers -----------------------===//
#include "Checks/Text.h"
#include <cinttypes>
#include <cstdio>

std::string ftuner::emulator::formatAddress(const void *address) {
  char text[2 + 16 + 1];
  std::snprintf(text, sizeof(text), "0x%" PRIXPTR,
                reinterpret_cast<uintptr_t>(address));
  return text;
}
