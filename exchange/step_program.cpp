/// Makes a function of Layer::step, from its input and states.
#include "ferrite/exchange/step_program.h"

#include "ferrite/exchange/emit/unique_names.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::exchange {
Tensors StepProgram::initial_states() const {
  Tensors first;
  for (const nn::StepState& s : states)
    first.push_back(s.initial.defined() ? contiguous(expand(unsqueeze(s.initial.peek(), s.rows), s.spec().shape))
                                        : zeros(s.spec().shape, s.dtype));
  return first;
}

StepProgram step_program(const nn::Layer& layer, const nn::StepRows& rows) {
  if (!layer.causal()) throw ValueError("step_program: " + layer.kind() + " is not causal: it has no step");
  const bool tokens = is_integer(rows.dtype);
  StepProgram p{.function = {},
                .inputs = {{tokens ? Shape{rows.batch} : Shape{rows.batch, rows.width}, rows.dtype}},
                .input_names = {"x"},
                .output_names = {"y"},
                .batch_axes = {{.input = 0, .axis = 0, .name = "batch"}},
                .states = layer.states(rows)};
  detail::UniqueNames names;
  for (const char* own : {"x", "y"}) names.claim(own);
  nn::StepRows wider = rows;
  ++wider.batch;
  const auto of_more_rows = layer.states(wider);
  for (const nn::StepState& s : p.states) {
    if (s.capacity > 0)
      throw ValueError("step_program: the state '" + s.name + "' of " + layer.kind() +
                       " grows with every step; export the layer on whole sequences");
    const Shape more = of_more_rows[p.inputs.size() - 1].spec().shape;
    p.inputs.push_back(s.spec());
    for (int axis = 0; axis < more.rank(); ++axis)
      if (more[axis] != s.spec().shape[axis]) p.batch_axes.push_back({p.inputs.size() - 1, axis, "batch"});
    p.input_names.push_back(names.claim(s.name));
    p.output_names.push_back(names.claim(p.input_names.back() + ".next"));
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
