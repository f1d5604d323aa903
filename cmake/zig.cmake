# Cross-compiles with `zig c++`, a clang that brings the headers and libraries of its targets. FERRITE_ZIG_TARGET is the
# target: x86_64-windows-gnu (the universal C runtime), aarch64-macos, x86_64-macos or x86_64-linux-musl. FERRITE_ZIG is
# the program where it is not on the path: the package ziglang of PyPI has it in its folder.
set(FERRITE_ZIG_TARGET "x86_64-windows-gnu" CACHE STRING "Target of zig c++")
find_program(FERRITE_ZIG zig REQUIRED NO_CMAKE_FIND_ROOT_PATH)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES FERRITE_ZIG FERRITE_ZIG_TARGET FERRITE_SYSROOT)

if(NOT FERRITE_ZIG_TARGET MATCHES "^([a-z0-9_]+)-(windows|macos|linux)")
  message(FATAL_ERROR "FERRITE_ZIG_TARGET: no such target: '${FERRITE_ZIG_TARGET}'; "
                      "there are x86_64-windows-gnu, aarch64-macos, x86_64-macos and x86_64-linux-musl")
endif()
set(CMAKE_SYSTEM_PROCESSOR "${CMAKE_MATCH_1}")
if(CMAKE_MATCH_2 STREQUAL "windows")
  set(CMAKE_SYSTEM_NAME Windows)
  set(CMAKE_CROSSCOMPILING_EMULATOR wine)
elseif(CMAKE_MATCH_2 STREQUAL "macos")
  set(CMAKE_SYSTEM_NAME Darwin)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(CMAKE_SYSTEM_PROCESSOR arm64)
  endif()
else()
  set(CMAKE_SYSTEM_NAME Linux)
endif()

# Unless it is told not to, zig traps undefined behaviour in builds without optimization.
foreach(language C CXX)
  set(CMAKE_${language}_COMPILER_TARGET "${FERRITE_ZIG_TARGET}")
  set(CMAKE_${language}_FLAGS_INIT "-fno-sanitize=undefined")
endforeach()
set(CMAKE_C_COMPILER "${FERRITE_ZIG}" cc)
set(CMAKE_CXX_COMPILER "${FERRITE_ZIG}" c++)

# CMake calls these tools by a name of one word.
foreach(tool ar ranlib rc dlltool)
  string(TOUPPER "${tool}" variable)
  set(wrapper "${CMAKE_BINARY_DIR}/zig-${tool}")
  file(WRITE "${wrapper}" "#!/bin/sh\nexec '${FERRITE_ZIG}' ${tool} \"$@\"\n")
  file(CHMOD "${wrapper}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  if(tool STREQUAL "rc")
    set(CMAKE_RC_COMPILER "${wrapper}")
  else()
    set(CMAKE_${variable} "${wrapper}" CACHE FILEPATH "zig ${tool}" FORCE)
  endif()
endforeach()

# FERRITE_SYSROOT is a folder with the headers that need no library: nlohmann, Eigen, Boost.
set(CMAKE_FIND_ROOT_PATH "${FERRITE_SYSROOT}" "${FERRITE_SYSROOT}/usr")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
