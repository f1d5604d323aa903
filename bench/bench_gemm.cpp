// The matrix product compared with the machine's peak, Eigen, and other libraries, on one thread. The environment
// variables FERRITE_MKL, FERRITE_OPENBLAS and FERRITE_ONEDNN name their shared objects (libmkl_rt, libopenblas,
// libdnnl); otherwise those of the system are tried. They are opened at run time, each with separate symbols.
#include <dlfcn.h>

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

namespace {

using ferrite::Tensor;

/// A product of row-major matrices, C = A . B, or with `transposed` A . B^T.
using Product = std::function<void(bool transposed, int m, int n, int k, const float* a, const float* b, float* c)>;
struct Peer {
  const char* name;
  Product product;
};

/// Returns the first symbol that exists among these names; the wheels of OpenBLAS add a prefix and a suffix to theirs.
template <class F>
F* symbol(void* library, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (void* found = dlsym(library, name)) return reinterpret_cast<F*>(found);
  return nullptr;
}

void* opened(const char* variable, std::initializer_list<const char*> others) {
  if (const char* path = std::getenv(variable)) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) std::fprintf(stderr, "%s: %s\n", variable, dlerror());
    return library;
  }
  for (const char* name : others)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

template <class Int>
Product cblas(void (*sgemm)(int, int, int, Int, Int, Int, float, const float*, Int, const float*, Int, float, float*,
                            Int)) {
  return [sgemm](bool transposed, int m, int n, int k, const float* a, const float* b, float* c) {
    sgemm(101, 111, transposed ? 112 : 111, m, n, k, 1, a, k, b, transposed ? k : n, 0, c, n);
  };
}

std::vector<Peer> found_peers() {
  using Sgemm = void(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  using Sgemm64 =
      void(int, int, int, long, long, long, float, const float*, long, const float*, long, float, float*, long);
  using Dnnl = int(char, char, long, long, long, float, const float*, long, const float*, long, float, float*, long);
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"}) setenv(name, "1", 1);
  setenv("MKL_THREADING_LAYER", "SEQUENTIAL", 1);
  std::vector<Peer> peers;
  if (void* mkl = opened("FERRITE_MKL", {"libmkl_rt.so", "libmkl_rt.so.3", "libmkl_rt.so.2"}))
    if (auto* f = symbol<Sgemm>(mkl, {"cblas_sgemm"})) peers.push_back({"MKL", cblas<int>(f)});
  if (void* blas = opened("FERRITE_OPENBLAS", {"libopenblas.so", "libopenblas.so.0"})) {
    if (auto* f = symbol<Sgemm>(blas, {"scipy_cblas_sgemm", "cblas_sgemm"})) {
      peers.push_back({"OpenBLAS", cblas<int>(f)});
    } else if (auto* wide = symbol<Sgemm64>(blas, {"scipy_cblas_sgemm64_", "cblas_sgemm64_"})) {
      peers.push_back({"OpenBLAS", cblas<long>(wide)});
    }
  }
  if (void* dnnl = opened("FERRITE_ONEDNN", {"libdnnl.so", "libdnnl.so.3", "libdnnl.so.2"}))
    if (auto* f = symbol<Dnnl>(dnnl, {"dnnl_sgemm"}))
      peers.push_back({"oneDNN", [f](bool transposed, int m, int n, int k, const float* a, const float* b, float* c) {
                         f('N', transposed ? 'T' : 'N', m, n, k, 1, a, k, b, transposed ? k : n, 0, c, n);
                       }});
  return peers;
}

const std::vector<Peer>& peers() {
  static const std::vector<Peer> found = found_peers();
  return found;
}

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
  for (const Peer& peer : peers()) runs.emplace_back([=, &peer] { peer.product(transposed, o.m, o.n, o.k, a, b, c); });
  const ferrite::Tensor by_columns = transpose(reshape(o.b, {o.n, o.k}));
  if (transposed) runs.emplace_back([&o, by_columns] { bench::keep(matmul(o.a, by_columns)); });
  return bench::interleaved(runs, 11, 1e-3);
}

/// Returns the headings of the columns.
std::string heads() {
  std::string all = "        ours       Eigen";
  for (const Peer& peer : peers()) all += std::string(12 - std::string_view(peer.name).size(), ' ') + peer.name;
  return all;
}

struct Sizes {
  std::vector<int> rows, hidden;
};

void table(bool transposed, double peak, const Sizes& sizes) {
  std::printf(
      "\nC [M, 3H] = A [M, H] . B%s: GFLOP/s, ours as a share of the peak and over the best of the others%s\n"
      "%5s %5s%s\n",
      transposed ? "^T" : " [H, 3H]", transposed ? ",\nand the same of matmul with a B that is used again" : "", "M",
      "H", heads().c_str());
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
              heads().c_str());
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

/// Measures the grid, or only the rows and the H given as arguments, each separated by commas.
int main(int argc, char** argv) {
  Eigen::setNbThreads(1);
  const double peak = bench::peak_flops();
  std::printf("packets of %d floats, peak %.1f GFLOP/s; kernels for %s\n", bench::kFloats, peak * 1e-9,
              std::string(ferrite::instruction_set()).c_str());
  const Sizes sizes = argc == 3 ? Sizes{numbers(argv[1]), numbers(argv[2])}
                                : Sizes{{1, 2, 4, 8, 32, 128, 3200}, {16, 32, 64, 128, 256, 512, 1024}};
  table(false, peak, sizes);
  table(true, peak, sizes);
  if (argc != 3) vectors();
}
