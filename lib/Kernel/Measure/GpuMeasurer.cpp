//===- GpuMeasurer.cpp - Times of kernels on a GPU ------------------------===//
#include "FTuner/Kernel/Measure/GpuMeasurer.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Kernel/TensorMapEncoding.h"
#include "FTuner/RuntimeClient/DeviceBuffer.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Schedule/Grid.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <random>

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

namespace {
/// Where the elements of an operand lie.
struct Layout {
  SmallVector<int64_t> strides;
  int64_t numElements = 1;
};
} // namespace

/// Static sizes and strides are those of the type, others those of a contiguous
/// buffer that holds what the shape accesses, padding included.
static Layout layoutOf(MemRefType type, const Operand &operand,
                       ArrayRef<int64_t> shape) {
  auto [typeStrides, offset] = type.getStridesAndOffset();
  Layout layout;
  layout.strides.resize(type.getRank());
  int64_t next = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    int64_t size = type.getDimSize(dim);
    if (type.isDynamicDim(dim)) {
      AffineForm position = operand.position(dim);
      size = position.constant + 1;
      for (const AffineForm::Term &term : position.terms)
        if (term.coefficient > 0)
          size += term.coefficient * (shape[term.axis] - 1);
    }
    int64_t stride = typeStrides[dim];
    layout.strides[dim] = ShapedType::isDynamic(stride) ? next : stride;
    next = layout.strides[dim] * std::max<int64_t>(size, 1);
    if (operand.isPitched && dim == type.getRank() - 1) {
      next = rowPitch(size * operand.elementBytes, /*isPadded=*/true) /
             operand.elementBytes;
      size = next;
    }
    layout.numElements += layout.strides[dim] * std::max<int64_t>(size - 1, 0);
  }
  return layout;
}

/// Numbers between -1 and 1, as time may depend on data and NaN is none;
/// integers are small, as they may be indices.
static std::vector<char> randomData(Type type, int64_t numElements) {
  // A prime, so that rows differ.
  constexpr int64_t kPeriod = 8191;
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  int64_t bytes = elementBytesOf(type);
  std::vector<char> pattern(std::min(kPeriod, numElements) * bytes);
  for (int64_t i = 0; i * bytes < static_cast<int64_t>(pattern.size()); ++i) {
    uint64_t bits = random() & 1;
    if (auto floatType = dyn_cast<FloatType>(type)) {
      llvm::APFloat value(uniform(random));
      bool losesInfo = false;
      value.convert(floatType.getFloatSemantics(),
                    llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      bits = value.bitcastToAPInt().getZExtValue();
    }
    std::memcpy(pattern.data() + i * bytes, &bits, bytes);
  }
  std::vector<char> data(numElements * bytes);
  for (size_t begin = 0; begin < data.size(); begin += pattern.size())
    std::copy_n(pattern.data(), std::min(pattern.size(), data.size() - begin),
                data.data() + begin);
  return data;
}

//===----------------------------------------------------------------------===//
// A launch
//===----------------------------------------------------------------------===//

namespace {
/// The parameters of a kernel with their memory.
class LaunchValues {
public:
  llvm::Error build(const Gpu &gpu, const OperatorRegistry::Entry &entry,
                    const KernelSignature &signature,
                    const MeasurementRequest &request);
  void **pointers() { return addresses.data(); }
  int64_t blocks = 0;

private:
  llvm::Error addOperands(const Gpu &gpu, const OperatorRegistry::Entry &entry,
                          ArrayRef<int64_t> shape);
  llvm::Error addTensorMap(const Gpu &gpu, const KernelParameter &parameter);
  void add(uint64_t value) {
    values.push_back(value);
    addresses.push_back(&values.back());
  }

  SmallVector<Layout> layouts;
  std::vector<DeviceBuffer> buffers;
  SmallVector<void *> data;
  /// Sizes and strides by their names.
  llvm::StringMap<int64_t> extents;
  std::deque<std::array<char, kTensorMapBytes>> maps;
  /// Little endian, so that shorter values lie at the address.
  std::deque<uint64_t> values;
  SmallVector<void *> addresses;
};
} // namespace

llvm::Error LaunchValues::addOperands(const Gpu &gpu,
                                      const OperatorRegistry::Entry &entry,
                                      ArrayRef<int64_t> shape) {
  for (auto [number, operand] : llvm::enumerate(entry.op->getOperands())) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    layouts.emplace_back();
    data.push_back(nullptr);
    if (!type)
      continue;
    layouts.back() = layoutOf(type, entry.workload.operands[number], shape);
    std::vector<char> content =
        randomData(type.getElementType(), layouts.back().numElements);
    auto buffer = DeviceBuffer::create(gpu.library, gpu.stream, content.size(),
                                       /*offset=*/0, content.data());
    if (!buffer)
      return buffer.takeError();
    // The buffer keeps a copy until it has gone to the device.
    data.back() = buffer->data();
    buffers.push_back(std::move(*buffer));
  }
  return gpu.synchronize();
}

/// Has the runtime encode it; sizes and strides come before.
llvm::Error LaunchValues::addTensorMap(const Gpu &gpu,
                                       const KernelParameter &parameter) {
  auto numbers = [&](ArrayAttr attributes) {
    return llvm::map_to_vector(attributes, [&](Attribute extent) {
      if (auto name = dyn_cast<StringAttr>(extent))
        return extents.lookup(name);
      return cast<IntegerAttr>(extent).getInt();
    });
  };
  TensorMapEncoding encoding = encodingOf(parameter.map, parameter.type);
  ftrt_tensor_map kind = {};
  kind.kernel = "";
  kind.parameter = parameter.name.c_str();
  kind.element_type = encoding.elementType;
  kind.rank = encoding.rank;
  auto sizes = numbers(parameter.map.getSizes());
  llvm::copy(encoding.box, kind.box);
  for (auto [number, below] : llvm::enumerate(parameter.map.getFitBelow()))
    kind.box[number] = fittedBox(kind.box[number], below, sizes[number]);
  kind.swizzle = encoding.swizzle;
  kind.l2_promotion = encoding.l2Promotion;
  maps.emplace_back();
  addresses.push_back(maps.back().data());
  return gpu.library.check(gpu.library.tensor_map_encode(
      &kind, data[*parameter.operand], sizes.data(),
      numbers(parameter.map.getStrides()).data(), gpu.stream,
      maps.back().data()));
}

llvm::Error LaunchValues::build(const Gpu &gpu,
                                const OperatorRegistry::Entry &entry,
                                const KernelSignature &signature,
                                const MeasurementRequest &request) {
  if (llvm::Error error = addOperands(gpu, entry, request.shape))
    return error;
  NumberArithmetic math;
  GridLaunch<NumberArithmetic> launch =
      launchOf(math, gridOf(request.family), ArrayRef<int64_t>(request.shape));
  blocks = launch.blocks;
  bool fits = blocks <= INT32_MAX;
  auto addI32 = [&](const KernelParameter &parameter, int64_t value) {
    fits &= llvm::isInt<32>(value);
    extents[parameter.name] = value;
    add(static_cast<uint64_t>(value));
  };
  for (const KernelParameter &parameter : signature.getParameters())
    switch (parameter.kind) {
    case ukernel::ParameterKind::Pointer:
      add(reinterpret_cast<uint64_t>(data[*parameter.operand]));
      break;
    case ukernel::ParameterKind::Size:
      addI32(parameter, request.shape[parameter.index]);
      break;
    case ukernel::ParameterKind::Stride:
      addI32(parameter, layouts[*parameter.operand].strides[parameter.index]);
      break;
    case ukernel::ParameterKind::Scalar:
    case ukernel::ParameterKind::ScalarLow:
    case ukernel::ParameterKind::ScalarHigh:
      add(0);
      break;
    case ukernel::ParameterKind::TensorMap:
      if (llvm::Error error = addTensorMap(gpu, parameter))
        return error;
      break;
    case ukernel::ParameterKind::Part:
      addI32(parameter, launch.firstBlocks);
      break;
    }
  if (!fits)
    return llvm::createStringError(
        "expected sizes and strides of 32 bits and at most 2147483647 blocks");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

llvm::Expected<double> GpuMeasurer::time(const OperatorRegistry::Entry &entry,
                                         const Kernel &kernel,
                                         const MeasurementRequest &request) {
  LaunchValues values;
  if (llvm::Error error =
          values.build(gpu, entry, kernel.compiled.signature, request))
    return error;
  ftrt_kernel *function = kernel.loaded->find(kernel.compiled.ptx.entry);
  ukernel::EntryAttr launch = kernel.compiled.entry;
  auto start = GpuEvent::create(gpu.library);
  if (!start)
    return start.takeError();
  auto end = GpuEvent::create(gpu.library);
  if (!end)
    return end.takeError();
  // Microseconds of so many launches.
  auto sample = [&](int64_t launches) -> llvm::Expected<double> {
    if (llvm::Error error = start->record(gpu.stream))
      return error;
    for (int64_t i = 0; i < launches; ++i)
      if (llvm::Error error = gpu.library.check(gpu.library.launch(
              function, static_cast<uint32_t>(values.blocks),
              static_cast<uint32_t>(launch.getThreads()),
              static_cast<uint32_t>(launch.getSharedMemoryBytes()), gpu.stream,
              values.pointers())))
        return error;
    if (llvm::Error error = end->record(gpu.stream))
      return error;
    return end->since(*start);
  };
  llvm::Expected<double> warm = sample(std::max<int64_t>(options.warmUps, 1));
  if (!warm)
    return warm.takeError();
  llvm::Expected<double> once = sample(1);
  if (!once)
    return once.takeError();
  int64_t launches = std::clamp<int64_t>(
      std::llround(options.sampleMicroseconds / std::max(*once, 1.0)), 1,
      std::max<int64_t>(options.mostLaunches, 1));
  std::vector<double> samples;
  for (int64_t i = 0; i < std::max<int64_t>(options.repetitions, 1); ++i) {
    llvm::Expected<double> taken = sample(launches);
    if (!taken)
      return taken.takeError();
    samples.push_back(*taken / static_cast<double>(launches));
  }
  auto middle = samples.begin() + samples.size() / 2;
  std::nth_element(samples.begin(), middle, samples.end());
  if (!(*middle > 0))
    return llvm::createStringError("the GPU tells no time between events");
  return *middle;
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

void GpuMeasurer::loadKernels(llvm::ArrayRef<MeasurementRequest> requests) {
  auto [jobs, places] = kernels.add(requests);
  std::vector<llvm::Expected<CompiledKernel>> compiled = compiler.compile(jobs);
  for (auto [place, kernel] : llvm::zip_equal(places, compiled)) {
    if (!kernel) {
      place->failure = llvm::toString(kernel.takeError());
      continue;
    }
    place->compiled = std::move(*kernel);
    PtxImages ptx;
    ptx.own.target = place->compiled.target;
    ptx.own.kernels = {place->compiled.ptx};
    ptx.own.text = place->compiled.ptx.text;
    place->loaded = std::make_unique<PtxKernels>(gpu.library, std::move(ptx),
                                                 place->compiled.ptx.entry);
    if (llvm::Error error = place->loaded->prepare(gpu.stream))
      place->failure = llvm::toString(std::move(error));
  }
}

/// Why the kernel cannot run for the shape; empty if it can. A kernel on
/// operands that it may not use would fail, and the GPU's context with it.
static std::string objectionTo(const OperatorRegistry::Entry &entry,
                               const MeasurementRequest &request) {
  if (std::string text = entry.objectionTo(request.shape); !text.empty())
    return text;
  const KernelFamily &family = request.family;
  // Later launches merge the slices, by other kernels.
  if (family.reduceSplit != 1)
    return "expected a family without split-K, but got a split-K factor of " +
           std::to_string(family.reduceSplit);
  if (!family.takesAnyAlignment() &&
      alignmentOf(entry.workload, request.shape) < family.alignment())
    return "expected operands aligned to " +
           std::to_string(family.alignment()) + " bytes, but those of " +
           tileText(request.shape) + " are not";
  return {};
}

std::vector<llvm::Expected<Measurement>>
GpuMeasurer::measure(llvm::ArrayRef<MeasurementRequest> requests) {
  loadKernels(requests);
  std::vector<llvm::Expected<Measurement>> answers;
  for (const MeasurementRequest &request : requests) {
    auto known = kernels.find(request);
    if (!known) {
      answers.push_back(known.takeError());
      continue;
    }
    auto [entry, kernel] = *known;
    if (!kernel->failure.empty()) {
      answers.push_back(llvm::createStringError(kernel->failure));
      continue;
    }
    if (std::string reason = objectionTo(*entry, request); !reason.empty()) {
      answers.push_back(llvm::make_error<NotMeasured>(reason));
      continue;
    }
    llvm::Expected<double> microseconds = time(*entry, *kernel, request);
    if (!microseconds) {
      answers.push_back(microseconds.takeError());
      continue;
    }
    Measurement measurement;
    measurement.microseconds = *microseconds;
    answers.push_back(measurement);
  }
  return answers;
}
