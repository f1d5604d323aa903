# Builds and runs one consumer: cmake -DKIND=... -DSOURCE=... -DBUILD=... -DWORK=... -DCOMPILER=... -DLAUNCHER=...
# -DWITH_PNG=... -P run.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
endfunction()

# The two that build the library themselves share a build tree that stays from run to run, configured afresh for each:
# what another run compiled has the same place and the same command, and Ninja compiles again what has changed since.
set(tree "${WORK}/${KIND}")
if(KIND STREQUAL "subdirectory" OR KIND STREQUAL "fetch_content")
  set(tree "${WORK}/from_source")
else()
  file(REMOVE_RECURSE "${tree}")
endif()
file(MAKE_DIRECTORY "${tree}")
set(program "${tree}/build/consumer")
set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} "${LAUNCHER}")  # ccache, or nothing

if(KIND STREQUAL "find_package" OR KIND STREQUAL "pkg_config")
  run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${tree}/prefix")
  file(RENAME "${tree}/prefix" "${tree}/moved")  # an installation may be moved
endif()
if(KIND STREQUAL "pkg_config")
  file(GLOB_RECURSE pc "${tree}/moved/*/ferrite.pc")
  cmake_path(GET pc PARENT_PATH folder)
  set(ENV{PKG_CONFIG_PATH} "${folder}")
  set(program "${tree}/consumer")
  run(sh -c "${COMPILER} -std=c++20 ${SOURCE}/tests/consumer/main.cpp -o ${program} $(pkg-config --cflags --libs ferrite)")
else()
  # Those that build the library build its kernels for this machine alone: all levels are those of the tests' own build.
  set(configure "${CMAKE_COMMAND}" --fresh -G Ninja -S "${SOURCE}/tests/consumer/${KIND}" -B "${tree}/build"
      "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${tree}/moved" "-DFERRITE_SOURCE=${SOURCE}"
      -DFERRITE_ISA_LEVELS=native)
  run(${configure})
  run("${CMAKE_COMMAND}" --build "${tree}/build" -j 2)
endif()
if(KIND STREQUAL "subdirectory")
  run(${configure})
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${tree}/build" -j 2 OUTPUT_VARIABLE steps COMMAND_ERROR_IS_FATAL ANY)
  if(steps MATCHES "/ferrite\\.dir/")
    message(FATAL_ERROR "a second run compiles the library again:\n${steps}")
  endif()
endif()
run("${program}")
if(KIND STREQUAL "find_package")
  run("${tree}/build/own_operations")
  # The component and its header are there, or neither is.
  file(GLOB_RECURSE header "${tree}/moved/*/ferrite/io/png.h")
  if(WITH_PNG)
    run("${tree}/build/pictures")
  elseif(header OR EXISTS "${tree}/build/pictures")
    message(FATAL_ERROR "the package has parts of a component that it was built without: ${header}")
  endif()
endif()
message("the consumer by ${KIND} ran")
