/// Nets as ONNX and StableHLO.
#include "tool_export.h"

#include <ostream>
#include <span>

#include "ferrite/exchange/stablehlo.h"
#include "ferrite/exchange/step_program.h"
#include "ferrite/io/atomic_file.h"
#include "onnx_model.h"
#include "subject.h"
#include "tool_text.h"
#ifdef FERRITE_TOOL_ONNX
#include "ferrite/exchange/onnx.h"
#include "ferrite/exchange/onnx_export.h"
#endif

namespace ferrite::tools {
namespace {

constexpr std::int64_t kBatch = 1, kSteps = 32;  // extents that are traced if the user gives none

/// The program to export: a function, its inputs and their names. `owner` keeps what the function calls alive.
struct Program {
  std::shared_ptr<const void> owner;
  std::function<Tensors(const Tensors&)> function;
  std::vector<Spec> inputs;
  std::vector<std::string> input_names, output_names;
  std::vector<exchange::DynamicAxis> open{};
};

Program program_of(const Subject& s, const ExportChoice& choice) {
  s.net->eval();
  if (choice.step) {
    const nn::StepInput in = s.net->step_input();
    exchange::StepProgram step =
        exchange::step_program(*s.net, {s.x.shape()[0], in.width ? in.width : s.x.shape()[-1], s.x.dtype()});
    Program p{s.net, step.function, step.inputs, step.input_names, step.output_names};
    if (choice.batch == 0) p.open = step.batch_axes;
    return p;
  }
  Program p{s.net, [net = s.net](const Tensors& in) { return Tensors{(*net)(in[0])}; }, {s.x.spec()}, {"x"}, {"y"}};
  if (choice.batch == 0) p.open.push_back({0, 0, "batch"});
  if (choice.steps == 0 && s.steps > 1) p.open.push_back({0, 1, "time"});
  return p;
}

#ifdef FERRITE_TOOL_ONNX

/// Returns the program of an ONNX model. Where its extents have no number, a first axis is the batch and other axes are
/// the steps; without a choice they are left open.
Program program_of(const std::filesystem::path& path, const ExportChoice& choice) {
  if (choice.step) throw ValueError("export: --step is for nets of layers; " + path.string() + " is written as it is");
  const auto model = std::make_shared<onnx::Model>(onnx::read(path));
  Program p{model, [model](const Tensors& in) { return model->run(in); }, {}, {}, {}};
  for (const onnx::Port& port : model->inputs()) {
    if (!port.ranked) throw ValueError("export: the file does not say the shape of input '" + port.name + "'");
    Shape shape;
    for (std::size_t i = 0; i < port.shape.size(); ++i) {
      const std::string& axis = port.shape[i];
      const std::optional<std::int64_t> fixed = extent_of(axis);
      const std::int64_t chosen = i == 0 ? choice.batch : choice.steps;
      shape.push_back(fixed ? *fixed : chosen ? chosen : i == 0 ? kBatch : kSteps);
      const std::string name = axis == "?" ? port.name + "_" + std::to_string(i) : axis;
      if (!fixed && !chosen) p.open.push_back({p.inputs.size(), static_cast<int>(i), name});
    }
    p.inputs.push_back({shape, port.dtype});
    p.input_names.push_back(port.name);
  }
  for (const onnx::Port& port : model->outputs()) p.output_names.push_back(port.name);
  return p;
}

void write_onnx(const Program& p, const std::filesystem::path& to) {
  onnx::write_onnx(to, p.function, p.inputs, {.inputs = p.input_names, .outputs = p.output_names, .dynamic = p.open});
}

#else

Program program_of(const std::filesystem::path& path, const ExportChoice&) { refuse_onnx(path); }
void write_onnx(const Program&, const std::filesystem::path& to) { refuse_onnx(to); }

#endif

void write_stablehlo(const Program& p, const std::filesystem::path& to) {
  const std::string text = exchange::to_stablehlo(p.function, p.inputs, {.inline_variables = true, .dynamic = p.open});
  io::write_atomically(to, std::as_bytes(std::span(text)));
}

}  // namespace

void export_net(const std::string& net, const std::filesystem::path& to, const ExportChoice& choice,
                std::ostream& out) {
  const bool text = to.extension() == ".mlir";
  if (!text && !is_onnx(to))
    throw ValueError("export: " + to.string() + ": the ending tells no format; use .onnx or .mlir");
  if (choice.batch < 0 || choice.steps < 0) throw ValueError("export: batch and steps must not be negative");
  const Program p =
      is_onnx(net)
          ? program_of(std::filesystem::path(net), choice)
          : program_of(subject_of(net, choice.batch ? choice.batch : kBatch, choice.steps ? choice.steps : kSteps),
                       choice);
  text ? write_stablehlo(p, to) : write_onnx(p, to);
  out << to.string() << ": " << joined(p.input_names, ", ") << " -> " << joined(p.output_names, ", ") << '\n';
}

}  // namespace ferrite::tools
