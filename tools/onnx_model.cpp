/// ONNX files on the command line.
#include "onnx_model.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iomanip>
#include <ostream>

#include "classic_numbers.h"
#include "ferrite/compile/compile.h"
#include "ferrite/io/any_file.h"
#include "ferrite/io/numpy.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/threads.h"
#include "tool_text.h"
#ifdef FERRITE_TOOL_ONNX
#include "ferrite/exchange/onnx.h"
#endif

namespace ferrite::tools {

bool is_onnx(const std::filesystem::path& path) { return path.extension() == ".onnx"; }

void refuse_onnx(const std::filesystem::path& path) {
  throw ValueError(path.string() + ": this build has no ONNX; it needs the headers of protozero (libprotozero-dev)");
}

std::optional<std::int64_t> extent_of(const std::string& axis) {
  std::int64_t n = 0;
  const auto [end, failed] = std::from_chars(axis.data(), axis.data() + axis.size(), n);
  if (failed != std::errc() || end != axis.data() + axis.size()) return {};  // "2*T" is a name, not a number
  return n;
}

#ifdef FERRITE_TOOL_ONNX

namespace {

std::string type_of(const onnx::Port& port) {
  return port.type + (port.ranked ? "[" + joined(port.shape, ", ") + "]" : " of any shape");
}

/// Returns a tensor in the dtype of an input: bytes and halves are read as the model holds them.
Tensor fitting(const Tensor& x, const onnx::Port& port) { return x.dtype() == port.dtype ? x : cast(x, port.dtype); }

Tensors inputs_from(const std::filesystem::path& path, const std::vector<onnx::Port>& ports) {
  if (path.extension() == ".npy") {
    if (ports.size() != 1)
      throw ValueError("run: the model has " + std::to_string(ports.size()) + " inputs; give a .npz or .safetensors");
    return {fitting(io::read_npy(path), ports[0])};
  }
  const io::TensorFile file = io::read_tensors(path);
  Tensors all;
  for (const onnx::Port& p : ports) {
    if (!file.contains(p.name)) throw ValueError("run: " + path.string() + " has no tensor '" + p.name + "'");
    all.push_back(fitting(file.tensor(p.name), p));
  }
  return all;
}

/// Returns random numbers for an input.
Tensor any_input(const onnx::Port& port, const BenchOptions& o) {
  if (!port.ranked) throw ValueError("bench: the file does not say the shape of input '" + port.name + "'");
  Shape shape;
  for (std::size_t i = 0; i < port.shape.size(); ++i)
    shape.push_back(extent_of(port.shape[i]).value_or(i == 0 ? o.batch : o.steps));
  return is_float(port.dtype) ? cast(uniform(shape, {.seed = 2}, -1, 1), port.dtype) : zeros(shape, port.dtype);
}

}  // namespace

void info_onnx(const std::filesystem::path& path, std::ostream& out) {
  const ClassicNumbers classic(out);
  const onnx::Model model = onnx::read(path);
  for (const onnx::Port& p : model.inputs()) out << "input  " << p.name << "  " << type_of(p) << '\n';
  for (const onnx::Port& p : model.outputs()) out << "output " << p.name << "  " << type_of(p) << '\n';
  for (const auto& p : model.named_parameters())
    out << "parameter " << p.name << "  " << p.variable.peek().spec().str() << '\n';
  out << model.parameters().size() << " parameters, " << model.parameter_count() << " numbers\n\noperations\n"
      << model.report();
}

void run_onnx(const std::filesystem::path& path, const std::filesystem::path& input,
              const std::filesystem::path& output, std::ostream& out) {
  const onnx::Model model = onnx::read(path, {.frozen = true});
  const Tensors y = model.run(inputs_from(input, model.inputs()));
  if (output.empty()) {
    for (std::size_t i = 0; i < y.size(); ++i) out << model.outputs()[i].name << " = " << y[i].str() << '\n';
    return;
  }
  if (output.extension() == ".npy") return io::write_npy(output, y[0]);
  std::vector<io::NamedTensor> named;
  for (std::size_t i = 0; i < y.size(); ++i) named.push_back({model.outputs()[i].name, y[i]});
  io::write_tensors(output, named);
}

void convert_onnx(const std::filesystem::path& from, const std::filesystem::path& to, std::ostream& out) {
  const ClassicNumbers classic(out);
  const onnx::Model model = onnx::read(from);
  std::vector<io::NamedTensor> named;
  for (const auto& p : model.named_parameters()) named.push_back({p.name, p.variable.peek()});
  io::write_tensors(to, named);
  out << to.string() << ": " << named.size() << " tensors\n";
}

void bench_onnx(const std::filesystem::path& path, const BenchOptions& o, std::ostream& out) {
  const ClassicNumbers classic(out);
  if (o.run != "eager" && o.run != "compiled")
    throw ValueError("bench: an ONNX file runs eager or compiled, got '" + o.run + "'");
  if (o.batch < 1 || o.steps < 1 || o.calls < 0)
    throw ValueError("bench: batch and steps must be positive, calls not negative");
  set_threads(o.threads);
  const onnx::Model model = onnx::read(path, {.frozen = true});
  Tensors in;
  for (const onnx::Port& p : model.inputs()) in.push_back(any_input(p, o));
  const auto compiled = compile([&](const Tensors& x) { return model.run(x); });
  const auto call = [&] { (void)(o.run == "eager" ? model.run(in) : compiled(in)); };
  using Seconds = std::chrono::duration<double>;
  for (int i = 0; i < 3; ++i) call();  // these calls make plans and pack weights
  std::vector<double> times;
  Seconds all{};
  while (o.calls ? static_cast<std::int64_t>(times.size()) < o.calls : all.count() < 0.3 || times.size() < 5) {
    const auto begun = std::chrono::steady_clock::now();
    call();
    const Seconds t = std::chrono::steady_clock::now() - begun;
    times.push_back(1e6 * t.count());
    all += t;
  }
  std::ranges::sort(times);
  out << o.run << ": " << std::fixed << std::setprecision(2) << times[0] << " us a call at least, median "
      << times[times.size() / 2] << " us, " << times.size() << " calls, " << thread_count()
      << (thread_count() == 1 ? " thread\n" : " threads\n");
}

#else

void info_onnx(const std::filesystem::path& path, std::ostream&) { refuse_onnx(path); }
void run_onnx(const std::filesystem::path& path, const std::filesystem::path&, const std::filesystem::path&,
              std::ostream&) {
  refuse_onnx(path);
}
void convert_onnx(const std::filesystem::path& from, const std::filesystem::path&, std::ostream&) { refuse_onnx(from); }
void bench_onnx(const std::filesystem::path& path, const BenchOptions&, std::ostream&) { refuse_onnx(path); }

#endif

}  // namespace ferrite::tools
