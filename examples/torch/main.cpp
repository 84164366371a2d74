// Runs a package of AOTInductor with FTuner's functions at several sizes,
// without Python, and compares the results with those of PyTorch in float64.
// export_bert.py makes both files.
//
//   bert_example [--threads N] bert.pt2 samples.bin
//
// libftuner_torch.so has the operator that calls FTuner's functions; the
// program is linked with it.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

// An input, what PyTorch computes of it in float64, and the error that PyTorch
// makes in the model's own type.
struct Sample {
  at::Tensor input, expected;
  double eagerError;
};

template <typename T>
T read(std::ifstream &file) {
  T value{};
  file.read(reinterpret_cast<char *>(&value), sizeof(value));
  return value;
}

at::Tensor readTensor(std::ifstream &file, const std::vector<int64_t> &sizes,
                      at::ScalarType type) {
  at::Tensor tensor = at::empty(sizes, type);
  file.read(static_cast<char *>(tensor.data_ptr()), tensor.nbytes());
  return tensor;
}

std::vector<Sample> readSamples(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  int64_t count = read<int64_t>(file);
  bool isBf16 = read<int64_t>(file) != 0;
  std::vector<Sample> samples;
  for (int64_t i = 0; i < count && file; ++i) {
    std::vector<int64_t> sizes;
    for (int dimension = 0; dimension < 3; ++dimension)
      sizes.push_back(read<int64_t>(file));
    Sample sample;
    sample.eagerError = read<double>(file);
    sample.input = readTensor(file, sizes, at::kFloat);
    if (isBf16)
      sample.input = sample.input.to(at::kBFloat16);
    sample.expected = readTensor(file, sizes, at::kDouble);
    samples.push_back(sample);
  }
  if (!file || samples.empty())
    throw std::runtime_error("expected samples in '" + path + "'");
  return samples;
}

// Returns whether all results are as exact as PyTorch's own, within a factor
// of 2.
bool runAll(torch::inductor::AOTIModelPackageLoader &model,
            const std::vector<Sample> &samples) {
  bool isRight = true;
  for (const Sample &sample : samples) {
    at::Tensor result = model.run({sample.input}).at(0).to(at::kDouble);
    double error = result.sub(sample.expected).norm().item<double>() /
                   sample.expected.norm().item<double>();
    std::printf("%lld x %lld tokens: relative error %.1e, PyTorch's %.1e\n",
                static_cast<long long>(sample.input.size(0)),
                static_cast<long long>(sample.input.size(1)), error,
                sample.eagerError);
    isRight = isRight && error <= 2 * sample.eagerError + 1e-7;
  }
  return isRight;
}

} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> files;
  int threads = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--threads" && i + 1 < argc)
      threads = std::atoi(argv[++i]);
    else
      files.push_back(argv[i]);
  }
  if (files.size() != 2 || threads < 1) {
    std::fprintf(stderr, "usage: %s [--threads N] bert.pt2 samples.bin\n",
                 argv[0]);
    return EXIT_FAILURE;
  }
  try {
    std::vector<Sample> samples = readSamples(files[1]);
    torch::inductor::AOTIModelPackageLoader model(
        files[0], "model", /*run_single_threaded=*/false,
        /*num_runners=*/static_cast<size_t>(threads));
    std::vector<std::thread> workers;
    std::vector<std::string> errors(threads);
    for (int i = 0; i < threads; ++i)
      workers.emplace_back([&, i] {
        try {
          if (!runAll(model, samples))
            errors[i] = "the results are wrong";
        } catch (const std::exception &error) {
          errors[i] = error.what();
        }
      });
    for (std::thread &worker : workers)
      worker.join();
    for (const std::string &error : errors)
      if (!error.empty())
        throw std::runtime_error(error);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
