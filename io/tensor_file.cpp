#include "ferrite/io/tensor_file.h"

#include "ferrite/io/detail/suggest.h"
#include "ferrite/io/detail/text.h"

namespace ferrite::io {

std::vector<std::string_view> TensorFile::names() const {
  std::vector<std::string_view> names;
  names.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) names.push_back(source_->name(i));
  return names;
}

TensorInfo TensorFile::info(std::string_view name) const { return source_->info(index_of(name)); }

Tensor TensorFile::tensor(std::string_view name) const { return source_->tensor(index_of(name)); }

Metadata TensorFile::metadata() const {
  Metadata all;
  for (const auto& [key, value] : source_->metadata()) all.emplace(key, value);
  return all;
}

std::size_t TensorFile::index_of(std::string_view name) const {
  if (const auto i = source_->find(name)) return *i;
  const std::string_view near = detail::nearest(name, names());
  const std::string advice = near.empty() ? "" : "; did you mean " + detail::quote(near) + "?";
  detail::refuse(where_, "no tensor of this name: " + detail::quote(name) + advice);
}

}  // namespace ferrite::io
