# cmake --install: public headers, the library, and files for find_package and pkg-config. Internal headers are not
# installed: those in folders called detail, and in subfolders other than those of nn/.
#
# Everything belongs to a component, by which packages are divided (FerritePackage.cmake): ferrite_development, all that
# programs are built with, unless a rule names another one; ferrite_c_library, the shared library of the C interface;
# ferrite_command, the command (tools/); and python.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME ferrite_development)

set(FERRITE_PACKAGE_FOLDER "${CMAKE_INSTALL_LIBDIR}/cmake/Ferrite")

# The way from the folder of .pc files up to the prefix, so that an installation may be moved.
string(REGEX REPLACE "[^/]+" ".." FERRITE_PC_UP "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# ferrite_install_component(NAME EXPORT HEADERS [LIBRARY component] [INCLUDE folder] [PKGCONFIG file]): installs a
# component, ferrite_<name>, and its headers where it was built: a build of some targets, as the demo's is, may be without
# it. Then the package says that it has no such component. A shared library belongs to LIBRARY, headers are placed into
# INCLUDE.
function(ferrite_install_component name export headers)
  cmake_parse_arguments(arg "" "LIBRARY;INCLUDE;PKGCONFIG" "" ${ARGN})
  set(folder "${PROJECT_BINARY_DIR}/install_${name}")
  add_subdirectory("${PROJECT_SOURCE_DIR}/cmake/component" "${folder}" EXCLUDE_FROM_ALL)
  install(CODE "if(EXISTS \"$<TARGET_FILE:ferrite_${name}>\")
    include(\"${folder}/cmake_install.cmake\")
  else()
    message(STATUS \"Not installed, because it was not built: the component ${name}\")
  endif()" ALL_COMPONENTS)
endfunction()

if(TARGET ferrite_c)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/ferrite_c.pc.in" "${PROJECT_BINARY_DIR}/ferrite_c.pc" @ONLY)
  ferrite_install_component(c C "${PROJECT_SOURCE_DIR}/c_api/ferrite_c.h" LIBRARY ferrite_c_library
    INCLUDE "${CMAKE_INSTALL_INCLUDEDIR}" PKGCONFIG "${PROJECT_BINARY_DIR}/ferrite_c.pc")
endif()
set(of_components)
if(TARGET ferrite_mpi)
  file(GLOB headers "${PROJECT_SOURCE_DIR}/distributed/*.h")
  ferrite_install_component(mpi Mpi "${headers}")
endif()
file(GLOB headers "${PROJECT_SOURCE_DIR}/io/png.h" "${PROJECT_SOURCE_DIR}/train/png_folder.h")
list(APPEND of_components ${headers})
if(FERRITE_WITH_PNG)
  ferrite_install_component(png Png "${headers}")
endif()
file(GLOB headers "${PROJECT_SOURCE_DIR}/exchange/onnx*.h")
list(APPEND of_components ${headers})
if(FERRITE_WITH_ONNX)
  ferrite_install_component(onnx Onnx "${headers}")
endif()

foreach(folder ${FERRITE_COMPONENTS} nn/layers nn/losses nn/optim nn/recurrent nn/stream)
  file(GLOB headers "${PROJECT_SOURCE_DIR}/${folder}/*.h")
  list(REMOVE_ITEM headers ${of_components})
  install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ferrite/${folder}")
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/tensor/system/per_thread.h"  # the one of its folder that others include
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ferrite/tensor/system")
install(FILES "${PROJECT_SOURCE_DIR}/ferrite.h" "${PROJECT_SOURCE_DIR}/inference.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ferrite")

install(TARGETS ferrite EXPORT FerriteTargets)
install(EXPORT FerriteTargets NAMESPACE Ferrite:: DESTINATION "${FERRITE_PACKAGE_FOLDER}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/FerriteConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/FerriteConfig.cmake" INSTALL_DESTINATION "${FERRITE_PACKAGE_FOLDER}"
                              PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/FerriteConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/FerriteConfig.cmake" "${PROJECT_BINARY_DIR}/FerriteConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FerriteFreeze.cmake"
        DESTINATION "${FERRITE_PACKAGE_FOLDER}")

set(FERRITE_PC_LINK)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(FERRITE_PC_LINK " -Wl,--gc-sections")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/ferrite.pc.in" "${PROJECT_BINARY_DIR}/ferrite.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/ferrite.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# The list of what is compiled in, where scripts/sbom.py has written one.
install(FILES "${PROJECT_BINARY_DIR}/ferrite.spdx.json" DESTINATION "${CMAKE_INSTALL_DATADIR}/ferrite" OPTIONAL)
unset(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME)
