#pragma once
/// A `.nam` file as a small tree of values, its weights apart in one store; and the sizes of a WaveNet in it, read and
/// written.
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

/// A value; children are linked in their order.
struct Node {
  enum class Kind : std::uint8_t { null, boolean, number, text, object, list, weights };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  Kind kind = Kind::null;
  bool truth = false;
  double number = 0;
  std::string key;   ///< in the object it belongs to
  std::string text;  ///< a text; a number as it is written
  std::uint32_t first = kNone, last = kNone, next = kNone;
  std::size_t weights_at = 0, weights = 0;  ///< in the store
};

/// The tree of a file. The list under a key "weights" is numbers in the store and no nodes.
struct Document {
  std::deque<Node> nodes;
  FloatStore weights;

  const Node& root() const { return nodes.front(); }
  const Node* child(std::uint32_t at) const { return at == Node::kNone ? nullptr : &nodes[at]; }
};

/// Throws IoError beginning with `where`: no JSON object, limits, keys that occur twice, weights that are no numbers.
Document read_document(std::span<const std::byte> bytes, std::string_view where);

/// A value as JSON, on one line.
std::string text_of(const Document& document, const Node& node);

/// An object of the tree, its keys asked for one by one; what has not been asked for is refused at the end.
class Object {
 public:
  /// Throws IoError where the node is no object.
  Object(const Document& document, const Node& node, std::string where);

  const std::string& where() const { return where_; }
  const Document& document() const { return document_; }
  /// Null where the key is absent; a value `null` counts as absent.
  const Node* find(std::string_view key);
  /// These throw IoError for absent keys and values of another type.
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

/// The size that a node holds. Throws IoError.
std::int64_t size_of(const Node& node, std::string_view where);

/// The options of a WaveNet's `config`, but for head_scale, which is the last of the weights. `condition` are those of
/// its `condition_dsp`, which the caller has read; null: there is none. Throws IoError for what is not supported and
/// for sizes that do not fit.
nn::WavenetOptions wavenet_options(Object config, const nn::WavenetOptions* condition);

/// The object `config`; `condition` is the text of its condition_dsp, empty for none. `newer` becomes true where it has
/// keys that files of version 0.5 do not have. Throws IoError beginning with `where` for an activation that the format
/// does not have.
std::string config_of(const nn::WavenetOptions& options, std::string_view condition, std::string_view where,
                      bool& newer);

/// A number in the fewest digits that read back as the same f64, with a sign for -0.
void append_number(std::string& out, double value);

}  // namespace ferrite::io::detail::nam
