#pragma once
/// Suggestions in error messages: the name that was probably meant.
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/tensor/language.h"

namespace ferrite::io::detail {

/// Returns the number of characters to insert, remove or replace to turn one name into the other, at most `most` + 1.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most);

/// Returns the candidate that looks most like a misspelling of `name`; empty when none does.
std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);

/// Returns the hint that an error adds about a name that is not among the candidates: "; did you mean 'x'?" where one
/// has another dotted prefix or is misspelt, else up to four of the candidates. Empty without candidates.
std::string advice_on(std::string_view name, std::span<const std::string_view> candidates);

/// Returns the dotted prefix ("encoder.") that turns every name in `shorter` into one of those in `longer`, which may
/// hold others; nullopt if there is none, `shorter` is empty or `longer` has too many names to search.
std::optional<std::string> common_prefix(std::span<const std::string_view> shorter,
                                         std::span<const std::string_view> longer);

}  // namespace ferrite::io::detail
