/// Finds the large elements in the messages of a model, and copies the rest.
#include "ferrite/exchange/onnx/outline.h"

#include <algorithm>
#include <cstring>
#include <system_error>

#include "ferrite/exchange/onnx/schema.h"
#include "ferrite/exchange/onnx/wire.h"

namespace ferrite::onnx::detail {

Input::Input(const std::filesystem::path& path) : path_(path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(std::filesystem::status(path, failed)))
    throw OnnxError(path.string() + ": there is no such file, or it is no regular one");
  file_.open(path, std::ios::binary);
  size_ = static_cast<std::size_t>(std::filesystem::file_size(path, failed));
  if (failed || !file_) throw OnnxError(path.string() + ": it cannot be read");
}

void Input::copy(std::size_t at, std::span<char> to) {
  if (to.empty()) return;
  if (!file_.is_open()) {
    std::memcpy(to.data(), memory_.data() + at, to.size());
    return;
  }
  file_.seekg(static_cast<std::streamoff>(at));
  if (!file_.read(to.data(), static_cast<std::streamsize>(to.size())))
    throw OnnxError(path_.string() + ": it cannot be read");
}

namespace {

constexpr std::size_t kLarge = 1 << 10;  // least number of bytes of raw_data that are left out
constexpr int kMostNested = 256;         // nested messages: more than the reader accepts

/// The kinds of messages that may hold tensors, at any depth.
enum class Kind { other, model, function, graph, node, attribute, tensor };

Kind kind_within(Kind kind, std::uint32_t field) {
  switch (kind) {
    case Kind::model:
      return field == model_field::graph ? Kind::graph : field == model_field::functions ? Kind::function : Kind::other;
    case Kind::function: return field == function_field::node ? Kind::node : Kind::other;
    case Kind::graph:
      return field == graph_field::node ? Kind::node : field == graph_field::initializer ? Kind::tensor : Kind::other;
    case Kind::node: return field == node_field::attribute ? Kind::attribute : Kind::other;
    case Kind::attribute:
      return field == attribute_field::t ? Kind::tensor : field == attribute_field::g ? Kind::graph : Kind::other;
    default: return Kind::other;
  }
}

class Outliner {
 public:
  explicit Outliner(Input& input) : input_(input) {}

  Outline run() {
    walk(Kind::model, 0, input_.size(), 0);
    Outline result;
    if (left_out_.empty()) {
      result.bytes.resize(input_.size());
      input_.copy(0, result.bytes);
      return result;
    }
    result.left_out = std::move(left_out_);
    result.bytes.resize(size_);
    std::span<char> to(result.bytes);
    for (const Piece& piece : pieces_) {
      const std::span<char> here = to.first(piece.size);
      if (piece.is_length)
        write_length(here, piece.at);
      else
        input_.copy(piece.at, here);
      to = to.subspan(piece.size);
    }
    return result;
  }

 private:
  /// A range of bytes of the input, or the new length of a message that has become shorter.
  struct Piece {
    std::size_t at;  ///< position in the input, or the length
    std::size_t size;
    bool is_length;
  };
  static constexpr std::size_t kLengthBytes = 8;  ///< bytes of a length, 7 bits each

  static void write_length(std::span<char> to, std::size_t length) {
    for (std::size_t i = 0; i < to.size(); ++i, length >>= 7U)
      to[i] = static_cast<char>((length & 0x7FU) | (i + 1 < to.size() ? 0x80U : 0U));
  }

  void keep(std::size_t begin, std::size_t end) {
    if (begin == end) return;
    if (!pieces_.empty() && !pieces_.back().is_length && pieces_.back().at + pieces_.back().size == begin)
      pieces_.back().size += end - begin;
    else
      pieces_.push_back({begin, end - begin, false});
    size_ += end - begin;
  }

  /// Returns a byte of the input, through a buffer.
  unsigned char byte(std::size_t at) {
    if (at < window_begin_ || at >= window_begin_ + window_size_) {
      window_begin_ = at;
      window_size_ = std::min(window_.size(), input_.size() - at);
      input_.copy(at, std::span(window_).first(window_size_));
    }
    return static_cast<unsigned char>(window_[at - window_begin_]);
  }

  /// Reads a number. Returns false where it does not end before `end`, or has too many digits.
  bool number(std::size_t& at, std::size_t end, std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && at < end; shift += 7) {
      const unsigned char b = byte(at++);
      value |= static_cast<std::uint64_t>(b & 0x7FU) << shift;
      if (b < 0x80U) return true;
    }
    return false;
  }

  /// Keeps the fields of a message from `at` to `end`, except for large elements.
  void walk(Kind kind, std::size_t at, std::size_t end, int depth) {
    const std::size_t place = size_;
    while (at < end) {
      const std::size_t begin = at;
      std::uint64_t key = 0, length = 0;
      bool whole = number(at, end, key);
      const std::size_t after_key = at;
      const std::uint32_t field = static_cast<std::uint32_t>(key) >> 3U, type = key & 7U;
      switch (whole ? type : 7U) {
        case 0: whole = number(at, end, length), length = 0; break;
        case 1: length = 8; break;
        case 2: whole = number(at, end, length); break;
        case 5: length = 4; break;
        default: whole = false;
      }
      if (!whole || length > end - at) return keep(begin, end);  // damaged
      const auto size = static_cast<std::size_t>(length);
      const bool long_field = type == 2 && size >= kLarge;
      const Kind inner = long_field && depth < kMostNested ? kind_within(kind, field) : Kind::other;
      if (inner != Kind::other) {
        keep(begin, after_key);
        const std::size_t piece = pieces_.size();
        pieces_.push_back({0, kLengthBytes, true});
        size_ += kLengthBytes;
        const std::size_t before = size_;
        walk(inner, at, at + size, depth + 1);
        pieces_[piece].at = size_ - before;
      } else if (long_field && kind == Kind::tensor && field == tensor_field::raw_data) {
        if (!left_out_.emplace(place, Outline::Range{at, size}).second)
          throw DamagedFile("a tensor has its elements twice");
      } else {
        keep(begin, at + size);
      }
      at += size;
    }
  }

  Input& input_;
  std::vector<Piece> pieces_{};
  std::size_t size_ = 0;  ///< size of the outline so far
  std::map<std::size_t, Outline::Range> left_out_{};
  std::array<char, 4096> window_{};
  std::size_t window_begin_ = 0, window_size_ = 0;
};

}  // namespace

Outline outline_of(Input& input) { return Outliner(input).run(); }

}  // namespace ferrite::onnx::detail
