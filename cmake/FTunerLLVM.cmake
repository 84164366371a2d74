# Finds MLIR and LLVM 22, and says how FTuner's libraries link them.
#
# A project that embeds FTuner and has found MLIR already keeps what it found
# (MLIR_DIR). Otherwise MLIR_DIR or CMAKE_PREFIX_PATH name a tree, and Debian's
# packages and LLVM's own are found by themselves.
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "FTuner needs LLVM and MLIR 22, but found ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")
endif()
message(STATUS "Using MLIR ${LLVM_PACKAGE_VERSION} in ${MLIR_DIR}")

# One program must have MLIR once: programs that link MLIR's static libraries
# themselves need FTuner to do so, too.
if(TARGET MLIR)
  set(ftuner_has_dylib ON)
else()
  set(ftuner_has_dylib OFF)
endif()
option(FTUNER_LINK_MLIR_DYLIB "Link libMLIR, the shared library, instead of MLIR's static libraries"
  ${ftuner_has_dylib})
if(FTUNER_LINK_MLIR_DYLIB AND NOT TARGET MLIR)
  message(FATAL_ERROR "FTUNER_LINK_MLIR_DYLIB needs libMLIR, which the tree in ${MLIR_DIR} lacks")
endif()
if(FTUNER_BUILD_TESTS AND NOT FTUNER_LINK_MLIR_DYLIB)
  message(FATAL_ERROR "FTUNER_BUILD_TESTS needs FTUNER_LINK_MLIR_DYLIB: the plugin is tested with libMLIR")
endif()

if(LLVM_LINK_LLVM_DYLIB)
  set(FTUNER_LLVM_LIBS LLVM)
else()
  llvm_map_components_to_libnames(FTUNER_LLVM_LIBS
    Analysis AsmParser Core ExecutionEngine IPO Linker MC NVPTX OrcJIT Passes Support Target
    TargetParser TransformUtils native nativecodegen)
endif()
if(FTUNER_LINK_MLIR_DYLIB)
  set(FTUNER_MLIR_LIBS MLIR)
else()
  get_property(FTUNER_MLIR_LIBS GLOBAL PROPERTY MLIR_ALL_LIBS)
  list(FILTER FTUNER_MLIR_LIBS EXCLUDE REGEX "CAPI|Test|Tblgen|Lsp|Query|Reduce|Runner|runner")
endif()
