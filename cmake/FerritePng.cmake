# The component png: reads and writes PNG files by libpng (io/png.h), and makes data sets of them (train/png_folder.h). A
# library of its own, so that nothing else needs libpng.
find_package(PNG 1.6 REQUIRED)
file(GLOB png_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/io/png/*.cpp"
     "${PROJECT_SOURCE_DIR}/train/png/*.cpp")
add_library(ferrite_png ${png_sources})
add_library(Ferrite::png ALIAS ferrite_png)
ferrite_set_library_flags(ferrite_png)
set_target_properties(ferrite_png PROPERTIES
  EXPORT_NAME png
  VERSION ${PROJECT_VERSION} SOVERSION ${FERRITE_SOVERSION}
  POSITION_INDEPENDENT_CODE ON
  WINDOWS_EXPORT_ALL_SYMBOLS ON)
target_link_libraries(ferrite_png PUBLIC ferrite PRIVATE PNG::PNG)
