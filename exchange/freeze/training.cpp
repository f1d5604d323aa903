/// Traces a step of training and brings it into the operations that are printed.
#include "ferrite/exchange/freeze/training.h"

#include <cctype>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/emit/unique_names.h"
#include "ferrite/exchange/freeze/plain_operations.h"

namespace ferrite::exchange {
namespace {

std::string identifier(std::string name) {
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name.insert(0, "v");
  return name;
}

/// Returns the name of a variable among an optimiser's states, which is unique there; else its own.
std::string name_of(const Variable& v, const nn::Optimizer* optimizer) {
  if (optimizer)
    for (const nn::Named<State>& s : optimizer->states())
      if (s.variable == v) return s.name;
  return v.name();
}

}  // namespace

TrainingStep training_program(const std::function<Tensors(const Tensors&)>& step, std::span<const Spec> inputs,
                              const nn::Optimizer* optimizer) {
  if (!step) throw ValueError("training_step: the function is null");
  Graph g = trace(step, inputs);
  passes::expand_composites(g);
  passes::simplify(g);
  if (ferrite::detail::effects_of(g).draws)
    throw ValueError("training_step: the step draws random numbers; switch dropout off (eval)");
  TrainingStep t{.graph = detail::plain_operations(g), .names = {}};
  detail::UniqueNames names;
  for (const Variable& v : t.graph.variables) t.names.push_back(names.claim(identifier(name_of(v, optimizer))));
  return t;
}

TrainingStep training_step(const std::function<Tensors(const Tensors&)>& loss, nn::Optimizer& optimizer,
                           std::span<const Spec> inputs) {
  if (!loss) throw ValueError("training_step: the function is null");
  return training_program(
      [&](const Tensors& in) {
        Tape tape;
        Tensors values = loss(in);
        if (values.empty()) throw ValueError("training_step: the function returns no loss");
        optimizer.step(tape.grad(values[0], optimizer.parameters()));
        return values;
      },
      inputs, &optimizer);
}

TrainingStep training_step(const std::function<Tensor(const Tensors&)>& loss, nn::Optimizer& optimizer,
                           std::span<const Spec> inputs) {
  if (!loss) throw ValueError("training_step: the function is null");
  return training_step([&](const Tensors& in) { return Tensors{loss(in)}; }, optimizer, inputs);
}

}  // namespace ferrite::exchange
