/// Nets as C.
#include "tool_freeze.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <span>
#include <utility>

#include "ferrite/exchange/freeze.h"
#include "ferrite/exchange/freeze_casadi.h"
#include "ferrite/exchange/freeze_folders.h"
#include "ferrite/exchange/freeze_jacobian.h"
#include "ferrite/io/atomic_file.h"
#include "onnx_model.h"
#include "subject.h"
#ifdef FERRITE_TOOL_ONNX
#include "ferrite/exchange/onnx.h"
#include "ferrite/exchange/onnx_stream.h"
#endif

namespace ferrite::tools {
namespace {

/// Returns where the net is written: the source or the folder.
std::filesystem::path target_of(const FreezeChoice& c) {
  std::filesystem::path to(!c.arduino.empty() ? c.arduino : !c.browser.empty() ? c.browser : c.output);
  to = to.lexically_normal();
  return to.has_filename() ? to : to.parent_path();  // "folder/"
}

/// Returns a name as an identifier: "My-net" gives "my_net".
std::string identifier_of(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z', digit = c >= '0' && c <= '9';
    name += upper ? static_cast<char>(c - 'A' + 'a') : lower || digit ? c : '_';
  }
  if (name.empty() || name[0] < 'a' || name[0] > 'z') name = "net_" + name;
  return name;
}

/// Returns the command that writes the same file, for its first lines.
std::string command_of(const std::string& net, const FreezeChoice& c) {
  const std::string kind = !c.arduino.empty() ? " --arduino " : !c.browser.empty() ? " --browser " : " -o ";
  std::string text = "ferrite freeze " + net + kind + target_of(c).filename().string();
  const auto add = [&text](const std::string& option, const std::string& value) { text += " " + option + " " + value; };
  if (!c.name.empty()) add("--name", c.name);
  if (c.batch != 1) add("--batch", std::to_string(c.batch));
  if (c.steps != 0) add("--steps", std::to_string(c.steps));
  if (c.block) add("--block", std::to_string(*c.block));
  if (!c.time.empty()) add("--time", c.time);
  for (const std::string& s : c.states) add("--state", s);
  for (const std::string& s : c.sizes) add("--size", s);
  if (c.jacobian) text += " --jacobian";
  if (c.casadi) text += " --casadi";
  return text;
}

/// Returns the two sides of "a=b".
std::pair<std::string, std::string> sides_of(const std::string& text, const char* option) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    throw ValueError("freeze: " + std::string(option) + " takes two names with = between them, got '" + text + "'");
  return {text.substr(0, at), text.substr(at + 1)};
}

exchange::FreezeOptions options_of(const std::string& net, const FreezeChoice& c) {
  const std::filesystem::path to = target_of(c);
  const std::string own = (c.output.empty() ? to.filename() : to.stem()).string();
  return {.name = c.name.empty() ? identifier_of(own) : c.name,
          .command = command_of(net, c),
          .block = c.block.value_or(c.arduino.empty() ? 32 : 0)};
}

exchange::FrozenNet frozen_layers(const std::string& net, const FreezeChoice& c) {
  const Subject s = subject_of(net, c.batch, c.steps ? c.steps : 1);
  s.net->eval();
  exchange::FreezeOptions options = options_of(net, c);
  if (c.steps != 0) {
    options.inputs = {"x"}, options.outputs = {"y"};
    const std::array<Spec, 1> x{s.x.spec()};
    return exchange::freeze([&](const Tensors& in) { return Tensors{(*s.net)(in[0])}; }, x, options);
  }
  const nn::StepInput in = s.net->step_input();
  return exchange::freeze(*s.net, {c.batch, in.width ? in.width : s.x.shape()[-1], s.x.dtype()}, options);
}

#ifdef FERRITE_TOOL_ONNX

/// Returns the type of a port, whose extents without a number are given by name, or are 1.
Spec spec_of(const onnx::Port& port, const onnx::StreamOptions& o) {
  if (!port.ranked) throw ValueError("freeze: the file does not say the shape of input '" + port.name + "'");
  Spec s{{}, port.dtype};
  for (const std::string& axis : port.shape) {
    const std::optional<std::int64_t> fixed = extent_of(axis);
    const auto given = o.extents.find(axis);
    s.shape.push_back(fixed ? *fixed : given != o.extents.end() ? given->second : 1);
  }
  return s;
}

exchange::FrozenNet frozen_onnx(const std::string& path, const FreezeChoice& c) {
  const onnx::Model model = onnx::read(path);
  onnx::StreamOptions stream{.time = c.time};
  for (const std::string& s : c.states) stream.states.push_back(sides_of(s, "--state"));
  for (const std::string& s : c.sizes) {
    const auto [name, extent] = sides_of(s, "--size");
    const std::optional<std::int64_t> n = extent_of(extent);
    if (!n) throw ValueError("freeze: --size takes a name and a number, got '" + s + "'");
    stream.extents[name] = *n;
  }
  exchange::FreezeOptions options = options_of(path, c);
  options.model = std::filesystem::path(path).filename().string();
  if (!c.time.empty() || !c.states.empty()) return onnx::freeze(model, stream, options);
  std::vector<Spec> inputs;
  for (const onnx::Port& p : model.inputs()) inputs.push_back(spec_of(p, stream)), options.inputs.push_back(p.name);
  for (const onnx::Port& p : model.outputs()) options.outputs.push_back(p.name);
  return exchange::freeze([&](const Tensors& in) { return model.run(in); }, inputs, options);
}

#else

exchange::FrozenNet frozen_onnx(const std::string& path, const FreezeChoice&) { refuse_onnx(path); }

#endif

void write(const std::filesystem::path& to, const std::string& text) {
  io::write_atomically(to, std::as_bytes(std::span(text)));
}

/// Writes the derivatives of a step beside the net, in f64.
void write_derivatives(const std::string& net, const FreezeChoice& c, std::ostream& out) {
  if (is_onnx(net) || c.steps != 0)
    throw ValueError("freeze: --jacobian and --casadi take a net of layers, without --steps");
  const Subject s = subject_of(net, c.batch, 1);
  s.net->eval();
  const nn::StepInput in = s.net->step_input();
  const auto step = exchange::step_program(*s.net, {c.batch, in.width ? in.width : s.x.shape()[-1], s.x.dtype()});
  const exchange::FreezeOptions options = options_of(net, c);
  const std::filesystem::path folder = std::filesystem::path(c.output).parent_path();
  const auto add = [&](const std::string& file, const std::string& text) {
    write(folder / file, text);
    out << (folder / file).string() << ": " << text.size() << " bytes\n";
  };
  if (c.jacobian) {
    const std::string name = options.name + "_jacobian";
    const auto j = exchange::freeze_jacobian(step, {}, {.name = name, .command = options.command});
    add(name + ".h", j.header), add(name + ".c", j.source);
  }
  if (c.casadi)
    for (const exchange::CasadiFile& f :
         exchange::freeze_casadi(step, {.name = options.name + "_step", .command = options.command}))
      add(f.name, f.text);
}

}  // namespace

void freeze_net(const std::string& net, const FreezeChoice& choice, std::ostream& out) {
  const std::filesystem::path to = target_of(choice);
  if (choice.output.empty() + choice.arduino.empty() + choice.browser.empty() != 2)
    throw ValueError("freeze: give one of --output, --arduino and --browser");
  if (!choice.output.empty() && to.extension() != ".c")
    throw ValueError("freeze: " + to.string() + ": the output must end with .c");
  if (choice.batch < 1 || choice.steps < 0 || choice.block.value_or(0) < 0)
    throw ValueError("freeze: the batch must be positive, steps and block must not be negative");
  const exchange::FrozenNet c = is_onnx(net) ? frozen_onnx(net, choice) : frozen_layers(net, choice);
  const std::string name = options_of(net, choice).name;
  if (!choice.output.empty()) {
    const std::filesystem::path header = to.parent_path() / (name + ".h");
    write(header, c.header);
    write(to, c.source);
    out << to.string() << ", " << header.string() << ": " << c.source.size() << " bytes\n";
    if (choice.jacobian || choice.casadi) write_derivatives(net, choice, out);
    return;
  }
  const auto files = choice.arduino.empty() ? exchange::browser_folder(c, name) : exchange::arduino_folder(c, name);
  for (const auto& [path, text] : files) {
    std::filesystem::create_directories((to / path).parent_path());
    write(to / path, text);
  }
  out << to.string() << ": " << files.size() << " files of the net " << name << '\n';
}

}  // namespace ferrite::tools
