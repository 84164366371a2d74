//===- Library.h - Ahead-of-time libraries ----------------------*- C++ -*-===//
//
// A compiled module as native code: the functions of the host ABI
// (docs/abi.md), their kernels in one or several forms, and the manifest, in an
// object `ftrt_module` (FTuner/Runtime/ftrt.h). The result depends on libftrt
// alone, and, with kernels for the emulator, on the C library.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TARGET_LIBRARY_H
#define FTUNER_TARGET_LIBRARY_H

#include "FTuner/PTX/PTX.h"

#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace ftuner {

/// The kernels for one architecture, assembled.
struct LibraryCubin {
  GpuArchitecture architecture;
  std::string bytes;
};

struct LibraryOptions {
  /// A C identifier. The module object is `<name>_module`.
  std::string name;
  /// True if the library is a shared one, which has its module object also
  /// under the name `ftuner_module`.
  bool isShared = true;
  /// True if the kernels are compiled for the emulator, too.
  bool hasEmulatorImage = false;
  /// LLVM's name of the processor that the host code is for, "native" for the
  /// one of this machine. If empty, a portable one is taken: for host code
  /// LLVM's most general one, for emulated kernels the default of
  /// compileHostImage.
  std::string hostCpu;
  std::vector<LibraryCubin> cubins;
};

/// The name of a library's module object.
std::string getModuleSymbol(llvm::StringRef libraryName);

/// Reads names of architectures, such as "sm_90" and "sm_90a". The result is
/// sorted, without duplicates. An error tells which name is not an
/// architecture.
llvm::Expected<std::vector<GpuArchitecture>>
parseArchitectures(llvm::ArrayRef<std::string> names);

/// Assembles the kernels for every architecture, in parallel. For architectures
/// other than `ptx`'s, which are the module's, the kernels are translated
/// anew. Emits an error and fails where LLVM or ptxas cannot compile
/// a kernel for an architecture.
mlir::FailureOr<std::vector<LibraryCubin>>
assembleCubins(mlir::ModuleOp module, const PtxImages &ptx,
               llvm::StringRef ptxas,
               llvm::ArrayRef<GpuArchitecture> architectures);

/// Assembles the kernels for the architecture of `ptx`. An error says why ptxas
/// fails, e.g. for a processor that its version does not know.
llvm::Expected<LibraryCubin> assembleOwnCubin(const PtxModule &ptx,
                                              llvm::StringRef ptxas);

/// Reports names of functions that stand in the way of the names that a library
/// adds. Call it before the slow part.
mlir::LogicalResult checkLibraryNames(mlir::ModuleOp module,
                                      const LibraryOptions &options);

/// Compiles a module that went through `ftuner-compile`, and that was
/// translated to `ptx`, to object files (ELF, position independent), the host
/// code first; linked together they are the library. All symbols are hidden but
/// the functions of the host ABI and the module object. The same input gives
/// the same bytes.
///
/// Emits an error and fails for an unknown processor, for what
/// checkLibraryNames reports, and where kernels cannot be compiled for the
/// emulator.
mlir::FailureOr<std::vector<std::string>>
compileLibrary(mlir::ModuleOp module, const PtxImages &ptx,
               llvm::StringRef manifest, const LibraryOptions &options);

/// Writes the C and C++ header of the library: a prototype for each function,
/// with its shapes, and the module object. `fileName` is the header's own.
void writeLibraryHeader(mlir::ModuleOp module, const PtxImages &ptx,
                        llvm::StringRef fileName, llvm::StringRef libraryName,
                        llvm::raw_ostream &os);

} // namespace ftuner

#endif // FTUNER_TARGET_LIBRARY_H
