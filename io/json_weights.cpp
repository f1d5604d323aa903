#include "ferrite/io/json_weights.h"

#include "ferrite/io/detail/input_file.h"
#include "ferrite/io/detail/number_json.h"
#include "ferrite/io/detail/text.h"

namespace ferrite::io {

TensorFile parse_json_weights(std::span<const std::byte> bytes, std::string_view where) {
  using detail::JsonValue;
  JsonValue root = detail::read_number_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, where);
  if (root.kind != JsonValue::Kind::object) detail::refuse(where, "is not a JSON object of named lists of numbers");
  if (root.find("layers")) detail::refuse(where, "holds layers, not names and weights; read it with io::read_rtneural");
  std::vector<NamedTensor> tensors;
  for (auto& [name, value] : root.members) {
    if (value.kind == JsonValue::Kind::list)
      detail::refuse(where, detail::quote(name) + " is a ragged list: its rows differ in length, or are no numbers");
    if (value.kind != JsonValue::Kind::numbers) detail::refuse(where, detail::quote(name) + " is not made of numbers");
    tensors.push_back({std::move(name), Tensor::from(value.numbers, value.shape)});
    value = {};
  }
  return tensor_file_of(std::move(tensors), std::string(where));
}

TensorFile read_json_weights(const std::filesystem::path& path) {
  const detail::WholeFile file = detail::read_whole(path);
  return parse_json_weights(file.bytes.span(), file.where);
}

}  // namespace ferrite::io
