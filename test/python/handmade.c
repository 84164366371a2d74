/* A library of the host ABI (docs/abi.md) written by hand: what its functions
 * compute is trivial, so that tests of calls see arguments and nothing else.
 * MANIFEST, ABI_VERSION and HOST_IMAGES are macros of the command line. */
#include "FTuner/Runtime/ftrt.h"

#include <string.h>

static const char manifest[] = {
#include "manifest.inc"
    , 0};

static ftrt_host_image host_image;
static const ftrt_image images[] = {
    {FTRT_IMAGE_PTX, 90, "// PTX of a test\n", 17},
    {FTRT_IMAGE_HOST, 0, &host_image, sizeof host_image},
};

ftrt_module ftuner_module = {
    ABI_VERSION, 1 + HOST_IMAGES, "handmade", images, 0, 0, manifest, 0,
};

/* scale(x: f32[T, 4], s: f32) -> f32[T, 4], through the workspace. */
int32_t scale_result_sizes(int64_t t, float s, int64_t *out) {
  out[0] = t;
  out[1] = 4;
  return FTRT_SUCCESS;
}
int64_t scale_workspace_size(int64_t t, float s) { return t * 16; }
int32_t scale(const float *x, float *result, int64_t t, float s,
              float *workspace, void *stream) {
  if (t > 0 && (uintptr_t)workspace % 256 != 0)
    return ftrt_fail("the workspace is not aligned");
  for (int64_t i = 0; i < 4 * t; ++i)
    workspace[i] = x[i] * s;
  memcpy(result, workspace, t * 16);
  return FTRT_SUCCESS;
}

/* join(a: f32[T, K], b: f64[K, ?], n: index) -> (f32[T, K], f64[K, ?, n]) */
int32_t join_result_sizes(int64_t t, int64_t k, int64_t k2, int64_t m,
                          int64_t n, int64_t *out) {
  if (n < 0)
    return ftrt_fail("expected n of at least 0");
  int64_t sizes[] = {t, k, k2, m, n};
  memcpy(out, sizes, sizeof sizes);
  return FTRT_SUCCESS;
}
int64_t join_workspace_size(int64_t t, int64_t k, int64_t k2, int64_t m,
                            int64_t n) {
  if (n == 999) {
    ftrt_fail("no workspace is large enough");
    return -1;
  }
  return 0;
}
int32_t join(const float *a, const double *b, float *first, double *second,
             int64_t t, int64_t k, int64_t k2, int64_t m, int64_t n,
             void *workspace, void *stream) {
  if (workspace)
    return ftrt_fail("expected no workspace");
  if (n == 666)
    return ftrt_fail("this size always fails");
  memcpy(first, a, t * k * sizeof(float));
  for (int64_t i = 0; i < k2 * m; ++i)
    for (int64_t j = 0; j < n; ++j)
      second[i * n + j] = b[i] * j;
  return FTRT_SUCCESS;
}

/* place(x: f32[?]) -> i64[2]: where it lies, and the stream. */
int32_t place_result_sizes(int64_t n, int64_t *out) {
  out[0] = 2;
  return FTRT_SUCCESS;
}
int64_t place_workspace_size(int64_t n) { return 0; }
int32_t place(const float *x, int64_t *result, int64_t n, void *workspace,
              void *stream) {
  result[0] = (int64_t)x;
  result[1] = (int64_t)stream;
  return FTRT_SUCCESS;
}

/* fill_TYPE(x: TYPE[?], s: TYPE) -> TYPE[?]: the scalar everywhere. */
#define FILL(name, type)                                                       \
  int32_t fill_##name##_result_sizes(int64_t n, type s, int64_t *out) {        \
    out[0] = n;                                                                \
    return FTRT_SUCCESS;                                                       \
  }                                                                            \
  int64_t fill_##name##_workspace_size(int64_t n, type s) { return 0; }        \
  int32_t fill_##name(const type *x, type *result, int64_t n, type s,          \
                      void *workspace, void *stream) {                         \
    for (int64_t i = 0; i < n; ++i)                                            \
      result[i] = s;                                                           \
    return FTRT_SUCCESS;                                                       \
  }
FILL(f16, _Float16)
/* In registers the same as f16. */
FILL(bf16, _Float16)
FILL(f32, float)
FILL(f64, double)
FILL(i1, uint8_t)
FILL(i8, int8_t)
FILL(i16, int16_t)
FILL(i32, int32_t)
FILL(i64, int64_t)

/* many(f16 x 12) -> f16[12]: more scalars than registers. */
#define TWELVE(type)                                                           \
  type a, type b, type c, type d, type e, type f, type g, type h, type i,      \
      type j, type k, type l
int32_t many_result_sizes(TWELVE(_Float16), int64_t *out) {
  out[0] = 12;
  return FTRT_SUCCESS;
}
int64_t many_workspace_size(TWELVE(_Float16)) { return 0; }
int32_t many(_Float16 *result, TWELVE(_Float16), void *workspace,
             void *stream) {
  _Float16 values[] = {a, b, c, d, e, f, g, h, i, j, k, l};
  memcpy(result, values, sizeof values);
  return FTRT_SUCCESS;
}
