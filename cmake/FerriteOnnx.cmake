# ferrite::onnx, ONNX files in and out (exchange/onnx*.h): a library of its own, so that nothing else needs protozero.
find_path(FERRITE_PROTOZERO protozero/pbf_message.hpp REQUIRED)
file(GLOB_RECURSE onnx_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/exchange/onnx/*.cpp"
     "${PROJECT_SOURCE_DIR}/exchange/onnx_export/*.cpp")
add_library(ferrite_onnx ${onnx_sources})
add_library(Ferrite::onnx ALIAS ferrite_onnx)
add_library(ferrite::onnx ALIAS ferrite_onnx)
ferrite_set_library_flags(ferrite_onnx)
ferrite_precompile(ferrite_onnx
  <algorithm> <array> <cmath> <cstdint> <cstring> <filesystem> <functional> <map> <memory> <optional> <span> <sstream>
  <string> <string_view> <unordered_map> <utility> <variant> <vector> <ferrite/tensor/ops.h>)
ferrite_unite(ferrite_onnx 12)
set_target_properties(ferrite_onnx PROPERTIES
  EXPORT_NAME onnx
  VERSION ${PROJECT_VERSION} SOVERSION ${FERRITE_SOVERSION}
  POSITION_INDEPENDENT_CODE ON
  WINDOWS_EXPORT_ALL_SYMBOLS ON)
target_include_directories(ferrite_onnx SYSTEM PRIVATE "${FERRITE_PROTOZERO}")
target_link_libraries(ferrite_onnx PUBLIC ferrite)
