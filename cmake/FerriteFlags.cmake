# Flags of every target of ours, all of them compiled for any processor of the architecture but kernels
# (FerriteKernels.cmake). No contraction behind our back and no fast math: docs/numerics.md, rule 4.
function(ferrite_set_flags target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  get_target_property(kind ${target} TYPE)
  if(NOT WIN32)  # where nothing is visible unless it is exported
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    if(kind STREQUAL "SHARED_LIBRARY")
      set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET default)
    endif()
  endif()
  target_compile_options(${target} PRIVATE
    -ffp-contract=off -fno-math-errno
    -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
  # The folder leaves no trace in what is shipped: the same sources give the same bytes anywhere (scripts/test-packages
  # reproducible). The last option that fits is the one that counts.
  target_compile_options(${target} PRIVATE
    "$<$<NOT:$<CONFIG:Debug>>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.;-ffile-prefix-map=${PROJECT_BINARY_DIR}=build>")
  if(FERRITE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # False alarms of g++ 12 on its own AVX-512 headers, on small arrays after inlining and on std::string.
    target_compile_options(${target} PRIVATE
      -Wno-maybe-uninitialized -Wno-uninitialized -Wno-ignored-attributes -Wno-array-bounds -Wno-restrict
      -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND WIN32)
    # Alarms about templates of the standard library. Windows aligns stacks to 16 bytes, but g++ stores vectors of 32 and
    # 64 bytes as if they were aligned to more: the assembler makes every such instruction one that needs no alignment,
    # which costs nothing where it is aligned.
    target_compile_options(${target} PRIVATE -Wno-attributes -Wa,-muse-unaligned-vector-move)
  endif()
  if(FERRITE_BUILD_FUZZ)  # libFuzzer sees only what is compiled so
    # which grows loops until some are not unrolled as they ask for
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link -Wno-pass-failed)
    target_link_options(${target} PUBLIC -fsanitize=fuzzer-no-link)
  endif()
  if(FERRITE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${FERRITE_SANITIZE} -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer -g1)
    target_link_options(${target} PUBLIC -fsanitize=${FERRITE_SANITIZE})
  endif()
endfunction()

# Flags of a library, kernels aside: a program that links it takes the functions that it reaches in place of whole objects,
# and a release is compiled with -O2: -O3, which kernels and the core have, takes a tenth more time and space here.
function(ferrite_set_library_flags target)
  ferrite_set_flags(${target})
  target_compile_options(${target} PRIVATE ${FERRITE_SECTIONS})
  if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3" AND FERRITE_SMALL)
    target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-Os>")
  elseif(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3" AND NOT "FASTEST" IN_LIST ARGN)
    target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-O2>")
  endif()
  target_link_options(${target} INTERFACE "$<$<PLATFORM_ID:Linux>:LINKER:--gc-sections>")
endfunction()
set(FERRITE_SECTIONS "$<$<CXX_COMPILER_ID:GNU,Clang>:-ffunction-sections;-fdata-sections>")

# Reads headers once for all sources of a target. A subproject does without.
function(ferrite_precompile target)
  if(NOT FERRITE_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endfunction()

# Reads headers once for many programs with equal flags: the first one has them, the others take them from it. `first`
# is the variable that names it.
function(ferrite_share_headers target first)
  if(NOT FERRITE_PRECOMPILE)
    return()
  endif()
  if(${first})
    target_precompile_headers(${target} REUSE_FROM ${${first}})
    target_compile_options(${target} PRIVATE "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  else()
    ferrite_precompile(${target} ${ARGN})
    set(${first} ${target} PARENT_SCOPE)
  endif()
endfunction()

# Compiles up to `size` sources of a target together where FERRITE_UNITY is on: neighbours share headers, templates and
# inline functions, which are half of what they cost. The sources in cmake/alone.txt share a name with a neighbour and
# are compiled by themselves.
function(ferrite_unite target size)
  if(NOT FERRITE_UNITY)
    return()
  endif()
  file(STRINGS "${PROJECT_SOURCE_DIR}/cmake/alone.txt" alone REGEX "^[^#]")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/alone.txt")
  get_target_property(sources ${target} SOURCES)
  set(folder_before)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE file)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    if(NOT file MATCHES "\\.cpp$")
      continue()
    endif()
    string(REGEX MATCH "^(tests/)?[^/]+" folder "${file}")
    if(NOT folder STREQUAL folder_before)
      set(place 0)
      set(folder_before "${folder}")
    endif()
    math(EXPR group "${place} / ${size}")
    math(EXPR place "${place} + 1")
    if(NOT file IN_LIST alone)
      string(MAKE_C_IDENTIFIER "${folder}_${group}" group)
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}")
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
