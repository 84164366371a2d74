# What a user of FTuner needs, and no more: the tools, the runtime with its
# header, and the package for find_package(FTuner). The compiler's libraries and
# headers are the install component `compiler`, which is installed only if it is
# named: find_package(FTuner COMPONENTS Compiler).
#
# Tools find the runtime in ../lib, whatever the system calls its libraries'
# folder.
set(CMAKE_INSTALL_LIBDIR lib CACHE STRING "Folder of libraries")
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(ftuner_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/FTuner)

# Opened at run time, never linked.
set(ftuner_modules ftrt_emulator ftuner_latency ftuner_iree_plugin)
if(TARGET FTunerPlugin)
  list(APPEND ftuner_modules FTunerPlugin)
endif()
# LLVM and MLIR are found where they were when the tools were built.
set_target_properties(ftuner-opt ftuner-translate ftuner-run ${ftuner_modules} PROPERTIES
  INSTALL_RPATH_USE_LINK_PATH ON)

install(TARGETS ftrt EXPORT FTunerTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS ftuner-opt ftuner-translate ftuner-run EXPORT FTunerTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ftuner_cuda_emulator
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/cuda-emulator)
install(TARGETS ${ftuner_modules}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
install(FILES ${ftuner_runtime_headers}
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/FTuner/Runtime)
install(EXPORT FTunerTargets NAMESPACE FTuner:: DESTINATION ${ftuner_package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(ftuner_package ${PROJECT_BINARY_DIR}/lib/cmake/FTuner)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/FTunerConfig.cmake.in ${ftuner_package}/FTunerConfig.cmake
  INSTALL_DESTINATION ${ftuner_package_dir})
write_basic_package_version_file(${ftuner_package}/FTunerConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
configure_file(${CMAKE_CURRENT_LIST_DIR}/FTunerAddLibrary.cmake
  ${ftuner_package}/FTunerAddLibrary.cmake COPYONLY)
install(FILES
  ${ftuner_package}/FTunerConfig.cmake
  ${ftuner_package}/FTunerConfigVersion.cmake
  ${ftuner_package}/FTunerAddLibrary.cmake
  DESTINATION ${ftuner_package_dir})

# Programs that run FTuner's pipelines themselves.
install(TARGETS FTunerCompiler FTunerConversion ${ftuner_compiler_libraries}
  EXPORT FTunerCompilerTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT compiler EXCLUDE_FROM_ALL
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(directory ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  install(DIRECTORY ${directory}/include/FTuner DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    COMPONENT compiler EXCLUDE_FROM_ALL
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.td" PATTERN "*.inc")
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/FTunerCompiler.cmake.in
  ${ftuner_package}/FTunerCompiler.cmake @ONLY)
install(FILES ${ftuner_package}/FTunerCompiler.cmake DESTINATION ${ftuner_package_dir}
  COMPONENT compiler EXCLUDE_FROM_ALL)
install(EXPORT FTunerCompilerTargets NAMESPACE FTuner:: DESTINATION ${ftuner_package_dir}
  COMPONENT compiler EXCLUDE_FROM_ALL)

# The build tree as a prefix.
export(EXPORT FTunerTargets NAMESPACE FTuner:: FILE ${ftuner_package}/FTunerTargets.cmake)
export(EXPORT FTunerCompilerTargets NAMESPACE FTuner::
  FILE ${ftuner_package}/FTunerCompilerTargets.cmake)
