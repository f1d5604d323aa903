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

/// Converts between characters and tokens: the characters of an alphabet, numbered from 0 in its order. A character is
/// a code point of UTF-8.
///
///   const train::Characters letters(".abcdefghijklmnopqrstuvwxyz");
///   letters.tokens("cab");            // i64 [3]: 3, 1, 2
///   letters.text(letters.tokens("cab"));
class Characters {
 public:
  /// Numbers the characters of an alphabet. Throws ValueError for one that is empty, is not UTF-8 or repeats a
  /// character.
  explicit Characters(std::string_view alphabet);
  /// Returns the alphabet of all characters in a text, in the order of their code points. Throws ValueError for a text
  /// that is empty or is not UTF-8.
  static Characters of(std::string_view text);

  /// Returns the number of characters in the alphabet.
  std::int64_t size() const { return static_cast<std::int64_t>(characters_.size()); }
  /// Returns the tokens of a text, i64 [T], one for each character. Throws ValueError, with the place, for a character
  /// that is not in the alphabet and for a text that is not UTF-8.
  Tensor tokens(std::string_view text) const;
  /// Returns the text of tokens i64 [T]. Throws DtypeError for another dtype, ShapeError for another rank, ValueError
  /// for a token outside 0..size() - 1.
  std::string text(const Tensor& tokens) const;
  /// Returns the character of each token, i64 [T], for example to label a heat map. Throws what `text` throws.
  std::vector<std::string> strings(const Tensor& tokens) const;
  /// Returns the character of token i. Throws ValueError unless 0 <= i < size().
  const std::string& operator[](std::int64_t i) const;

 private:
  explicit Characters(std::vector<std::string> characters);

  std::vector<std::string> characters_;
  std::map<std::string, std::int64_t, std::less<>> token_of_;
};

/// Returns examples for models that predict the next token: for each sequence t, i64 [T], the input stop, t[0], ...,
/// t[T - 1] and the target t[0], ..., t[T - 1], stop, both [T + 1]. Throws DtypeError for another dtype, ShapeError for
/// another rank, ValueError for no sequences.
Dataset next_tokens(std::span<const Tensor> each, std::int64_t stop);

}  // namespace ferrite::train
