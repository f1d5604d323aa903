#pragma once
/// An example of every operation, composed function and loss, with its name in PyTorch, for the reference pages. The
/// expression that a page shows is the one that the tests run.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/tensor/ops.h"

namespace conformance {

/// An entry of a reference page, its counterpart and its example.
struct OperationExample {
  const char* name;             ///< of its record, or of the function where it has none
  const char* pytorch;          ///< names that begin with "torch." and what differs there; "" for no counterpart
  const char* code;             ///< an expression
  ferrite::Tensors (*value)();  ///< computes it
};

/// The value of an expression as tensors.
inline ferrite::Tensors value_of(ferrite::Tensor x) { return {std::move(x)}; }
inline ferrite::Tensors value_of(ferrite::Tensors list) { return list; }
inline ferrite::Tensors value_of(ferrite::ValuesAndIndices found) { return {found.values, found.indices}; }
inline ferrite::Tensors value_of(double x) { return {ferrite::full({}, x, ferrite::Dtype::f64)}; }

/// The expression and what computes it, the last two members of an OperationExample.
#define FERRITE_EXAMPLE(...) #__VA_ARGS__, [] { return conformance::value_of(__VA_ARGS__); }

// The examples by theme, each in a file of its own.
std::span<const OperationExample> arithmetic_examples();  ///< pointwise operations
std::span<const OperationExample> activation_examples();  ///< activation functions and their gradients
std::span<const OperationExample> structured_examples();  ///< reductions, products, views, indices, windows, matrices
std::span<const OperationExample> random_examples();      ///< draws
std::span<const OperationExample> sequence_examples();    ///< running sums, order, recurrences, programs
std::span<const OperationExample> composed_examples();    ///< composed functions of tensors
std::span<const OperationExample> recurrent_examples();   ///< steps of recurrent cells
std::span<const OperationExample> loss_examples();        ///< losses and what their page has besides

/// Returns all examples.
std::vector<OperationExample> operation_examples();
/// Returns the example of this name; throws std::out_of_range if there is none.
OperationExample example_of(std::string_view name);

/// Returns the counterpart in PyTorch as Markdown; "" for none.
std::string pytorch_of(const OperationExample& example);
/// Returns the expression as Markdown.
std::string code_of(const OperationExample& example);
/// Returns values as pages show them: numbers of four digits, or shape and dtype of tensors of more than 12 elements.
std::string result_of(const ferrite::Tensors& value);
/// Returns Markdown as the cell of a table, in which `|` needs a backslash.
std::string in_table(std::string text);

}  // namespace conformance
