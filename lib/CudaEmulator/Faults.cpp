//===- Faults.cpp - Kernels that go wrong on purpose ----------------------===//
#include "Faults.h"

#include <cstdlib>
#include <sstream>
#include <utility>
#include <vector>

namespace ftuner {

namespace {
struct Faults {
  Faults();

  std::vector<std::pair<std::string, Fault>> ofNames;
  std::string error;
};
} // namespace

Faults::Faults() {
  const char *given = std::getenv("FTRT_EMULATED_FAULTS");
  std::istringstream items(given ? given : "");
  for (std::string item; std::getline(items, item, ',');) {
    size_t colon = item.find(':');
    std::string kind = item.substr(0, colon);
    Fault fault = kind == "lost"   ? Fault::Lost
                  : kind == "fail" ? Fault::Fail
                  : kind == "hang" ? Fault::Hang
                                   : Fault::None;
    if (fault == Fault::None || colon == std::string::npos ||
        colon + 1 == item.size()) {
      error = "FTRT_EMULATED_FAULTS: expected lost:NAME, fail:NAME or "
              "hang:NAME, with commas between, but got '" +
              item + "'";
      return;
    }
    ofNames.emplace_back(item.substr(colon + 1), fault);
  }
}

static const Faults &faults() {
  static const Faults all;
  return all;
}

Fault faultOf(const std::string &kernel) {
  for (const auto &[name, fault] : faults().ofNames)
    if (kernel.compare(0, name.size(), name) == 0)
      return fault;
  return Fault::None;
}

const std::string &errorOfFaults() { return faults().error; }

} // namespace ftuner
