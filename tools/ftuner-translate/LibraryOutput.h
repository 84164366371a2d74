//===- LibraryOutput.h - --ftuner-to-library --------------------*- C++ -*-===//
#ifndef FTUNER_TOOLS_FTUNER_TRANSLATE_LIBRARYOUTPUT_H
#define FTUNER_TOOLS_FTUNER_TRANSLATE_LIBRARYOUTPUT_H

#include "FTuner/Target/Library.h"
#include "FTuner/Target/Linker.h"
#include "ToolSupport.h"

#include "llvm/Support/CommandLine.h"
#include <memory>

namespace ftuner::tool {

/// The options of `--ftuner-to-library`.
struct LibraryCommandLine {
  explicit LibraryCommandLine(llvm::cl::OptionCategory &category);

  llvm::cl::opt<bool> emulator;
  llvm::cl::list<std::string> cubins;
  llvm::cl::opt<std::string> header, libraryName, hostCpu, rpath;

  /// Reports options that were given although no library is written; that of
  /// cubins unless these are for another output.
  llvm::Error expectNone(bool hasCubins = false) const;
};

/// The plan of a library: its files, its options, and the programs to run.
struct LibraryPlan {
  /// Without cubins.
  LibraryOptions options;
  std::string libraryPath, headerPath;
  std::string linker, ptxas;
  LinkOptions link;
  std::vector<GpuArchitecture> architectures;
  /// True if cubins are for the device's own architecture, whichever it is.
  bool hasOwnCubin = false;
};

/// Checks only the option for cubins.
llvm::Error planCubins(const LibraryCommandLine &commandLine,
                       LibraryPlan &plan);

/// Judges options and output. Whatever can be missing is found here, before the
/// slow part. `programPath` is the path of this program's file.
llvm::Expected<LibraryPlan> planLibrary(const LibraryCommandLine &commandLine,
                                        llvm::StringRef output,
                                        llvm::StringRef programPath);

/// Translates a compiled module and writes library and header, both or none.
llvm::Error writeLibrary(mlir::ModuleOp module, const LibraryPlan &plan);
/// A shared library of the kernels of a compiled module for the emulator, as
/// bytes.
llvm::Expected<std::string> emulatedKernels(mlir::ModuleOp module,
                                            const PtxModule &ptx,
                                            llvm::StringRef path,
                                            llvm::StringRef programPath);

} // namespace ftuner::tool

#endif // FTUNER_TOOLS_FTUNER_TRANSLATE_LIBRARYOUTPUT_H
