# A port for vcpkg, as an overlay: vcpkg install ferrite --overlay-ports=packaging/vcpkg/ports. It was never run.
# It compiles the folder that it lies in; a port of a release takes an archive instead:
#   vcpkg_download_distfile(ARCHIVE URLS <address> FILENAME ferrite-${VERSION}.tar.gz SHA512 <its sum>)
#   vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${ARCHIVE}")
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    onnx FERRITE_WITH_ONNX
    png FERRITE_WITH_PNG
    tools FERRITE_BUILD_TOOLS)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${FEATURE_OPTIONS}
    -DFERRITE_BUILD_TESTS=OFF
    -DFERRITE_BUILD_EXAMPLES=OFF
    -DFERRITE_WITH_MPI=OFF
    -DFERRITE_WITH_C=OFF
    -DFERRITE_WERROR=OFF
    -DFERRITE_UNITY=ON)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME Ferrite CONFIG_PATH lib/cmake/Ferrite)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES ferrite AUTO_CLEAN)
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
