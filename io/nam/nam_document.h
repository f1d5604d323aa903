#pragma once
/// Reading a `.nam` file as a small tree of values, with its weights in a separate store, and reading and writing the
/// sizes of a WaveNet in it.
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/io/json/json_reader.h"
#include "ferrite/nn/layers/wavenet.h"

namespace ferrite::io::detail::nam {

inline constexpr std::size_t kMostNodes = 8192;
inline constexpr std::size_t kMostLevels = 32;

/// A value of the tree, whose children are linked in order.
struct Node {
  enum class Kind : std::uint8_t { null, boolean, number, text, object, list, weights };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  Kind kind = Kind::null;
  bool truth = false;
  double number = 0;
  std::string key;   ///< key in the object that it belongs to
  std::string text;  ///< a text, or a number as it is written
  std::uint32_t first = kNone, last = kNone, next = kNone;
  std::size_t weights_at = 0, weights = 0;  ///< position in the store and number of weights
};

/// The tree of a file. The numbers in a list under a key "weights" are in the store instead of nodes.
struct Document {
  std::deque<Node> nodes;
  FloatStore weights;

  const Node& root() const { return nodes.front(); }
  const Node* child(std::uint32_t at) const { return at == Node::kNone ? nullptr : &nodes[at]; }
};

/// Reads the tree of a file. Throws IoError beginning with `where` if it is not a JSON object, exceeds the limits, or
/// has keys that occur twice or weights that are not numbers.
Document read_document(std::span<const std::byte> bytes, std::string_view where);

/// Returns a value as JSON, on one line.
std::string text_of(const Document& document, const Node& node);

/// An object of the tree, whose keys are asked for one by one; those that were not asked for are refused at the end.
class Object {
 public:
  /// Throws IoError where the node is not an object.
  Object(const Document& document, const Node& node, std::string where);

  const std::string& where() const { return where_; }
  const Document& document() const { return document_; }
  /// Returns the value of a key, or null where it is absent; a value `null` counts as absent.
  const Node* find(std::string_view key);
  /// Returns the value of a key. This and the next ones throw IoError for absent keys and values of another type.
  const Node& at(std::string_view key);
  Object object(std::string_view key);
  std::int64_t size(std::string_view key);  ///< 1 to 2^31 - 1
  std::int64_t size(std::string_view key, std::int64_t otherwise);
  bool truth(std::string_view key);
  bool truth(std::string_view key, bool otherwise);
  double number(std::string_view key);
  std::string text(std::string_view key);
  /// Throws IoError naming a key that was not asked for.
  void finish() const;

 private:
  const Document& document_;
  const Node& node_;
  std::string where_;
  std::deque<std::string_view> asked_;
};

/// Returns the size that a node holds. Throws IoError where it is not one.
std::int64_t size_of(const Node& node, std::string_view where);

/// Returns the options of a WaveNet from its `config`, without head_scale, which is the last of the weights.
/// `condition` are the options of its `condition_dsp`, which the caller has read, or null. Throws IoError for
/// unsupported options and for sizes that do not fit.
nn::WavenetOptions wavenet_options(Object config, const nn::WavenetOptions* condition);

/// Returns the object `config` of a WaveNet as JSON; `condition` is the text of its condition_dsp, empty for none.
/// `newer` becomes true where it has keys that files of version 0.5 do not have. Throws IoError beginning with `where`
/// for an activation that the format does not have.
std::string config_of(const nn::WavenetOptions& options, std::string_view condition, std::string_view where,
                      bool& newer);

/// Appends a number in the fewest digits that read back as the same f64, with a sign for -0.
void append_number(std::string& out, double value);

}  // namespace ferrite::io::detail::nam
