/// Data sets: their columns, the sources of their examples, and how several examples become a batch.
#include "ferrite/train/dataset.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ferrite/train/detail/fingerprints.h"

// ---- columns -------------------------------------------------------------------------------------------

namespace ferrite::train {
namespace {

/// Returns the first step of each sequence, then the end of the last one.
std::vector<std::int64_t> begins_of(const Tensor& steps, const Tensor& lengths) {
  if (steps.rank() < 1) throw ShapeError("sequences: steps must be [N, ...], got " + steps.shape().str());
  if (lengths.rank() != 1) throw ShapeError("sequences: lengths must be [N], got " + lengths.shape().str());
  if (!is_integer(lengths.dtype()))
    throw DtypeError("sequences: lengths must be i64 or i32, got " + lengths.spec().str());
  const std::int64_t there = steps.shape()[0];
  std::vector<std::int64_t> begins{0};
  for (const std::int64_t n : cast(lengths, Dtype::i64).to_vector<std::int64_t>()) {
    if (n < 0) throw ShapeError("sequences: a length of " + std::to_string(n));
    if (n > there - begins.back())
      throw ShapeError("sequences: lengths add up to more than the " + std::to_string(there) + " steps");
    begins.push_back(begins.back() + n);
  }
  if (begins.back() != there)
    throw ShapeError("sequences: lengths add up to " + std::to_string(begins.back()) + ", there are " +
                     std::to_string(there) + " steps");
  return begins;
}

}  // namespace

Column::Column(Tensor rows) : all_(std::move(rows)), size_(0) {
  if (all_.rank() < 1) throw ShapeError("data set: a column must be [N, ...], got a tensor of rank 0");
  size_ = all_.shape()[0];
}

Column::Column(Tensor steps, const Tensor& lengths, double padding)
    : all_(std::move(steps)), field_{.sequence = true, .padding = padding}, begins_(begins_of(all_, lengths)) {
  size_ = static_cast<std::int64_t>(begins_.size()) - 1;
}

std::int64_t Column::length(std::int64_t i) const {
  const auto at = static_cast<std::size_t>(i);
  return field_.sequence ? begins_[at + 1] - begins_[at] : 0;
}

Tensor Column::operator[](std::int64_t i) const {
  if (!field_.sequence) return all_[i];
  const auto at = static_cast<std::size_t>(i);
  return slice(all_, 0, begins_[at], begins_[at + 1]);
}

Tensor Column::rows(std::span<const std::int64_t> examples) const {
  const bool adjacent = std::adjacent_find(examples.begin(), examples.end(),
                                           [](std::int64_t a, std::int64_t b) { return b != a + 1; }) == examples.end();
  if (adjacent) return slice(all_, 0, examples.front(), examples.back() + 1);
  return index_select(all_, 0,
                      Tensor::from(std::vector<std::int64_t>(examples.begin(), examples.end()),
                                   {static_cast<std::int64_t>(examples.size())}));
}

Column sequences(Tensor steps, const Tensor& lengths, double padding) { return {std::move(steps), lengths, padding}; }

Column sequences(std::span<const Tensor> each, double padding) {
  if (each.empty()) throw ValueError("sequences: there are none");
  std::vector<std::int64_t> lengths;
  for (const Tensor& x : each) {
    if (x.rank() < 1) throw ShapeError("sequences: each must be [T, ...], got a tensor of rank 0");
    lengths.push_back(x.shape()[0]);
  }
  const auto n = static_cast<std::int64_t>(lengths.size());
  return {concat(each, 0), Tensor::from(lengths, {n}), padding};
}

std::uint64_t Column::hash() const {
  const std::uint64_t h = detail::typed_hash_of(all_);
  if (!field_.sequence) return h;
  return detail::hash_of(Tensor::from(begins_, {static_cast<std::int64_t>(begins_.size())}), h);
}

// ---- data sets -----------------------------------------------------------------------------------------

namespace {

void check_index(const char* where, std::int64_t i, std::int64_t n) {
  if (i < 0 || i >= n)
    throw ShapeError(std::string(where) + ": there is no example " + std::to_string(i) + ", there are " +
                     std::to_string(n));
}

/// Returns the shape without the first extent of sequences, in which they may differ.
Shape inner(const Tensor& x, const Field& field) {
  Shape s = x.shape();
  if (field.sequence && s.rank() > 0) s[0] = 0;
  return s;
}

/// Stacks tensors of equal inner shapes along a new first axis; sequences are padded to `extent`.
Tensor joined(std::span<const Tensor> parts, const Field& field, std::int64_t extent) {
  Shape shape = parts[0].shape();
  if (field.sequence) shape[0] = extent;
  const std::int64_t row = shape.numel();
  shape.insert(0, static_cast<std::int64_t>(parts.size()));
  return visit_dtype(parts[0].dtype(), [&](auto type) {
    using T = decltype(type);
    return Tensor::build<T>(shape, [&](std::span<T> out) {
      auto at = out.begin();
      for (const Tensor& part : parts) {
        const Tensor x = contiguous(part);
        const auto end = std::copy(x.data<T>(), x.data<T>() + x.numel(), at);
        at += row;
        std::fill(end, at, static_cast<T>(field.padding));
      }
    });
  });
}

/// Joins examples field by field. Throws ShapeError when they do not fit each other.
Batch join(std::span<const Tensors> examples, const std::vector<Field>& fields, std::int64_t least_length) {
  Batch batch;
  std::vector<Tensor> parts(examples.size());
  for (std::size_t f = 0; f < fields.size(); ++f) {
    std::vector<std::int64_t> lengths;
    for (std::size_t k = 0; k < examples.size(); ++k) {
      if (examples[k].size() != fields.size())
        throw ShapeError("batch: an example has " + std::to_string(examples[k].size()) + " fields, the data set " +
                         std::to_string(fields.size()));
      parts[k] = examples[k][f];
      if (fields[f].sequence && parts[k].rank() < 1)
        throw ShapeError("batch: field " + std::to_string(f) + " is a sequence and must be [T, ...], got rank 0");
      if (parts[k].dtype() != parts[0].dtype() || inner(parts[k], fields[f]) != inner(parts[0], fields[f]))
        throw ShapeError("batch: field " + std::to_string(f) + " differs between examples: " + parts[0].spec().str() +
                         " and " + parts[k].spec().str() +
                         (fields[f].sequence ? "" : "; say that it is a sequence, or cut examples to one size"));
      if (fields[f].sequence) lengths.push_back(parts[k].shape()[0]);
    }
    const std::int64_t longest =
        fields[f].sequence ? std::max(least_length, *std::max_element(lengths.begin(), lengths.end())) : 0;
    batch.fields.push_back(joined(parts, fields[f], longest));
    const auto B = static_cast<std::int64_t>(lengths.size());
    batch.lengths.push_back(fields[f].sequence ? Tensor::from(lengths, {B}) : Tensor());
  }
  return batch;
}

ExampleKey nth(const ExampleKey& key, std::size_t n) { return {key.seed, key.epoch, key.place + n}; }

class Columns final : public Dataset::Source {
 public:
  explicit Columns(std::vector<Column> columns) : columns_(std::move(columns)) {
    if (columns_.empty()) throw ValueError("data set: it needs a column at least");
    for (const Column& c : columns_) {
      if (c.size() != columns_[0].size())
        throw ShapeError("data set: columns of " + std::to_string(columns_[0].size()) + " and " +
                         std::to_string(c.size()) + " examples");
      fields_.push_back(c.field());
    }
  }
  std::int64_t size() const override { return columns_[0].size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  Tensors example(std::int64_t i, const ExampleKey&) const override {
    Tensors out;
    for (const Column& c : columns_) out.push_back(c[i]);
    return out;
  }
  std::int64_t length(std::int64_t i) const override {
    std::int64_t longest = 0;
    for (const Column& c : columns_)
      if (c.field().sequence) longest = std::max(longest, c.length(i));
    return longest;
  }
  Batch batch(std::span<const std::int64_t> examples, const ExampleKey&, std::int64_t least_length) const override {
    Batch batch;
    for (const Column& c : columns_) {
      if (!c.field().sequence) {
        batch.fields.push_back(c.rows(examples));
        batch.lengths.emplace_back();
        continue;
      }
      std::vector<Tensors> parts;
      for (const std::int64_t i : examples) parts.push_back({c[i]});
      Batch one = join(parts, {c.field()}, least_length);
      batch.fields.push_back(std::move(one.fields[0]));
      batch.lengths.push_back(std::move(one.lengths[0]));
    }
    return batch;
  }
  std::string fingerprint() const override {
    std::uint64_t h = detail::kHash;
    for (const Column& c : columns_) h = detail::hash_of(full({}, c.field().padding, Dtype::f64), h) ^ c.hash();
    return detail::types_of(*this) + " (" + detail::digits_of(h) + ")";
  }

 private:
  std::vector<Column> columns_;
  std::vector<Field> fields_;
};

class Computed final : public Dataset::Source {
 public:
  Computed(std::int64_t size, std::function<Tensors(std::int64_t)> f, std::vector<Field> fields)
      : size_(size), f_(std::move(f)), fields_(std::move(fields)) {
    if (size < 0) throw ValueError("data set: a size of " + std::to_string(size));
    if (!f_) throw ValueError("data set: the function is null");
    if (fields_.empty()) fields_.resize(size > 0 ? f_(0).size() : 1);
  }
  std::int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  Tensors example(std::int64_t i, const ExampleKey&) const override { return f_(i); }

 private:
  std::int64_t size_;
  std::function<Tensors(std::int64_t)> f_;
  std::vector<Field> fields_;
};

using SharedSource = std::shared_ptr<const Dataset::Source>;

class Subset final : public Dataset::Source {
 public:
  Subset(SharedSource of, std::vector<std::int64_t> examples) : of_(std::move(of)), examples_(std::move(examples)) {
    for (const std::int64_t i : examples_) check_index("data set: subset", i, of_->size());
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(examples_.size()); }
  const std::vector<Field>& fields() const override { return of_->fields(); }
  Tensors example(std::int64_t i, const ExampleKey& key) const override { return of_->example(there(i), key); }
  std::int64_t length(std::int64_t i) const override { return of_->length(there(i)); }
  Batch batch(std::span<const std::int64_t> examples, const ExampleKey& key, std::int64_t least) const override {
    std::vector<std::int64_t> of;
    for (const std::int64_t i : examples) of.push_back(there(i));
    return of_->batch(of, key, least);
  }
  std::string fingerprint() const override {
    const auto n = static_cast<std::int64_t>(examples_.size());
    return of_->fingerprint() + ", chosen (" + detail::digits_of(detail::hash_of(Tensor::from(examples_, {n}))) + ")";
  }

 private:
  std::int64_t there(std::int64_t i) const { return examples_[static_cast<std::size_t>(i)]; }

  SharedSource of_;
  std::vector<std::int64_t> examples_;
};

class Changed final : public Dataset::Source {
 public:
  using Change = std::function<Tensors(const Tensors&, const ExampleKey&)>;
  Changed(SharedSource of, Change f, std::vector<Field> fields)
      : of_(std::move(of)), f_(std::move(f)), fields_(fields.empty() ? of_->fields() : std::move(fields)) {}
  std::int64_t size() const override { return of_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  Tensors example(std::int64_t i, const ExampleKey& key) const override { return f_(of_->example(i, key), key); }
  std::string fingerprint() const override { return of_->fingerprint() + ", changed to " + Source::fingerprint(); }

 private:
  SharedSource of_;
  Change f_;
  std::vector<Field> fields_;
};

class Both final : public Dataset::Source {
 public:
  Both(SharedSource first, SharedSource second) : first_(std::move(first)), second_(std::move(second)) {
    if (first_->fields() != second_->fields())
      throw ValueError("data set: the fields of the two sets differ in number, or in which are sequences");
  }
  std::int64_t size() const override { return first_->size() + second_->size(); }
  const std::vector<Field>& fields() const override { return first_->fields(); }
  Tensors example(std::int64_t i, const ExampleKey& key) const override {
    const std::int64_t n = first_->size();
    return i < n ? first_->example(i, key) : second_->example(i - n, key);
  }
  std::int64_t length(std::int64_t i) const override {
    const std::int64_t n = first_->size();
    return i < n ? first_->length(i) : second_->length(i - n);
  }
  std::string fingerprint() const override { return first_->fingerprint() + " and " + second_->fingerprint(); }

 private:
  SharedSource first_, second_;
};

}  // namespace

RandomKey ExampleKey::operator()(std::string_view name) const {
  return {.seed = seed, .stream = stream_of(std::string(name) + '@' + std::to_string(epoch)), .call = place};
}

const Tensor& Batch::field(std::size_t i) const {
  if (i >= fields.size())
    throw ValueError("batch: there is no field " + std::to_string(i) + ", examples have " +
                     std::to_string(fields.size()));
  return fields[i];
}

Tensor Batch::target_lengths() const {
  if (lengths.size() > 1 && lengths[1].defined()) return lengths[1];
  if (fields.size() < 2 || !lengths[0].defined() || fields[1].rank() < 2) return {};
  return fields[1].shape()[1] == fields[0].shape()[1] ? lengths[0] : Tensor();
}

std::int64_t Dataset::Source::length(std::int64_t i) const {
  const std::vector<Field>& all = fields();
  if (std::none_of(all.begin(), all.end(), [](const Field& f) { return f.sequence; })) return 0;
  const Tensors e = example(i, {});
  std::int64_t longest = 0;
  for (std::size_t f = 0; f < all.size() && f < e.size(); ++f)
    if (all[f].sequence) longest = std::max(longest, e[f].size(0));
  return longest;
}

std::string Dataset::Source::fingerprint() const { return detail::types_of(*this) + detail::samples_of(*this); }

Batch Dataset::Source::batch(std::span<const std::int64_t> examples, const ExampleKey& key,
                             std::int64_t least_length) const {
  std::vector<Tensors> parts;
  parts.reserve(examples.size());
  for (std::size_t k = 0; k < examples.size(); ++k) parts.push_back(example(examples[k], nth(key, k)));
  return join(parts, fields(), least_length);
}

Dataset::Dataset(std::shared_ptr<const Source> source) : source_(std::move(source)) {
  if (!source_) throw ValueError("data set: the source is null");
}
Dataset::Dataset(std::vector<Column> columns) : source_(std::make_shared<Columns>(std::move(columns))) {}
Dataset::Dataset(std::int64_t size, std::function<Tensors(std::int64_t)> example, std::vector<Field> fields)
    : source_(std::make_shared<Computed>(size, std::move(example), std::move(fields))) {}

Dataset Dataset::collect(const std::function<std::optional<Tensors>()>& next, std::vector<Field> fields) {
  const auto all = std::make_shared<std::vector<Tensors>>();
  while (std::optional<Tensors> e = next()) all->push_back(std::move(*e));
  const auto n = static_cast<std::int64_t>(all->size());
  return {n, [all](std::int64_t i) { return (*all)[static_cast<std::size_t>(i)]; }, std::move(fields)};
}

Tensors Dataset::operator[](std::int64_t i) const {
  check_index("data set", i, size());
  return source_->example(i, {});
}
std::int64_t Dataset::length(std::int64_t i) const {
  check_index("data set", i, size());
  return source_->length(i);
}

std::string Dataset::fingerprint() const {
  return std::to_string(size()) + " examples: " + (size() > 0 ? source_->fingerprint() : "none");
}

Dataset Dataset::subset(std::vector<std::int64_t> examples) const {
  return Dataset(std::make_shared<Subset>(source_, std::move(examples)));
}
Dataset Dataset::first(std::int64_t n) const {
  std::vector<std::int64_t> examples(static_cast<std::size_t>(std::clamp<std::int64_t>(n, 0, size())));
  std::iota(examples.begin(), examples.end(), 0);
  return subset(std::move(examples));
}
Dataset Dataset::map(std::function<Tensors(const Tensors&)> f, std::vector<Field> fields) const {
  if (!f) throw ValueError("data set: map: the function is null");
  return Dataset(std::make_shared<Changed>(
      source_, [f = std::move(f)](const Tensors& e, const ExampleKey&) { return f(e); }, std::move(fields)));
}
Dataset Dataset::augment(std::function<Tensors(const Tensors&, const ExampleKey&)> f) const {
  if (!f) throw ValueError("data set: augment: the function is null");
  return Dataset(std::make_shared<Changed>(source_, std::move(f), std::vector<Field>{}));
}
Dataset Dataset::operator+(const Dataset& behind) const {
  return Dataset(std::make_shared<Both>(source_, behind.source_));
}

Batch Dataset::batch(std::span<const std::int64_t> examples, const ExampleKey& key, std::int64_t least_length) const {
  if (examples.empty()) throw ShapeError("data set: a batch of no examples");
  for (const std::int64_t i : examples) check_index("data set: batch", i, size());
  return source_->batch(examples, key, least_length);
}
Batch Dataset::all() const {
  std::vector<std::int64_t> examples(static_cast<std::size_t>(size()));
  std::iota(examples.begin(), examples.end(), 0);
  return batch(examples);
}

}  // namespace ferrite::train
