/// Characters as tokens: code points of UTF-8.
#include "ferrite/train/characters.h"

#include <set>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/train/detail/utf8.h"

namespace ferrite::train {
namespace {

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> all;
  for (std::size_t at = 0; at < text.size(); at += all.back().size()) {
    const std::size_t n = detail::utf8_bytes(text, at);
    if (n == 0) throw ValueError("characters: the text is not UTF-8: byte " + std::to_string(at));
    all.push_back(text.substr(at, n));
  }
  return all;
}

std::vector<std::string> owned(const std::vector<std::string_view>& of) { return {of.begin(), of.end()}; }

/// Returns a character as errors show it: control characters by their numbers.
std::string shown(std::string_view c) {
  const auto byte = static_cast<unsigned char>(c[0]);
  return byte < 0x20 || byte == 0x7F ? "the character of number " + std::to_string(byte) : "'" + std::string(c) + "'";
}

}  // namespace

Characters::Characters(std::vector<std::string> characters) : characters_(std::move(characters)) {
  if (characters_.empty()) throw ValueError("characters: the alphabet is empty");
  for (const std::string& c : characters_)
    if (!token_of_.emplace(c, static_cast<std::int64_t>(token_of_.size())).second)
      throw ValueError("characters: the alphabet has " + shown(c) + " twice");
}

Characters::Characters(std::string_view alphabet) : Characters(owned(split(alphabet))) {}

Characters Characters::of(std::string_view text) {
  const std::vector<std::string_view> all = split(text);
  const std::set<std::string_view> once(all.begin(), all.end());  // UTF-8 sorts like its code points
  return Characters(std::vector<std::string>(once.begin(), once.end()));
}

Tensor Characters::tokens(std::string_view text) const {
  std::vector<std::int64_t> tokens;
  for (const std::string_view c : split(text)) {
    const auto found = token_of_.find(c);
    if (found == token_of_.end())
      throw ValueError("characters: " + shown(c) + " is not in the alphabet: byte " +
                       std::to_string(c.data() - text.data()) + " of the text");
    tokens.push_back(found->second);
  }
  return Tensor::from(tokens);
}

std::vector<std::string> Characters::strings(const Tensor& tokens) const {
  if (tokens.dtype() != Dtype::i64) throw DtypeError("characters: tokens must be i64, got " + tokens.spec().str());
  if (tokens.rank() != 1) throw ShapeError("characters: tokens must be [T], got " + tokens.shape().str());
  std::vector<std::string> all;
  for (const std::int64_t token : tokens.to_vector<std::int64_t>()) all.push_back((*this)[token]);
  return all;
}

std::string Characters::text(const Tensor& tokens) const {
  std::string text;
  for (const std::string& c : strings(tokens)) text += c;
  return text;
}

const std::string& Characters::operator[](std::int64_t i) const {
  if (i < 0 || i >= size())
    throw ValueError("characters: there is no token " + std::to_string(i) + ", there are 0.." +
                     std::to_string(size() - 1));
  return characters_[static_cast<std::size_t>(i)];
}

Dataset next_tokens(std::span<const Tensor> each, std::int64_t stop) {
  const Tensor end = full({1}, stop, Dtype::i64);
  std::vector<Tensor> x, y;
  for (const Tensor& t : each) {
    if (t.dtype() != Dtype::i64) throw DtypeError("next tokens: sequences must be i64, got " + t.spec().str());
    if (t.rank() != 1) throw ShapeError("next tokens: sequences must be [T], got " + t.shape().str());
    x.push_back(concat({end, t}));
    y.push_back(concat({t, end}));
  }
  return {{sequences(x), sequences(y)}};
}

}  // namespace ferrite::train
