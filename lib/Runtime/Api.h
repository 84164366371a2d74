//===- Api.h - ftrt.h with its functions exported ---------------*- C++ -*-===//
//
// libftrt hides every symbol but those that ftrt.h declares. Files of libftrt
// include this file, never ftrt.h, and before any other header that does.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_RUNTIME_API_H
#define FTUNER_LIB_RUNTIME_API_H

#pragma GCC visibility push(default)
#include "FTuner/Runtime/ftrt.h"
#pragma GCC visibility pop

#endif // FTUNER_LIB_RUNTIME_API_H
