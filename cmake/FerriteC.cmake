# The C interface as a shared library, which contains the parts of the library that it uses and exports its own functions
# alone.
add_library(ferrite_c SHARED c_api/ferrite_c.cpp)
add_library(Ferrite::ferrite_c ALIAS ferrite_c)
target_compile_definitions(ferrite_c PRIVATE "FERRITE_VERSION=\"${PROJECT_VERSION}\"" "FERRITE_C_API=__attribute__((visibility(\"default\")))")
target_include_directories(ferrite_c PUBLIC
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/c_api>" "$<INSTALL_INTERFACE:include>")
target_link_libraries(ferrite_c PRIVATE $<BUILD_INTERFACE:ferrite>)
ferrite_set_flags(ferrite_c)
# The number is FERRITE_C_ABI of the header.
set_target_properties(ferrite_c PROPERTIES VERSION 1.0.0 SOVERSION 1)
if(WIN32)
  target_sources(ferrite_c PRIVATE c_api/ferrite_c.def)
  target_link_options(ferrite_c PRIVATE -static)  # no library of the compiler beside the DLL
  set_target_properties(ferrite_c PROPERTIES PREFIX "")  # ferrite_c.dll, as the list names it
elseif(APPLE)
  target_link_options(ferrite_c PRIVATE "-Wl,-exported_symbol,_ferrite_*" -Wl,-dead_strip)
else()
  target_link_options(ferrite_c PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/c_api/ferrite_c.map" -Wl,--gc-sections)
  set_target_properties(ferrite_c PROPERTIES LINK_DEPENDS "${PROJECT_SOURCE_DIR}/c_api/ferrite_c.map")
endif()
