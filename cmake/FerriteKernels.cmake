# Kernels, the sources called *_kernel.cpp, are compiled once for each instruction set that a library has, with flags and
# a namespace of its own: a level (tensor/kernel/level.h). The objects of a level define nothing outside its namespaces,
# so that several can be linked into one library; tests/house/symbols_test.cpp reads them.

# The level that these options ask for.
function(ferrite_choose_level result)
  if(FERRITE_ISA)
    set(level "${FERRITE_ISA}")
  elseif(FERRITE_NATIVE)
    set(level native)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(level sse)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(level neon)
  else()
    set(level generic)
  endif()
  set(${result} ${level} PARENT_SCOPE)
endfunction()

# Adds the objects of a level to the library; what follows are flags of it alone.
function(ferrite_add_level library level)
  set(target ferrite_kernels_${level})
  add_library(${target} OBJECT ${FERRITE_KERNELS})
  ferrite_set_flags(${target})
  target_compile_definitions(${target} PRIVATE EIGEN_MPL2_ONLY FERRITE_LEVEL=${level} Eigen=ferrite_eigen_${level})
  target_include_directories(${target} PRIVATE "${PROJECT_BINARY_DIR}/include")
  target_link_libraries(${target} PRIVATE Eigen3::Eigen)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(${target} PRIVATE ${FERRITE_ALIGNED_FUNCTIONS} ${ARGN})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_sources(${library} PRIVATE $<TARGET_OBJECTS:${target}>)
endfunction()
