#pragma once
/// Adam as one pass over a parameter, its gradient and its moments.
#include <cmath>

#include "vectors.h"

namespace limit {

/// Adam with bias correction as two factors.
struct Adam {
  float rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;

  float unbias(float beta, int steps) const { return 1.0F / (1.0F - std::pow(beta, static_cast<float>(steps))); }

  /// Updates n elements of a parameter and its moments; n is padded to whole vectors.
  void update(float* p, const float* g, float* m, float* v, Index n, int steps) const {
    const float unbias1 = unbias(beta1, steps), unbias2 = unbias(beta2, steps);
    const __m512 b1 = _mm512_set1_ps(beta1), b2 = _mm512_set1_ps(beta2);
    const __m512 a1 = _mm512_set1_ps(1 - beta1), a2 = _mm512_set1_ps(1 - beta2);
    const __m512 c1 = _mm512_set1_ps(rate * unbias1), c2 = _mm512_set1_ps(unbias2), e = _mm512_set1_ps(epsilon);
    for (Index i = 0; i < n; i += 16) {
      const __m512 grad = _mm512_load_ps(g + i);
      const __m512 mean = _mm512_fmadd_ps(b1, _mm512_load_ps(m + i), _mm512_mul_ps(a1, grad));
      const __m512 square = _mm512_fmadd_ps(b2, _mm512_load_ps(v + i), _mm512_mul_ps(_mm512_mul_ps(a2, grad), grad));
      _mm512_store_ps(m + i, mean);
      _mm512_store_ps(v + i, square);
      const __m512 d = _mm512_add_ps(_mm512_sqrt_ps(_mm512_mul_ps(square, c2)), e);
      _mm512_store_ps(p + i, _mm512_sub_ps(_mm512_load_ps(p + i), _mm512_div_ps(_mm512_mul_ps(c1, mean), d)));
    }
  }

  /// Updates n elements as `update` does, in vectors of 8 floats for AVX2.
  void update_by_eight(float* p, const float* g, float* m, float* v, Index n, int steps) const {
    const float unbias1 = unbias(beta1, steps), unbias2 = unbias(beta2, steps);
    const __m256 b1 = _mm256_set1_ps(beta1), b2 = _mm256_set1_ps(beta2);
    const __m256 a1 = _mm256_set1_ps(1 - beta1), a2 = _mm256_set1_ps(1 - beta2);
    const __m256 c1 = _mm256_set1_ps(rate * unbias1), c2 = _mm256_set1_ps(unbias2), e = _mm256_set1_ps(epsilon);
    for (Index i = 0; i < n; i += 8) {
      const __m256 grad = _mm256_load_ps(g + i);
      const __m256 mean = _mm256_fmadd_ps(b1, _mm256_load_ps(m + i), _mm256_mul_ps(a1, grad));
      const __m256 square = _mm256_fmadd_ps(b2, _mm256_load_ps(v + i), _mm256_mul_ps(_mm256_mul_ps(a2, grad), grad));
      _mm256_store_ps(m + i, mean);
      _mm256_store_ps(v + i, square);
      const __m256 d = _mm256_add_ps(_mm256_sqrt_ps(_mm256_mul_ps(square, c2)), e);
      _mm256_store_ps(p + i, _mm256_sub_ps(_mm256_load_ps(p + i), _mm256_div_ps(_mm256_mul_ps(c1, mean), d)));
    }
  }
};

/// A parameter with its gradient and moments.
struct Trained {
  Trained(float* value, Index count) : p(value), n(padded(count, 16)), grad(n), mean(n), square(n) {}
  void update(int steps) { Adam().update(p, grad, mean, square, n, steps); }
  float* p;
  Index n;
  Buffer grad, mean, square;
};

}  // namespace limit
