# cpack: Debian packages of what cmake --install installs, one for each component (docs/install.md#packages).
set(CPACK_GENERATOR DEB)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_NAME ferrite)
set(CPACK_PACKAGE_VENDOR "The Ferrite authors")
set(FERRITE_PACKAGER "The Ferrite authors <ferrite@localhost>" CACHE STRING "Name and address of who makes packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own, which CPack would put below this one
set(CPACK_PACKAGE_CONTACT "${FERRITE_PACKAGER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake")

# ferrite_package(COMPONENT PACKAGE SECTION SUMMARY TEXT [DEPENDS ...] [SUGGESTS ...]): what is installed as COMPONENT is
# the Debian package PACKAGE. Shared libraries that it needs are found by dpkg-shlibdeps.
set(CPACK_COMPONENTS_ALL)
function(ferrite_package component package section summary text)
  cmake_parse_arguments(arg "" "" "DEPENDS;SUGGESTS" ${ARGN})
  string(TOUPPER "${component}" upper)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_COMPONENTS_ALL "${CPACK_COMPONENTS_ALL}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SHLIBDEPS ON PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  foreach(field DEPENDS SUGGESTS)
    list(JOIN arg_${field} ", " packages)
    set(CPACK_DEBIAN_${upper}_PACKAGE_${field} "${packages}" PARENT_SCOPE)
  endforeach()
endfunction()

set(of_c)
if(TARGET ferrite_c)
  set(of_c "libferrite-c1 (= ${PROJECT_VERSION}-1)")
endif()
ferrite_package(ferrite_development libferrite-dev libdevel "neural networks on the CPU - headers and static library"
"Ferrite is a C++20 library that trains and runs neural networks, recurrent
ones above all, on the CPU: whole sequences, or one step at a time without
allocation.
.
This package has what programs are built with: headers, the static library,
and files for CMake and pkg-config."
  DEPENDS ${of_c} SUGGESTS ferrite libpng-dev)
if(TARGET ferrite_c)
  ferrite_package(ferrite_c_library libferrite-c1 libs "neural networks on the CPU - C interface"
"Ferrite is a C++20 library that trains and runs neural networks, recurrent
ones above all, on the CPU.
.
This package has the shared library with which programs in C and other
languages load networks from files, run them and stream them.")
endif()
if(TARGET ferrite_tool)
  ferrite_package(ferrite_command ferrite science "neural networks on the CPU - command"
"Ferrite is a C++20 library that trains and runs neural networks, recurrent
ones above all, on the CPU.
.
This package has the command ferrite, which trains networks, describes,
converts and measures them, and writes them as C sources.")
endif()
include(CPack)
