#pragma once
/// Summaries of calls of modules that are no chains.
#include <functional>
#include <string>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// A table of what a call does, layer by layer in the order in which they run: the type of the last result, parameters
/// (tied ones once, where they stand first) and multiply-adds. The call runs on types alone, so it takes abstract
/// tensors, changes no variable, and throws TraceError where it reads values. Parameters of layers that do not run are
/// listed, too. "(itself)" is what runs outside of layers. Throws what the call throws, ValueError for a null one.
///
///   const Tensor a = Tensor::abstract({{1, 20, 6}, Dtype::f32});
///   std::cout << nn::summary(model, [&] { return model.forward(a, a); });
std::string summary(const Module& module, const std::function<void()>& call);

}  // namespace ferrite::nn
