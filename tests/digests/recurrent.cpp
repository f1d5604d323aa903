// Every kind of recurrent layer in every form: layers, directions, lengths, resets, states, options, sizes.
#include "digests.h"

namespace digests {
namespace {

/// The options that all kinds take.
struct Common {
  std::int64_t input = 3, hidden = 5, layers = 1;
  bool bidirectional = false, bias = true, batch_first = true, recompute = false;
  double dropout = 0;
  nn::Form form = nn::Form::fused;
  Dtype dtype = Dtype::f32;
};

using Make = std::function<std::shared_ptr<nn::Recurrent>(const Common&)>;

nn::Init init(const Common& c) { return {.seed = 4, .prefix = "layer", .dtype = c.dtype}; }

template <class Options>
Options options(const Common& c) {
  Options o;
  o.layers = c.layers;
  o.bidirectional = c.bidirectional;
  o.dropout = c.dropout;
  o.bias = c.bias;
  o.batch_first = c.batch_first;
  o.form = c.form;
  o.recompute = c.recompute;
  return o;
}

std::vector<std::pair<std::string, Make>> kinds() {
  return {
      {"gru",
       [](const Common& c) {
         return std::make_shared<nn::Gru>(c.input, c.hidden, options<nn::GruOptions>(c), init(c));
       }},
      {"gru-reset-before",
       [](const Common& c) {
         auto o = options<nn::GruOptions>(c);
         o.reset_after = false;
         return std::make_shared<nn::Gru>(c.input, c.hidden, o, init(c));
       }},
      {"lstm",
       [](const Common& c) {
         return std::make_shared<nn::Lstm>(c.input, c.hidden, options<nn::LstmOptions>(c), init(c));
       }},
      {"lstm-projection",
       [](const Common& c) {
         auto o = options<nn::LstmOptions>(c);
         o.proj_size = c.hidden - 2;
         return std::make_shared<nn::Lstm>(c.input, c.hidden, o, init(c));
       }},
      {"rnn",
       [](const Common& c) {
         return std::make_shared<nn::Rnn>(c.input, c.hidden, options<nn::RnnOptions>(c), init(c));
       }},
      {"rnn-relu",
       [](const Common& c) {
         auto o = options<nn::RnnOptions>(c);
         o.nonlinearity = nn::Nonlinearity::relu;
         return std::make_shared<nn::Rnn>(c.input, c.hidden, o, init(c));
       }},
  };
}

constexpr std::pair<const char*, nn::Form> kForms[] = {
    {"fused", nn::Form::fused}, {"unrolled", nn::Form::unrolled}, {"scan", nn::Form::scan}};

Case of(const std::string& name, const Make& make, const Common& c, const Tensor& x, const nn::Context& context = {},
        bool costs = true) {
  return derivatives(
      "recurrent/" + name,
      [=]() -> Instance {
        const std::shared_ptr<nn::Recurrent> layer = make(c);
        return {{x}, [=](const Tensors& in) { return results_of(layer->run(in[0], context)); }, layer->parameters()};
      },
      costs);
}

/// Returns contexts for x [3, 5, .]: lengths, resets, both.
std::vector<std::pair<std::string, nn::Context>> contexts() {
  nn::Context lengths, resets;
  lengths.lengths = Tensor::from<std::int64_t>({5, 1, 3});
  resets.reset_mask = lt(uniform({3, 5}, {8, 8, 8}), 0.3);
  nn::Context both = lengths;
  both.reset_mask = resets.reset_mask;
  return {{"plain", {}}, {"lengths", lengths}, {"resets", resets}, {"both", both}};
}

void add_structures(std::vector<Case>& all, const std::string& name, const Make& make, Common c) {
  for (const std::int64_t layers : {1, 2})
    for (const bool both_ways : {false, true})
      for (const auto& [what, context] : contexts()) {
        c.layers = layers;
        c.bidirectional = both_ways;
        all.push_back(of(name + "/" + std::to_string(layers) + (both_ways ? "-both-ways/" : "-forward/") + what, make,
                         c, data({3, 5, 3}), context));
      }
}

void add_options(std::vector<Case>& all, const std::string& name, const Make& make, const Common& c) {
  const Tensor x = data({3, 5, 3});
  const auto with = [&](const std::string& what, auto change, const Tensor& in, const nn::Context& context = {}) {
    Common changed = c;
    change(changed);
    all.push_back(of(name + "/" + what, make, changed, in, context));
  };
  with(
      "no-bias", [](Common& o) { o.bias = false; }, x);
  with(
      "time-first", [](Common& o) { o.batch_first = false; }, x);
  with(
      "recompute", [](Common& o) { o.recompute = true; }, x);
  with(
      "recompute/lengths", [](Common& o) { o.recompute = true; }, x, contexts()[1].second);
  with(
      "f64", [](Common& o) { o.dtype = Dtype::f64; }, data({3, 5, 3}, 1, Dtype::f64));
  with(
      "dropout", [](Common& o) { o.layers = 2, o.dropout = 0.4; }, x);
  with(
      "unbatched", [](Common&) {}, data({5, 3}));
  with(
      "one-step", [](Common&) {}, data({3, 1, 3}));
  with(
      "no-step", [](Common&) {}, data({3, 0, 3}));
  with(
      "no-row", [](Common&) {}, data({0, 5, 3}));
  with(
      "features", [](Common&) {}, data({3, 5, 4}));
  nn::Context wrong;
  wrong.lengths = Tensor::from<std::int64_t>({5, 6, 3});
  with(
      "wrong-length", [](Common&) {}, x, wrong);
  wrong.lengths = Tensor::from<std::int64_t>({5, 3});
  with(
      "wrong-lengths", [](Common&) {}, x, wrong);
  nn::Context state;
  const std::int64_t width = make(c)->sizes().state_size();
  state.state = data({3, width}, 9);
  with(
      "state", [](Common&) {}, x, state);
  state.cell = data({3, 5}, 10);
  with(
      "state-and-cell", [](Common&) {}, x, state);
  with(
      "nan", [](Common&) {}, where(gt(x, 0.9), x / zeros({}), x), contexts()[1].second);
}

void add_sizes(std::vector<Case>& all, const std::string& name, const Make& make, Common c) {
  struct Size {
    std::int64_t B, T, D, H;
  };
  for (const auto& [B, T, D, H] : {Size{1, 7, 12, 16}, Size{1, 20, 9, 33}, Size{17, 6, 40, 64}, Size{4, 70, 3, 19}}) {
    if (c.form == nn::Form::unrolled && T > 20) continue;
    c.input = D, c.hidden = H;
    all.push_back(of(name + "/size-" + std::to_string(B) + "-" + std::to_string(T) + "-" + std::to_string(D) + "-" +
                         std::to_string(H),
                     make, c, data({B, T, D})));
  }
}

/// Adds cases of a sequence in pieces, whose states are carried from one to the next, then saved.
void add_carried(std::vector<Case>& all, const std::string& name, const Make& make, Common c) {
  c.layers = 2;
  all.push_back(values("recurrent/" + name + "/carried", [=] {
    const std::shared_ptr<nn::Recurrent> layer = make(c);
    const nn::Carry carry(*layer, 3);
    Tensors out;
    for (const Tensor& piece : nn::pieces(data({3, 7, 3}), 3)) {
      nn::Context context;
      context.carry = &carry;
      out.push_back((*layer)(piece, context));
    }
    for (const Tensor& s : carry.save()) out.push_back(s);
    return out;
  }));
}

template <class Cell>
void add_cell(std::vector<Case>& all, const std::string& name) {
  for (const bool bias : {true, false})
    for (const bool batched : {true, false})
      all.push_back(
          derivatives("cell/" + name + (bias ? "" : "/no-bias") + (batched ? "" : "/unbatched"), [=]() -> Instance {
            const auto cell = std::make_shared<Cell>(3, 5, nn::Init{.seed = 4}, bias);
            const Tensor x = batched ? data({2, 3}) : data({3});
            const Tensor h = batched ? data({2, 5}, 2) : data({5}, 2);
            return {{x, h},
                    [=](const Tensors& t) -> Tensors {
                      if constexpr (std::is_same_v<Cell, nn::LstmCell>) {
                        const RecurrentState s = (*cell)(t[0], {t[1], tanh(t[1])});
                        return {s.h, s.c, (*cell)(t[0]).h};
                      } else {
                        return {(*cell)(t[0], t[1]), (*cell)(t[0])};
                      }
                    },
                    cell->parameters()};
          }));
}

}  // namespace

std::vector<Case> recurrent_cases() {
  std::vector<Case> all;
  for (const auto& [kind, make] : kinds())
    for (const auto& [form_name, form] : kForms) {
      const std::string name = kind + "/" + form_name;
      Common c;
      c.form = form;
      add_structures(all, name, make, c);
      add_options(all, name, make, c);
      add_sizes(all, name, make, c);
      add_carried(all, name, make, c);
    }
  add_cell<nn::GruCell>(all, "gru");
  add_cell<nn::LstmCell>(all, "lstm");
  add_cell<nn::RnnCell>(all, "rnn");
  return all;
}

}  // namespace digests
