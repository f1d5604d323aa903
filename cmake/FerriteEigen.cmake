# Eigen is used by programs that include tensor/eigen.h, by tests and by benchmarks; the library needs none.

# ferrite_find_eigen(REQUIRED|QUIET): Eigen 3.4 or any 5. Version 3.4 knows no ranges of versions, and 5 is not "the same
# major version".
macro(ferrite_find_eigen how)
  find_package(Eigen3 5 QUIET NO_MODULE)
  if(NOT Eigen3_FOUND)
    find_package(Eigen3 3.4 ${how} NO_MODULE)
  endif()
endmacro()
