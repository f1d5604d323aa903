#pragma once
/// Measures of how well scores separate frames with speech from those without.
#include <algorithm>
#include <cstddef>
#include <vector>

namespace nets {

/// Scores of frames, and whether the frames hold speech.
struct Scores {
  std::vector<float> score;
  std::vector<bool> speech;

  /// Returns the share of pairs of a frame with and one without speech whose scores are in the right order.
  double area_under_roc() const {
    std::vector<std::size_t> order(score.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return score[a] < score[b]; });
    double without = 0, with = 0, pairs = 0;
    for (std::size_t i = 0; i < order.size();) {
      double equal_without = 0, equal_with = 0;
      const float value = score[order[i]];
      for (; i < order.size() && score[order[i]] == value; ++i) (speech[order[i]] ? equal_with : equal_without) += 1;
      pairs += equal_with * (without + equal_without / 2);
      without += equal_without, with += equal_with;
    }
    return pairs / (with * without);
  }
  /// Returns the share of frames on the wrong side of a threshold.
  double error(float threshold) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < score.size(); ++i) wrong += (score[i] > threshold) != speech[i];
    return static_cast<double>(wrong) / static_cast<double>(score.size());
  }
  float best_threshold() const {
    float best = 0;
    double least = 2;
    for (std::size_t i = 0; i < score.size(); i += 101)
      if (const double e = error(score[i]); e < least) least = e, best = score[i];
    return best;
  }
};

}  // namespace nets
