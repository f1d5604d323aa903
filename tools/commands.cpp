/// The commands info, about, convert and diff of `ferrite`.
#include "commands.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <optional>
#include <ostream>
#include <sstream>

#include "classic_numbers.h"
#include "ferrite/io/any_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/nam.h"
#include "ferrite/tensor/instruction_set.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::tools {
namespace {

std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 3; ++unit) value /= 1024;
  std::ostringstream s;
  s.imbue(std::locale::classic());
  s << std::setprecision(unit == 0 || value >= 100 ? 0 : 1) << std::fixed << value << ' ' << kUnits[unit];
  return s.str();
}

/// Returns a name as a terminal may show it, without control characters.
std::string printable(std::string_view name) {
  std::string s;
  for (const char c : name) s += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return s;
}

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (const std::int64_t e : shape) n *= e;
  return n;
}

void print_metadata(const io::Metadata& metadata, std::ostream& out) {
  constexpr std::size_t kMost = 20;
  constexpr std::size_t kLongest = 100;
  if (metadata.empty()) return;
  out << "\nmetadata\n";
  std::size_t shown = 0;
  for (const auto& [key, value] : metadata) {
    if (shown++ == kMost) break;
    const std::string text = printable(value);
    out << "  " << printable(key) << ": " << text.substr(0, kLongest) << (text.size() > kLongest ? "..." : "") << '\n';
  }
  if (metadata.size() > kMost) out << "  and " << metadata.size() - kMost << " more\n";
}

/// Returns the tensors of a file in any format; for a model of the Neural Amp Modeler those of its layer, by their
/// names there.
io::TensorFile opened(const std::filesystem::path& path) {
  if (path.extension() != ".nam") return io::read_tensors(path);
  const io::NamModel model = io::read_nam(path);
  io::ModuleContents contents = io::contents(*model.layer);
  contents.metadata["version"] = model.version;
  contents.metadata["layer"] = model.layer->summary();
  if (!model.metadata.empty()) contents.metadata["metadata"] = model.metadata;
  if (model.sample_rate) {
    std::ostringstream rate;
    const ClassicNumbers classic(rate);
    rate << *model.sample_rate;
    contents.metadata["sample_rate"] = rate.str();
  }
  return io::tensor_file_of(std::move(contents.tensors), io::detail::shown(path), std::move(contents.metadata));
}

/// The difference of two tensors: max |a - b|, infinity where only one is NaN; and max |b|.
struct Gap {
  double absolute = 0;
  double largest = 0;
};

Gap gap_of(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = cast(a, Dtype::f64).to_vector<double>();
  const std::vector<double> y = cast(b, Dtype::f64).to_vector<double>();
  Gap gap;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isfinite(y[i])) gap.largest = std::max(gap.largest, std::fabs(y[i]));
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double d = std::fabs(x[i] - y[i]);
    gap.absolute = std::max(gap.absolute, std::isnan(d) ? INFINITY : d);
  }
  return gap;
}

}  // namespace

void info(const std::filesystem::path& path, std::ostream& out) {
  const ClassicNumbers classic(out);
  const io::TensorFile file = opened(path);
  std::size_t width = 4;
  std::uint64_t bytes = 0;
  std::int64_t numbers = 0;
  for (const std::string_view name : file.names()) width = std::max(width, std::min<std::size_t>(name.size(), 60));
  out << std::left << std::setw(static_cast<int>(width)) << "name"
      << "  dtype     shape\n";
  for (const std::string_view name : file.names()) {
    const io::TensorInfo t = file.info(name);
    out << std::setw(static_cast<int>(width)) << printable(name) << "  " << std::setw(8) << t.dtype << "  "
        << io::detail::bracketed(t.shape) << (t.loads_as ? "" : "  (cannot be loaded)") << '\n';
    bytes += t.bytes;
    numbers += elements(t.shape);
  }
  out << file.size() << " tensors, " << numbers << " numbers, " << size_text(bytes) << '\n';
  const std::vector<io::RecognisedLayer> layers = io::recognise_layers(file);
  if (!layers.empty()) out << "\nlayers\n";
  for (const io::RecognisedLayer& l : layers)
    out << "  " << (l.name.empty() ? "" : printable(l.name) + ": ") << l.description << '\n';
  print_metadata(file.metadata(), out);
}

void about(std::ostream& out) {
  const std::string_view used = instruction_set();
  out << "instruction set " << used << "; FERRITE_ISA may name";
  const char* separator = " ";
  for (const std::string_view name : instruction_sets()) {
    out << separator << name;
    separator = ", ";
  }
  out << '\n';
}

void convert(const std::filesystem::path& from, const std::filesystem::path& to, std::ostream& out, bool widen,
             std::ostream* progress) {
  const ClassicNumbers classic(out);
  std::optional<ClassicNumbers> of_progress;
  if (progress) of_progress.emplace(*progress);
  const io::TensorFile file = io::read_tensors(from);
  std::vector<io::NamedTensor> tensors;
  std::size_t widened = 0;
  for (const std::string_view name : file.names()) {
    const io::TensorInfo t = file.info(name);
    tensors.push_back(
        {std::string(name), file.tensor(name, widen ? io::Elements::for_computing : io::Elements::as_stored)});
    const Tensor& stored = tensors.back().tensor;
    widened += t.bytes < static_cast<std::uint64_t>(stored.numel() * size_of(stored.dtype()));
    if (progress) *progress << "\rread " << tensors.size() << " of " << file.size() << " tensors" << std::flush;
  }
  if (progress) *progress << "\rwriting " << to.string() << "          " << std::flush;
  io::write_tensors(to, tensors, file.metadata());
  if (progress) *progress << '\n';
  out << to.string() << ": " << tensors.size() << " tensors";
  if (widened) out << ", " << widened << " of them widened";
  out << '\n';
}

bool diff(const std::filesystem::path& a, const std::filesystem::path& b, double tolerance, std::ostream& out) {
  const ClassicNumbers classic(out);
  const io::TensorFile x = io::read_tensors(a);
  const io::TensorFile y = io::read_tensors(b);
  bool same = true;
  double worst = 0;
  std::size_t compared = 0;
  for (const std::string_view name : x.names()) {
    if (!y.contains(name)) {
      out << printable(name) << ": only in " << a.string() << '\n';
      same = false;
      continue;
    }
    const io::TensorInfo p = x.info(name);
    const io::TensorInfo q = y.info(name);
    if (p.shape != q.shape) {
      out << printable(name) << ": shapes " << io::detail::bracketed(p.shape) << " and "
          << io::detail::bracketed(q.shape) << '\n';
      same = false;
      continue;
    }
    ++compared;
    const Gap gap = gap_of(x.tensor(name), y.tensor(name));
    const double relative = gap.absolute / std::max(1.0, gap.largest);
    worst = std::max(worst, relative);
    if (gap.absolute > 0)
      out << printable(name) << ": largest difference " << gap.absolute << ", relative " << relative << '\n';
  }
  for (const std::string_view name : y.names())
    if (!x.contains(name)) {
      out << printable(name) << ": only in " << b.string() << '\n';
      same = false;
    }
  out << compared << " tensors compared, largest relative difference " << worst << '\n';
  return same && worst <= tolerance;
}

}  // namespace ferrite::tools
