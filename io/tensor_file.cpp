/// Tensor files of any format: lookup, renaming, collecting.
#include "ferrite/io/tensor_file.h"

#include <unordered_map>

#include "ferrite/io/detail/file_dtype.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/suggest.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io {
namespace {

/// The tensors of another source under new names.
class RenamedSource final : public TensorSource {
 public:
  RenamedSource(std::shared_ptr<const TensorSource> of, const std::function<std::string(std::string_view)>& f,
                std::string_view where)
      : of_(std::move(of)) {
    for (std::size_t i = 0; i < of_->size(); ++i) {
      std::string name = f(of_->name(i));
      if (name.empty()) continue;
      if (!by_name_.emplace(name, names_.size()).second)
        detail::refuse(where, "two tensors are renamed to one name: " + detail::quote(name));
      names_.push_back({std::move(name), i});
    }
  }

  std::size_t size() const override { return names_.size(); }
  std::string_view name(std::size_t i) const override { return names_[i].first; }
  std::optional<std::size_t> find(std::string_view name) const override {
    const auto at = by_name_.find(std::string(name));
    return at == by_name_.end() ? std::nullopt : std::optional(at->second);
  }
  TensorInfo info(std::size_t i) const override { return of_->info(names_[i].second); }
  Tensor tensor(std::size_t i, Elements elements) const override { return of_->tensor(names_[i].second, elements); }
  std::vector<std::pair<std::string_view, std::string_view>> metadata() const override { return of_->metadata(); }

 private:
  std::shared_ptr<const TensorSource> of_;
  std::vector<std::pair<std::string, std::size_t>> names_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

class MemorySource final : public TensorSource {
 public:
  MemorySource(std::vector<NamedTensor> tensors, Metadata metadata, std::string_view where)
      : tensors_(std::move(tensors)), metadata_(std::move(metadata)) {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (!by_name_.emplace(tensors_[i].name, i).second)
        detail::refuse(where, "two tensors have one name: " + detail::quote(tensors_[i].name));
  }

  std::size_t size() const override { return tensors_.size(); }
  std::string_view name(std::size_t i) const override { return tensors_[i].name; }
  std::optional<std::size_t> find(std::string_view name) const override {
    const auto at = by_name_.find(std::string(name));
    return at == by_name_.end() ? std::nullopt : std::optional(at->second);
  }
  TensorInfo info(std::size_t i) const override {
    const Tensor& t = tensors_[i].tensor;
    const std::int64_t* extents = t.shape().begin();
    const detail::FileDtype type = detail::written_as(t.dtype());
    return {.dtype = std::string(detail::name_of(type)),
            .loads_as = detail::dtype_in_memory(type, Elements::for_computing),
            .stored_as = detail::dtype_in_memory(type, Elements::as_stored),
            .shape = {extents, extents + t.rank()},
            .bytes = static_cast<std::uint64_t>(t.numel() * size_of(t.dtype()))};
  }
  Tensor tensor(std::size_t i, Elements elements) const override {
    const Tensor& t = tensors_[i].tensor;
    return cast(t, *detail::dtype_in_memory(detail::written_as(t.dtype()), elements));
  }
  std::vector<std::pair<std::string_view, std::string_view>> metadata() const override {
    return {metadata_.begin(), metadata_.end()};
  }

 private:
  std::vector<NamedTensor> tensors_;
  Metadata metadata_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace

const TensorSource& TensorFile::source_of() const {
  if (!source_) throw Error("tensor file: has no contents: it was moved from, or made of a null source");
  return *source_;
}

std::vector<std::string_view> TensorFile::names() const& {
  std::vector<std::string_view> names;
  names.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) names.push_back(source_of().name(i));
  return names;
}

TensorInfo TensorFile::info(std::string_view name) const { return source_of().info(index_of(name)); }

Tensor TensorFile::tensor(std::string_view name, Elements elements) const {
  return source_of().tensor(index_of(name), elements);
}

Metadata TensorFile::metadata() const {
  Metadata all;
  for (const auto& [key, value] : source_of().metadata()) all.emplace(key, value);
  return all;
}

TensorFile TensorFile::renamed(const std::function<std::string(std::string_view)>& f) const {
  if (!f) throw ValueError("renamed: the function is null");
  (void)source_of();
  return {where_, std::make_shared<RenamedSource>(source_, f, where_)};
}

TensorFile TensorFile::keeping(std::vector<std::byte> bytes) const {
  struct Kept {
    std::vector<std::byte> bytes;
    std::shared_ptr<const TensorSource> source;
  };
  (void)source_of();
  const auto kept = std::make_shared<const Kept>(Kept{std::move(bytes), source_});
  return {where_, std::shared_ptr<const TensorSource>(kept, kept->source.get())};
}

std::size_t TensorFile::index_of(std::string_view name) const {
  if (const auto i = source_of().find(name)) return *i;
  detail::refuse(where_, "no tensor of this name: " + detail::quote(name) + detail::advice_on(name, names()));
}

TensorFile tensor_file_of(std::vector<NamedTensor> tensors, std::string where, Metadata metadata) {
  auto source = std::make_shared<MemorySource>(std::move(tensors), std::move(metadata), where);
  return {std::move(where), std::move(source)};
}

}  // namespace ferrite::io
