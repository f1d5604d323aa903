/// Layer::step as a function of its input and states.
#include "ferrite/exchange/step_program.h"

#include <set>

#include "ferrite/tensor/ops.h"

namespace ferrite::exchange {
namespace {

/// The name itself, or with a number behind it where it is taken.
std::string claim(const std::string& wanted, std::set<std::string>& taken) {
  std::string name = wanted;
  for (int n = 1; !taken.insert(name).second; ++n) name = wanted + "_" + std::to_string(n);
  return name;
}

}  // namespace

Tensors StepProgram::initial_states() const {
  Tensors states;
  for (std::size_t i = 1; i < inputs.size(); ++i) states.push_back(zeros(inputs[i].shape, inputs[i].dtype));
  return states;
}

StepProgram step_program(const nn::Layer& layer, const nn::StepRows& rows) {
  if (!layer.causal()) throw ValueError("step_program: " + layer.kind() + " is not causal: it has no step");
  const bool tokens = is_integer(rows.dtype);
  StepProgram p{.function = {},
                .inputs = {{tokens ? Shape{rows.batch} : Shape{rows.batch, rows.width}, rows.dtype}},
                .input_names = {"x"},
                .output_names = {"y"}};
  std::set<std::string> taken{"x", "y"};
  for (const nn::StepState& s : layer.states(rows)) {
    if (s.capacity > 0)
      throw ValueError("step_program: the state '" + s.name + "' of " + layer.kind() +
                       " grows with every step; export the layer on whole sequences");
    p.inputs.push_back(s.spec());
    p.input_names.push_back(claim(s.name, taken));
    p.output_names.push_back(claim(p.input_names.back() + ".next", taken));
  }
  p.function = [&layer](const Tensors& in) {
    nn::StepResult r = layer.advance(in[0], Tensors(in.begin() + 1, in.end()));
    Tensors out{std::move(r.y)};
    for (Tensor& s : r.states) out.push_back(std::move(s));
    return out;
  };
  return p;
}

}  // namespace ferrite::exchange
