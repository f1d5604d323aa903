/// Traces a function with its derivatives along seeds, and replaces the seeds by the unit vectors, as a batch.
#include "ferrite/exchange/jacobian_program.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/emit/unique_names.h"
#include "ferrite/exchange/freeze/batched_replay.h"
#include "ferrite/exchange/freeze/of_dtype.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::exchange {
namespace {

using Indices = std::vector<std::size_t>;
using Function = std::function<Tensors(const Tensors&)>;

std::vector<Spec> specs_of(const Graph& g, std::span<const ValueId> values) {
  std::vector<Spec> list;
  for (const ValueId v : values) list.push_back(g.values[v]);
  return list;
}

/// Returns the indices that were asked for, by default those of all floats.
Indices chosen(const std::optional<Indices>& asked, const std::vector<Spec>& specs, const char* what) {
  Indices all;
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (is_float(specs[i].dtype)) all.push_back(i);
  if (!asked) return all;
  for (const std::size_t i : *asked) {
    const std::string name = std::string("jacobian_program: ") + what + " " + std::to_string(i);
    if (i >= specs.size()) throw ValueError(name + " does not exist: there are " + std::to_string(specs.size()));
    if (!is_float(specs[i].dtype)) throw DtypeError(name + " is " + specs[i].str() + ", which has no derivative");
  }
  return *asked;
}

/// Returns the unit vectors of a type, one after the other: [n, shape...].
Tensor unit_vectors(const Spec& s) {
  const std::int64_t n = s.shape.numel();
  std::vector<double> elements(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) elements[static_cast<std::size_t>(i * (n + 1))] = 1;
  Shape shape = s.shape;
  shape.insert(0, n);
  return cast(Tensor::from(elements, shape), s.dtype);
}

/// A program whose results are followed by Jacobian blocks.
class Derivatives {
 public:
  Derivatives(Graph program, Indices results, Indices inputs, bool column_major)
      : program_(std::move(program)),
        results_(std::move(results)),
        inputs_(std::move(inputs)),
        column_major_(column_major),
        types_(specs_of(program_, program_.inputs)) {}

  /// Returns the program with blocks, and marks those that are always zeros.
  Graph of(JacobianMode mode, std::vector<JacobianBlock>& blocks) const {
    const bool forward = mode == JacobianMode::forward;
    std::vector<char> found;  // by pair of seed and derivative
    const Graph seeded = seeded_program(forward, found);
    const std::vector<Tensor> seeds = unit_seeds(forward);
    Graph g = trace([&](const Tensors& in) { return with_blocks(seeded, in, seeds, forward, found, blocks); }, types_);
    passes::simplify(g);
    return g;
  }

 private:
  std::size_t seeds(bool forward) const { return forward ? inputs_.size() : results_.size(); }
  std::size_t derivatives(bool forward) const { return forward ? results_.size() : inputs_.size(); }
  Spec seed_type(bool forward, std::size_t s) const {
    return program_.values[forward ? program_.inputs[inputs_[s]] : program_.outputs[results_[s]]];
  }

  std::vector<Tensor> unit_seeds(bool forward) const {
    std::vector<Tensor> list;
    for (std::size_t s = 0; s < seeds(forward); ++s) list.push_back(unit_vectors(seed_type(forward, s)));
    return list;
  }

  /// Returns the program inputs, seeds -> results, derivatives along each seed. Derivatives that are always zeros are
  /// left out.
  Graph seeded_program(bool forward, std::vector<char>& found) const {
    std::vector<Spec> types = types_;
    for (std::size_t s = 0; s < seeds(forward); ++s) types.push_back(seed_type(forward, s));
    Graph g = trace(
        [&](const Tensors& in) {
          Tape tape;
          Tensors x;
          for (std::size_t i = 0; i < types_.size(); ++i)
            x.push_back(std::ranges::count(inputs_, i) != 0 ? tape.watch(in[i]) : in[i]);
          Tensors out = replay(program_, x);
          const Tensors y = out;
          for (std::size_t s = 0; s < seeds(forward); ++s) {
            const Tensors d =
                forward ? along(tape, y, x, s, in[types_.size() + s]) : back(tape, y, x, s, in[types_.size() + s]);
            for (const Tensor& t : d) {
              found.push_back(t.defined());
              if (t.defined()) out.push_back(t);
            }
          }
          return out;
        },
        types);
    passes::simplify(g);
    return g;
  }

  Tensors along(Tape& tape, const Tensors& y, const Tensors& x, std::size_t s, const Tensor& seed) const {
    Tensors of, wrt, tangents(inputs_.size());
    for (const std::size_t k : results_) of.push_back(y[k]);
    for (const std::size_t i : inputs_) wrt.push_back(x[i]);
    tangents[s] = seed;
    return ferrite::detail::push_forward(tape, of, wrt, tangents);
  }

  Tensors back(Tape& tape, const Tensors& y, const Tensors& x, std::size_t s, const Tensor& seed) const {
    Tensors wrt;
    for (const std::size_t i : inputs_) wrt.push_back(x[i]);
    return ferrite::detail::lenient_grad(tape, GradOf{y[results_[s]], seed}, wrt, {.create_graph = true});
  }

  Tensors with_blocks(const Graph& seeded, const Tensors& in, const std::vector<Tensor>& seeds, bool forward,
                      const std::vector<char>& found, std::vector<JacobianBlock>& blocks) const {
    std::vector<Tensor> operands(in.begin(), in.end());
    operands.insert(operands.end(), seeds.begin(), seeds.end());
    std::vector<char> batched(in.size());
    batched.resize(operands.size(), 1);
    detail::BatchedReplay replay(seeded);
    const Tensors all = replay.run(operands, batched);
    const std::size_t outputs = program_.outputs.size();
    Tensors out(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(outputs));
    std::vector<std::size_t> place(found.size());  // of a derivative among `all`; 0: zeros
    std::size_t next = outputs;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i]) continue;
      place[i] = replay.of_batch()[next] ? next : 0;
      ++next;
    }
    blocks.clear();
    for (std::size_t k = 0; k < results_.size(); ++k) {
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const std::size_t at = place[forward ? i * results_.size() + k : k * inputs_.size() + i];
        blocks.push_back({.result = results_[k], .input = inputs_[i], .zero = at == 0});
        out.push_back(block(at == 0 ? Tensor() : all[at], k, i, forward));
      }
    }
    return out;
  }

  /// Returns a block from the derivatives along the unit vectors: [seeds, elements]; zeros if they are undefined.
  Tensor block(const Tensor& d, std::size_t k, std::size_t i, bool forward) const {
    const Spec& y = program_.values[program_.outputs[results_[k]]];
    const Spec& x = types_[inputs_[i]];
    const std::int64_t rows = y.shape.numel(), columns = x.shape.numel();
    if (!d.defined()) return zeros(column_major_ ? Shape{columns, rows} : Shape{rows, columns}, y.dtype);
    const Tensor matrix = reshape(d, forward ? Shape{columns, rows} : Shape{rows, columns});
    return contiguous(forward == column_major_ ? matrix : transpose(matrix));
  }

  Graph program_;
  Indices results_, inputs_;
  bool column_major_;
  std::vector<Spec> types_;
};

/// Returns the arithmetic of a program: multiply-adds of products, and elements that other operations write.
std::int64_t work_of(const Graph& g) {
  std::int64_t elements = 0;
  for (const Graph::Node& n : g.nodes) {
    if (n.op->view || n.op == ferrite::detail::ops::matmul) continue;
    for (const ValueId v : n.out) elements += g.values[v].shape.numel();
  }
  return cost_of(g).multiply_adds + elements;
}

std::function<Tensors(const Tensors&)> function_of(Graph g) {
  return [graph = std::make_shared<const Graph>(std::move(g))](const Tensors& in) { return replay(*graph, in); };
}

/// Returns a name of a step as a C identifier: "h.next" becomes "h_next", "0.h" becomes "v0_h".
std::string identifier(std::string name) {
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name.insert(0, "v");
  return name;
}

}  // namespace

JacobianProgram jacobian_program(const Function& function, std::span<const Spec> inputs,
                                 const JacobianProgramOptions& options) {
  if (!function) throw ValueError("jacobian_program: the function is null");
  if (options.dtype != Dtype::f64 && options.dtype != Dtype::f32)
    throw ValueError("jacobian_program: the dtype must be f64 or f32, got " + std::string(name_of(options.dtype)));
  Graph program = detail::of_dtype(detail::with_constants(trace(function, inputs), "jacobian_program"), options.dtype);
  JacobianProgram p;
  p.inputs = specs_of(program, program.inputs);
  p.results = specs_of(program, program.outputs);
  const Derivatives d(program, chosen(options.results, p.results, "result"), chosen(options.inputs, p.inputs, "input"),
                      options.column_major);
  p.mode = options.mode == JacobianMode::cheaper ? JacobianMode::forward : options.mode;
  Graph best = d.of(p.mode, p.blocks);
  if (options.mode == JacobianMode::cheaper) {
    std::vector<JacobianBlock> blocks = p.blocks;
    Graph rows = d.of(JacobianMode::reverse, p.blocks);
    if (work_of(rows) < work_of(best)) {
      p.mode = JacobianMode::reverse;
      best = std::move(rows);
    } else {
      p.blocks = std::move(blocks);
    }
  }
  p.function = function_of(std::move(best));
  p.primal = function_of(std::move(program));
  return p;
}

JacobianProgram jacobian_program(const StepProgram& step, const JacobianProgramOptions& options) {
  JacobianProgram p = jacobian_program(step.function, step.inputs, options);
  detail::UniqueNames names;
  for (const std::string& name : step.input_names) p.input_names.push_back(names.claim(identifier(name)));
  for (const std::string& name : step.output_names) p.output_names.push_back(names.claim(identifier(name)));
  const std::vector<std::string> results = p.output_names;
  for (const JacobianBlock& b : p.blocks)
    p.output_names.push_back(names.claim("d" + results[b.result] + "_d" + p.input_names[b.input]));
  return p;
}

AdjointProgram adjoint_program(const JacobianProgram& program) {
  AdjointProgram a{.function = {}, .inputs = program.inputs};
  a.inputs.insert(a.inputs.end(), program.results.begin(), program.results.end());
  for (const Spec& s : a.inputs)
    if (!is_float(s.dtype)) throw DtypeError("adjoint_program: " + s.str() + " has no gradient");
  const std::size_t inputs = program.inputs.size();
  Graph g = trace(
      [&](const Tensors& in) {
        Tape tape;
        Tensors x;
        for (std::size_t i = 0; i < inputs; ++i) x.push_back(tape.watch(in[i]));
        const Tensors y = program.primal(x);
        std::vector<GradOf> of;
        for (std::size_t k = 0; k < y.size(); ++k) of.push_back({y[k], in[inputs + k]});
        return ferrite::detail::lenient_grad(tape, of, x, {.create_graph = true});
      },
      a.inputs);
  passes::simplify(g);
  a.function = function_of(std::move(g));
  return a;
}

}  // namespace ferrite::exchange
