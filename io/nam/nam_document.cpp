/// Reads the JSON of a `.nam` file into a tree, and the configuration of a WaveNet from that.
#include "ferrite/io/nam/nam_document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/detail/json_parser.h"
#include "ferrite/tensor/scalar.h"

// ---- the tree ------------------------------------------------------------------------------------------

namespace ferrite::io::detail::nam {
namespace {

using Kind = Node::Kind;

constexpr std::size_t kLongestText = std::size_t{1} << 16;
constexpr std::size_t kLongestNumber = 1000;

class Builder final : public JsonHandler {
 public:
  Builder(Document& to, std::string_view text, std::string_view where) : to_(to), text_(text), where_(where) {}

  void null() override { (void)add(Kind::null); }
  void boolean(bool value) override { add(Kind::boolean).truth = value; }
  void negative(std::int64_t v) override { number(static_cast<double>(v), std::to_string(v)); }
  void natural(std::uint64_t v) override { number(static_cast<double>(v), std::to_string(v)); }
  void real(double v, const std::string& text) override { number(v, text); }
  void string(const std::string& s) override { add(Kind::text).text = s; }
  void key(const std::string& name) override { key_ = name; }
  void begin_object() override { open(Kind::object); }
  void end_object() override {
    check_keys(to_.nodes[open_.back()]);
    open_.pop_back();
  }
  void begin_list() override {
    const bool in_object = !open_.empty() && to_.nodes[open_.back()].kind == Kind::object;
    open(in_object && key_ == "weights" ? Kind::weights : Kind::list);
    to_.nodes[open_.back()].weights_at = to_.weights.size();
  }
  void end_list() override { open_.pop_back(); }
  void error(std::size_t position, bool too_large) override {
    refuse(where_, too_large ? "a number is too large, before byte " + std::to_string(position)
                             : "is not JSON: stopped at byte " + std::to_string(position) + " of " +
                                   std::to_string(text_.size()));
  }

 private:
  void number(double value, const std::string& text) {
    if (!open_.empty() && to_.nodes[open_.back()].kind == Kind::weights) return weight(value);
    Node& n = add(Kind::number);
    n.number = value;
    n.text = text;
  }
  void weight(double value) {
    const auto f = static_cast<float>(value);
    if (!std::isfinite(f)) refuse(where_, "a weight does not fit f32: " + Scalar(value).str());
    to_.weights.push(f);
    ++to_.nodes[open_.back()].weights;
  }
  void open(Kind kind) {
    if (open_.size() == kMostLevels) refuse(where_, "is nested deeper than " + std::to_string(kMostLevels) + " levels");
    (void)add(kind);
    open_.push_back(static_cast<std::uint32_t>(to_.nodes.size() - 1));
  }
  Node& add(Kind kind) {
    if (to_.nodes.empty() && kind != Kind::object) refuse(where_, "is no JSON object");
    if (to_.nodes.size() == kMostNodes)
      refuse(where_, "has more than " + std::to_string(kMostNodes) + " values beside the weights");
    const auto at = static_cast<std::uint32_t>(to_.nodes.size());
    if (!open_.empty()) {
      Node& in = to_.nodes[open_.back()];
      if (in.kind == Kind::weights) refuse(where_, "'weights' are no list of numbers");
      (in.first == Node::kNone ? in.first : to_.nodes[in.last].next) = at;
      in.last = at;
    }
    Node& n = to_.nodes.emplace_back();
    n.kind = kind;
    if (!open_.empty() && to_.nodes[open_.back()].kind == Kind::object) n.key = std::move(key_);
    key_.clear();
    return n;
  }
  void check_keys(const Node& object) const {
    std::vector<std::string_view> keys;
    for (const Node* n = to_.child(object.first); n; n = to_.child(n->next)) keys.emplace_back(n->key);
    std::ranges::sort(keys);
    const auto twice = std::ranges::adjacent_find(keys);
    if (twice != keys.end()) refuse(where_, "the key " + quote(*twice) + " occurs twice");
  }

  Document& to_;
  std::string_view text_, where_;
  std::vector<std::uint32_t> open_;
  std::string key_;
};

/// Refuses long texts and numbers, of which the parser keeps several copies.
void check_lengths(std::string_view text, std::string_view where) {
  bool in_text = false;
  std::size_t length = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      in_text = !in_text;
      length = 0;
    } else if (in_text && c == '\\') {
      ++i, length += 2;
    } else {
      length = !in_text && std::string_view(" \t\r\n,:[]{}").find(c) != std::string_view::npos ? 0 : length + 1;
    }
    if (length > (in_text ? kLongestText : kLongestNumber))
      refuse(where, std::string(in_text ? "a text" : "a number") + " is longer than " +
                        counted(in_text ? kLongestText : kLongestNumber, "byte") + ", before byte " +
                        std::to_string(i));
  }
}

void append(const Document& d, const Node& n, std::string& out) {
  switch (n.kind) {
    case Kind::null: out += "null"; return;
    case Kind::boolean: out += n.truth ? "true" : "false"; return;
    case Kind::number: out += n.text; return;
    case Kind::text: append_json_string(out, n.text); return;
    case Kind::weights: {
      std::vector<float> values(n.weights);
      d.weights.copy(n.weights_at, values);
      std::size_t at = 0;
      append_numbers(out, values, {static_cast<std::int64_t>(values.size())}, at);
      return;
    }
    case Kind::object:
    case Kind::list: break;
  }
  const bool object = n.kind == Kind::object;
  out += object ? '{' : '[';
  for (const Node* c = d.child(n.first); c; c = d.child(c->next)) {
    if (c != d.child(n.first)) out += ", ";
    if (object) {
      append_json_string(out, c->key);
      out += ": ";
    }
    append(d, *c, out);
  }
  out += object ? '}' : ']';
}

}  // namespace

Document read_document(std::span<const std::byte> bytes, std::string_view where) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto bad = invalid_utf8(text)) refuse(where, "is not UTF-8: byte " + std::to_string(*bad));
  check_lengths(text, where);
  Document document;
  Builder builder(document, text, where);
  parse_json(text, builder);
  return document;
}

std::string text_of(const Document& document, const Node& node) {
  std::string out;
  append(document, node, out);
  return out;
}

Object::Object(const Document& document, const Node& node, std::string where)
    : document_(document), node_(node), where_(std::move(where)) {
  if (node.kind != Kind::object) refuse(where_, "is no object");
}

const Node* Object::find(std::string_view key) {
  asked_.push_back(key);
  for (const Node* n = document_.child(node_.first); n; n = document_.child(n->next))
    if (n->key == key) return n->kind == Kind::null ? nullptr : n;
  return nullptr;
}

const Node& Object::at(std::string_view key) {
  const Node* n = find(key);
  if (!n) refuse(where_, "has no " + quote(key));
  return *n;
}

Object Object::object(std::string_view key) { return {document_, at(key), where_ + "." + std::string(key)}; }

std::int64_t size_of(const Node& n, std::string_view where) {
  if (n.kind != Kind::number || n.number != std::floor(n.number) || n.number < 1 ||
      n.number > std::numeric_limits<std::int32_t>::max())
    refuse(where, "is no size from 1 to 2^31 - 1" + (n.kind == Kind::number ? ": " + n.text : std::string()));
  return static_cast<std::int64_t>(n.number);
}

std::int64_t Object::size(std::string_view key) { return size_of(at(key), where_ + "." + std::string(key)); }
std::int64_t Object::size(std::string_view key, std::int64_t otherwise) {
  const Node* n = find(key);
  return n ? size_of(*n, where_ + "." + std::string(key)) : otherwise;
}

bool Object::truth(std::string_view key) {
  const Node& n = at(key);
  if (n.kind != Kind::boolean) refuse(where_, quote(key) + " is neither true nor false");
  return n.truth;
}
bool Object::truth(std::string_view key, bool otherwise) { return find(key) ? truth(key) : otherwise; }

double Object::number(std::string_view key) {
  const Node& n = at(key);
  if (n.kind != Kind::number) refuse(where_, quote(key) + " is no number");
  return n.number;
}

std::string Object::text(std::string_view key) {
  const Node& n = at(key);
  if (n.kind != Kind::text) refuse(where_, quote(key) + " is no text");
  return n.text;
}

void Object::finish() const {
  for (const Node* n = document_.child(node_.first); n; n = document_.child(n->next))
    if (std::ranges::find(asked_, n->key) == asked_.end())
      refuse(where_, "the key " + quote(n->key) + " is not supported");
}

// ---- the configuration of a WaveNet ----------------------------------------------------------------------

namespace {

constexpr std::int64_t kFurthest = std::int64_t{1} << 24;  ///< longest reach of a convolution, in steps

struct ActivationName {
  std::string_view in_files, here;
};

/// The activations with the format's and Ferrite's names. Where two have one name in Ferrite, the first is written: a
/// PReLU of one slope, which no model trains, is a LeakyReLU.
constexpr std::array<ActivationName, 9> kActivations = {{{"Tanh", "tanh"},
                                                         {"Hardtanh", "hardtanh"},
                                                         {"ReLU", "relu"},
                                                         {"LeakyReLU", "leaky_relu"},
                                                         {"Sigmoid", "sigmoid"},
                                                         {"SiLU", "silu"},
                                                         {"Hardswish", "hardswish"},
                                                         {"Softsign", "softsign"},
                                                         {"PReLU", "leaky_relu"}}};

constexpr std::array<const char*, 8> kFilms = {"conv_pre_film",         "conv_post_film",      "input_mixin_pre_film",
                                               "input_mixin_post_film", "activation_pre_film", "activation_post_film",
                                               "layer1x1_post_film",    "head1x1_post_film"};

std::string named(std::string_view in_files, const std::string& where) {
  const auto at = std::ranges::find(kActivations, in_files, &ActivationName::in_files);
  if (at == kActivations.end()) refuse(where, "the activation " + quote(in_files) + " is not supported");
  return std::string(at->here);
}

nn::WavenetActivation activation_of(const Document& d, const Node& n, const std::string& where) {
  if (n.kind == Kind::text && n.text != "PReLU") return {named(n.text, where)};
  Object o(d, n, where);
  const std::string type = o.text("type");
  nn::WavenetActivation a{named(type, where)};
  if (type == "PReLU" || (type == "LeakyReLU" && o.find("negative_slope")))
    a.slope = static_cast<float>(o.number("negative_slope"));
  if (type == "Hardtanh") {
    if (o.find("min_val")) a.low = o.number("min_val");
    if (o.find("max_val")) a.high = o.number("max_val");
    if (!(a.low <= a.high)) refuse(where, "the min_val of a Hardtanh is above its max_val: " + text_of(d, n));
  }
  o.finish();
  return a;
}

/// Calls a function with each of `count` values, from a list or from one value for all.
void each(const Document& d, const Node& n, std::size_t count, const std::string& where,
          const std::function<void(std::size_t, const Node&)>& f) {
  if (n.kind != Kind::list) {
    for (std::size_t i = 0; i < count; ++i) f(i, n);
    return;
  }
  std::size_t i = 0;
  for (const Node* c = d.child(n.first); c; c = d.child(c->next), ++i)
    if (i < count) f(i, *c);
  if (i != count) refuse(where, "has " + std::to_string(i) + " values for " + counted(count, "layer"));
}

void read_dilations(Object& o, nn::WavenetArray& a) {
  const Node& n = o.at("dilations");
  const std::string where = o.where() + ".dilations";
  if (n.kind != Kind::list || n.first == Node::kNone) refuse(where, "is not a list of dilations");
  for (const Node* c = o.document().child(n.first); c; c = o.document().child(c->next)) {
    nn::WavenetUnit unit;
    unit.dilation = size_of(*c, where);
    a.units.push_back(unit);
  }
}

void read_kernels(Object& o, nn::WavenetArray& a) {
  const Node* one = o.find("kernel_size");
  const Node* several = o.find("kernel_sizes");
  if ((one == nullptr) == (several == nullptr)) refuse(o.where(), "must have one of 'kernel_size' and 'kernel_sizes'");
  if (one && one->kind != Kind::number) refuse(o.where() + ".kernel_size", "is no number");
  if (several && several->kind != Kind::list) refuse(o.where() + ".kernel_sizes", "is no list");
  const std::string where = o.where() + (one ? ".kernel_size" : ".kernel_sizes");
  each(o.document(), one ? *one : *several, a.units.size(), where,
       [&](std::size_t i, const Node& n) { a.units[i].kernel_size = size_of(n, where); });
  for (const nn::WavenetUnit& u : a.units)
    if (u.kernel_size - 1 > kFurthest / u.dilation)
      refuse(where, "reaches further back than 2^24 steps: " + std::to_string(u.kernel_size) + " with dilation " +
                        std::to_string(u.dilation));
}

void read_activations(Object& o, nn::WavenetArray& a) {
  const std::string where = o.where() + ".activation";
  each(o.document(), o.at("activation"), a.units.size(), where,
       [&](std::size_t i, const Node& n) { a.units[i].activation = activation_of(o.document(), n, where); });
  std::vector<bool> gated(a.units.size());
  const std::string mode_where = o.where() + ".gating_mode";
  if (const Node* mode = o.find("gating_mode")) {
    each(o.document(), *mode, a.units.size(), mode_where, [&](std::size_t i, const Node& n) {
      if (n.text != "none" && n.text != "gated" && n.text != "blended")
        refuse(mode_where, quote(n.text) + " is not supported");
      gated[i] = n.text != "none";
      a.units[i].blends = n.text == "blended";
    });
    (void)o.find("gated");
  } else if (o.truth("gated", false)) {
    gated.assign(gated.size(), true);
  }
  for (std::size_t i = 0; i < gated.size(); ++i)
    if (gated[i]) a.units[i].gate = nn::WavenetActivation{"sigmoid"};
  const Node* second = o.find("secondary_activation");
  if (!second || !o.find("gating_mode")) return;
  const std::string second_where = o.where() + ".secondary_activation";
  each(o.document(), *second, a.units.size(), second_where, [&](std::size_t i, const Node& n) {
    if (gated[i]) a.units[i].gate = activation_of(o.document(), n, second_where);
  });
}

void read_head(Object& o, nn::WavenetArray& a) {
  if (!o.find("head")) {
    a.head_size = o.size("head_size");
    a.head_bias = o.truth("head_bias");
    return;
  }
  Object head = o.object("head");
  a.head_size = head.size("out_channels");
  a.head_kernel_size = head.size("kernel_size");
  a.head_dilation = head.size("head_dilation", 1);
  a.head_bias = head.truth("bias");
  head.finish();
  (void)o.find("head_size"), (void)o.find("head_bias");
  if (a.head_kernel_size - 1 > kFurthest / a.head_dilation)
    refuse(head.where(), "reaches further back than 2^24 steps");
}

/// Reads an optional product that is applied to every step.
bool product_of(Object& o, std::string_view key, bool otherwise, std::int64_t& groups, std::int64_t* out_channels) {
  if (!o.find(key)) return otherwise;
  Object p = o.object(key);
  const bool active = p.truth("active");
  if (const std::int64_t n = p.size("groups", 1); active) groups = n;
  if (out_channels && active) *out_channels = p.size("out_channels");
  (void)p.find("out_channels");
  p.finish();
  return active;
}

std::optional<nn::WavenetFilm> film_of(Object& o, const char* key) {
  const Node* n = o.find(key);
  if (!n || (n->kind == Kind::boolean && !n->truth)) return {};
  Object f(o.document(), *n, o.where() + "." + key);
  const bool active = f.truth("active", true);
  const nn::WavenetFilm film{f.truth("shift", true), f.size("groups", 1)};
  f.finish();
  return active ? std::optional(film) : std::nullopt;
}

/// Throws IoError where groups do not divide the channels that a product takes and gives.
void check_groups(const std::string& where, std::string_view what, std::int64_t groups, std::int64_t in,
                  std::int64_t out) {
  if (in % groups != 0 || out % groups != 0)
    refuse(where, std::string(what) + " " + std::to_string(groups) + " do not divide the channels, " +
                      std::to_string(in) + " to " + std::to_string(out));
}
void check_groups(const nn::WavenetArray& a, const std::string& where) {
  const auto film = [&](nn::FilmPlace place, std::int64_t width) {
    const std::optional<nn::WavenetFilm>& f = a.films[static_cast<std::size_t>(place)];
    if (f)
      check_groups(where, "the groups of " + nn::Wavenet::name_of(place), f->groups, a.condition_size,
                   f->shift ? 2 * width : width);
  };
  for (const nn::WavenetUnit& u : a.units) {
    const std::int64_t wide = u.gate ? 2 * a.bottleneck : a.bottleneck;
    check_groups(where, "groups_input", a.groups, a.channels, wide);
    check_groups(where, "groups_input_mixin", a.mix_groups, a.condition_size, wide);
    for (const nn::FilmPlace p : {nn::FilmPlace::conv_post, nn::FilmPlace::mix_post, nn::FilmPlace::activation_pre})
      film(p, wide);
  }
  if (a.has_layer1x1) check_groups(where, "the groups of layer1x1", a.layer1x1_groups, a.bottleneck, a.channels);
  if (a.head1x1_size > 0) check_groups(where, "the groups of head1x1", a.head1x1_groups, a.bottleneck, a.head1x1_size);
  film(nn::FilmPlace::conv_pre, a.channels), film(nn::FilmPlace::mix_pre, a.condition_size);
  film(nn::FilmPlace::activation_post, a.bottleneck), film(nn::FilmPlace::layer1x1_post, a.channels);
  film(nn::FilmPlace::head1x1_post, a.head1x1_size);
  const auto needs = [&](nn::FilmPlace place, bool has) {
    if (!has && a.films[static_cast<std::size_t>(place)])
      refuse(where, nn::Wavenet::name_of(place) + " has no product in front of it");
  };
  needs(nn::FilmPlace::layer1x1_post, a.has_layer1x1), needs(nn::FilmPlace::head1x1_post, a.head1x1_size > 0);
}

nn::WavenetArray array_of(Object o) {
  nn::WavenetArray a;
  a.input_size = o.size("input_size");
  a.condition_size = o.size("condition_size");
  a.channels = o.size("channels");
  a.bottleneck = o.size("bottleneck", a.channels);
  a.groups = o.size("groups_input", 1);
  a.mix_groups = o.size("groups_input_mixin", 1);
  read_dilations(o, a);
  read_kernels(o, a);
  read_activations(o, a);
  a.has_layer1x1 = product_of(o, "layer1x1", true, a.layer1x1_groups, nullptr);
  (void)product_of(o, "head1x1", false, a.head1x1_groups, &a.head1x1_size);
  read_head(o, a);
  for (std::size_t i = 0; i < nn::kFilmPlaces; ++i) a.films[i] = film_of(o, kFilms[i]);
  (void)o.find("slimmable");  // ignored: the model is read at its full width
  o.finish();
  check_groups(a, o.where());
  return a;
}

/// Reads the layers after the last array.
nn::WavenetHead head_of(Object o, std::int64_t in_channels) {
  if (o.size("in_channels", in_channels) != in_channels)
    refuse(o.where(), "in_channels must be those that the last array gives, " + std::to_string(in_channels));
  nn::WavenetHead head{.channels = o.size("channels"), .out_channels = o.size("out_channels")};
  const Node& kernels = o.at("kernel_sizes");
  const std::string where = o.where() + ".kernel_sizes";
  if (kernels.kind != Kind::list || kernels.first == Node::kNone) refuse(where, "is not a list of sizes");
  for (const Node* c = o.document().child(kernels.first); c; c = o.document().child(c->next)) {
    head.kernel_sizes.push_back(size_of(*c, where));
    if (head.kernel_sizes.back() > kFurthest) refuse(where, "reaches further back than 2^24 steps");
  }
  head.activation = activation_of(o.document(), o.at("activation"), o.where() + ".activation");
  o.finish();
  return head;
}

void check_fits(const nn::WavenetOptions& options, const std::string& where) {
  const auto differ = [&](std::size_t i, const char* what, std::int64_t has, std::int64_t wanted) {
    if (has != wanted)
      refuse(where + ".layers " + std::to_string(i),
             std::string(what) + " is " + std::to_string(has) + ", must be " + std::to_string(wanted));
  };
  for (std::size_t i = 0; i < options.arrays.size(); ++i) {
    const nn::WavenetArray& a = options.arrays[i];
    differ(i, "condition_size", a.condition_size,
           options.condition.empty() ? options.arrays[0].input_size : options.condition[0].out_channels());
    if (i == 0) continue;
    differ(i, "input_size", a.input_size, options.arrays[i - 1].channels);
    differ(i, "the head's input", a.skip_size(), options.arrays[i - 1].head_size);
  }
}

// ---- writing -------------------------------------------------------------------------------------------

std::string in_files(const nn::WavenetActivation& a, std::string_view where) {
  const auto at = std::ranges::find(kActivations, std::string_view(a.name), &ActivationName::here);
  if (at == kActivations.end()) refuse(where, "the activation " + quote(a.name) + " cannot be written");
  const std::string name = "\"" + std::string(at->in_files) + "\"";
  std::string out = "{\"type\": " + name;
  if (a.name == "leaky_relu") {
    append_number(out += ", \"negative_slope\": ", a.slope);
  } else if (a.name == "hardtanh" && (a.low != -1 || a.high != 1)) {
    append_number(out += ", \"min_val\": ", a.low);
    append_number(out += ", \"max_val\": ", a.high);
  } else {
    return name;
  }
  return out + "}";
}

template <class F>
std::string list_of(const nn::WavenetArray& a, F&& f) {
  std::string out = "[";
  for (const nn::WavenetUnit& u : a.units) out += (out.size() > 1 ? ", " : "") + f(u);
  return out + "]";
}

/// Returns one value as JSON if all are equal, else a list.
template <class F>
std::string one_or_list(const nn::WavenetArray& a, bool& newer, F&& f) {
  const std::string first = f(a.units[0]);
  if (std::ranges::all_of(a.units, [&](const nn::WavenetUnit& u) { return f(u) == first; })) return first;
  newer = true;
  return list_of(a, f);
}

std::string gates_of(const nn::WavenetArray& a, std::string_view where, bool& newer) {
  const auto second = [&](const nn::WavenetUnit& u) {
    return in_files(u.gate ? *u.gate : nn::WavenetActivation{"sigmoid"}, where);
  };
  const bool all = std::ranges::all_of(a.units, [](const nn::WavenetUnit& u) { return u.gate.has_value(); });
  const bool none = std::ranges::none_of(a.units, [](const nn::WavenetUnit& u) { return u.gate.has_value(); });
  const bool plain =
      std::ranges::all_of(a.units, [&](const auto& u) { return second(u) == "\"Sigmoid\"" && !u.blends; });
  if (plain && (all || none)) return std::string("\"gated\": ") + (all ? "true" : "false");
  newer = true;
  return "\"gating_mode\": " +
         list_of(a,
                 [](const auto& u) {
                   return std::string(u.blends ? "\"blended\"" : u.gate ? "\"gated\"" : "\"none\"");
                 }) +
         ", \"secondary_activation\": " + list_of(a, second);
}

std::string truth(bool v) { return v ? "true" : "false"; }

std::string config_of(const nn::WavenetArray& a, std::string_view where, bool& newer) {
  const auto pair = [](const char* key, std::int64_t n) {
    return "\"" + std::string(key) + "\": " + std::to_string(n) + ", ";
  };
  const std::string bias = truth(a.head_bias);
  std::string out = "{" + pair("input_size", a.input_size) + pair("condition_size", a.condition_size);
  if (a.head_kernel_size == 1 && a.head_dilation == 1) {
    out += pair("head_size", a.head_size) + "\"head_bias\": " + bias + ", ";
  } else {
    newer = true;
    out += "\"head\": {" + pair("out_channels", a.head_size) + pair("kernel_size", a.head_kernel_size) +
           pair("head_dilation", a.head_dilation) + "\"bias\": " + bias + "}, ";
  }
  out += pair("channels", a.channels);
  const auto kernel = [](const nn::WavenetUnit& u) { return std::to_string(u.kernel_size); };
  bool kernels = false;
  const std::string sizes = one_or_list(a, kernels, kernel);
  out += std::string(kernels ? "\"kernel_sizes\": " : "\"kernel_size\": ") + sizes +
         ", \"dilations\": " + list_of(a, [](const nn::WavenetUnit& u) { return std::to_string(u.dilation); }) +
         ", \"activation\": " +
         one_or_list(a, newer, [&](const nn::WavenetUnit& u) { return in_files(u.activation, where); }) + ", " +
         gates_of(a, where, newer);
  newer |= kernels;
  const bool filmed = std::ranges::any_of(a.films, [](const auto& f) { return f.has_value(); });
  if (a.bottleneck == a.channels && a.groups == 1 && a.mix_groups == 1 && a.layer1x1_groups == 1 && a.has_layer1x1 &&
      a.head1x1_size == 0 && !filmed)
    return out + "}";
  newer = true;
  const bool head1x1 = a.head1x1_size > 0;
  out += ", " + pair("bottleneck", a.bottleneck) + pair("groups_input", a.groups) +
         pair("groups_input_mixin", a.mix_groups) + "\"layer1x1\": {\"active\": " + truth(a.has_layer1x1) +
         ", \"groups\": " + std::to_string(a.layer1x1_groups) + "}, \"head1x1\": {\"active\": " + truth(head1x1) +
         ", \"out_channels\": " + std::to_string(head1x1 ? a.head1x1_size : a.channels) +
         ", \"groups\": " + std::to_string(a.head1x1_groups) + "}";
  for (std::size_t i = 0; i < nn::kFilmPlaces; ++i)
    if (a.films[i])
      out += ", \"" + std::string(kFilms[i]) + "\": {\"active\": true, \"shift\": " + truth(a.films[i]->shift) +
             ", \"groups\": " + std::to_string(a.films[i]->groups) + "}";
  return out + "}";
}

std::string text_of(const nn::WavenetHead& head, std::string_view where) {
  std::string out = "{\"channels\": " + std::to_string(head.channels) +
                    ", \"out_channels\": " + std::to_string(head.out_channels) + ", \"kernel_sizes\": [";
  for (const std::int64_t k : head.kernel_sizes) out += (out.back() == '[' ? "" : ", ") + std::to_string(k);
  return out + "], \"activation\": " + in_files(head.activation, where) + "}";
}

}  // namespace

nn::WavenetOptions wavenet_options(Object config, const nn::WavenetOptions* condition) {
  nn::WavenetOptions options;
  if (condition) options.condition.push_back(*condition);
  (void)config.find("head_scale");
  const Node& layers = config.at("layers");
  if (layers.kind != Kind::list || layers.first == Node::kNone) refuse(config.where() + ".layers", "is no list");
  std::size_t i = 0;
  for (const Node* n = config.document().child(layers.first); n; n = config.document().child(n->next), ++i)
    options.arrays.push_back(array_of({config.document(), *n, config.where() + ".layers " + std::to_string(i)}));
  if (config.size("in_channels", 1) != options.arrays[0].input_size)
    refuse(config.where(), "in_channels differ from the input_size of the first layers");
  if (config.find("head")) options.head = head_of(config.object("head"), options.arrays.back().head_size);
  config.finish();
  check_fits(options, config.where());
  return options;
}

std::string config_of(const nn::WavenetOptions& options, std::string_view condition, std::string_view where,
                      bool& newer) {
  std::string out = "{\"layers\": [";
  for (const nn::WavenetArray& a : options.arrays)
    out += (&a == options.arrays.data() ? "" : ", ") + config_of(a, where, newer);
  newer = newer || options.head || !condition.empty();
  out += "], \"head\": " + (options.head ? text_of(*options.head, where) : "null") + ", \"head_scale\": ";
  append_number(out, options.head_scale);
  if (options.arrays[0].input_size != 1)
    newer = true, out += ", \"in_channels\": " + std::to_string(options.arrays[0].input_size);
  if (!condition.empty()) out += ", \"condition_dsp\": " + std::string(condition);
  return out + "}";
}

void append_number(std::string& out, double value) {
  if (value == 0 && std::signbit(value)) {
    out += "-0.0";  // "-0" is read as an integer, which has no sign
    return;
  }
  char digits[32];
  out.append(std::begin(digits), std::to_chars(std::begin(digits), std::end(digits), value).ptr);
}

}  // namespace ferrite::io::detail::nam
