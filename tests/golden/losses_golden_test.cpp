// Losses, their gradients and second gradients compared with PyTorch 2.13 and auraloss 0.4:
// tests/data/make_loss_fixtures.py writes the cases.
#include <limits>
#include <set>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/nn/loss.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using nn::Reduction;
using support::within;

namespace {

using In = const Tensors&;
/// A loss of x, which is differentiated, and of constants c.
using Loss = std::function<Tensor(In x, In c, Reduction r)>;

nn::LossOptions with(Reduction r) { return {.reduction = r}; }
nn::LossOptions weighted(const Tensor& w, Reduction r = Reduction::mean) {
  return {.reduction = r, .element_weight = w};
}
Tensor yes(const Tensor& x) { return cast(x, Dtype::boolean); }

/// Puts zeros around signals [B, C, T].
Tensor between(const Tensor& x) { return pad(x, {0, 0, 1}, {0, 0, 1}); }

using Table = std::map<std::string, Loss>;

Table of_numbers() {
  return {
      {"mse", [](In x, In, Reduction r) { return nn::mse_loss(x[0], x[1], r); }},
      {"mse_empty", [](In x, In, Reduction r) { return nn::mse_loss(x[0], x[1], r); }},
      {"mse_weight", [](In x, In c, Reduction r) { return nn::mse_loss(x[0], x[1], weighted(c[0], r)); }},
      {"mse_lengths", [](In x, In c, Reduction) { return nn::mse_loss(x[0], x[1], {.lengths = c[0]}); }},
      {"mse_mask", [](In x, In c, Reduction) { return nn::mse_loss(x[0], x[1], {.mask = yes(c[0])}); }},
      {"mse_mask_weight",
       [](In x, In c, Reduction) { return nn::mse_loss(x[0], x[1], {.element_weight = c[0], .mask = yes(c[1])}); }},
      {"l1", [](In x, In, Reduction r) { return nn::l1_loss(x[0], x[1], r); }},
      {"l1_ties", [](In x, In, Reduction r) { return nn::l1_loss(x[0], x[1], r); }},
      {"l1_weight", [](In x, In c, Reduction r) { return nn::l1_loss(x[0], x[1], weighted(c[0], r)); }},
      {"smooth_l1", [](In x, In, Reduction r) { return nn::smooth_l1_loss(x[0], x[1], 1, with(r)); }},
      {"smooth_l1_beta", [](In x, In, Reduction r) { return nn::smooth_l1_loss(x[0], x[1], 0.3, with(r)); }},
      {"smooth_l1_0", [](In x, In, Reduction r) { return nn::smooth_l1_loss(x[0], x[1], 0, with(r)); }},
      {"smooth_l1_ties",
       [](In x, In, Reduction) { return nn::smooth_l1_loss(x[0], x[1], 0.5, with(Reduction::none)); }},
      {"huber", [](In x, In, Reduction r) { return nn::huber_loss(x[0], x[1], 1, with(r)); }},
      {"huber_delta", [](In x, In, Reduction r) { return nn::huber_loss(x[0], x[1], 0.3, with(r)); }},
      {"huber_ties", [](In x, In, Reduction) { return nn::huber_loss(x[0], x[1], 0.5, with(Reduction::none)); }},
      {"huber_weight", [](In x, In c, Reduction r) { return nn::huber_loss(x[0], x[1], 1, weighted(c[0], r)); }},
      {"poisson_nll", [](In x, In c, Reduction r) { return nn::poisson_nll_loss(x[0], c[0], {}, with(r)); }},
      {"poisson_nll_rate",
       [](In x, In c, Reduction) { return nn::poisson_nll_loss(x[0], c[0], {.log_input = false}); }},
      {"poisson_nll_full", [](In x, In c, Reduction) { return nn::poisson_nll_loss(x[0], c[0], {.full = true}); }},
      {"gaussian_nll", [](In x, In, Reduction r) { return nn::gaussian_nll_loss(x[0], x[1], x[2], {}, with(r)); }},
      {"gaussian_nll_full",
       [](In x, In, Reduction) { return nn::gaussian_nll_loss(x[0], x[1], x[2], {.full = true}); }},
      {"gaussian_nll_bound",
       [](In x, In, Reduction) { return nn::gaussian_nll_loss(x[0], x[1], x[2], {.epsilon = 0.7}); }},
      {"gaussian_nll_row", [](In x, In, Reduction) { return nn::gaussian_nll_loss(x[0], x[1], x[2]); }},
      {"kl_div", [](In x, In c, Reduction r) { return nn::kl_div(x[0], c[0], {}, with(r)); }},
      {"kl_div_zero", [](In x, In c, Reduction) { return nn::kl_div(x[0], c[0], {}, with(Reduction::none)); }},
      {"kl_div_batch", [](In x, In c, Reduction) { return nn::kl_div(x[0], c[0], {}, with(Reduction::batch_mean)); }},
      {"kl_div_target", [](In x, In, Reduction) { return nn::kl_div(x[0], x[1]); }},
      {"kl_div_log",
       [](In x, In, Reduction) { return nn::kl_div(x[0], x[1], {.log_target = true}, with(Reduction::batch_mean)); }},
  };
}

Table of_labels() {
  return {
      {"bce", [](In x, In, Reduction r) { return nn::bce(x[0], x[1], with(r)); }},
      {"bce_weight", [](In x, In c, Reduction r) { return nn::bce(x[0], x[1], weighted(c[0], r)); }},
      {"bce_ends", [](In x, In c, Reduction) { return nn::bce(x[0], c[0], with(Reduction::none)); }},
      {"bce_with_logits", [](In x, In, Reduction r) { return nn::bce_with_logits(x[0], x[1], r); }},
      {"bce_with_logits_weight",
       [](In x, In c, Reduction r) { return nn::bce_with_logits(x[0], x[1], {}, weighted(c[0], r)); }},
      {"bce_with_logits_pos",
       [](In x, In c, Reduction) { return nn::bce_with_logits(x[0], x[1], {.pos_weight = c[0]}); }},
      {"bce_with_logits_both",
       [](In x, In c, Reduction) {
         return nn::bce_with_logits(x[0], x[1], {.pos_weight = c[1]}, weighted(c[0], Reduction::sum));
       }},
      {"bce_with_logits_lengths",
       [](In x, In c, Reduction) { return nn::bce_with_logits(x[0], c[0], {}, {.lengths = c[1]}); }},
      {"focal", [](In x, In, Reduction) { return nn::focal_loss(x[0], x[1]); }},
      {"focal_labels", [](In x, In c, Reduction) { return nn::focal_loss(x[0], c[0], {.alpha = 0.6, .gamma = 1.5}); }},
      {"focal_plain", [](In x, In c, Reduction) { return nn::focal_loss(x[0], c[0], {.alpha = -1, .gamma = 3}); }},
      {"soft_margin", [](In x, In c, Reduction r) { return nn::soft_margin_loss(x[0], c[0], with(r)); }},
      {"multilabel_soft_margin",
       [](In x, In c, Reduction r) { return nn::multilabel_soft_margin_loss(x[0], c[0], {}, with(r)); }},
      {"multilabel_soft_margin_weight",
       [](In x, In c, Reduction r) { return nn::multilabel_soft_margin_loss(x[0], c[0], c[1], with(r)); }},
      {"tversky",
       [](In x, In, Reduction) { return nn::tversky_loss(x[0], x[1], {.alpha = 0.3, .beta = 0.7, .smooth = 0.5}); }},
      {"dice", [](In x, In c, Reduction) { return nn::dice_loss(x[0], c[0]); }},
      {"dice_smooth", [](In x, In, Reduction) { return nn::dice_loss(x[0], x[1], 0.1); }},
  };
}

Table of_classes() {
  return {
      {"cross_entropy", [](In x, In c, Reduction r) { return nn::cross_entropy(x[0], c[0], r); }},
      {"cross_entropy_weight",
       [](In x, In c, Reduction r) { return nn::cross_entropy(x[0], c[0], {.class_weight = c[1], .reduction = r}); }},
      {"cross_entropy_ignored", [](In x, In c, Reduction r) { return nn::cross_entropy(x[0], c[0], r); }},
      {"cross_entropy_ignore_4",
       [](In x, In c, Reduction) { return nn::cross_entropy(x[0], c[0], {.class_weight = c[1], .ignore_index = 4}); }},
      {"cross_entropy_smooth",
       [](In x, In c, Reduction r) { return nn::cross_entropy(x[0], c[0], {.label_smoothing = 0.1, .reduction = r}); }},
      {"cross_entropy_all",
       [](In x, In c, Reduction r) {
         return nn::cross_entropy(
             x[0], c[0],
             {.class_weight = c[1], .ignore_index = 2, .label_smoothing = 0.2, .classes_last = false, .reduction = r});
       }},
      {"cross_entropy_image",
       [](In x, In c, Reduction r) { return nn::cross_entropy(x[0], c[0], {.classes_last = false, .reduction = r}); }},
      {"cross_entropy_last",
       [](In x, In c, Reduction) { return nn::cross_entropy(x[0], c[0], {.classes_last = true}); }},
      {"cross_entropy_lengths",
       [](In x, In c, Reduction) { return nn::cross_entropy(x[0], c[0], {.classes_last = true, .lengths = c[1]}); }},
      {"cross_entropy_one", [](In x, In c, Reduction r) { return nn::cross_entropy(x[0], c[0], r); }},
      {"cross_entropy_shares", [](In x, In, Reduction r) { return nn::cross_entropy(x[0], x[1], r); }},
      {"cross_entropy_shares_all",
       [](In x, In c, Reduction r) {
         return nn::cross_entropy(
             x[0], x[1], {.class_weight = c[0], .label_smoothing = 0.2, .classes_last = false, .reduction = r});
       }},
      {"nll", [](In x, In c, Reduction r) { return nn::nll_loss(x[0], c[0], {.reduction = r}); }},
      {"nll_weight",
       [](In x, In c, Reduction r) {
         return nn::nll_loss(x[0], c[0], {.class_weight = c[1], .ignore_index = 4, .reduction = r});
       }},
      {"nll_image",
       [](In x, In c, Reduction r) { return nn::nll_loss(x[0], c[0], {.classes_last = false, .reduction = r}); }},
      {"multi_margin", [](In x, In c, Reduction r) { return nn::multi_margin_loss(x[0], c[0], {}, with(r)); }},
      {"multi_margin_2",
       [](In x, In c, Reduction) {
         return nn::multi_margin_loss(x[0], c[0], {.p = 2, .margin = 0.4, .class_weight = c[1]});
       }},
      {"multilabel_margin", [](In x, In c, Reduction r) { return nn::multilabel_margin_loss(x[0], c[0], with(r)); }},
  };
}

Table of_pairs() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {
      {"hinge_embedding", [](In x, In c, Reduction r) { return nn::hinge_embedding_loss(x[0], c[0], 1, with(r)); }},
      {"hinge_embedding_margin",
       [](In x, In c, Reduction) { return nn::hinge_embedding_loss(x[0], c[0], 0.5, with(Reduction::none)); }},
      {"margin_ranking", [](In x, In c, Reduction r) { return nn::margin_ranking_loss(x[0], x[1], c[0], 0, with(r)); }},
      {"margin_ranking_margin", [](In x, In c, Reduction) { return nn::margin_ranking_loss(x[0], x[1], c[0], 0.5); }},
      {"margin_ranking_ties",
       [](In x, In c, Reduction) { return nn::margin_ranking_loss(x[0], x[1], c[0], 0, with(Reduction::none)); }},
      {"cosine_embedding",
       [](In x, In c, Reduction r) { return nn::cosine_embedding_loss(x[0], x[1], c[0], 0, with(r)); }},
      {"cosine_embedding_margin",
       [](In x, In c, Reduction) { return nn::cosine_embedding_loss(x[0], x[1], c[0], -0.3); }},
      {"triplet", [](In x, In, Reduction r) { return nn::triplet_margin_loss(x[0], x[1], x[2], {}, with(r)); }},
      {"triplet_swap",
       [](In x, In, Reduction) { return nn::triplet_margin_loss(x[0], x[1], x[2], {.margin = 3, .swap = true}); }},
      {"triplet_p1",
       [](In x, In, Reduction) { return nn::triplet_margin_loss(x[0], x[1], x[2], {.margin = 3, .p = 1}); }},
      {"triplet_p3",
       [](In x, In, Reduction) {
         return nn::triplet_margin_loss(x[0], x[1], x[2], {.margin = 3, .p = 3, .swap = true});
       }},
      {"triplet_inf",
       [](In x, In, Reduction) { return nn::triplet_margin_loss(x[0], x[1], x[2], {.margin = 3, .p = kInfinity}); }},
  };
}

nn::StftLossParameters spectra() { return {.resolutions = {{32, 8, 24}, {16, 5, 16}}, .axis = -1}; }

Table of_sequences() {
  const auto ctc = [](In x, In c, nn::CtcOptions o) { return nn::ctc_loss(log_softmax(x[0]), c[0], c[1], c[2], o); };
  return {
      {"ctc",
       [=](In x, In c, Reduction r) { return ctc(x, c, {.blank = r == Reduction::none ? 0 : 3, .reduction = r}); }},
      {"ctc_torch",
       [=](In x, In c, Reduction r) { return ctc(x, c, {.blank = r == Reduction::sum ? 2 : 0, .reduction = r}); }},
      {"ctc_torch_long", [=](In x, In c, Reduction) { return ctc(x, c, {.reduction = Reduction::none}); }},
      {"ctc_torch_zero_infinity",
       [=](In x, In c, Reduction) { return ctc(x, c, {.zero_infinity = true, .reduction = Reduction::none}); }},
      {"ctc_torch_infinity", [=](In x, In c, Reduction) { return ctc(x, c, {.reduction = Reduction::none}); }},
      {"rnnt",
       [](In x, In c, Reduction r) {
         return nn::rnnt_loss(x[0], c[0], c[1], c[2], {.blank = r == Reduction::none ? -1 : 0, .reduction = r});
       }},
      {"rnnt_log_probs",
       [](In x, In c, Reduction) {
         return nn::rnnt_loss(x[0], c[0], c[1], c[2], {.blank = 0, .reduction = Reduction::sum, .log_probs = true});
       }},
      {"stft", [](In x, In, Reduction) { return nn::multi_resolution_stft_loss(x[0], x[1], spectra()); }},
      {"stft_weights",
       [](In x, In, Reduction) {
         nn::StftLossParameters p = spectra();
         p.convergence = 0.5, p.log_magnitude = 0, p.magnitude = 2;
         return nn::multi_resolution_stft_loss(x[0], x[1], p);
       }},
      {"esr", [](In x, In, Reduction r) { return nn::esr_loss(x[0], x[1], {.axis = -1}, with(r)); }},
      {"dc", [](In x, In, Reduction r) { return nn::dc_loss(x[0], x[1], {.axis = -1}, with(r)); }},
      {"esr_emphasis",
       [](In x, In, Reduction) {
         return nn::esr_loss(between(x[0]), between(x[1]), {.pre_emphasis = 0.85, .axis = -1});
       }},
      {"dc_emphasis",
       [](In x, In, Reduction) {
         return nn::dc_loss(between(x[0]), between(x[1]), {.pre_emphasis = 0.85, .axis = -1});
       }},
      {"esr_lengths", [](In x, In c, Reduction) { return nn::esr_loss(x[0], x[1], {}, {.lengths = c[0]}); }},
      {"dc_lengths", [](In x, In c, Reduction) { return nn::dc_loss(x[0], x[1], {}, {.lengths = c[0]}); }},
  };
}

const Table& losses() {
  static const Table table = [] {
    Table all;
    for (Table part : {of_numbers(), of_labels(), of_classes(), of_pairs(), of_sequences()}) all.merge(part);
    return all;
  }();
  return table;
}

/// Returns the loss of a case, whose name may end in a reduction.
const Loss* find(const std::string& name, Reduction& reduction) {
  reduction = Reduction::mean;
  std::string of = name;
  for (const auto& [ending, r] : std::map<std::string, Reduction>{
           {"_mean", Reduction::mean}, {"_sum", Reduction::sum}, {"_none", Reduction::none}})
    if (name.ends_with(ending)) {
      of = name.substr(0, name.size() - ending.size());
      reduction = r;
    }
  const auto found = losses().find(of);
  return found == losses().end() ? nullptr : &found->second;
}

/// Returns the numbered tensors of a case, floats as f64.
Tensors numbered(const io::TensorFile& file, const std::string& prefix) {
  Tensors list;
  for (int k = 0; file.contains(prefix + std::to_string(k)); ++k) {
    const Tensor x = file.tensor(prefix + std::to_string(k));
    list.push_back(is_float(x.dtype()) ? cast(x, Dtype::f64) : x);
  }
  return list;
}

void check(const std::string& name) {
  const io::TensorFile file = support::fixture("losses.safetensors");
  Reduction reduction{};
  const Loss& loss = *find(name, reduction);
  const Tensors wanted = numbered(file, name + "/g"), directions = numbered(file, name + "/v"),
                second = numbered(file, name + "/h");
  Tape tape;
  Tensors x;
  for (const Tensor& in : numbered(file, name + "/in")) x.push_back(tape.watch(in));
  const std::span<const Tensor> variables(x.data(), x.size());
  const Tensor out = loss(x, numbered(file, name + "/c"), reduction);
  BOOST_TEST(within(out, cast(file.tensor(name + "/out"), Dtype::f64), 1e-12));
  const GradOf of{out, cast(file.tensor(name + "/cot"), Dtype::f64)};
  const Tensors g = detail::lenient_grad(tape, of, variables, {.create_graph = true});
  for (std::size_t k = 0; k < g.size(); ++k) BOOST_TEST(within(g[k], wanted[k], 1e-12), "gradient " << k);
  if (second.empty()) return;
  Tensor total = zeros({}, Dtype::f64);
  for (std::size_t k = 0; k < g.size(); ++k) total = total + sum(directions[k] * g[k]);
  const Tensors h = detail::lenient_grad(tape, {total, {}}, variables);
  for (std::size_t k = 0; k < h.size(); ++k) BOOST_TEST(within(h[k], second[k], 1e-10), "second derivative " << k);
}

std::set<std::string> cases() {
  std::set<std::string> names;
  const io::TensorFile file = support::fixture("losses.safetensors");
  for (const std::string_view name : file.names()) names.insert(std::string(name.substr(0, name.find('/'))));
  return names;
}

const bool registered = [] {
  Reduction reduction{};
  for (const std::string& name : cases())
    if (find(name, reduction))
      boost::unit_test::framework::current_auto_test_suite().add(
          boost::unit_test::make_test_case([name] { check(name); }, "loss_" + name, __FILE__, __LINE__));
  return true;
}();

}  // namespace

BOOST_AUTO_TEST_CASE(every_loss_of_the_fixture_has_its_counterpart) {
  BOOST_TEST(registered);
  Reduction reduction{};
  for (const std::string& name : cases()) BOOST_TEST((find(name, reduction) != nullptr), name);
  BOOST_TEST(cases().size() >= 125U);
}
