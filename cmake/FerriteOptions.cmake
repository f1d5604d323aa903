# Choices of the person who builds. As a subproject Ferrite builds the library alone.
set(FERRITE_ISA_LEVELS "all" CACHE STRING
    "Instruction sets that kernels are compiled for: all of the architecture, a list of them (x86-64: sse2;avx2;avx512), or native, this machine's alone")
option(FERRITE_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
option(FERRITE_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(FERRITE_BUILD_TOOLS "Build the ferrite command" ${PROJECT_IS_TOP_LEVEL})
option(FERRITE_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(FERRITE_BUILD_BENCH "Build the benchmarks" OFF)
option(FERRITE_BUILD_FUZZ "Build the fuzz targets with libFuzzer (clang)" OFF)
option(FERRITE_PRECOMPILE "Precompile the headers that most sources include" ${PROJECT_IS_TOP_LEVEL})
option(FERRITE_UNITY "Compile several sources together: a build from nothing is shorter, one after a change longer" OFF)
# FERRITE_WITH_PNG: build the component png. Unless it is said, a build of its own has it where libpng is found, and a
# subproject does without. Not kept in the cache: libpng may be installed later.
if(NOT DEFINED FERRITE_WITH_PNG)
  set(FERRITE_WITH_PNG OFF)
  if(PROJECT_IS_TOP_LEVEL)
    find_package(PNG 1.6 QUIET)
    set(FERRITE_WITH_PNG ${PNG_FOUND})
  endif()
endif()
# FERRITE_WITH_ONNX: build the component onnx, in the same manner: where the headers of protozero are found.
if(NOT DEFINED FERRITE_WITH_ONNX)
  set(FERRITE_WITH_ONNX OFF)
  find_path(FERRITE_PROTOZERO protozero/pbf_message.hpp)
  mark_as_advanced(FERRITE_PROTOZERO)
  if(PROJECT_IS_TOP_LEVEL AND FERRITE_PROTOZERO)
    set(FERRITE_WITH_ONNX ON)
  endif()
endif()
set(FERRITE_WITH_MPI "AUTO" CACHE STRING
    "Build ferrite::mpi, training on several ranks: ON, OFF, or AUTO, where MPI is found and Ferrite is not a subproject")
option(FERRITE_INSTALL "Make the install targets" ON)
set(FERRITE_SANITIZE "" CACHE STRING "Sanitizers: address,undefined or thread")

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, RelWithDebInfo or MinSizeRel" FORCE)
endif()

if(PROJECT_IS_TOP_LEVEL)
  find_program(FERRITE_CCACHE ccache)
  if(FERRITE_CCACHE)
    # What precompiled headers define does not depend on the source; without this nothing that uses them is kept.
    # They hold the sizes of their headers: one that was kept fits no longer once a comment has changed.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_COMMENTS=1 "${FERRITE_CCACHE}")
  endif()
endif()
