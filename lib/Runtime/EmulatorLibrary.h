//===- EmulatorLibrary.h - libftrt_emulator, opened at run time -*- C++ -*-===//
#ifndef FTUNER_LIB_RUNTIME_EMULATORLIBRARY_H
#define FTUNER_LIB_RUNTIME_EMULATORLIBRARY_H

#include "Api.h"
#include "FTuner/Runtime/EmulatorInterface.h"
#include <atomic>

namespace ftrt {

/// The emulator once openEmulator() has succeeded; null before.
extern std::atomic<const ftrt_emulator_interface *> emulator;

/// Opens the emulator, unless it is open: the path in FTRT_EMULATOR, else
/// libftrt_emulator.so.1 beside libftrt, else wherever the loader finds that
/// name. Fails with FTRT_ERROR_NO_EMULATOR; a failure is not remembered.
int32_t openEmulator();

} // namespace ftrt

#endif // FTUNER_LIB_RUNTIME_EMULATORLIBRARY_H
