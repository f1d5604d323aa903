#pragma once
/// Characters of texts as tokens, and sequences of tokens as examples.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/train/dataset.h"

namespace ferrite::train {

/// Which token each character is: the characters of an alphabet, numbered from 0 in its order. A character is a code
/// point of UTF-8.
///
///   const train::Characters letters(".abcdefghijklmnopqrstuvwxyz");
///   letters.tokens("cab");            // i64 [3]: 3, 1, 2
///   letters.text(letters.tokens("cab"));
class Characters {
 public:
  /// Throws ValueError for a text that is empty, no UTF-8, or has a character twice.
  explicit Characters(std::string_view alphabet);
  /// All characters that a text has, in the order of their code points. Throws as above, but for characters that come
  /// twice.
  static Characters of(std::string_view text);

  std::int64_t size() const { return static_cast<std::int64_t>(characters_.size()); }
  /// i64 [T], a token for each character. Throws ValueError, with the place, for a character that there is not and for
  /// what is no UTF-8.
  Tensor tokens(std::string_view text) const;
  /// The text of tokens i64 [T]. Throws DtypeError, ShapeError, and ValueError for a token outside 0..size() - 1.
  std::string text(const Tensor& tokens) const;
  /// The same one by one, as names for a heat map. Throws as `text`.
  std::vector<std::string> strings(const Tensor& tokens) const;
  /// Character i. Throws ValueError for one that there is not.
  const std::string& operator[](std::int64_t i) const;

 private:
  explicit Characters(std::vector<std::string> characters);

  std::vector<std::string> characters_;
  std::map<std::string, std::int64_t, std::less<>> token_of_;
};

/// Examples for models of the next token: of each sequence i64 [T] the input stop, t[0], ..., t[T - 1] and the target
/// t[0], ..., t[T - 1], stop, both [T + 1]. Throws DtypeError, ShapeError, and ValueError for no sequences.
Dataset next_tokens(std::span<const Tensor> each, std::int64_t stop);

}  // namespace ferrite::train
