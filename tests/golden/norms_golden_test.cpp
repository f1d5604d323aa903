// Norms, distances and reductions compared with PyTorch 2.13: values, gradients (also at zeros and ties), second
// derivatives.
#include "ferrite/tensor/norms.h"

#include "golden/elementwise_cases.h"

using namespace ferrite;

namespace {

using In = const Tensors&;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor as_float(const Tensor& x) { return cast(x, Dtype::f64); }

/// Returns norms with every p over axes of several shapes.
golden::Functions of_norms() {
  const std::map<std::string, double> powers = {
      {"2", 2}, {"1", 1},     {"0", 0},     {"inf", kInfinity}, {"minus_inf", -kInfinity},
      {"3", 3}, {"1_5", 1.5}, {"0_5", 0.5}, {"minus_2", -2}};
  golden::Functions table;
  for (const auto& [name, p] : powers) {
    const auto rows = [p = p](In x) { return norm(x[0], {.p = p, .axes = {1}}); };
    table["norm_" + name] = rows;
    table["norm_keepdim_" + name] = [p = p](In x) { return norm(x[0], {.p = p, .axes = {0, 2}, .keepdim = true}); };
    table["norm_all_" + name] = [p = p](In x) { return norm(x[0], {.p = p}); };
    if (p < 0) continue;
    table["norm_zeros_" + name] = rows;
    table["norm_ties_" + name] = rows;
  }
  return table;
}

golden::Functions functions() {
  golden::Functions table = of_norms();
  table.merge(golden::Functions{
      {"stddev", [](In x) { return stddev(x[0], {1}); }},
      {"stddev_biased",
       [](In x) {
         return stddev(x[0], {0, 2}, true, 0);
       }},
      {"stddev_equal", [](In x) { return stddev(x[0], {1}); }},
      {"stddev_correction", [](In x) { return stddev(x[0], {1}, false, 2.5); }},
      {"normalize", [](In x) { return normalize(x[0]); }},
      {"normalize_p1", [](In x) { return normalize(x[0], {.p = 1, .axis = 0}); }},
      {"normalize_p3", [](In x) { return normalize(x[0], {.p = 3, .axis = -1}); }},
      {"normalize_inf", [](In x) { return normalize(x[0], {.p = kInfinity}); }},
      {"normalize_epsilon", [](In x) { return normalize(x[0], {.epsilon = 3}); }},
      {"normalize_zero", [](In x) { return normalize(x[0]); }},
      {"cosine_similarity", [](In x) { return cosine_similarity(x[0], x[1]); }},
      {"cosine_similarity_axis0", [](In x) { return cosine_similarity(x[0], x[1], 0); }},
      {"cosine_similarity_broadcast", [](In x) { return cosine_similarity(x[0], x[1], -1); }},
      {"cosine_similarity_rows", [](In x) { return cosine_similarity(x[0], x[1], 0); }},
      {"cosine_similarity_zero", [](In x) { return cosine_similarity(x[0], x[1]); }},
      {"pairwise_distance", [](In x) { return pairwise_distance(x[0], x[1]); }},
      {"pairwise_distance_p1", [](In x) { return pairwise_distance(x[0], x[1], {.p = 1}); }},
      {"pairwise_distance_keepdim",
       [](In x) { return pairwise_distance(x[0], x[1], {.p = 3, .epsilon = 0.5, .keepdim = true}); }},
      {"pairwise_distance_inf", [](In x) { return pairwise_distance(x[0], x[1], {.p = kInfinity}); }},
      {"cdist_2", [](In x) { return cdist(x[0], x[1]); }},
      {"cdist_1", [](In x) { return cdist(x[0], x[1], 1); }},
      {"cdist_3", [](In x) { return cdist(x[0], x[1], 3); }},
      {"cdist_inf", [](In x) { return cdist(x[0], x[1], kInfinity); }},
      {"cdist_0", [](In x) { return cdist(x[0], x[1], 0); }},
      {"cdist_batches", [](In x) { return cdist(x[0], x[1]); }},
      {"cdist_same", [](In x) { return cdist(x[0], x[1]); }},
      {"nansum", [](In x) { return nansum(x[0], {1}); }},
      {"nansum_all", [](In x) { return nansum(x[0]); }},
      {"nanmean", [](In x) { return nanmean(x[0], {1}); }},
      {"nanmean_keepdim",
       [](In x) {
         return nanmean(x[0], {0, 1}, true);
       }},
      {"any", [](In x) { return as_float(ferrite::any(x[0], {1})); }},
      {"all", [](In x) { return as_float(ferrite::all(x[0], {1})); }},
      {"any_all",
       [](In x) {
         return golden::joined({as_float(ferrite::any(x[0])), as_float(ferrite::all(x[0]))});
       }},
      {"count_nonzero", [](In x) { return as_float(count_nonzero(x[0], {0})); }},
      {"aminmax", [](In x) { return golden::joined(aminmax(x[0], {1})); }},
      {"aminmax_all", [](In x) { return golden::joined(aminmax(x[0])); }},
  });
  return table;
}

const bool registered = golden::register_cases("elementwise.safetensors", "norms", functions());

}  // namespace
