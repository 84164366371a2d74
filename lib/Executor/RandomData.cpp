//===- RandomData.cpp - Seeded data for runs ------------------------------===//
#include "FTuner/Executor/Tensor.h"

#include <cmath>

namespace ftuner {

namespace {
/// SplitMix64 (Steele, Lea and Flood, 2014): a counter put through a mixer.
class Generator {
public:
  explicit Generator(uint64_t state) : state(state) {}

  uint64_t next() {
    state += 0x9e3779b97f4a7c15;
    uint64_t bits = state;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  }

  /// Uniform in (0, 1].
  double uniform() { return ((next() >> 11) + 1) * 0x1p-53; }

  /// Standard normal, by the method of Box and Muller.
  double normal() {
    if (hasSpare) {
      hasSpare = false;
      return spare;
    }
    constexpr double twoPi = 6.283185307179586;
    double radius = std::sqrt(-2 * std::log(uniform()));
    double angle = twoPi * uniform();
    spare = radius * std::sin(angle);
    hasSpare = true;
    return radius * std::cos(angle);
  }

private:
  uint64_t state;
  double spare = 0;
  bool hasSpare = false;
};
} // namespace

void fillRandom(Tensor &tensor, uint64_t seed, uint64_t stream) {
  Generator seeds(seed);
  Generator generator(seeds.next() ^ Generator(stream).next());
  for (int64_t i = 0, end = tensor.getNumElements(); i < end; ++i) {
    if (isFloat(tensor.getType()))
      tensor.setDouble(i, generator.normal());
    else if (tensor.getType() == DataType::I1)
      tensor.setInteger(i, generator.next() >> 63);
    else // -8 to 7: sums of products stay exact
      tensor.setInteger(i, static_cast<int64_t>(generator.next() >> 60) - 8);
  }
}

} // namespace ftuner
