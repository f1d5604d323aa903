// The product against the machine's peak and against Eigen, OpenBLAS and oneDNN (where installed): one thread.
#include <Eigen/Core>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "ferrite/tensor/instruction_set.h"
#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/ops.h"
#include "machine.h"
#include "timing.h"

#ifdef FERRITE_BENCH_OPENBLAS
extern "C" {
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a, int lda, const float* b,
                 int ldb, float beta, float* c, int ldc);
void openblas_set_num_threads(int n);
}
#endif
#ifdef FERRITE_BENCH_ONEDNN
extern "C" int dnnl_sgemm(char ta, char tb, long m, long n, long k, float alpha, const float* a, long lda,
                          const float* b, long ldb, float beta, float* c, long ldc);
#endif

namespace {

using ferrite::Tensor;

struct Operands {
  Tensor a, b;
  std::vector<float> c;
  int m, n, k;
  Operands(int M, int N, int K)
      : a(ferrite::uniform({M, K}, {1, 1, 1}, -1, 1)),
        b(ferrite::uniform({K, N}, {1, 2, 1}, -1, 1)),
        c(static_cast<std::size_t>(M) * static_cast<std::size_t>(N)),
        m(M),
        n(N),
        k(K) {}
};

std::vector<double> measure(Operands& o, bool transposed) {
  const float* a = o.a.data<float>();
  const float* b = o.b.data<float>();
  float* c = o.c.data();
  const ferrite::detail::MatrixView<float> bv =
      transposed ? ferrite::detail::MatrixView<float>{b, 1, o.k} : ferrite::detail::MatrixView<float>{b, o.n, 1};
  std::vector<std::function<void()>> runs;
  runs.emplace_back([=] { ferrite::detail::gemm<float>(o.m, o.n, o.k, {a, o.k, 1}, bv, c, o.n); });
  using M = Eigen::Matrix<float, -1, -1, Eigen::RowMajor>;
  runs.emplace_back([=] {
    Eigen::Map<M> y(c, o.m, o.n);
    const Eigen::Map<const M> x(a, o.m, o.k);
    if (transposed)
      y.noalias() = x * Eigen::Map<const M>(b, o.n, o.k).transpose();
    else if (o.m == 1)
      y.row(0).noalias() = x.row(0) * Eigen::Map<const M>(b, o.k, o.n);
    else
      y.noalias() = x * Eigen::Map<const M>(b, o.k, o.n);
  });
#ifdef FERRITE_BENCH_OPENBLAS
  runs.emplace_back([=] {
    cblas_sgemm(101, 111, transposed ? 112 : 111, o.m, o.n, o.k, 1, a, o.k, b, transposed ? o.k : o.n, 0, c, o.n);
  });
#endif
#ifdef FERRITE_BENCH_ONEDNN
  runs.emplace_back(
      [=] { dnnl_sgemm('N', transposed ? 'T' : 'N', o.m, o.n, o.k, 1, a, o.k, b, transposed ? o.k : o.n, 0, c, o.n); });
#endif
  return bench::interleaved(runs, 11, 1e-3);
}

const char* const kPeers =
    "        ours       Eigen"
#ifdef FERRITE_BENCH_OPENBLAS
    "    OpenBLAS"
#endif
#ifdef FERRITE_BENCH_ONEDNN
    "      oneDNN"
#endif
    ;

void table(bool transposed, double peak) {
  std::printf("\nC [M, 3H] = A [M, H] . B%s: GFLOP/s, and ours as a share of the peak\n%5s %5s%s\n",
              transposed ? "^T" : " [H, 3H]", "M", "H", kPeers);
  for (const int H : {16, 32, 64, 128, 256, 512})
    for (const int M : {2, 4, 8, 32, 128, 3200}) {
      Operands o(M, 3 * H, H);
      const std::vector<double> t = measure(o, transposed);
      const double flops = 2.0 * M * 3 * H * H;
      std::printf("%5d %5d", M, H);
      for (const double s : t) std::printf(" %11.1f", flops / s * 1e-9);
      std::printf("  %5.1f%%\n", 100 * flops / t[0] / peak);
    }
}

void vectors() {
  std::printf("\ny [3H] = x [H] . B [H, 3H]: microseconds, and ours over the time to read B once\n%5s%s\n", "H",
              kPeers);
  for (const int H : {32, 64, 128, 256, 512, 1024}) {
    Operands o(1, 3 * H, H);
    const std::vector<double> t = measure(o, false);
    const double bytes = 3.0 * H * H * sizeof(float);
    std::printf("%5d", H);
    for (const double s : t) std::printf(" %11.3f", s * 1e6);
    std::printf("  %5.2f\n", t[0] * bench::read_bandwidth(static_cast<std::size_t>(bytes)) / bytes);
  }
}

}  // namespace

int main() {
  Eigen::setNbThreads(1);
  setenv("OMP_NUM_THREADS", "1", 1);
#ifdef FERRITE_BENCH_OPENBLAS
  openblas_set_num_threads(1);
#endif
  const double peak = bench::peak_flops();
  std::printf("packets of %d floats, peak %.1f GFLOP/s; kernels for %s\n", bench::kLanes, peak * 1e-9,
              std::string(ferrite::instruction_set()).c_str());
  table(false, peak);
  table(true, peak);
  vectors();
}
