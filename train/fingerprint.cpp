/// Fingerprints of models, optimisers, schedules, averages and examples, and the differences between two of them.
#include "ferrite/train/fingerprint.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "ferrite/nn/layers/sequential.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/random.h"
#include "ferrite/train/detail/fingerprints.h"

// ---- parts of a training -------------------------------------------------------------------------------

namespace ferrite::train {
namespace {

std::string message_of(const std::string& file, const std::vector<Change>& changes, const std::string& what_to_do) {
  std::string text = file + ": is of another training: ";
  for (std::size_t i = 0; i < changes.size(); ++i)
    text += (i ? ", " : "") + changes[i].name + " was " + changes[i].before + ", is now " + changes[i].now;
  return text + "; " + what_to_do;
}

}  // namespace

OtherTrainingError::OtherTrainingError(std::string file, std::vector<Change> changes, const std::string& what_to_do)
    : IoError(message_of(file, changes, what_to_do)), file_(std::move(file)), changes_(std::move(changes)) {}

namespace detail {
namespace {

/// Returns the name of the i-th part of a kind: "optimizer" for the first, "optimizer2" for the second.
std::string nth(const char* kind, std::size_t i) { return i == 0 ? kind : kind + std::to_string(i + 1); }

/// Returns the part of a name before its first dot.
std::string_view root_of(std::string_view name) { return name.substr(0, name.find('.')); }

void add_layer(Fingerprint& all, const std::string& name, const nn::Layer& layer) {
  const auto* chain = dynamic_cast<const nn::Sequential*>(&layer);
  if (!chain) {
    all[name] = layer.summary();
    return;
  }
  all[name] = std::to_string(chain->size()) + (chain->kind() == "residual" ? " layers, residual" : " layers");
  for (std::size_t i = 0; i < chain->size(); ++i) add_layer(all, name + "." + chain->name(i), (*chain)[i]);
}

std::string text_of(const nn::OptionValue& value, bool cycles) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return exact(*number);
  if (const auto* list = std::get_if<std::vector<std::optional<double>>>(&value)) {
    std::string text;
    for (std::size_t i = 0; i < list->size(); ++i)
      text += (i ? " " : "") + (i == 0 && cycles ? "cycled" : (*list)[i] ? exact(*(*list)[i]) : "none");
    return text;
  }
  return "none";
}

/// Adds the parameters of an optimiser and its options, except a momentum that a schedule changes.
void add_optimizer(Fingerprint& all, const std::string& name, const nn::Optimizer& o) {
  std::string kind = o.torch_name();
  for (std::size_t s = 0; kind.empty() && s < o.slots().size(); ++s) kind = "an optimizer with " + o.slots()[s].name;
  all[name] = kind.empty() ? "an optimizer" : kind;
  for (std::size_t g = 0; g < o.groups(); ++g) {
    const std::string group = name + (g == 0 ? "" : ".group" + std::to_string(g + 1));
    const auto [begin, count] = o.group_range(g);
    std::string names;
    for (std::size_t i = begin; i < begin + count; ++i) names += o.parameters()[i].name() + "\n";
    all[group + ".parameters"] = std::to_string(count) + " (" + digits_of(stream_of(names)) + ")";
    for (const nn::NamedOption& option : o.options(g))
      if (option.name != "momentum" || !o.cycles(g))
        all[group + "." + option.name] = text_of(option.value, o.cycles(g) && option.name == "betas");
  }
}

}  // namespace

std::string exact(double value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  return {std::begin(digits), end};
}

std::uint64_t hash_of(const Tensor& x, std::uint64_t h) {
  const Tensor t = contiguous(x);
  const std::byte* at = t.raw();
  auto left = static_cast<std::size_t>(t.numel() * size_of(t.dtype()));
  while (left > 0) {
    std::uint64_t word = 0;
    const std::size_t n = std::min(left, sizeof word);
    std::memcpy(&word, at, n);
    h = (h ^ word) * 1099511628211U;
    h ^= h >> 29;  // mixes high bits into low ones: the multiplication only carries upwards
    at += n, left -= n;
  }
  return h;
}

std::uint64_t typed_hash_of(const Tensor& x, std::uint64_t h) { return hash_of(x, stream_of(x.spec().str()) ^ h); }

std::string digits_of(std::uint64_t hash) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[((hash ^ (hash >> 32)) >> shift) & 15U];
  return text;
}

std::string text_of(const std::vector<double>& values) {
  if (values.size() > 8)
    return std::to_string(values.size()) + " values (" +
           digits_of(hash_of(Tensor::from(values, {static_cast<std::int64_t>(values.size())}))) + ")";
  std::string text;
  for (const double v : values) text += (text.empty() ? "" : " ") + exact(v);
  return text;
}

void add_net(Fingerprint& all, const nn::Module& model) {
  if (const auto* layer = dynamic_cast<const nn::Layer*>(&model)) add_layer(all, "net", *layer);
}

std::string schedule_text(const nn::Schedule& schedule, const nn::ScheduleState& state) {
  std::string text = schedule.summary();
  if (!text.empty()) return text;
  text = "a function, rates";
  constexpr std::int64_t kSamples = 4;
  std::int64_t last = -1;
  for (std::int64_t k = 0; k <= kSamples; ++k) {
    const std::int64_t at = k == kSamples ? state.steps : state.steps / kSamples * k;
    if (std::exchange(last, at) == at) continue;
    char rate[32];  // six digits: powers and cosines may differ between machines
    const double value = schedule.rate_at(at, state.bases.empty() ? 0 : state.bases[0]);
    const auto end = std::to_chars(std::begin(rate), std::end(rate), value, std::chars_format::general, 6).ptr;
    text += " " + std::string(std::begin(rate), end);
  }
  return text;
}

Fingerprint fingerprint_of(const TrainingParts& parts) {
  Fingerprint all;
  add_net(all, parts.model);
  for (std::size_t i = 0; i < parts.optimizers.size(); ++i)
    add_optimizer(all, nth("optimizer", i), *parts.optimizers[i]);
  for (std::size_t i = 0; i < parts.averages.size(); ++i) {
    const std::optional<double> decay = parts.averages[i]->decay();
    all[nth("average", i)] = decay ? "exponential, decay " + exact(*decay) : "equal weights";
  }
  for (const auto& [name, text] : parts.also) all[name] = text;
  return all;
}

std::vector<Change> differences(const Fingerprint& before, const Fingerprint& now, bool everything) {
  std::vector<Change> all;
  const auto find = [](const Fingerprint& in, const std::string& name) {
    const auto found = in.find(name);
    return found == in.end() ? std::string("none") : found->second;
  };
  const auto known = [&](std::string_view root) {
    return std::any_of(now.begin(), now.end(), [&](const auto& entry) { return root_of(entry.first) == root; });
  };
  Fingerprint names = now;
  for (const auto& entry : before)
    if (everything || known(root_of(entry.first))) names.insert(entry);
  for (const auto& [name, text] : names) {
    Change change{.name = name, .before = find(before, name), .now = find(now, name)};
    if (change.before != change.now) all.push_back(std::move(change));
  }
  return all;
}

bool allows(const std::vector<std::string>& allowed, std::string_view name) {
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const std::string& a) { return name == a || (name.starts_with(a) && name[a.size()] == '.'); });
}

// ---- examples that functions make ----------------------------------------------------------------------

namespace {

constexpr std::int64_t kSamples = 64;

/// The sample of one field over several examples.
struct Seen {
  double sum = 0, weight = 0;
  std::uint64_t hash = kHash;
  bool is_float = false;

  void add(const Tensor& x) {
    if (!ferrite::is_float(x.dtype())) {
      hash = typed_hash_of(x, hash);
      return;
    }
    is_float = true;
    double place = weight;  // weights depend on the place, so that exchanging two values changes the mean
    for (const double v : cast(x, Dtype::f64).to_vector<double>()) {
      const double w = 1 + std::fmod(place++ * 0.6180339887498949, 1);
      if (std::isfinite(v)) sum += w * std::fabs(v) * (v < 0 ? 0.75 : 1);
    }
    weight = place;
  }
  std::string text() const {
    if (!is_float) return digits_of(hash);
    char digits[32];
    const double mean = weight > 0 ? sum / weight : 0;
    const auto end = std::to_chars(std::begin(digits), std::end(digits), mean, std::chars_format::general, 4).ptr;
    return "~" + std::string(std::begin(digits), end);
  }
};

}  // namespace

std::string types_of(const Dataset::Source& source) {
  std::string text;
  const Tensors e = source.size() > 0 ? source.example(0, {}) : Tensors();
  for (std::size_t f = 0; f < e.size(); ++f) {
    const bool sequence = f < source.fields().size() && source.fields()[f].sequence && e[f].rank() > 0;
    std::string spec = e[f].spec().str();
    if (sequence) {  // writes "?" for its length
      const std::size_t begin = spec.find('['), end = spec.find_first_of(",]", begin);
      spec = spec.substr(0, begin + 1) + "?" + spec.substr(end);
    }
    text += (f ? ", " : "") + spec;
  }
  return text;
}

std::string samples_of(const Dataset::Source& source) {
  const std::int64_t n = source.size(), samples = std::min(n, kSamples);
  std::vector<Seen> seen;
  for (std::int64_t k = 0; k < samples; ++k) {
    const Tensors e = source.example(samples == n ? k : (n - 1) / (samples - 1) * k, {});
    if (seen.size() < e.size()) seen.resize(e.size());
    for (std::size_t f = 0; f < e.size(); ++f) seen[f].add(e[f]);
  }
  std::string text;
  for (const Seen& s : seen) text += " " + s.text();
  return text;
}

}  // namespace detail

}  // namespace ferrite::train
