#pragma once
/// Summaries of calls of modules that are no chains, and the tables of text that summaries print.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ferrite/nn/module.h"
#include "ferrite/tensor/language.h"

namespace ferrite::nn {

using Cells = std::vector<std::string>;

/// 1234567 as "1,234,567".
std::string grouped(std::int64_t n);

/// Rows of equally many cells with a rule below the first and above the last; from cell `numbers` on they end in line.
std::string text_table(const std::vector<Cells>& rows, std::size_t numbers);

/// A table of what a call does, layer by layer in the order in which they run: the type of the last result, parameters
/// (tied ones once, where they stand first) and multiply-adds. The call runs on types alone, so it takes abstract
/// tensors, changes no variable, and throws TraceError where it reads values. Parameters of layers that do not run are
/// listed, too. "(itself)" is what runs outside of layers. Throws what the call throws, ValueError for a null one.
///
///   const Tensor a = Tensor::abstract({{1, 20, 6}, Dtype::f32});
///   std::cout << nn::summary(model, [&] { return model.forward(a, a); });
std::string summary(const Module& module, const std::function<void()>& call);

}  // namespace ferrite::nn
