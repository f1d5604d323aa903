# Kernels, the sources called *_kernel.cpp, are compiled once for each instruction set that a library has, with flags and
# a namespace of its own: a level (tensor/kernel/level.h). The objects of a level define nothing outside its namespaces,
# so that all of them are linked into one library; tests/house/symbols_test.cpp reads them. Which level a process uses is
# decided at run time (tensor/kernel/levels.cpp).

# All levels of the architecture, the narrowest first.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(FERRITE_ALL_LEVELS sse2 avx2 avx512)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(FERRITE_ALL_LEVELS neon)
else()
  set(FERRITE_ALL_LEVELS generic)
endif()

# What processors of a level must have is what tensor/kernel/levels.cpp asks them for. The compilers schedule for what is
# common today.
set(FERRITE_FLAGS_sse2)
set(FERRITE_FLAGS_avx2 -mavx2 -mfma -mbmi -mbmi2)
set(FERRITE_FLAGS_avx512 ${FERRITE_FLAGS_avx2} -mavx512f -mavx512vl -mavx512dq -mavx512bw -mavx512cd)
set(FERRITE_FLAGS_neon)
set(FERRITE_FLAGS_generic)
set(FERRITE_FLAGS_native -march=native)

# The levels that FERRITE_ISA_LEVELS asks for, the narrowest first.
function(ferrite_choose_levels result)
  if(FERRITE_ISA_LEVELS STREQUAL "all")
    set(levels ${FERRITE_ALL_LEVELS})
  elseif(FERRITE_ISA_LEVELS STREQUAL "native")
    set(levels native)
  else()
    set(levels ${FERRITE_ALL_LEVELS})
    foreach(level ${FERRITE_ISA_LEVELS})
      if(NOT level IN_LIST FERRITE_ALL_LEVELS)
        message(FATAL_ERROR "FERRITE_ISA_LEVELS: no such instruction set: '${level}'; "
                            "there are all, native, or some of ${FERRITE_ALL_LEVELS}")
      endif()
    endforeach()
    foreach(level ${FERRITE_ALL_LEVELS})
      if(NOT level IN_LIST FERRITE_ISA_LEVELS)
        list(REMOVE_ITEM levels ${level})
      endif()
    endforeach()
    if(NOT levels)
      message(FATAL_ERROR "FERRITE_ISA_LEVELS is empty; there are all, native, or some of ${FERRITE_ALL_LEVELS}")
    endif()
  endif()
  set(${result} ${levels} PARENT_SCOPE)
endfunction()

# Adds levels to the library: the objects of each, and the header that names them all.
function(ferrite_add_levels library levels)
  list(LENGTH levels count)
  foreach(level ${levels})
    set(target ferrite_kernels_${level})
    add_library(${target} OBJECT ${FERRITE_KERNELS})
    ferrite_set_flags(${target})
    target_compile_definitions(${target} PRIVATE FERRITE_LEVEL=${level})
    if(level STREQUAL "avx512" AND "avx2" IN_LIST levels)
      target_compile_definitions(${target} PRIVATE FERRITE_ABOVE_AVX2)
    endif()
    target_include_directories(${target} PRIVATE "${PROJECT_BINARY_DIR}/include")
    target_compile_features(${target} PRIVATE cxx_std_20)
    target_compile_options(${target} PRIVATE ${FERRITE_CODE_OPTIONS} ${FERRITE_SECTIONS} ${FERRITE_FLAGS_${level}})
    if(count GREATER 1)
      # Functions of headers that all levels use are inlined only when optimizing. Where they are not, the linker takes
      # one level's for all, which a processor may not have the instructions for.
      target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Release,RelWithDebInfo>>:-O2>)
    endif()
    # Processors without AVX2 are rare: for them the smaller code.
    if(FERRITE_SMALL AND level STREQUAL "sse2" AND count GREATER 1)
      target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-Os>")
    endif()
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:${target}>)
  endforeach()
  list(TRANSFORM levels REPLACE "(.+)" "f(\\1)" OUTPUT_VARIABLE calls)
  list(JOIN calls " " FERRITE_LEVEL_CALLS)
  list(TRANSFORM levels REPLACE "(.+)" "f(\\1, __VA_ARGS__)" OUTPUT_VARIABLE calls)
  list(JOIN calls " " FERRITE_LEVEL_CALLS_WITH)
  list(TRANSFORM levels REPLACE "(.+)" "\\1" OUTPUT_VARIABLE to_avx2)
  if("avx2" IN_LIST levels)
    list(TRANSFORM to_avx2 REPLACE "avx512" "avx2")
  endif()
  list(TRANSFORM to_avx2 REPLACE "(.+)" "f(\\1, __VA_ARGS__)" OUTPUT_VARIABLE calls)
  list(JOIN calls " " FERRITE_LEVEL_TO_AVX2_CALLS_WITH)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/levels.h.in" "${PROJECT_BINARY_DIR}/levels/ferrite_levels.h" @ONLY)
  target_include_directories(${library} PRIVATE "${PROJECT_BINARY_DIR}/levels")
endfunction()
