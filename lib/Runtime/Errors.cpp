//===- Errors.cpp - The last error of a thread ----------------------------===//
#include "Errors.h"
#include "Api.h"
#include <cstdarg>
#include <cstdio>

static thread_local std::string lastError;

std::string ftrt::format(const char *text, ...) {
  va_list arguments, again;
  va_start(arguments, text);
  va_copy(again, arguments);
  int length = std::vsnprintf(nullptr, 0, text, arguments);
  va_end(arguments);
  std::string result(length > 0 ? length : 0, '\0');
  if (length > 0)
    std::vsnprintf(&result[0], result.size() + 1, text, again);
  va_end(again);
  return result;
}

std::string ftrt::withSizes(const char *message, const int64_t *sizes,
                            int32_t count) {
  std::string result;
  for (const char *c = message; *c; ++c) {
    bool isPlace = c[0] == '{' && c[1] >= '0' && c[1] <= '9' && c[2] == '}' &&
                   c[1] - '0' < count;
    if (isPlace) {
      result += std::to_string(sizes[c[1] - '0']);
      c += 2;
    } else {
      result += *c;
    }
  }
  return result;
}

int32_t ftrt::fail(int32_t code, std::string message) {
  lastError = std::move(message);
  return code;
}

int32_t ftrt_fail(const char *message) {
  return ftrt::fail(FTRT_ERROR_HOST,
                    message ? message : "host code failed without a message");
}

int32_t ftrt_fail_sizes(const char *message, const int64_t *sizes,
                        int32_t count) {
  if (!message || !sizes)
    return ftrt_fail(message);
  return ftrt::fail(FTRT_ERROR_HOST, ftrt::withSizes(message, sizes, count));
}

const char *ftrt_last_error() { return lastError.c_str(); }
