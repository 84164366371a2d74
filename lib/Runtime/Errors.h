//===- Errors.h - The last error of a thread --------------------*- C++ -*-===//
//
// Inside libftrt a function that can fail returns an FTRT_ERROR code, after it
// recorded the words of the failure here. The path of success never comes here.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_RUNTIME_ERRORS_H
#define FTUNER_LIB_RUNTIME_ERRORS_H

#include <cstdint>
#include <string>

namespace ftrt {

/// printf into a string.
__attribute__((format(printf, 1, 2))) std::string format(const char *text, ...);

/// Returns `message` with {0}, {1}, … replaced by the sizes. Anything else in
/// braces stays.
std::string withSizes(const char *message, const int64_t *sizes, int32_t count);

/// Records the words as the calling thread's last error; returns `code`.
int32_t fail(int32_t code, std::string message);

} // namespace ftrt

#endif // FTUNER_LIB_RUNTIME_ERRORS_H
