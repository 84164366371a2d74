//===- HostImageTest.cpp - Kernels compiled ahead of time -----------------===//
#include "HostImageFixture.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Object/ELFObjectFile.h"
#include <atomic>
#include <set>
#include <thread>

using namespace ftuner::emulator;

namespace {
constexpr unsigned kReverseThreads = 64;
constexpr unsigned kRotateThreads = 32;

/// Both kernels have a constant and a function of the same names.
/// reverse: out[i] = 2 ** factor * in, reversed in each block through shared
/// memory, which asynchronous copies fill.
/// rotate: out[i] = factor * in of the next lane, through static shared memory.
std::string makeModule() {
  return R"(
    module attributes {gpu.container_module} {
    gpu.module @first {
      llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
      llvm.mlir.global internal constant @factors(dense<[0.5, 1.5]> : tensor<2xf32>) {addr_space = 4 : i32} : !llvm.array<2 x f32>
      llvm.func internal @factor(%i: i32) -> f32 attributes {no_inline} {
        %base = llvm.mlir.addressof @factors : !llvm.ptr<4>
        %p = llvm.getelementptr %base[%i] : (!llvm.ptr<4>, i32) -> !llvm.ptr<4>, f32
        %x = llvm.load %p : !llvm.ptr<4> -> f32
        llvm.return %x : f32
      }
      llvm.func @reverse(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {gpu.kernel, gpu.known_block_size = array<i32: 64, 1, 1>} {
        %base = llvm.mlir.addressof @__dynamic_shmem__0 : !llvm.ptr<3>
        %one = llvm.mlir.constant(1 : i32) : i32
        %c63 = llvm.mlir.constant(63 : i32) : i32
        %four = llvm.mlir.constant(4 : i32) : i32
        %tid = nvvm.read.ptx.sreg.tid.x : i32
        %bid = nvvm.read.ptx.sreg.ctaid.x : i32
        %dim = nvvm.read.ptx.sreg.ntid.x : i32
        %offset = llvm.mul %bid, %dim : i32
        %i = llvm.add %offset, %tid : i32
        %src = llvm.getelementptr %in[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %mine = llvm.getelementptr %base[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        nvvm.cp.async.shared.global %mine, %src, 4, cache = ca, %four : !llvm.ptr<3>, !llvm.ptr<1>, i32
        nvvm.cp.async.commit.group
        nvvm.cp.async.wait.group 0
        nvvm.barrier0
        %other = llvm.sub %c63, %tid : i32
        %theirs = llvm.getelementptr %base[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        %x = llvm.load %theirs : !llvm.ptr<3> -> f32
        %parity = llvm.and %tid, %one : i32
        %f = llvm.call @factor(%parity) : (i32) -> f32
        %power = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%f) : (f32) -> f32
        %y = llvm.fmul %x, %power : f32
        %dst = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        llvm.store %y, %dst : f32, !llvm.ptr<1>
        llvm.return
      }
    }
    gpu.module @second {
      llvm.mlir.global internal @buffer() {addr_space = 3 : i32} : !llvm.array<32 x f32>
      llvm.mlir.global internal constant @factors(dense<[3.0, 7.0]> : tensor<2xf32>) {addr_space = 4 : i32} : !llvm.array<2 x f32>
      llvm.func internal @factor(%i: i32) -> f32 attributes {no_inline} {
        %base = llvm.mlir.addressof @factors : !llvm.ptr<4>
        %p = llvm.getelementptr %base[%i] : (!llvm.ptr<4>, i32) -> !llvm.ptr<4>, f32
        %x = llvm.load %p : !llvm.ptr<4> -> f32
        llvm.return %x : f32
      }
      llvm.func @rotate(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>, %which: i32) attributes {gpu.kernel, gpu.known_block_size = array<i32: 32, 1, 1>} {
        %base = llvm.mlir.addressof @buffer : !llvm.ptr<3>
        %one = llvm.mlir.constant(1 : i32) : i32
        %c31 = llvm.mlir.constant(31 : i32) : i32
        %all = llvm.mlir.constant(-1 : i32) : i32
        %tid = nvvm.read.ptx.sreg.tid.x : i32
        %bid = nvvm.read.ptx.sreg.ctaid.x : i32
        %dim = nvvm.read.ptx.sreg.ntid.x : i32
        %offset = llvm.mul %bid, %dim : i32
        %i = llvm.add %offset, %tid : i32
        %src = llvm.getelementptr %in[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %x = llvm.load %src : !llvm.ptr<1> -> f32
        %mine = llvm.getelementptr %base[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        llvm.store %x, %mine : f32, !llvm.ptr<3>
        nvvm.bar.warp.sync %all : i32
        %next = llvm.add %tid, %one : i32
        %other = llvm.and %next, %c31 : i32
        %theirs = llvm.getelementptr %base[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        %y = llvm.load %theirs : !llvm.ptr<3> -> f32
        %f = llvm.call @factor(%which) : (i32) -> f32
        %z = llvm.fmul %y, %f : f32
        %dst = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        llvm.store %z, %dst : f32, !llvm.ptr<1>
        llvm.return
      }
      llvm.func @diverge(%out: !llvm.ptr<1>) attributes {gpu.kernel, gpu.known_block_size = array<i32: 64, 1, 1>} {
        %c32 = llvm.mlir.constant(32 : i32) : i32
        %tid = nvvm.read.ptx.sreg.tid.x : i32
        %isFirst = llvm.icmp "ult" %tid, %c32 : i32
        llvm.cond_br %isFirst, ^meet, ^leave
      ^meet:
        nvvm.barrier0
        llvm.br ^leave
      ^leave:
        llvm.return
      }
    }
    })";
}

class HostImageTest : public HostImageFixture {};

TEST_F(HostImageTest, RunsKernels) {
  const ftrt_host_image *image = compileAndLoad(makeModule());
  ASSERT_TRUE(image);
  EXPECT_EQ(image->kernel_count, 3u);
  const ftrt_host_kernel *reverse = find(image, "reverse");
  const ftrt_host_kernel *rotate = find(image, "rotate");
  ASSERT_TRUE(reverse && rotate);
  EXPECT_EQ(reverse->block_x, kReverseThreads);
  EXPECT_EQ(reverse->static_shared_bytes, 0u);
  EXPECT_EQ(rotate->block_x, kRotateThreads);
  EXPECT_EQ(rotate->static_shared_bytes, 4 * kRotateThreads);

  constexpr unsigned kBlocks = 37;
  std::vector<float> in = randomFloats(kBlocks * kReverseThreads);
  std::vector<float> out(in.size(), std::nanf(""));
  ASSERT_EQ(launch(reverse, kBlocks, kReverseThreads, 4 * kReverseThreads,
                   in.data(), out.data()),
            FTRT_SUCCESS)
      << message;
  for (size_t i = 0; i < in.size(); ++i) {
    size_t thread = i % kReverseThreads;
    float expected = in[i - thread + kReverseThreads - 1 - thread] *
                     std::exp2(thread % 2 ? 1.5f : 0.5f);
    ASSERT_NEAR(out[i], expected, 1e-6f * std::abs(expected)) << i;
  }

  out.assign(in.size(), std::nanf(""));
  ASSERT_EQ(launch(rotate, in.size() / kRotateThreads, kRotateThreads, 0,
                   in.data(), out.data(), 1),
            FTRT_SUCCESS)
      << message;
  for (size_t i = 0; i < in.size(); ++i) {
    size_t lane = i % kRotateThreads;
    ASSERT_EQ(out[i], 7.0f * in[i - lane + (lane + 1) % kRotateThreads]) << i;
  }
}

TEST_F(HostImageTest, TensorMapsAndMbarriers) {
  // Each block copies a box of 8 rows of 32 words and stores it.
  const std::string kernel = R"(
    llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
    llvm.func @box(%map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}, %out: !llvm.ptr<1>)
        attributes {gpu.kernel, nvvm.kernel, gpu.known_block_size = array<i32: 256, 1, 1>} {
      %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %eight = llvm.mlir.constant(8 : i32) : i32
      %bytes = llvm.mlir.constant(1024 : i32) : i32
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %threads = nvvm.read.ptx.sreg.ntid.x : i32
      %block = nvvm.read.ptx.sreg.ctaid.x : i32
      %mbarrier = llvm.getelementptr %smem[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %isFirst = llvm.icmp "eq" %tid, %zero : i32
      llvm.cond_br %isFirst, ^issue, ^issued
    ^issue:
      %row = llvm.mul %block, %eight : i32
      nvvm.mbarrier.init %mbarrier, %one : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      nvvm.mbarrier.arrive.expect_tx %mbarrier, %bytes : !llvm.ptr<3>, i32
      nvvm.cp.async.bulk.tensor.shared.cluster.global %smem, %map, %mbarrier, box[%zero, %row] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
      llvm.br ^issued
    ^issued:
      nvvm.barrier0
      nvvm.mbarrier.try_wait.parity %mbarrier, %zero, %bytes : !llvm.ptr<3>, i32, i32
      %from = llvm.getelementptr %smem[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %x = llvm.load %from : !llvm.ptr<3> -> i32
      %first = llvm.mul %block, %threads : i32
      %at = llvm.add %first, %tid : i32
      %to = llvm.getelementptr %out[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %x, %to : i32, !llvm.ptr<1>
      llvm.return
    }
  )";
  HostImageOptions options;
  options.name = "box_image";
  const ftrt_host_image *image = load(
      compile("module attributes {gpu.container_module} { gpu.module @m {" +
                  kernel + "} }",
              options),
      options.name);
  ASSERT_TRUE(image);
  constexpr unsigned kBlocks = 5, kRows = 36, kColumns = 32, kPitch = 40;
  std::vector<float> in = randomFloats(kRows * kPitch + 4);
  auto address = reinterpret_cast<uintptr_t>(in.data());
  auto *tensor = reinterpret_cast<float *>((address + 15) / 16 * 16);
  struct alignas(64) Map {
    char bytes[128];
  } map;
  uint64_t sizes[2] = {kColumns, kRows}, strides[1] = {kPitch * sizeof(float)};
  uint32_t box[2] = {32, 8}, steps[2] = {1, 1};
  ASSERT_EQ(interface->encode_tensor_map(&map, /*float32*/ 7, 2, tensor, sizes,
                                         strides, box, steps, 0, 0, 0, 0,
                                         nullptr, 0),
            FTRT_SUCCESS);
  std::vector<float> out(kBlocks * 256, std::nanf(""));
  ASSERT_EQ(launch(find(image, "box"), kBlocks, 256, 1024 + 8, map, out.data()),
            FTRT_SUCCESS)
      << message;
  for (size_t i = 0; i < out.size(); ++i) {
    size_t row = i / kColumns;
    EXPECT_EQ(out[i], row < kRows ? tensor[row * kPitch + i % kColumns] : 0);
  }
}

TEST_F(HostImageTest, TensorCores) {
  // Lane l loads 16 bytes, which are row l of four matrices: A of a product
  // with the first two of them, whose result goes back in their place.
  const std::string kernel = R"(
    llvm.mlir.global internal @rows() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<512 x i8>
    llvm.func @square(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>)
        attributes {gpu.kernel, gpu.known_block_size = array<i32: 32, 1, 1>} {
      %base = llvm.mlir.addressof @rows : !llvm.ptr<3>
      %four = llvm.mlir.constant(4 : i32) : i32
      %zero = llvm.mlir.constant(0.0 : f32) : f32
      %all = llvm.mlir.constant(-1 : i32) : i32
      %lane = nvvm.read.ptx.sreg.tid.x : i32
      %i = llvm.mul %lane, %four : i32
      %src = llvm.getelementptr %in[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %row = llvm.getelementptr %base[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %x = llvm.load %src {alignment = 4 : i64} : !llvm.ptr<1> -> vector<4xi32>
      llvm.store %x, %row : vector<4xi32>, !llvm.ptr<3>
      nvvm.bar.warp.sync %all : i32
      %r = nvvm.ldmatrix %row {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
      %r0 = llvm.extractvalue %r[0] : !llvm.struct<(i32, i32, i32, i32)>
      %r1 = llvm.extractvalue %r[1] : !llvm.struct<(i32, i32, i32, i32)>
      %r2 = llvm.extractvalue %r[2] : !llvm.struct<(i32, i32, i32, i32)>
      %r3 = llvm.extractvalue %r[3] : !llvm.struct<(i32, i32, i32, i32)>
      %d = nvvm.mma.sync A[%r0, %r1, %r2, %r3] B[%r0, %r1] C[%zero, %zero, %zero, %zero] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
      %d0 = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
      %d3 = llvm.extractvalue %d[3] : !llvm.struct<(f32, f32, f32, f32)>
      %b0 = llvm.bitcast %d0 : f32 to i32
      %b3 = llvm.bitcast %d3 : f32 to i32
      nvvm.bar.warp.sync %all : i32
      nvvm.stmatrix %row, %b0, %b3 {layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32, i32
      nvvm.bar.warp.sync %all : i32
      %y = llvm.load %row : !llvm.ptr<3> -> vector<4xi32>
      %dst = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %y, %dst {alignment = 4 : i64} : vector<4xi32>, !llvm.ptr<1>
      llvm.return
    }
  )";
  HostImageOptions options;
  options.name = "tensor_image";
  const ftrt_host_image *image = load(
      compile("module attributes {gpu.container_module} { gpu.module @m {" +
                  kernel + "} }",
              options),
      options.name);
  ASSERT_TRUE(image);
  auto jitted = create(kernel);
  ASSERT_TRUE(jitted) << error;
  std::vector<float> in = randomFloats(4 * 32);
  std::vector<uint32_t> out(in.size(), 1), expected(in.size(), 2);
  ASSERT_EQ(launch(find(image, "square"), 1, 32, 0, in.data(), out.data()),
            FTRT_SUCCESS)
      << message;
  ASSERT_EQ(EmulatorTest::launch(*jitted, "square", {1}, {32}, 0, in.data(),
                                 expected.data()),
            "");
  EXPECT_EQ(out, expected);
}

TEST_F(HostImageTest, RoundsToNarrowTypes) {
  HostImageOptions options;
  options.name = "rounding_image";
  const ftrt_host_image *image = load(compile(R"(
    module attributes {gpu.container_module} { gpu.module @m {
    llvm.func @round(%in: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %h: !llvm.ptr<1>)
        attributes {gpu.kernel, gpu.known_block_size = array<i32: 32, 1, 1>} {
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %dim = nvvm.read.ptx.sreg.ntid.x : i32
      %offset = llvm.mul %bid, %dim : i32
      %i = llvm.add %offset, %tid : i32
      %src = llvm.getelementptr %in[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f64
      %x = llvm.load %src : !llvm.ptr<1> -> f64
      %single = llvm.fptrunc %x : f64 to f32
      %bf = llvm.fptrunc %single : f32 to bf16
      %double = llvm.fptrunc %x : f64 to bf16
      %half = llvm.fptrunc %x : f64 to f16
      %bTo = llvm.getelementptr %b[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, bf16
      %cTo = llvm.getelementptr %c[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, bf16
      %hTo = llvm.getelementptr %h[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
      llvm.store %bf, %bTo : bf16, !llvm.ptr<1>
      llvm.store %double, %cTo : bf16, !llvm.ptr<1>
      llvm.store %half, %hTo : f16, !llvm.ptr<1>
      llvm.return
    } } })",
                                              options),
                                      options.name);
  ASSERT_TRUE(image);
  // Numbers of all sizes; halfway cases of either type, exact and nearly so.
  constexpr size_t kCount = 32 * 256;
  std::vector<double> in;
  std::uniform_int_distribution<uint64_t> bits;
  std::uniform_int_distribution<int> exponent(-160, 140), nudge(-1, 1);
  while (in.size() < kCount) {
    int scale = exponent(random);
    uint64_t mantissa = bits(random) % 4096 * 2 + 1;
    double x = std::ldexp(static_cast<double>(mantissa), scale);
    x = std::nextafter(x, x * (1 + nudge(random)));
    in.push_back(bits(random) % 2 ? x : -x);
  }
  in[0] = NAN;
  in[1] = INFINITY;
  in[2] = -0.0;
  in[3] = 1e300;
  std::vector<uint16_t> b(kCount, 0x7777), c = b, h = b;
  ASSERT_EQ(launch(find(image, "round"), kCount / 32, 32, 0, in.data(),
                   b.data(), c.data(), h.data()),
            FTRT_SUCCESS)
      << message;
  auto round = [](llvm::APFloat value, const llvm::fltSemantics &semantics) {
    bool losesInfo;
    value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return value;
  };
  auto expectBits = [&](uint16_t actual, const llvm::APFloat &expected,
                        double x) {
    llvm::APFloat value(expected.getSemantics(), llvm::APInt(16, actual));
    EXPECT_TRUE(value.bitwiseIsEqual(expected) ||
                (value.isNaN() && expected.isNaN()))
        << actual << " of " << x;
  };
  const llvm::fltSemantics &bf16 = llvm::APFloat::BFloat();
  for (size_t i = 0; i < kCount; ++i) {
    llvm::APFloat x(in[i]);
    expectBits(b[i], round(round(x, llvm::APFloat::IEEEsingle()), bf16), in[i]);
    expectBits(c[i], round(x, bf16), in[i]);
    expectBits(h[i], round(x, llvm::APFloat::IEEEhalf()), in[i]);
  }
}

TEST_F(HostImageTest, SeveralThreadsLaunch) {
  const ftrt_host_image *image = compileAndLoad(makeModule());
  ASSERT_TRUE(image);
  const ftrt_host_kernel *rotate = find(image, "rotate");
  std::vector<float> in = randomFloats(64 * kRotateThreads);
  std::vector<std::thread> threads;
  std::atomic<unsigned> wrong{0};
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (unsigned run = 0; run < 20; ++run) {
        std::vector<float> out(in.size(), std::nanf(""));
        const float *source = in.data();
        float *target = out.data();
        int32_t which = run % 2;
        void *parameters[] = {&source, &target, &which};
        char text[64];
        wrong += interface->launch(rotate, 64, kRotateThreads, 0, parameters,
                                   /*check=*/nullptr, text,
                                   sizeof(text)) != FTRT_SUCCESS;
        for (size_t i = 0; i < in.size(); ++i) {
          size_t lane = i % kRotateThreads;
          wrong += out[i] != (which ? 7.0f : 3.0f) *
                                 in[i - lane + (lane + 1) % kRotateThreads];
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0u);
}

TEST_F(HostImageTest, RefusesLaunches) {
  const ftrt_host_image *image = compileAndLoad(makeModule());
  ASSERT_TRUE(image);
  const ftrt_host_kernel *reverse = find(image, "reverse");
  std::vector<float> in = randomFloats(kReverseThreads), out = in;
  const std::vector<float> before = out;
  auto run = [&](const ftrt_host_kernel *kernel, uint32_t grid, uint32_t block,
                 uint32_t sharedBytes) {
    return launch(kernel, grid, block, sharedBytes, in.data(), out.data());
  };
  EXPECT_EQ(run(nullptr, 1, 64, 256), FTRT_ERROR_INVALID_ARGUMENT);
  EXPECT_CONTAINS(message, "expected a kernel");
  EXPECT_EQ(run(reverse, 1, 32, 256), FTRT_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(message, "cannot launch kernel 'reverse': expected a block of "
                     "(64,1,1) threads, but got (32,1,1)");
  EXPECT_EQ(run(reverse, 1, 64, 228 * 1024), FTRT_ERROR_LAUNCH_FAILED);
  EXPECT_CONTAINS(message, "bytes of shared memory");
  EXPECT_EQ(run(reverse, 0x80000000u, 64, 256), FTRT_ERROR_LAUNCH_FAILED);
  EXPECT_CONTAINS(message, "expected a grid of at most");
  EXPECT_EQ(run(reverse, 0, 64, 256), FTRT_SUCCESS);
  EXPECT_EQ(out, before);
  // Too little shared memory: the copies would write behind it.
  EXPECT_EQ(run(reverse, 1, 64, 128), FTRT_ERROR_LAUNCH_FAILED);
  EXPECT_CONTAINS(message, "out-of-bounds asynchronous copy");
  EXPECT_EQ(run(find(image, "diverge"), 1, 64, 0), FTRT_ERROR_LAUNCH_FAILED);
  EXPECT_CONTAINS(message, "divergence: 32 threads wait at a barrier");
  // And runs on afterwards.
  EXPECT_EQ(run(reverse, 1, 64, 256), FTRT_SUCCESS) << message;

  void *parameters[] = {nullptr};
  char text[8] = "1234567";
  EXPECT_EQ(interface->launch(reverse, 1, 32, 0, parameters, nullptr, text, 5),
            FTRT_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(std::string(text, 8), std::string("cann\00067\0", 8));
  EXPECT_EQ(
      interface->launch(reverse, 1, 32, 0, parameters, nullptr, nullptr, 0),
      FTRT_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(interface->launch(reverse, 1, 64, 0, nullptr, nullptr, text, 8),
            FTRT_ERROR_INVALID_ARGUMENT);
}

TEST_F(HostImageTest, DefinesOneHiddenSymbol) {
  HostImageOptions options;
  options.name = "model_image";
  std::set<std::string> undefined, defined;
  for (const std::string &bytes : compile(makeModule(), options)) {
    auto object = llvm::object::ObjectFile::createObjectFile(
        llvm::MemoryBufferRef(bytes, "object"));
    ASSERT_TRUE(bool(object)) << llvm::toString(object.takeError());
    for (llvm::object::ELFSymbolRef symbol : (*object)->symbols()) {
      auto flags = llvm::cantFail(symbol.getFlags());
      std::string name = llvm::cantFail(symbol.getName()).str();
      if (flags & llvm::object::SymbolRef::SF_Undefined) {
        if (!name.empty())
          undefined.insert(name);
      } else if (flags & llvm::object::SymbolRef::SF_Global) {
        EXPECT_EQ(symbol.getOther(), llvm::ELF::STV_HIDDEN) << name;
        EXPECT_TRUE(defined.insert(name).second) << name;
      }
    }
  }
  EXPECT_EQ(defined,
            (std::set<std::string>{"model_image", "model_image_entry0",
                                   "model_image_entry1", "model_image_entry2",
                                   "model_image_functions"}));
  for (const std::string &name : undefined)
    EXPECT_TRUE(defined.count(name) || name == "exp2f" ||
                name == "_GLOBAL_OFFSET_TABLE_")
        << name;
}

TEST_F(HostImageTest, SameBytesEachTime) {
  HostImageOptions options;
  options.name = "model_image";
  std::vector<std::string> first = compile(makeModule(), options);
  EXPECT_EQ(first.size(), 4u);
  context.disableMultithreading();
  // Not EXPECT_EQ, which would print the bytes.
  EXPECT_TRUE(compile(makeModule(), options) == first);
  options.cpu = "native";
  EXPECT_EQ(compile(makeModule(), options).size(), 4u);
}

TEST_F(HostImageTest, RejectsModules) {
  HostImageOptions options;
  options.name = "2model";
  EXPECT_TRUE(compile(makeModule(), options).empty());
  EXPECT_CONTAINS(error, "expected a C identifier as name of the host image, "
                         "but got '2model'");
  options.name = "model";
  options.cpu = "z80";
  EXPECT_TRUE(compile(makeModule(), options).empty());
  EXPECT_CONTAINS(error, "expected a processor that LLVM knows for");
  options.cpu = "x86-64-v2";
  EXPECT_TRUE(compile(makeModule(), options).empty());
  EXPECT_CONTAINS(error, "expected a processor with the instructions of "
                         "x86-64-v3 (AVX2 and FMA), but got 'x86-64-v2'");
  options.cpu = "";
  EXPECT_TRUE(compile("module {}", options).empty());
  EXPECT_CONTAINS(error, "the module holds no kernels");
  auto wrap = [](const std::string &body) {
    return "module attributes {gpu.container_module} { gpu.module @m {" + body +
           "} }";
  };
  EXPECT_TRUE(
      compile(wrap("llvm.func @k() attributes {gpu.kernel} { llvm.return }"),
              options)
          .empty());
  EXPECT_CONTAINS(error, "expected a known block size");
  EXPECT_TRUE(compile(wrap("llvm.func @k() attributes {gpu.kernel, "
                           "gpu.known_block_size = array<i32: 8, 8, 1>} { "
                           "llvm.return }"),
                      options)
                  .empty());
  EXPECT_CONTAINS(error, "expected a known block size");
  EXPECT_TRUE(
      compile(wrap("gpu.func @k() kernel { gpu.return }"), options).empty());
  EXPECT_CONTAINS(error, "at the level of the NVVM dialect");
  EXPECT_TRUE(compile(wrap("llvm.func @k() attributes {gpu.kernel, "
                           "gpu.known_block_size = array<i32: 8, 1, 1>} { "
                           "llvm.inline_asm \"trap;\", \"\" : () -> () "
                           "llvm.return }"),
                      options)
                  .empty());
  EXPECT_CONTAINS(error, "no emulation rule for");
}
} // namespace
