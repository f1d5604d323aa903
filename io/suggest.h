#pragma once
/// Suggestions in errors: the name that was probably meant.
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/tensor/language.h"

namespace ferrite::io::detail {

/// Number of characters to insert, remove or replace to make one name the other; `most` + 1 when above `most`.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most);

/// The candidate that looks most like a misspelling of `name`; empty when none does.
std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);

/// What an error adds about a name that is not among the candidates: "; did you mean 'x'?" where one differs by what
/// stands before a dot, or is misspelt; else up to four of the names that there are. Empty without candidates.
std::string advice_on(std::string_view name, std::span<const std::string_view> candidates);

/// The dotted prefix that turns every one of `shorter` into one of `longer` ("encoder."), if there is one.
std::optional<std::string> common_prefix(std::span<const std::string_view> shorter,
                                         std::span<const std::string_view> longer);

}  // namespace ferrite::io::detail
