# cmake --install: public headers, the library, and files for find_package and pkg-config. Internal headers are not
# installed: those in folders called detail, and in subfolders other than those of nn/.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

foreach(component ${FERRITE_COMPONENTS})
  file(GLOB headers "${PROJECT_SOURCE_DIR}/${component}/*.h")
  if(NOT FERRITE_WITH_PNG)
    list(FILTER headers EXCLUDE REGEX "/(io/png|train/png_folder)\\.h$")
  endif()
  install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ferrite/${component}")
endforeach()
foreach(component nn/layers nn/losses nn/optim nn/recurrent nn/stream)
  file(GLOB headers "${PROJECT_SOURCE_DIR}/${component}/*.h")
  install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ferrite/${component}")
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/ferrite.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ferrite")

install(TARGETS ferrite EXPORT FerriteTargets)
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/Ferrite")
if(TARGET ferrite_mpi)
  file(GLOB headers "${PROJECT_SOURCE_DIR}/distributed/*.h")
  install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ferrite/distributed")
  install(TARGETS ferrite_mpi EXPORT FerriteMpiTargets)
  install(EXPORT FerriteMpiTargets NAMESPACE Ferrite:: DESTINATION "${package_folder}")
endif()
install(EXPORT FerriteTargets NAMESPACE Ferrite:: DESTINATION "${package_folder}")
if(FERRITE_WITH_PNG)
  install(TARGETS ferrite_png EXPORT FerritePngTargets)
  install(EXPORT FerritePngTargets NAMESPACE Ferrite:: DESTINATION "${package_folder}")
endif()
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/FerriteConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/FerriteConfig.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/FerriteConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/FerriteConfig.cmake" "${PROJECT_BINARY_DIR}/FerriteConfigVersion.cmake"
        DESTINATION "${package_folder}")

# The way from the folder of ferrite.pc up to the prefix, so that an installation may be moved.
string(REGEX REPLACE "[^/]+" ".." FERRITE_PC_UP "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
configure_file("${PROJECT_SOURCE_DIR}/cmake/ferrite.pc.in" "${PROJECT_BINARY_DIR}/ferrite.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/ferrite.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
