#pragma once
/// Tables of text, as summaries print them.
#include <cstdint>
#include <string>
#include <vector>

#include "ferrite/tensor/language.h"

namespace ferrite::nn {

using Cells = std::vector<std::string>;

/// 1234567 as "1,234,567".
std::string grouped(std::int64_t n);

/// Rows of equally many cells with a rule below the first and above the last; from cell `numbers` on they end in line.
std::string text_table(const std::vector<Cells>& rows, std::size_t numbers);

}  // namespace ferrite::nn
