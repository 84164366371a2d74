// Runs matrix products by cuBLASLt with the fastest of the algorithms that its
// heuristic names. Built where the GPU is, called through ctypes
// (cublaslt.py).
//
// Every function returns 0, or -1 after writing words that
// ftuner_bench_lt_error() returns. For one thread.

#include <cstdio>
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <vector>

namespace {

char message[512];

bool failed(const char *what, int code) {
  if (code == 0)
    return false;
  std::snprintf(message, sizeof message, "%s: code %d", what, code);
  return true;
}

constexpr size_t kWorkspaceBytes = size_t(32) << 20;

struct Context {
  cublasLtHandle_t handle = nullptr;
  void *workspace = nullptr;
  cudaEvent_t start = nullptr, end = nullptr;
};

struct Plan {
  Context *context;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
};

int run(Plan *plan, const cublasLtMatmulAlgo_t &algorithm, const void *a,
        const void *b, void *c, cudaStream_t stream) {
  const float one = 1.0f, zero = 0.0f;
  return cublasLtMatmul(plan->context->handle, plan->description, &one, a,
                        plan->a, b, plan->b, &zero, c, plan->c, c, plan->c,
                        &algorithm, plan->context->workspace, kWorkspaceBytes,
                        stream);
}

// Column-major rows × columns for each batch, `stride` elements apart.
int layout(cublasLtMatrixLayout_t *result, cudaDataType_t element, int64_t rows,
           int64_t columns, int64_t leading, int32_t batch, int64_t stride) {
  int code =
      cublasLtMatrixLayoutCreate(result, element, rows, columns, leading);
  if (code == 0)
    code = cublasLtMatrixLayoutSetAttribute(
        *result, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
  if (code == 0)
    code = cublasLtMatrixLayoutSetAttribute(
        *result, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
        sizeof stride);
  return code;
}

// How factors are multiplied; sums are f32. In the order of TYPES
// (cublaslt.py).
struct Type {
  cudaDataType_t element;
  cublasComputeType_t compute;
};
constexpr Type kTypes[] = {{CUDA_R_32F, CUBLAS_COMPUTE_32F},
                           {CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
                           {CUDA_R_16F, CUBLAS_COMPUTE_32F},
                           {CUDA_R_16BF, CUBLAS_COMPUTE_32F}};

} // namespace

extern "C" {

const char *ftuner_bench_lt_error() { return message; }

int ftuner_bench_lt_create(void **result) {
  auto *context = new Context;
  if (failed("cublasLtCreate", cublasLtCreate(&context->handle)) ||
      failed("cudaMalloc", cudaMalloc(&context->workspace, kWorkspaceBytes)) ||
      failed("cudaEventCreate", cudaEventCreate(&context->start)) ||
      failed("cudaEventCreate", cudaEventCreate(&context->end)))
    return -1;
  *result = context;
  return 0;
}

// Plans row-major C[batch][m][n] = A[batch][m][k] · B, where B is
// [batch][k][n], or [batch][n][k] if `transposed`, of the type with that number
// in kTypes. Row-major C is column-major Cᵀ = Bᵀ · Aᵀ, so B comes first. Times at most `most` algorithms, `repeats`
// runs each after one that is not timed, and keeps the fastest. `microseconds`
// gets its time, `tried` how many ran, `best` the number of the fastest in the
// heuristic's order.
int ftuner_bench_lt_plan(void *handle, int64_t m, int64_t n, int64_t k,
                         int32_t batch, int32_t transposed, int32_t type,
                         const void *a, const void *b, void *c, void *stream,
                         int32_t most, int32_t repeats, void **result,
                         float *microseconds, int32_t *tried, int32_t *best) {
  auto *context = static_cast<Context *>(handle);
  auto *plan = new Plan;
  plan->context = context;
  *result = plan;
  const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasLtMatmulPreference_t preference = nullptr;
  const size_t workspaceBytes = kWorkspaceBytes;
  const auto [element, compute] = kTypes[type];
  if (failed("cublasLtMatmulDescCreate",
             cublasLtMatmulDescCreate(&plan->description, compute,
                                      CUDA_R_32F)) ||
      failed("transposition of B",
             cublasLtMatmulDescSetAttribute(plan->description,
                                            CUBLASLT_MATMUL_DESC_TRANSA,
                                            &operation, sizeof operation)) ||
      failed("layout of B",
             transposed ? layout(&plan->a, element, k, n, k, batch, n * k)
                        : layout(&plan->a, element, n, k, n, batch, n * k)) ||
      failed("layout of A",
             layout(&plan->b, element, k, m, k, batch, m * k)) ||
      failed("layout of C",
             layout(&plan->c, element, n, m, n, batch, m * n)) ||
      failed("cublasLtMatmulPreferenceCreate",
             cublasLtMatmulPreferenceCreate(&preference)) ||
      failed("workspace",
             cublasLtMatmulPreferenceSetAttribute(
                 preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                 &workspaceBytes, sizeof workspaceBytes)))
    return -1;
  std::vector<cublasLtMatmulHeuristicResult_t> found(most);
  int count = 0;
  const int code = cublasLtMatmulAlgoGetHeuristic(
      context->handle, plan->description, plan->a, plan->b, plan->c, plan->c,
      preference, most, found.data(), &count);
  cublasLtMatmulPreferenceDestroy(preference);
  if (failed("cublasLtMatmulAlgoGetHeuristic", code))
    return -1;
  auto *on = static_cast<cudaStream_t>(stream);
  *tried = 0;
  *best = -1;
  for (int i = 0; i < count; ++i) {
    if (found[i].state != CUBLAS_STATUS_SUCCESS ||
        run(plan, found[i].algo, b, a, c, on) != 0)
      continue;
    cudaEventRecord(context->start, on);
    for (int repeat = 0; repeat < repeats; ++repeat)
      run(plan, found[i].algo, b, a, c, on);
    cudaEventRecord(context->end, on);
    if (failed("run of an algorithm", cudaEventSynchronize(context->end)))
      return -1;
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, context->start, context->end);
    const float each = milliseconds * 1000 / repeats;
    if (*best < 0 || each < *microseconds) {
      *microseconds = each;
      *best = i;
      plan->algorithm = found[i].algo;
    }
    ++*tried;
  }
  if (*best < 0) {
    std::snprintf(message, sizeof message, "no algorithm ran of %d", count);
    return -1;
  }
  return 0;
}

int ftuner_bench_lt_run(void *handle, const void *a, const void *b, void *c,
                        void *stream) {
  auto *plan = static_cast<Plan *>(handle);
  return failed("cublasLtMatmul", run(plan, plan->algorithm, b, a, c,
                                      static_cast<cudaStream_t>(stream)))
             ? -1
             : 0;
}

void ftuner_bench_lt_destroy(void *handle) {
  auto *plan = static_cast<Plan *>(handle);
  cublasLtMatrixLayoutDestroy(plan->a);
  cublasLtMatrixLayoutDestroy(plan->b);
  cublasLtMatrixLayoutDestroy(plan->c);
  cublasLtMatmulDescDestroy(plan->description);
  delete plan;
}
}
