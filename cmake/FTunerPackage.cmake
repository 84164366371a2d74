# FTuner::Compiler: what a program links that runs FTuner's pipelines itself
# (docs/embedding.md). The other names are those of the installed package, too.
get_property(ftuner_compiler_libraries GLOBAL PROPERTY FTUNER_COMPILER_LIBRARIES)
add_library(FTunerCompiler INTERFACE)
set_target_properties(FTunerCompiler PROPERTIES EXPORT_NAME Compiler)
target_link_libraries(FTunerCompiler INTERFACE FTunerInitAll FTunerIree FTunerLibrary)
target_include_directories(FTunerCompiler INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
target_include_directories(FTunerCompiler SYSTEM INTERFACE
  "$<BUILD_INTERFACE:${MLIR_INCLUDE_DIRS}>" "$<BUILD_INTERFACE:${LLVM_INCLUDE_DIRS}>")

# The build tree has the layout of an installation, so that it serves as a prefix.
set(ftuner_runtime_headers
  ${PROJECT_SOURCE_DIR}/include/FTuner/Runtime/ftrt.h
  ${PROJECT_SOURCE_DIR}/include/FTuner/Runtime/EmulatorInterface.h)
foreach(header ${ftuner_runtime_headers})
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${header})
  configure_file(${header} ${PROJECT_BINARY_DIR}/${name} COPYONLY)
endforeach()
target_include_directories(ftrt INTERFACE
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)

add_library(FTuner::Compiler ALIAS FTunerCompiler)
add_library(FTuner::ftrt ALIAS ftrt)
foreach(name ftuner-opt ftuner-translate ftuner-run)
  add_executable(FTuner::${name} ALIAS ${name})
endforeach()
