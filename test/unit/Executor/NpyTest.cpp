//===- NpyTest.cpp - NumPy's array files ----------------------------------===//
#include "FTuner/Executor/Npy.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace ftuner;

namespace {
/// A file that lives as long as the test.
class NpyTest : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("ftuner", "npy", path));
  }
  void TearDown() override { llvm::sys::fs::remove(path); }

  void write(llvm::StringRef content) {
    std::error_code code;
    llvm::raw_fd_ostream stream(path, code);
    stream << content;
  }
  /// The header as `version` has it, then the data.
  void writeFile(std::string header, llvm::StringRef data, int version = 1) {
    std::string content = "\x93NUMPY";
    content += static_cast<char>(version);
    content += '\0';
    size_t size = header.size();
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
      content += static_cast<char>(size >> (8 * i));
    write(content + header + data.str());
  }
  std::string readError(DataType type, llvm::ArrayRef<int64_t> shape) {
    llvm::Expected<Tensor> tensor = readNpy(path, type, shape);
    return tensor ? std::string() : llvm::toString(tensor.takeError());
  }

  llvm::SmallString<128> path;
};
} // namespace

TEST_F(NpyTest, RoundTrip) {
  for (DataType type :
       {DataType::F16, DataType::BF16, DataType::F32, DataType::F64,
        DataType::I1, DataType::I8, DataType::I16, DataType::I32,
        DataType::I64})
    for (llvm::SmallVector<int64_t> shape :
         {llvm::SmallVector<int64_t>{}, {5}, {2, 3}, {4, 0, 2}}) {
      llvm::Expected<Tensor> tensor = Tensor::create(type, shape);
      fillRandom(*tensor, 11, 3);
      std::string content = formatNpy(*tensor);
      EXPECT_EQ((content.size() - tensor->getNumBytes()) % 64, 0u);
      write(content);
      llvm::Expected<Tensor> read = readNpy(path, type, shape, 8);
      ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
      EXPECT_EQ(
          std::memcmp(read->data(), tensor->data(), tensor->getNumBytes()), 0);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(read->data()) % 256, 8u);
    }
}

TEST_F(NpyTest, ReadsWhatOthersWrite) {
  std::string data(8, '\0');
  data[3] = data[7] = 0x40; // 2.0
  for (int version : {1, 2, 3}) {
    writeFile("{\"shape\": (2L,), 'fortran_order':False,'descr': '=f4'}\n",
              data, version);
    llvm::Expected<Tensor> tensor = readNpy(path, DataType::F32, {2});
    ASSERT_TRUE(static_cast<bool>(tensor))
        << llvm::toString(tensor.takeError());
    EXPECT_EQ(tensor->getDouble(1), 2.0);
  }
}

TEST_F(NpyTest, NamesWhatIsWrong) {
  auto header = [](std::string type, std::string order, std::string shape) {
    return "{'descr': '" + type + "', 'fortran_order': " + order +
           ", 'shape': " + shape + ", }\n";
  };
  std::string data(24, '\0');
  auto error = [&] { return readError(DataType::F32, {2, 3}); };
  auto expect = [&](llvm::StringRef text) {
    std::string message = error();
    EXPECT_NE(message.find(text.str()), std::string::npos) << message;
  };
  writeFile(header("<f4", "False", "(2, 3)"), data);
  EXPECT_EQ(error(), "");
  writeFile(header("<f8", "False", "(2, 3)"), data);
  expect("expected elements of NumPy's type 'f4' for f32, but got 'f8'");
  writeFile(header(">f4", "False", "(2, 3)"), data);
  expect("expected little endian elements");
  writeFile(header("<f4", "True", "(2, 3)"), data);
  expect("expected C order");
  writeFile(header("<f4", "False", "(3, 2)"), data);
  expect("expected shape (2, 3), but got (3, 2)");
  writeFile(header("<f4", "False", "(2, 3)"), data + "x");
  expect("expected 24 bytes of data, but got 25");
  writeFile(header("<f4", "False", "(2, 3)"), "");
  expect("expected 24 bytes of data, but got 0");
  writeFile(header("<f4", "Maybe", "(2, 3)"), data);
  expect("no valid 'fortran_order'");
  writeFile(header("<f4", "False", "(2, -3)"), data);
  expect("no valid 'shape'");
  writeFile("{'shape': (2, 3)}", data);
  expect("no valid 'descr'");
  writeFile(header("<f4", "False", "(2, 3)"), data, 4);
  expect("expected version 1, 2 or 3");
  write(llvm::StringRef("\x93NUMPY\1\0\xff\xff{", 11));
  expect("the header is cut off");
  write("");
  expect("expected a file of NumPy's format");
  llvm::sys::fs::remove(path);
  expect("No such file");
}
