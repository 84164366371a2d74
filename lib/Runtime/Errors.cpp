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

int32_t ftrt::fail(int32_t code, std::string message) {
  lastError = std::move(message);
  return code;
}

int32_t ftrt_fail(const char *message) {
  return ftrt::fail(FTRT_ERROR_HOST,
                    message ? message : "host code failed without a message");
}

const char *ftrt_last_error() { return lastError.c_str(); }
