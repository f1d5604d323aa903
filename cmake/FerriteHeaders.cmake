# <build>/include/ferrite/ holds one link for each room, so that sources say "ferrite/tensor/tensor.h" before and
# after installation alike.
function(ferrite_link_headers rooms)
  set(folder "${PROJECT_BINARY_DIR}/include/ferrite")
  file(MAKE_DIRECTORY "${folder}")
  foreach(room ${rooms})
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${room}" "${folder}/${room}" SYMBOLIC)
  endforeach()
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/ferrite.h" "${folder}/ferrite.h" SYMBOLIC)
endfunction()
