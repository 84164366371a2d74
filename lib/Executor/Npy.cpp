//===- Npy.cpp - NumPy's array files --------------------------------------===//
//
// A file is "\x93NUMPY", the version as two bytes, the length of the header
// (two bytes little endian in version 1, four since version 2), the header (a
// Python dictionary with 'descr', 'fortran_order' and 'shape') and the raw
// data.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Executor/Npy.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>

using namespace llvm;

namespace ftuner {

namespace {
constexpr StringLiteral kMagic = "\x93NUMPY";

struct NpyHeader {
  StringRef type; ///< Without the byte order, e.g. "f4".
  char byteOrder = '|';
  bool fortranOrder = false;
  SmallVector<int64_t> shape;
  StringRef data;
};
} // namespace

static Error npyError(StringRef path, const Twine &what) {
  return createStringError(inconvertibleErrorCode(), "'" + path + "': " + what);
}

/// The text after `'key':` in a Python dictionary.
static StringRef findEntry(StringRef dictionary, StringRef key) {
  for (char quote : {'\'', '"'}) {
    std::string quoted = quote + key.str() + quote;
    size_t position = dictionary.find(quoted);
    if (position == StringRef::npos)
      continue;
    StringRef rest = dictionary.substr(position + quoted.size()).ltrim();
    if (rest.consume_front(":"))
      return rest.ltrim();
  }
  return {};
}

/// Parses the dictionary of a header; returns what is missing.
static StringRef parseDictionary(StringRef text, NpyHeader &header) {
  StringRef type = findEntry(text, "descr");
  if (type.size() < 2 || (type[0] != '\'' && type[0] != '"'))
    return "descr";
  type = type.substr(1, type.find(type[0], 1) - 1);
  if (!type.empty() && StringRef("<>=|").contains(type[0])) {
    header.byteOrder = type[0];
    type = type.drop_front();
  }
  header.type = type;

  StringRef order = findEntry(text, "fortran_order");
  if (!order.starts_with("True") && !order.starts_with("False"))
    return "fortran_order";
  header.fortranOrder = order.starts_with("True");

  StringRef shape = findEntry(text, "shape");
  if (!shape.consume_front("(") || !shape.contains(')'))
    return "shape";
  SmallVector<StringRef> sizes;
  shape.take_until([](char c) { return c == ')'; }).split(sizes, ',');
  for (StringRef size : sizes) {
    size = size.trim();
    size.consume_back("L");
    if (size.empty())
      continue;
    int64_t value = 0;
    if (size.getAsInteger(10, value) || value < 0)
      return "shape";
    header.shape.push_back(value);
  }
  return {};
}

static Expected<NpyHeader> parseHeader(StringRef path, StringRef content) {
  if (!content.starts_with(kMagic) || content.size() < 10)
    return npyError(path, "expected a file of NumPy's format");
  unsigned version = static_cast<unsigned char>(content[6]);
  if (version < 1 || version > 3)
    return npyError(path, "expected version 1, 2 or 3 of NumPy's format, but "
                          "got " +
                              Twine(version));
  size_t start = version == 1 ? 10 : 12;
  if (content.size() < start)
    return npyError(path, "the header is cut off");
  size_t length = version == 1 ? support::endian::read16le(content.data() + 8)
                               : support::endian::read32le(content.data() + 8);
  if (content.size() - start < length)
    return npyError(path, "the header is cut off");
  NpyHeader header;
  StringRef missing = parseDictionary(content.substr(start, length), header);
  if (!missing.empty())
    return npyError(path, "the header has no valid '" + missing + "'");
  header.data = content.substr(start + length);
  return header;
}

/// NumPy's types, the one that is written first.
static ArrayRef<StringLiteral> getNumpyTypes(DataType type) {
  static constexpr StringLiteral f16[] = {"f2"}, bf16[] = {"u2"},
                                 f32[] = {"f4"}, f64[] = {"f8"}, i1[] = {"b1"},
                                 i8[] = {"i1", "u1"}, i16[] = {"i2", "u2"},
                                 i32[] = {"i4", "u4"}, i64[] = {"i8", "u8"};
  switch (type) {
  case DataType::F16:
    return f16;
  case DataType::BF16:
    return bf16;
  case DataType::F32:
    return f32;
  case DataType::F64:
    return f64;
  case DataType::I1:
    return i1;
  case DataType::I8:
    return i8;
  case DataType::I16:
    return i16;
  case DataType::I32:
    return i32;
  case DataType::I64:
    return i64;
  }
  return {};
}

static std::string formatShape(ArrayRef<int64_t> shape) {
  std::string text = "(";
  for (int64_t size : shape)
    text += std::to_string(size) + (shape.size() == 1 ? "," : ", ");
  if (shape.size() > 1)
    text.resize(text.size() - 2);
  return text + ")";
}

Expected<Tensor> readNpy(StringRef path, DataType type,
                         ArrayRef<int64_t> shape, int64_t offset) {
  sys::fs::file_status status;
  if (std::error_code code = sys::fs::status(path, status))
    return npyError(path, code.message());
  if (sys::fs::is_directory(status))
    return npyError(path, "is a directory");
  // A device such as /dev/zero may have no end.
  if (status.type() == sys::fs::file_type::character_file ||
      status.type() == sys::fs::file_type::block_file)
    return npyError(path, "is a device");
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false,
                                    /*RequiresNullTerminator=*/false);
  if (!file)
    return npyError(path, file.getError().message());
  Expected<NpyHeader> header = parseHeader(path, (*file)->getBuffer());
  if (!header)
    return header.takeError();

  ArrayRef<StringLiteral> accepted = getNumpyTypes(type);
  if (!is_contained(accepted, header->type))
    return npyError(path, "expected elements of NumPy's type '" + accepted[0] +
                              "' for " + getName(type) + ", but got '" +
                              header->type + "'");
  if (header->byteOrder == '>')
    return npyError(path,
                    "expected little endian elements, but got big endian");
  if (header->fortranOrder)
    return npyError(path, "expected C order, but got Fortran order");
  if (ArrayRef<int64_t>(header->shape) != shape)
    return npyError(path, "expected shape " + formatShape(shape) +
                              ", but got " + formatShape(header->shape));
  Expected<Tensor> tensor = Tensor::create(type, shape, offset);
  if (!tensor)
    return tensor.takeError();
  if (header->data.size() != static_cast<size_t>(tensor->getNumBytes()))
    return npyError(path, "expected " + Twine(tensor->getNumBytes()) +
                              " bytes of data, but got " +
                              Twine(header->data.size()));
  std::memcpy(tensor->data(), header->data.data(), header->data.size());
  return tensor;
}

std::string formatNpy(const Tensor &tensor) {
  StringRef type = getNumpyTypes(tensor.getType()).front();
  std::string header = "{'descr': '";
  header += getByteSize(tensor.getType()) == 1 ? '|' : '<';
  header += type;
  header +=
      "', 'fortran_order': False, 'shape': " + formatShape(tensor.getShape()) +
      ", }";
  // Padded, so that the data starts at a multiple of 64 bytes.
  constexpr size_t prefix = 10, alignment = 64;
  header.resize(alignTo(prefix + header.size() + 1, alignment) - prefix - 1,
                ' ');
  header += '\n';
  std::string content = kMagic.str();
  content += {'\1', '\0', static_cast<char>(header.size() & 0xff),
              static_cast<char>(header.size() >> 8)};
  content += header;
  content.append(tensor.data(), tensor.getNumBytes());
  return content;
}

} // namespace ftuner
