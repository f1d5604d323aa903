#pragma once
/// Summaries of calls of modules that are not chains, and the text tables that summaries print.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ferrite/nn/module.h"
#include "ferrite/tensor/language.h"

namespace ferrite::nn {

/// The cells of one row of a text table.
using Cells = std::vector<std::string>;

/// Returns a number with its digits in groups of three: "1,234,567" for 1234567.
std::string grouped(std::int64_t n);

/// Returns a text table of rows with the same number of cells, with a rule below the first row and above the last.
/// Columns from the index `numbers` on are aligned to the right.
std::string text_table(const std::vector<Cells>& rows, std::size_t numbers);

/// Returns a table of what a call does, layer by layer in the order in which they run: the type of its last result, the
/// number of parameters (tied ones once, where they come first) and of multiply-adds. The call runs on types alone: it
/// takes abstract tensors, changes no variable, and throws TraceError where it reads values. Parameters of layers that
/// do not run are listed, too; "(itself)" is what runs outside of layers. Throws ValueError for a null call, and
/// whatever the call throws.
///
///   const Tensor a = Tensor::abstract({{1, 20, 6}, Dtype::f32});
///   std::cout << nn::summary(model, [&] { return model.forward(a, a); });
std::string summary(const Module& module, const std::function<void()>& call);

}  // namespace ferrite::nn
