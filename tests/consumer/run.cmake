# Builds and runs one consumer: cmake -DKIND=... -DSOURCE=... -DBUILD=... -DWORK=... -DCOMPILER=... -DLAUNCHER=... -P run.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
endfunction()

# The two that build the library themselves share a build tree, configured afresh for each: what the first one compiled
# has the same place and the same command in the second.
set(tree "${WORK}/${KIND}")
if(KIND STREQUAL "subdirectory" OR KIND STREQUAL "fetch_content")
  set(tree "${WORK}/from_source")
endif()
if(NOT KIND STREQUAL "fetch_content")
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
  run("${CMAKE_COMMAND}" --fresh -G Ninja -S "${SOURCE}/tests/consumer/${KIND}" -B "${tree}/build"
      "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${tree}/moved" "-DFERRITE_SOURCE=${SOURCE}")
  run("${CMAKE_COMMAND}" --build "${tree}/build" -j 2)
endif()
run("${program}")
if(KIND STREQUAL "find_package")
  run("${tree}/build/own_operations")
endif()
message("the consumer by ${KIND} ran")
