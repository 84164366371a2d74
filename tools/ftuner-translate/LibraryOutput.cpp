//===- LibraryOutput.cpp - --ftuner-to-library ----------------------------===//
#include "LibraryOutput.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/PTX/Ptxas.h"
#include "FTuner/Target/Manifest.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace ftuner::tool {

namespace {
constexpr llvm::StringLiteral kRuntimeName = "libftrt.so.1";
} // namespace

LibraryCommandLine::LibraryCommandLine(llvm::cl::OptionCategory &category)
    : emulator("emulator",
               llvm::cl::desc("The kernels are also compiled for the emulator"),
               llvm::cl::cat(category)),
      cubins(
          "cubins",
          llvm::cl::desc("The kernels are assembled for these architectures, "
                         "e.g. sm_90,sm_100; 'auto' takes the device's own "
                         "if ptxas is found"),
          llvm::cl::value_desc("architecture"), llvm::cl::CommaSeparated,
          llvm::cl::cat(category)),
      header("header",
             llvm::cl::desc(
                 "The C header is this file, by default beside the library"),
             llvm::cl::value_desc("file"), llvm::cl::Hidden,
             llvm::cl::cat(category)),
      libraryName("library-name",
                  llvm::cl::desc("The module object is NAME_module, with a C "
                                 "identifier instead of the file's name"),
                  llvm::cl::value_desc("name"), llvm::cl::Hidden,
                  llvm::cl::cat(category)),
      hostCpu("host-cpu",
              llvm::cl::desc("The host code is for this processor, by LLVM's "
                             "name or 'native', by default for a portable one"),
              llvm::cl::value_desc("name"), llvm::cl::Hidden,
              llvm::cl::cat(category)),
      rpath("rpath",
            llvm::cl::desc("A shared library looks for libftrt.so.1 in this "
                           "folder, besides its own"),
            llvm::cl::value_desc("folder"), llvm::cl::Hidden,
            llvm::cl::cat(category)) {}

llvm::Error LibraryCommandLine::expectNone(bool hasCubins) const {
  // cl::list has an operator & of its own.
  const llvm::cl::Option *options[] = {&emulator, std::addressof(cubins),
                                       &header,   &libraryName,
                                       &hostCpu,  &rpath};
  for (const llvm::cl::Option *option : options)
    if (option->getNumOccurrences() > 0 &&
        !(hasCubins && option == std::addressof(cubins)))
      return llvm::createStringError(
          "option --" + option->ArgStr +
          " has no effect without --ftuner-to-library");
  return llvm::Error::success();
}

/// The absolute path without `.` and `..`.
static std::string normalize(llvm::StringRef path) {
  llvm::SmallString<128> result(path);
  llvm::sys::fs::make_absolute(result);
  llvm::sys::path::remove_dots(result, /*remove_dot_dot=*/true);
  return result.str().str();
}

/// Names of the files and of the library.
static llvm::Error planNames(const LibraryCommandLine &commandLine,
                             llvm::StringRef output, LibraryPlan &plan) {
  llvm::StringRef extension = llvm::sys::path::extension(output);
  llvm::StringRef stem = llvm::sys::path::stem(output);
  stem.consume_front("lib");
  if ((extension != ".so" && extension != ".o") || stem.empty())
    return llvm::createStringError(
        "option -o: expected the name of a library, such as "
        "libmodel.so or model.o, but got '" +
        output + "'");
  plan.libraryPath = output.str();
  plan.options.isShared = extension == ".so";
  if (!plan.options.isShared && commandLine.rpath.getNumOccurrences() > 0)
    return llvm::createStringError(
        "option --rpath has no effect on an object file");

  // NAME_module must not be the type of that name.
  constexpr llvm::StringLiteral reserved = "ftrt";
  plan.options.name = toWord(stem);
  if (plan.options.name == reserved)
    plan.options.name = "f_" + plan.options.name;
  if (commandLine.libraryName.getNumOccurrences() > 0) {
    plan.options.name = commandLine.libraryName;
    if (toWord(plan.options.name) != plan.options.name ||
        plan.options.name == reserved)
      return llvm::createStringError(
          "option --library-name: expected a C identifier other "
          "than 'ftrt', but got '" +
          plan.options.name + "'");
  }

  llvm::SmallString<128> header(output);
  llvm::sys::path::remove_filename(header);
  llvm::sys::path::append(header, stem + ".h");
  plan.headerPath = header.str().str();
  if (commandLine.header.getNumOccurrences() > 0) {
    plan.headerPath = commandLine.header;
    if (plan.headerPath.empty() || plan.headerPath == "-")
      return llvm::createStringError(
          "option --header: expected the name of a file, but got "
          "'" +
          plan.headerPath + "'");
    if (normalize(plan.headerPath) == normalize(plan.libraryPath))
      return llvm::createStringError(
          "option --header: expected another file than the "
          "library, but got '" +
          plan.headerPath + "'");
  }
  return llvm::Error::success();
}

llvm::Error planCubins(const LibraryCommandLine &commandLine,
                       LibraryPlan &plan) {
  std::vector<std::string> names(commandLine.cubins.begin(),
                                 commandLine.cubins.end());
  if (names.empty())
    return llvm::Error::success();
  std::optional<std::string> ptxas = findPtxas();
  if (names == std::vector<std::string>{"auto"}) {
    plan.hasOwnCubin = ptxas.has_value();
  } else {
    llvm::Expected<std::vector<GpuArchitecture>> architectures =
        parseArchitectures(names);
    if (!architectures)
      return llvm::createStringError("option --cubins: " +
                                     llvm::toString(architectures.takeError()));
    plan.architectures = std::move(*architectures);
    if (!ptxas)
      return llvm::createStringError(
          "option --cubins: expected ptxas on PATH or in the "
          "folder bin of CUDA_HOME, but found none");
  }
  plan.ptxas = ptxas.value_or("");
  return llvm::Error::success();
}

/// Plans the linker's inputs for a shared library.
static llvm::Expected<LinkOptions> planLink(llvm::StringRef output,
                                            llvm::StringRef programPath) {
  llvm::SmallString<128> runtime(programPath);
  llvm::sys::path::remove_filename(runtime);
  llvm::sys::path::append(runtime, "..", "lib", kRuntimeName);
  if (!llvm::sys::fs::exists(runtime))
    return llvm::createStringError("expected the runtime library at '" +
                                   runtime + "', but found none");
  LinkOptions link;
  link.runtime = runtime.str().str();
  link.soname = llvm::sys::path::filename(output).str();
  return link;
}

llvm::Expected<LibraryPlan> planLibrary(const LibraryCommandLine &commandLine,
                                        llvm::StringRef output,
                                        llvm::StringRef programPath) {
  LibraryPlan plan;
  if (llvm::Error error = planNames(commandLine, output, plan))
    return error;
  plan.options.hasEmulatorImage = commandLine.emulator;
  plan.options.hostCpu = commandLine.hostCpu;
  if (llvm::Error error = planCubins(commandLine, plan))
    return error;
  if (!plan.options.isShared && !plan.options.hasEmulatorImage)
    return plan;
  llvm::Expected<std::string> linker = findLinker();
  if (!linker)
    return linker.takeError();
  plan.linker = std::move(*linker);
  if (!plan.options.isShared)
    return plan;
  llvm::Expected<LinkOptions> link = planLink(output, programPath);
  if (!link)
    return link.takeError();
  plan.link = std::move(*link);
  plan.link.rpath = commandLine.rpath;
  return plan;
}

llvm::Error writeLibrary(ModuleOp module, const LibraryPlan &plan) {
  if (failed(checkLibraryNames(module, plan.options)))
    return llvm::createStringError("writing the library failed");
  FailureOr<PtxImages> ptx = translateImages(module);
  if (failed(ptx))
    return llvm::createStringError("translation to PTX failed");

  LibraryOptions options = plan.options;
  if (!plan.architectures.empty()) {
    auto cubins = assembleCubins(module, *ptx, plan.ptxas, plan.architectures);
    if (failed(cubins))
      return llvm::createStringError("translation to cubins failed");
    options.cubins = std::move(*cubins);
  } else if (plan.hasOwnCubin) {
    llvm::Expected<LibraryCubin> cubin = assembleOwnCubin(ptx->own, plan.ptxas);
    if (cubin)
      options.cubins.push_back(std::move(*cubin));
    else
      emitWarning(UnknownLoc::get(module.getContext()),
                  "the library has PTX and no cubin: ")
          << llvm::toString(cubin.takeError());
  }

  ManifestOptions manifestOptions;
  manifestOptions.hasResources = !options.cubins.empty();
  std::string manifest;
  llvm::raw_string_ostream manifestStream(manifest);
  if (failed(writeManifest(module, *ptx, manifestOptions, manifestStream)))
    return llvm::createStringError("writing the manifest failed");

  FailureOr<std::vector<std::string>> objects =
      compileLibrary(module, *ptx, manifest, options);
  if (failed(objects))
    return llvm::createStringError("compiling the library failed");
  llvm::Expected<std::string> library =
      options.isShared ? linkSharedLibrary(plan.linker, *objects, plan.link)
                       : joinObjects(plan.linker, *objects);
  if (!library)
    return library.takeError();

  std::string header;
  llvm::raw_string_ostream headerStream(header);
  writeLibraryHeader(module, *ptx, llvm::sys::path::filename(plan.headerPath),
                     options.name, headerStream);
  return writeOutputs({{plan.libraryPath, std::move(*library)},
                       {plan.headerPath, std::move(header)}});
}

llvm::Expected<std::string> emulatedKernels(ModuleOp module,
                                            const PtxModule &ptx,
                                            llvm::StringRef path,
                                            llvm::StringRef programPath) {
  llvm::Expected<std::string> linker = findLinker();
  if (!linker)
    return linker.takeError();
  llvm::Expected<LinkOptions> link = planLink(path, programPath);
  if (!link)
    return link.takeError();
  LibraryOptions options;
  options.name = toWord(llvm::sys::path::stem(path));
  // A module without products needs none, and gets a library without any.
  options.hasEmulatorImage = !ptx.kernels.empty();
  FailureOr<std::vector<std::string>> objects =
      compileLibrary(module, {ptx, std::nullopt}, /*manifest=*/"{}", options);
  if (failed(objects))
    return llvm::createStringError(
        "compiling the kernels for the emulator failed");
  return linkSharedLibrary(*linker, *objects, *link);
}

} // namespace ftuner::tool
