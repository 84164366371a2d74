# What a user of FTuner needs, and no more: the tools, the runtime with its
# header, and the package for find_package(FTuner). The build tree has the same
# layout, so that it serves as a prefix, too.
#
# Tools find the runtime in ../lib, whatever the system calls its libraries'
# folder.
set(CMAKE_INSTALL_LIBDIR lib CACHE STRING "Folder of libraries")
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(ftuner_runtime_headers
  ${PROJECT_SOURCE_DIR}/include/FTuner/Runtime/ftrt.h
  ${PROJECT_SOURCE_DIR}/include/FTuner/Runtime/EmulatorInterface.h)
set(ftuner_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/FTuner)

# LLVM and MLIR are found where they were when the tools were built.
set_target_properties(ftuner-opt ftuner-translate ftuner-run FTunerPlugin ftuner_latency PROPERTIES
  INSTALL_RPATH_USE_LINK_PATH ON)

install(TARGETS ftrt EXPORT FTunerTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS ftuner-opt ftuner-translate ftuner-run EXPORT FTunerTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Opened at run time, never linked.
install(TARGETS ftuner_cuda_emulator
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/cuda-emulator)
install(TARGETS ftrt_emulator FTunerPlugin ftuner_latency
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
install(FILES ${ftuner_runtime_headers}
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/FTuner/Runtime)
install(EXPORT FTunerTargets NAMESPACE FTuner:: DESTINATION ${ftuner_package_dir})

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

# The build tree as a prefix.
target_include_directories(ftrt INTERFACE
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
foreach(header ${ftuner_runtime_headers})
  get_filename_component(name ${header} NAME)
  configure_file(${header} ${PROJECT_BINARY_DIR}/include/FTuner/Runtime/${name} COPYONLY)
endforeach()
export(EXPORT FTunerTargets NAMESPACE FTuner:: FILE ${ftuner_package}/FTunerTargets.cmake)
