// Metrics and folds compared with scikit-learn 1.9: tests/data/make_metric_fixtures.py writes the cases.
#include <map>
#include <set>

#include "ferrite/train/metrics.h"
#include "ferrite/train/split.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using namespace ferrite::train;

namespace {

Batch batch_of(const Tensor& y, const Tensor& lengths) {
  Batch b;
  b.fields = {zeros({y.shape()[0], 1}), y};
  b.lengths = {Tensor(), lengths};
  return b;
}

/// Returns the rows from `begin` to `end`; an undefined tensor stays undefined.
Tensor rows(const Tensor& x, std::int64_t begin, std::int64_t end) {
  return x.defined() ? slice(x, 0, begin, end) : Tensor();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(metrics_golden)

BOOST_AUTO_TEST_CASE(every_metric_of_every_case_in_one_batch_and_in_several) {
  const io::TensorFile file = support::fixture("metrics.safetensors");
  int checked = 0;
  std::set<std::string> cases;
  for (const std::string_view entry : file.names())
    if (entry.ends_with("/prediction")) cases.insert(std::string(entry.substr(0, entry.find('/'))));
  for (const std::string& name : cases) {
    const Tensor prediction = file.tensor(name + "/prediction"), target = file.tensor(name + "/target");
    const Tensor lengths = file.contains(name + "/lengths") ? file.tensor(name + "/lengths") : Tensor();
    const double tolerance = name == "far_from_zero" ? 1e-10 : 1e-12;  // a mean of 10,000, a deviation of 1
    for (const std::string_view entry : file.names()) {
      const std::string what(entry.substr(std::min(entry.size(), name.size() + 1)));
      if (!entry.starts_with(name + "/") || what == "prediction" || what == "target" || what == "lengths") continue;
      const double wanted = file.tensor(entry).to_vector<double>()[0];
      const std::int64_t N = prediction.shape()[0];
      for (const std::int64_t size : {N, N - 1, std::int64_t{2}}) {
        const auto m = metric(what);
        BOOST_TEST(m->name() == what);
        for (std::int64_t at = 0; at < N; at += size) {
          const std::int64_t end = std::min(N, at + size);
          m->add(rows(prediction, at, end), batch_of(rows(target, at, end), rows(lengths, at, end)));
        }
        BOOST_TEST(std::fabs(m->value() - wanted) <= tolerance * std::max(1.0, std::fabs(wanted)),
                   entry << " in batches of " << size << ": " << m->value() << ", scikit-learn says " << wanted);
      }
      ++checked;
    }
  }
  BOOST_TEST(checked == 87);
}

BOOST_AUTO_TEST_CASE(folds_in_time_and_sizes_of_folds) {
  const io::TensorFile file = support::fixture("metrics.safetensors");
  for (const auto& [n, k] : std::map<std::int64_t, std::int64_t>{{10, 3}, {23, 4}, {6, 5}}) {
    const Dataset data({arange(n)});
    const std::vector<Fold> folds = time_folds(data, k);
    BOOST_TEST(static_cast<std::int64_t>(folds.size()) == k);
    for (std::size_t f = 0; f < folds.size(); ++f) {
      const std::string of = "time/" + std::to_string(n) + "/" + std::to_string(k) + "/" + std::to_string(f) + "/";
      BOOST_TEST(support::identical(folds[f].training.all().x(), file.tensor(of + "training")));
      BOOST_TEST(support::identical(folds[f].validation.all().x(), file.tensor(of + "validation")));
    }
    const std::vector<std::int64_t> wanted =
        file.tensor("folds/" + std::to_string(n) + "/" + std::to_string(k)).to_vector<std::int64_t>();
    for (const bool shuffle : {false, true}) {
      std::vector<std::int64_t> sizes;
      for (const Fold& fold : k_folds(data, k, {.shuffle = shuffle})) sizes.push_back(fold.validation.size());
      std::sort(sizes.begin(), sizes.end());
      BOOST_TEST((sizes == wanted));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
