/// Metrics by name.
#include <array>
#include <charconv>

#include "ferrite/io/suggest.h"
#include "ferrite/train/metrics.h"

namespace ferrite::train {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Metric> (*make)();
};

constexpr std::array<Entry, 20> kMetrics{{{"accuracy", [] { return accuracy(); }},
                                          {"precision", [] { return precision(); }},
                                          {"precision_micro", [] { return precision(Average::micro); }},
                                          {"precision_weighted", [] { return precision(Average::weighted); }},
                                          {"precision_binary", [] { return precision(Average::binary); }},
                                          {"recall", [] { return recall(); }},
                                          {"recall_micro", [] { return recall(Average::micro); }},
                                          {"recall_weighted", [] { return recall(Average::weighted); }},
                                          {"recall_binary", [] { return recall(Average::binary); }},
                                          {"f1", [] { return f1(); }},
                                          {"f1_micro", [] { return f1(Average::micro); }},
                                          {"f1_weighted", [] { return f1(Average::weighted); }},
                                          {"f1_binary", [] { return f1(Average::binary); }},
                                          {"auc", [] { return auc(); }},
                                          {"mae", [] { return mae(); }},
                                          {"mse", [] { return mse(); }},
                                          {"rmse", [] { return rmse(); }},
                                          {"r2", [] { return r2(); }},
                                          {"perplexity", [] { return perplexity(); }},
                                          {"edit_distance", [] { return edit_distance(); }}}};

}  // namespace

std::unique_ptr<Metric> metric(std::string_view name) {
  for (const Entry& e : kMetrics)
    if (e.name == name) return e.make();
  std::int64_t k = 0;
  if (name.starts_with("top") &&
      std::from_chars(name.data() + 3, name.data() + name.size(), k).ptr == name.data() + name.size() && k > 0)
    return top_k_accuracy(k);
  std::array<std::string_view, kMetrics.size()> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kMetrics[i].name;
  const std::string_view near = io::detail::nearest(name, names);
  std::string list = "top<k>";
  for (const std::string_view n : names) list += ", " + std::string(n);
  throw ValueError("metric: there is no '" + std::string(name) + "'; " +
                   (near.empty() ? "there are " + list : "did you mean '" + std::string(near) + "'?"));
}

}  // namespace ferrite::train
