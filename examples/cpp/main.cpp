// Runs the dense layer of ../dense.mlir, gelu(x · w + bias), for several
// numbers of tokens, in the emulator or with --cuda on a GPU, and compares it
// with a loop in double precision.
//
//   dense_example [--cuda] [T...]      T from 0 to 65536
#include <dense.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int64_t kInputs = 768, kOutputs = 2304;
constexpr int64_t kMaxTokens = 1 << 16; // The loop in double precision is slow.
constexpr double kTolerance = 1e-5;

// A failure of the runtime: ftrt_last_error() has the words.
bool succeeded(int32_t code, const char *what) {
  if (code == FTRT_SUCCESS)
    return true;
  std::fprintf(stderr, "error: %s: %s\n", what, ftrt_last_error());
  return false;
}

// Memory of the device of a stream.
class Buffer {
public:
  Buffer(void *stream) : stream(stream) {}
  ~Buffer() { ftrt_memory_free(memory, stream); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  bool allocate(uint64_t bytes) {
    return succeeded(ftrt_memory_allocate(bytes, stream, &memory),
                     "allocating memory");
  }
  bool upload(const std::vector<float> &values) {
    uint64_t bytes = values.size() * sizeof(float);
    return allocate(bytes) &&
           succeeded(ftrt_memory_copy(memory, values.data(), bytes, stream),
                     "copying to the device");
  }
  bool download(std::vector<float> &values) {
    return succeeded(ftrt_memory_copy(values.data(), memory,
                                      values.size() * sizeof(float), stream),
                     "copying from the device");
  }
  void *get() const { return memory; }

private:
  void *stream;
  void *memory = nullptr;
};

// The layer's constants, on the host and on the device.
struct Layer {
  Layer(void *stream) : weights(stream), bias(stream) {}
  std::vector<float> hostWeights, hostBias;
  Buffer weights, bias;
};

std::vector<float> randomValues(int64_t count, std::mt19937 &random) {
  std::normal_distribution<float> distribution;
  std::vector<float> values(count);
  for (float &value : values)
    value = distribution(random);
  return values;
}

std::vector<double> computeReference(const std::vector<float> &x,
                                     const Layer &layer, int64_t tokens) {
  std::vector<double> result(tokens * kOutputs);
  for (int64_t t = 0; t < tokens; ++t) {
    double *row = &result[t * kOutputs];
    for (int64_t k = 0; k < kInputs; ++k)
      for (int64_t n = 0; n < kOutputs; ++n)
        row[n] +=
            double(x[t * kInputs + k]) * layer.hostWeights[k * kOutputs + n];
    for (int64_t n = 0; n < kOutputs; ++n) {
      double sum = row[n] + layer.hostBias[n];
      row[n] = sum * 0.5 * (1 + std::erf(sum * std::sqrt(0.5)));
    }
  }
  return result;
}

// Runs the layer on `tokens` rows and returns whether it is right.
bool run(const Layer &layer, int64_t tokens, void *stream,
         std::mt19937 &random) {
  int64_t sizes[2];
  if (!succeeded(dense_result_sizes(tokens, sizes), "sizes of the result"))
    return false;
  int64_t workspaceBytes = dense_workspace_size(tokens);
  if (workspaceBytes < 0)
    return succeeded(FTRT_ERROR_HOST, "size of the workspace");

  std::vector<float> x = randomValues(tokens * kInputs, random);
  // What is not written stays not a number.
  std::vector<float> y(sizes[0] * sizes[1],
                       std::numeric_limits<float>::quiet_NaN());
  Buffer input(stream), output(stream), workspace(stream);
  if (!input.upload(x) || !output.upload(y) ||
      !workspace.allocate(workspaceBytes) ||
      !succeeded(dense(input.get(), layer.weights.get(), layer.bias.get(),
                       output.get(), tokens, workspace.get(), stream),
                 "running the layer") ||
      !output.download(y) ||
      !succeeded(ftrt_stream_synchronize(stream), "waiting for the device"))
    return false;

  std::vector<double> expected = computeReference(x, layer, tokens);
  double difference = 0, norm = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    difference += (y[i] - expected[i]) * (y[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  double error = norm > 0 ? std::sqrt(difference / norm) : 0;
  std::printf("T = %3lld: relative error %.2e\n",
              static_cast<long long>(tokens), error);
  if (error < kTolerance)
    return true;
  std::fprintf(stderr, "error: expected a relative error below %g\n",
               kTolerance);
  return false;
}

bool runAll(void *stream, const std::vector<int64_t> &sizes) {
  std::mt19937 random(std::random_device{}());
  Layer layer(stream);
  layer.hostWeights = randomValues(kInputs * kOutputs, random);
  layer.hostBias = randomValues(kOutputs, random);
  if (!layer.weights.upload(layer.hostWeights) ||
      !layer.bias.upload(layer.hostBias) ||
      // Otherwise the first launch loads the kernels.
      !succeeded(ftrt_prepare(&dense_module, stream), "loading the kernels"))
    return false;
  for (int64_t tokens : sizes)
    if (!run(layer, tokens, stream, random))
      return false;
  return succeeded(ftrt_release(&dense_module), "unloading the kernels");
}

} // namespace

int main(int argc, char **argv) {
  bool onGpu = false;
  std::vector<int64_t> sizes;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    char *end = nullptr;
    long long size = std::strtoll(argv[i], &end, 10);
    if (argument == "--cuda") {
      onGpu = true;
    } else if (!argument.empty() && *end == '\0' && size >= 0 &&
               size <= kMaxTokens) {
      sizes.push_back(size);
    } else {
      std::fprintf(stderr, "usage: %s [--cuda] [T...], T from 0 to %lld\n",
                   argv[0], static_cast<long long>(kMaxTokens));
      return EXIT_FAILURE;
    }
  }
  if (sizes.empty())
    sizes = {1, 7, 53, 128, 200};
  if (!onGpu)
    return runAll(ftrt_emulator_stream(), sizes) ? EXIT_SUCCESS : EXIT_FAILURE;

  void *stream = nullptr;
  if (!succeeded(ftrt_device_select(0), "selecting a GPU") ||
      !succeeded(ftrt_stream_create(&stream), "creating a stream"))
    return EXIT_FAILURE;
  bool isRight = runAll(stream, sizes);
  return succeeded(ftrt_stream_destroy(stream), "destroying the stream") &&
                 isRight
             ? EXIT_SUCCESS
             : EXIT_FAILURE;
}
