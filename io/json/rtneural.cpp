/// RTNeural's nets in JSON, read as a stream, layer by layer.
#include "ferrite/io/rtneural.h"

#include <optional>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/json/json_numbers.h"
#include "ferrite/io/json/json_reader.h"
#include "ferrite/io/json/rtneural_entry.h"
#include "ferrite/tensor/scalar.h"

namespace ferrite::io {
namespace {

/// Builds the net while the text is read: a layer at the end of its entry.
class NetReader final : public detail::JsonEvents {
 public:
  NetReader(std::string_view where, const RtneuralOptions& options) : where_(where), options_(options) {}

  std::unique_ptr<nn::Sequential> finish() {
    if (!has_layers_) detail::refuse(where_, "has no 'layers'; names and weights are read with io::read_json_weights");
    if (entries_ == 0) detail::refuse(where_, "has no layers: 'layers' is empty or no list");
    return std::move(net_);
  }

  void number(float v) override {
    if (weights_open_) {
      if (whole_ && !shape_.number()) whole_ = false;
      if (whole_) numbers_.push(v);
    }
    if (entry_ && !weights_open_) set_number(v);
    value(Kind::number);
    end_array();
  }
  void text(std::string_view v) override {
    if (in_entry() && field_ == Field::type) entry_->type = v;
    if (in_entry() && field_ == Field::activation) entry_->activation = v;
    if (in_entry() && field_ == Field::padding && v != "causal")
      detail::refuse(entry_->where, "the padding " + detail::quote(v) + " is not supported");
    value(Kind::text);
    end_array();
  }
  void other() override {
    value(Kind::other);
    end_array();
  }
  void begin_object() override {
    if (in_layers()) {
      entry_.emplace(entries_, where_);
      field_ = Field::other;
    } else {
      value(Kind::object);
    }
    keys_.begin_object();
    if (levels_++ == 0) is_object_ = true;
  }
  void key(std::string_view name) override {
    keys_.key(name);
    if (levels_ == 1) is_layers_ = is_object_ && name == "layers";
    has_layers_ |= levels_ == 1 && is_layers_;
    if (!in_entry()) return;
    field_ = name == "type"         ? Field::type
             : name == "activation" ? Field::activation
             : name == "weights"    ? Field::weights
             : name == "padding"    ? Field::padding
                                    : Field::other;
    key_ = name;
  }
  void end_object() override {
    keys_.end_object(where_);
    --levels_;
    if (levels_ == kInLayers && entry_) {
      detail::add_entry(*net_, *entry_, options_);
      entry_.reset();
      ++entries_;
    }
    end_array();
  }
  void begin_list() override {
    if (levels_ == 1 && is_layers_) layers_open_ = true;
    if (in_entry() && field_ == Field::weights) {
      weights_open_ = true;
    } else {
      value(Kind::list);
    }
    if (++levels_ > kInWeights && weights_open_ && whole_ && !shape_.open()) whole_ = false;
  }
  void end_list() override {
    if (levels_ > kInWeights && weights_open_ && whole_ && !shape_.close()) whole_ = false;
    --levels_;
    if (in_entry()) weights_open_ = false;
    if (levels_ == 1) layers_open_ = false;
    end_array();
  }

 private:
  enum class Kind : std::uint8_t { number, text, other, object, list };
  enum class Field : std::uint8_t { other, type, activation, weights, padding };
  /// How many lists and objects are open in the list of layers, in one of them, and in its weights.
  static constexpr std::size_t kInLayers = 2, kInEntry = 3, kInWeights = 4;

  bool in_layers() const { return layers_open_ && levels_ == kInLayers; }
  bool in_entry() const { return entry_ && levels_ == kInEntry; }

  /// A number that the entry says of itself, alone or in a list.
  void set_number(float v) {
    if (key_ == "kernel_size") entry_->kernel_size = v;
    if (key_ == "dilation") entry_->dilation = v;
    if (key_ == "groups") entry_->groups = v;
    if (key_ == "strides") entry_->strides = v;
    if (key_ == "epsilon") entry_->epsilon = v;
  }

  /// Something that is not expected everywhere.
  void value(Kind kind) {
    if (in_layers()) detail::refuse(std::string(where_) + ": layer " + std::to_string(entries_), "is no object");
    if (in_entry() && kind != Kind::text && field_ == Field::type) detail::refuse(entry_->where, "'type' is no text");
    if (in_entry() && kind != Kind::text && field_ == Field::activation)
      detail::refuse(entry_->where, "'activation' is no text");
    if (weights_open_ && kind != Kind::number && kind != Kind::list) whole_ = false;
  }

  /// At the end of a value: was it one of the arrays of weights?
  void end_array() {
    if (!weights_open_ || levels_ != kInWeights) return;
    if (entry_->weights++ < detail::kMostWeights) entry_->arrays.push_back(whole_ ? array() : Tensor());
    shape_ = {};
    numbers_.clear();
    whole_ = true;
  }
  Tensor array() const {
    return Tensor::build<float>(shape_.shape(), [&](std::span<float> to) { numbers_.copy(0, to); });
  }

  std::string_view where_;
  RtneuralOptions options_;
  std::unique_ptr<nn::Sequential> net_ = std::make_unique<nn::Sequential>();
  detail::KeyCheck keys_;
  std::size_t levels_ = 0;
  std::size_t entries_ = 0;
  bool is_object_ = false, has_layers_ = false;
  bool is_layers_ = false;  ///< the key of the root that was read last is "layers"
  bool layers_open_ = false, weights_open_ = false;
  std::optional<detail::RtneuralEntry> entry_;
  std::string key_;  ///< of the entry, the one that was read last
  Field field_ = Field::other;
  detail::NumberShape shape_;  ///< of the array that is read
  detail::FloatStore numbers_;
  bool whole_ = true;  ///< so far it is an array of numbers
};

}  // namespace

std::unique_ptr<nn::Sequential> parse_rtneural(std::span<const std::byte> bytes, std::string_view where,
                                               const RtneuralOptions& options) {
  if (!(options.rate_ratio >= 1 && options.rate_ratio <= kMostRateRatio))
    throw ValueError("read_rtneural: rate_ratio must be from 1 to " + Scalar(kMostRateRatio).str() + ", got " +
                     Scalar(options.rate_ratio).str());
  NetReader reader(where, options);
  detail::read_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, where, reader);
  return reader.finish();
}

std::unique_ptr<nn::Sequential> read_rtneural(const std::filesystem::path& path, const RtneuralOptions& options) {
  const detail::WholeFile file = detail::read_whole(path);
  return parse_rtneural(file.bytes.span(), file.where, options);
}

}  // namespace ferrite::io
