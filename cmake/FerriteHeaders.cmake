# <build>/include/ferrite/ has one link for each top-level folder, so that sources say "ferrite/tensor/tensor.h" before and
# after installation alike.
function(ferrite_link_headers components)
  set(folder "${PROJECT_BINARY_DIR}/include/ferrite")
  file(MAKE_DIRECTORY "${folder}")
  foreach(component ${components})
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${component}" "${folder}/${component}" SYMBOLIC)
  endforeach()
  foreach(header ferrite.h inference.h)
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${header}" "${folder}/${header}" SYMBOLIC)
  endforeach()
endfunction()
