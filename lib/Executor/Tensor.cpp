//===- Tensor.cpp - Tensors in host memory --------------------------------===//
#include "FTuner/Executor/Tensor.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Alignment.h"
#include "llvm/Support/MathExtras.h"
#include <cstdlib>
#include <cstring>

using namespace llvm;

namespace ftuner {

namespace {
struct TypeInfo {
  DataType type;
  StringLiteral name;
  int64_t bytes;
  double tolerance;
};
/// In the order of DataType.
constexpr TypeInfo kTypes[] = {
    {DataType::F16, "f16", 2, 2e-3}, {DataType::BF16, "bf16", 2, 2e-2},
    {DataType::F32, "f32", 4, 1e-5}, {DataType::F64, "f64", 8, 1e-12},
    {DataType::I1, "i1", 1, 0},      {DataType::I8, "i8", 1, 0},
    {DataType::I16, "i16", 2, 0},    {DataType::I32, "i32", 4, 0},
    {DataType::I64, "i64", 8, 0},
};

constexpr int64_t kAlignment = 256;
constexpr int64_t kGuardBytes = 1024;
/// Guards and fresh buffers: NaN in every float type.
constexpr unsigned char kPoison = 0xff;
} // namespace

static const TypeInfo &getInfo(DataType type) {
  return kTypes[static_cast<int>(type)];
}

StringRef getName(DataType type) { return getInfo(type).name; }
int64_t getByteSize(DataType type) { return getInfo(type).bytes; }
double getDefaultTolerance(DataType type) { return getInfo(type).tolerance; }
bool isFloat(DataType type) { return type <= DataType::F64; }

std::optional<DataType> parseDataType(StringRef name) {
  for (const TypeInfo &info : kTypes)
    if (info.name == name)
      return info.type;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// GuardedBuffer
//===----------------------------------------------------------------------===//

void GuardedBuffer::Free::operator()(char *memory) const { std::free(memory); }

Expected<GuardedBuffer> GuardedBuffer::create(int64_t bytes, int64_t offset) {
  GuardedBuffer buffer;
  buffer.bytes = bytes;
  buffer.memoryBytes =
      alignTo(bytes + 2 * kGuardBytes + offset, Align(kAlignment));
  buffer.memory.reset(
      static_cast<char *>(std::aligned_alloc(kAlignment, buffer.memoryBytes)));
  if (!buffer.memory)
    return createStringError(std::errc::not_enough_memory,
                             "cannot allocate %lld bytes",
                             static_cast<long long>(bytes));
  std::memset(buffer.memory.get(), kPoison, buffer.memoryBytes);
  buffer.base = buffer.memory.get() + kGuardBytes + offset;
  return buffer;
}

bool GuardedBuffer::isIntact() const {
  if (!memory)
    return true;
  auto isPoison = [](char byte) {
    return static_cast<unsigned char>(byte) == kPoison;
  };
  const char *end = memory.get() + memoryBytes;
  return std::all_of(memory.get(), base, isPoison) &&
         std::all_of(base + bytes, const_cast<char *>(end), isPoison);
}

//===----------------------------------------------------------------------===//
// Tensor
//===----------------------------------------------------------------------===//

Expected<Tensor> Tensor::create(DataType type, ArrayRef<int64_t> shape,
                                int64_t offset) {
  Tensor tensor;
  tensor.type = type;
  tensor.shape.assign(shape.begin(), shape.end());
  // A zero anywhere makes the tensor empty, whatever the other sizes are.
  int64_t bytes = getByteSize(type);
  bool overflow = false;
  for (int64_t size : shape) {
    if (size < 0)
      return createStringError(std::errc::invalid_argument,
                               "expected sizes of at least 0, but got %lld",
                               static_cast<long long>(size));
    overflow |= size != 0 && MulOverflow(bytes, size, bytes);
  }
  if (is_contained(shape, 0))
    bytes = 0;
  else if (overflow || bytes > (int64_t(1) << 46))
    return createStringError(std::errc::not_enough_memory,
                             "a tensor of type %s is too large",
                             tensor.getTypeString().c_str());
  tensor.numElements = bytes / getByteSize(type);
  Expected<GuardedBuffer> buffer = GuardedBuffer::create(bytes, offset);
  if (!buffer)
    return buffer.takeError();
  tensor.buffer = std::move(*buffer);
  return tensor;
}

std::string Tensor::getTypeString() const {
  std::string text;
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + getName(type).str();
}

template <typename T>
static T loadAs(const char *data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
static void storeAs(char *data, int64_t index, T value) {
  std::memcpy(data + index * sizeof(T), &value, sizeof(T));
}

static const fltSemantics &getSemantics(DataType type) {
  return type == DataType::F16 ? APFloat::IEEEhalf() : APFloat::BFloat();
}

double Tensor::getDouble(int64_t index) const {
  switch (type) {
  case DataType::F32:
    return loadAs<float>(data(), index);
  case DataType::F64:
    return loadAs<double>(data(), index);
  case DataType::BF16: {
    uint32_t bits = uint32_t(loadAs<uint16_t>(data(), index)) << 16;
    return bit_cast<float>(bits);
  }
  case DataType::F16:
    return APFloat(getSemantics(type),
                   APInt(16, loadAs<uint16_t>(data(), index)))
        .convertToDouble();
  default:
    return static_cast<double>(getInteger(index));
  }
}

void Tensor::setDouble(int64_t index, double value) {
  switch (type) {
  case DataType::F32:
    return storeAs<float>(data(), index, static_cast<float>(value));
  case DataType::F64:
    return storeAs<double>(data(), index, value);
  default: {
    APFloat rounded(value);
    bool losesInfo = false;
    rounded.convert(getSemantics(type), APFloat::rmNearestTiesToEven,
                    &losesInfo);
    storeAs<uint16_t>(
        data(), index,
        static_cast<uint16_t>(rounded.bitcastToAPInt().getZExtValue()));
  }
  }
}

int64_t Tensor::getInteger(int64_t index) const {
  switch (type) {
  case DataType::I1:
    return loadAs<uint8_t>(data(), index);
  case DataType::I8:
    return loadAs<int8_t>(data(), index);
  case DataType::I16:
    return loadAs<int16_t>(data(), index);
  case DataType::I32:
    return loadAs<int32_t>(data(), index);
  default:
    return loadAs<int64_t>(data(), index);
  }
}

void Tensor::setInteger(int64_t index, int64_t value) {
  switch (type) {
  case DataType::I1:
    return storeAs<uint8_t>(data(), index, value & 1);
  case DataType::I8:
    return storeAs<int8_t>(data(), index, static_cast<int8_t>(value));
  case DataType::I16:
    return storeAs<int16_t>(data(), index, static_cast<int16_t>(value));
  case DataType::I32:
    return storeAs<int32_t>(data(), index, static_cast<int32_t>(value));
  default:
    return storeAs<int64_t>(data(), index, value);
  }
}

} // namespace ftuner
