// The product against the machine's peak and against Eigen, OpenBLAS and oneDNN (where installed): one thread.
#include <Eigen/Core>
#include <cstdio>
#include <cstdlib>
#include <sstream>
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
struct DnnlVersion {
  int major, minor, patch;
};
extern "C" int dnnl_sgemm(char ta, char tb, long m, long n, long k, float alpha, const float* a, long lda,
                          const float* b, long ldb, float beta, float* c, long ldc);
extern "C" const DnnlVersion* dnnl_version();
#endif

namespace {

using ferrite::Tensor;

struct Operands {
  Tensor a, b, c;
  int m, n, k;
  Operands(int M, int N, int K)
      : a(ferrite::uniform({M, K}, {1, 1, 1}, -1, 1)),
        b(ferrite::uniform({K, N}, {1, 2, 1}, -1, 1)),
        c(ferrite::zeros({M, N})),
        m(M),
        n(N),
        k(K) {}
};

std::vector<double> measure(Operands& o, bool transposed) {
  const float* a = o.a.data<float>();
  const float* b = o.b.data<float>();
  float* const c = ferrite::detail::Writer::data<float>(o.c);
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
  const ferrite::Tensor by_columns = transpose(reshape(o.b, {o.n, o.k}));
  if (transposed) runs.emplace_back([&o, by_columns] { bench::keep(matmul(o.a, by_columns)); });
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

struct Sizes {
  std::vector<int> rows, hidden;
};

void table(bool transposed, double peak, const Sizes& sizes) {
  std::printf(
      "\nC [M, 3H] = A [M, H] . B%s: GFLOP/s, ours as a share of the peak and over the best of the others%s\n"
      "%5s %5s%s\n",
      transposed ? "^T" : " [H, 3H]", transposed ? ",\nand the same of matmul with a B that is used again" : "", "M",
      "H", kPeers);
  for (const int H : sizes.hidden)
    for (const int M : sizes.rows) {
      Operands o(M, 3 * H, H);
      const std::vector<double> t = measure(o, transposed);
      const auto peers_end = transposed ? t.end() - 1 : t.end();
      const double flops = 2.0 * M * 3 * H * H, best = *std::min_element(t.begin() + 1, peers_end);
      std::printf("%5d %5d", M, H);
      for (auto s = t.begin(); s != peers_end; ++s) std::printf(" %11.1f", flops / *s * 1e-9);
      std::printf("  %5.1f%%  %5.2f", 100 * flops / t[0] / peak, best / t[0]);
      if (transposed) std::printf("  %11.1f  %5.2f", flops / t.back() * 1e-9, best / t.back());
      std::puts("");
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

std::vector<int> numbers(const char* list) {
  std::vector<int> all;
  std::istringstream in(list);
  for (int n = 0; in >> n; in.ignore()) all.push_back(n);
  return all;
}

}  // namespace

/// Without arguments: the grid. Else the rows and the H to measure, each with commas.
int main(int argc, char** argv) {
  Eigen::setNbThreads(1);
  setenv("OMP_NUM_THREADS", "1", 1);
#ifdef FERRITE_BENCH_OPENBLAS
  openblas_set_num_threads(1);
#endif
  const double peak = bench::peak_flops();
  std::printf("packets of %d floats, peak %.1f GFLOP/s; kernels for %s\n", bench::kFloats, peak * 1e-9,
              std::string(ferrite::instruction_set()).c_str());
#ifdef FERRITE_BENCH_ONEDNN
  std::printf("oneDNN %d.%d.%d\n", dnnl_version()->major, dnnl_version()->minor, dnnl_version()->patch);
#endif
  const Sizes sizes = argc == 3 ? Sizes{numbers(argv[1]), numbers(argv[2])}
                                : Sizes{{1, 2, 4, 8, 32, 128, 3200}, {16, 32, 64, 128, 256, 512, 1024}};
  table(false, peak, sizes);
  table(true, peak, sizes);
  if (argc != 3) vectors();
}
