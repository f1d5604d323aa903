#pragma once
/// Failing programs: made small, written as text, and read again.
#include <filesystem>
#include <functional>
#include <string>

#include "ferrite/compile/graph.h"
#include "ferrite/compile/plan.h"

namespace cases {

/// A program without variables, and its inputs.
struct Case {
  ferrite::Graph graph;
  ferrite::Tensors inputs;
};

/// Returns the difference between a program run node by node and a plan: a result or an error; empty for none.
std::string difference(const Case& c, const ferrite::PlanOptions& options);

/// Returns the smallest program that still shows a fault, as far as cutting helps: by making an earlier value the only
/// result, or by passing a value instead of computing it.
Case reduced(Case c, const std::function<bool(const Case&)>& shows);

/// Returns the text of the program, then that of a program that makes its inputs.
std::string text(const Case& c);
Case parse(const std::string& text);
Case read(const std::filesystem::path& path);

/// Reduces a program that fails with these options and writes it to <folder>/<seed>.txt; returns a description.
std::string reduce_and_write(const std::string& folder, std::uint64_t seed, const ferrite::Graph& g,
                             const ferrite::Tensors& inputs, const ferrite::PlanOptions& options);

}  // namespace cases
