/// Reads weights in JSON as a stream into one store: an entry of a few bytes for each name, and all numbers
/// concatenated.
#include "ferrite/io/json_weights.h"

#include <algorithm>
#include <charconv>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/json/json_reader.h"

namespace ferrite::io {
namespace {

/// The tensors of a text, each made when it is asked for.
class JsonSource final : public TensorSource {
 public:
  std::size_t size() const override { return entries_.size(); }
  std::string_view name(std::size_t i) const override { return names_[i]; }
  std::optional<std::size_t> find(std::string_view name) const override {
    const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), name,
                                     [this](std::uint32_t i, std::string_view n) { return names_[i] < n; });
    return at != sorted_.end() && names_[*at] == name ? std::optional<std::size_t>(*at) : std::nullopt;
  }
  TensorInfo info(std::size_t i) const override {
    const Shape s = shape(i);
    return {.dtype = "F32",
            .loads_as = Dtype::f32,
            .stored_as = Dtype::f32,
            .shape = {s.begin(), s.end()},
            .bytes = static_cast<std::uint64_t>(s.numel()) * sizeof(float)};
  }
  Tensor tensor(std::size_t i, Elements /*elements*/) const override {
    return Tensor::build<float>(shape(i), [&](std::span<float> to) { numbers_.copy(entries_[i].first, to); });
  }
  std::vector<std::pair<std::string_view, std::string_view>> metadata() const override {
    return {metadata_.begin(), metadata_.end()};
  }

  // ---- while it is read ----------------------------------------------------------------------------------

  void begin(std::string_view name) {
    names_.add(name);
    entries_.push_back({static_cast<std::uint32_t>(numbers_.size()), static_cast<std::uint32_t>(extents_.size())});
  }
  void push(float v) { numbers_.push(v); }
  void add_metadata(std::string_view key, std::string value) { metadata_.emplace_back(key, std::move(value)); }
  void end(const Shape& shape) {
    for (const std::int64_t e : shape) extents_.push_back(static_cast<std::uint32_t>(e));
  }
  std::string_view last_name() const { return names_[names_.size() - 1]; }
  /// Makes the index. Throws IoError for a name that occurs twice.
  void finish(std::string_view where) {
    sorted_ = names_.sorted();
    if (const auto name = names_.twice(sorted_)) detail::refuse_twice(where, *name);
  }

 private:
  struct Entry {
    std::uint32_t first;    ///< position of its first number
    std::uint32_t extents;  ///< position of its extents, which end where those of the next one begin
  };
  Shape shape(std::size_t i) const {
    const std::size_t end = i + 1 < entries_.size() ? entries_[i + 1].extents : extents_.size();
    Shape s;
    for (std::size_t k = entries_[i].extents; k < end; ++k) s.push_back(extents_[k]);
    return s;
  }

  detail::NamePool names_;
  std::vector<std::uint32_t> sorted_;  ///< numbers of the names, sorted by name
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> extents_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  detail::FloatStore numbers_;
};

/// Reads one object of named values, each a number or nested lists of numbers. Faults of a value are reported at its
/// end.
class WeightsReader final : public detail::JsonEvents {
 public:
  WeightsReader(JsonSource& source, std::string_view where) : source_(source), where_(where) {}

  void finish() const {
    if (!is_object_) detail::refuse(where_, "is not a JSON object of named lists of numbers");
    source_.finish(where_);
  }

  void number(float v) override {
    if (!is_object_) return;
    if (fault_ == Fault::none && !shape_.number()) fault_ = Fault::ragged;
    if (fault_ == Fault::none) source_.push(v);
    end_value();
  }
  void text(std::string_view) override { other(); }
  void other() override {
    spoil();
    end_value();
  }
  void begin_object() override {
    if (levels_ == 0) is_object_ = true;
    if (levels_ > 0) spoil();
    ++levels_;
  }
  void end_object() override {
    --levels_;
    end_value();
  }
  void key(std::string_view name) override {
    if (levels_ != 1) return;
    if (name == "layers") detail::refuse(where_, "holds layers, not names and weights; read it with io::read_rtneural");
    source_.begin(name);
    shape_ = {};
    fault_ = Fault::none;
  }
  void begin_list() override {
    ++levels_;
    if (fault_ == Fault::none && !shape_.open()) fault_ = Fault::ragged;
  }
  void end_list() override {
    --levels_;
    if (fault_ == Fault::none && !shape_.close()) fault_ = Fault::ragged;
    end_value();
  }

 private:
  enum class Fault : std::uint8_t { none, ragged, no_numbers };

  /// Returns whether a key is one with which a .nam file begins.
  static bool is_of_nam(std::string_view key) {
    return key == "version" || key == "metadata" || key == "architecture" || key == "config";
  }

  /// Records a value, alone or in a list, that is neither a list nor a number.
  void spoil() {
    if (fault_ == Fault::none) fault_ = levels_ > 1 ? Fault::ragged : Fault::no_numbers;
  }
  void end_value() {
    if (levels_ != 1 || !is_object_) return;
    const auto refuse = [&](const char* what) { detail::refuse(where_, detail::quote(source_.last_name()) + what); };
    if (fault_ == Fault::ragged) refuse(" is a ragged list: its rows differ in length, or are no numbers");
    if (fault_ == Fault::no_numbers)
      refuse(is_of_nam(source_.last_name())
                 ? " is not made of numbers; a .nam file of the Neural Amp Modeler is read with io::read_nam"
                 : " is not made of numbers");
    source_.end(shape_.shape());
  }

  JsonSource& source_;
  std::string_view where_;
  detail::NumberShape shape_;
  Fault fault_ = Fault::none;
  std::size_t levels_ = 0;
  bool is_object_ = false;  ///< whether the text begins as an object
};

/// Reads an object whose `state_dict` are the weights and whose `model_data` are texts and numbers about them. Other
/// keys are ignored.
class WrapperReader final : public detail::JsonEvents {
 public:
  WrapperReader(JsonSource& source, std::string_view where) : source_(source), where_(where), weights_(source, where) {}

  void finish() const { weights_.finish(); }

  void number(float v) override {
    if (part_ == Part::weights) return weights_.number(v);
    char digits[32];
    value(std::string(std::begin(digits), std::to_chars(std::begin(digits), std::end(digits), v).ptr));
  }
  void text(std::string_view v) override {
    if (part_ == Part::weights) return weights_.text(v);
    value(std::string(v));
  }
  void other() override {
    if (part_ == Part::weights) return weights_.other();
    value("");
  }
  void key(std::string_view name) override {
    if (levels_ > 1 && part_ == Part::weights) return weights_.key(name);
    keys_.key(name);
    if (levels_ == 2) key_ = name;
    if (levels_ != 1) return;
    part_ = name == "state_dict" ? Part::weights : name == "model_data" ? Part::data : Part::none;
  }
  void begin_object() override {
    if (part_ == Part::weights)
      weights_.begin_object();
    else
      keys_.begin_object();
    open("an object");
  }
  void end_object() override {
    --levels_;
    if (part_ == Part::weights && levels_ > 0)
      weights_.end_object();
    else
      keys_.end_object(where_);
    close();
  }
  void begin_list() override {
    if (part_ == Part::weights) weights_.begin_list();
    open("a list");
  }
  void end_list() override {
    --levels_;
    if (part_ == Part::weights) weights_.end_list();
    close();
  }

 private:
  enum class Part : std::uint8_t { none, data, weights };
  static constexpr std::size_t kMostData = 1000;

  void open(const char* kind) {
    if (levels_ == 1 && part_ == Part::data && kind != std::string_view("an object"))
      detail::refuse(where_, "'model_data' is " + std::string(kind));
    if (levels_ == 2 && part_ == Part::data) value(kind);
    ++levels_;
  }
  void close() {
    if (levels_ == 1) part_ = Part::none;
  }
  void value(std::string v) {
    if (part_ != Part::data) return;
    if (levels_ == 1) detail::refuse(where_, "'model_data' is no object");
    if (levels_ != 2) return;
    if (++data_ > kMostData)
      detail::refuse(where_, "'model_data' has more than " + std::to_string(kMostData) + " keys");
    source_.add_metadata(key_, std::move(v));
  }

  JsonSource& source_;
  std::string_view where_;
  WeightsReader weights_;
  detail::KeyCheck keys_;
  std::string key_;  ///< present key in model_data
  std::size_t levels_ = 0, data_ = 0;
  Part part_ = Part::none;
};

/// Checks whether the object has both keys of the wrapper, each with an object as its value.
class WrapperCheck final : public detail::JsonEvents {
 public:
  bool wrapped() const { return found_ == 2; }

  void number(float) override { is_part_ = false; }
  void text(std::string_view) override { is_part_ = false; }
  void other() override { is_part_ = false; }
  void key(std::string_view name) override {
    is_part_ = levels_ == 1 && (name == "state_dict" || name == "model_data");
  }
  void begin_object() override {
    if (levels_ == 1 && is_part_) ++found_;
    ++levels_;
  }
  void end_object() override { --levels_; }
  void begin_list() override { ++levels_; }
  void end_list() override { --levels_; }

 private:
  std::size_t levels_ = 0, found_ = 0;
  bool is_part_ = false;
};

bool is_wrapper(std::string_view text, std::string_view where) {
  if (text.find("\"state_dict\"") == std::string_view::npos || text.find("\"model_data\"") == std::string_view::npos)
    return false;
  WrapperCheck check;
  detail::read_json(text, where, check);
  return check.wrapped();
}

template <class Reader>
TensorFile read_with(std::string_view text, std::string_view where) {
  auto source = std::make_shared<JsonSource>();
  Reader reader(*source, where);
  detail::read_json(text, where, reader);
  reader.finish();
  return {std::string(where), std::move(source)};
}

}  // namespace

TensorFile parse_json_weights(std::span<const std::byte> bytes, std::string_view where) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return is_wrapper(text, where) ? read_with<WrapperReader>(text, where) : read_with<WeightsReader>(text, where);
}

TensorFile read_json_weights(const std::filesystem::path& path) {
  const detail::WholeFile file = detail::read_whole(path);
  return parse_json_weights(file.bytes.span(), file.where);
}

}  // namespace ferrite::io
