// Examples of reductions, products, views, indices, windows, transforms and matrices.
#include "conformance/operation_examples.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/convolution.h"
#include "ferrite/tensor/fft.h"
#include "ferrite/tensor/linalg.h"
#include "ferrite/tensor/pooling.h"
#include "ferrite/tensor/scatter.h"
#include "ferrite/tensor/signal.h"
#include "ferrite/tensor/windows.h"

namespace conformance {
namespace {

using namespace ferrite;

const OperationExample kStructured[] = {
    // Reductions and products.
    {"cast", "torch.Tensor.to", FERRITE_EXAMPLE(cast(Tensor::from({1.7f, -1.7f}), Dtype::i32))},
    {"sum", "torch.sum", FERRITE_EXAMPLE(sum(Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2}), {1}))},
    {"prod", "torch.prod, which takes one axis or all", FERRITE_EXAMPLE(prod(Tensor::from({2.f, 3.f, 4.f})))},
    {"amax", "torch.amax", FERRITE_EXAMPLE(amax(Tensor::from({1.f, 4.f, 3.f, 2.f}, {2, 2}), {1}))},
    {"amin", "torch.amin", FERRITE_EXAMPLE(amin(Tensor::from({1.f, 4.f, 3.f, 2.f}, {2, 2}), {1}))},
    {"argmax", "torch.argmax with dim=-1", FERRITE_EXAMPLE(argmax(Tensor::from({1.f, 5.f, 3.f})))},
    {"argmin", "torch.argmin with dim=-1", FERRITE_EXAMPLE(argmin(Tensor::from({4.f, 5.f, 3.f})))},
    {"prod_others", "", FERRITE_EXAMPLE(grad([](const Tensor& x) { return prod(x); })(Tensor::from({2.f, 3.f, 4.f})))},
    {"matmul", "torch.matmul", FERRITE_EXAMPLE(matmul(ones({2, 3}), ones({3, 1})))},

    // Views, copies, assembly.
    {"reshape", "torch.reshape", FERRITE_EXAMPLE(reshape(arange(4), {2, 2}))},
    {"contiguous", "torch.Tensor.contiguous", FERRITE_EXAMPLE(contiguous(transpose(reshape(arange(4), {2, 2}))))},
    {"permute", "torch.permute", FERRITE_EXAMPLE(permute(zeros({2, 3, 4}), {2, 0, 1}))},
    {"expand", "torch.Tensor.expand", FERRITE_EXAMPLE(expand(Tensor::from({1.f, 2.f}), {2, 2}))},
    {"detach", "torch.Tensor.detach",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return x * detach(x); })(full({}, 3)))},
    {"slice", "indexing, `x[1:8:3]`, with steps above 0", FERRITE_EXAMPLE(slice(arange(10), 0, 1, 8, 3))},
    {"select", "torch.select", FERRITE_EXAMPLE(select(reshape(arange(4), {2, 2}), 1, 0))},
    {"unbind", "torch.unbind", FERRITE_EXAMPLE(unbind(reshape(arange(4), {2, 2})))},
    {"split", "torch.split", FERRITE_EXAMPLE(split(arange(5), 2))},
    {"concat", "torch.cat", FERRITE_EXAMPLE(concat({arange(2), arange(3)}))},
    {"stack", "torch.stack", FERRITE_EXAMPLE(stack({arange(2), arange(2)}, 1))},
    {"pad", "torch.nn.functional.pad, whose amounts begin with the last axis",
     FERRITE_EXAMPLE(pad(Tensor::from({1.f, 2.f}), {1}, {2}))},
    {"checked", "", FERRITE_EXAMPLE(checked(Tensor::from({1, 2}), 0, 9, "digit"))},
    {"full", "torch.full", FERRITE_EXAMPLE(full({2}, 7))},
    {"arange", "torch.arange", FERRITE_EXAMPLE(arange(1, 10, 3))},

    // Indices.
    {"index_select", "torch.index_select", FERRITE_EXAMPLE(index_select(arange(10, 15), 0, Tensor::from({3, 0})))},
    {"gather", "torch.gather",
     FERRITE_EXAMPLE(gather(Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2}), 1, Tensor::from({1, 0}, {2, 1})))},
    {"scatter_add", "torch.scatter_add",
     FERRITE_EXAMPLE(scatter_add(zeros({3}), 0, Tensor::from({2, 0, 2}), Tensor::from({1.f, 2.f, 3.f})))},
    {"scatter", "torch.scatter, which keeps any of several elements for one place",
     FERRITE_EXAMPLE(scatter(zeros({3}), 0, Tensor::from({2, 0}), Tensor::from({5.f, 7.f})))},
    {"scatter_extremum", "torch.scatter_reduce with \"amax\" or \"amin\"",
     FERRITE_EXAMPLE(scatter_reduce(ones({2}), 0, Tensor::from({1, 1}), full({2}, 3), ScatterReduction::amax))},
    {"index_add", "torch.index_add", FERRITE_EXAMPLE(index_add(zeros({3}), 0, Tensor::from({2, 2}), ones({2})))},
    {"scatter_prod", "torch.scatter_reduce with \"prod\"",
     FERRITE_EXAMPLE(scatter_reduce(ones({2}), 0, Tensor::from({1, 1}), full({2}, 3), ScatterReduction::prod))},
    {"scatter_prod_others", "", FERRITE_EXAMPLE(grad([](auto x) {
       return scatter_reduce(x, 0, arange(1), x, ScatterReduction::prod);
     })(ones({1})))},
    {"nonzero", "torch.nonzero; torch.nonzero_static with a size",
     FERRITE_EXAMPLE(nonzero(Tensor::from({0.f, 3.f, 4.f})))},

    // Windows.
    {"max_pool", "torch.nn.functional.max_pool1d, 2d, 3d",
     FERRITE_EXAMPLE(max_pool1d(Tensor::from({1.f, 3.f, 2.f, 5.f}, {1, 4}), {2}))},
    {"max_pool_indices", "torch.nn.functional.max_pool1d, 2d, 3d with return_indices=True",
     FERRITE_EXAMPLE(max_pool1d_with_indices(Tensor::from({1.f, 3.f, 2.f, 5.f}, {1, 4}), {2}).indices)},
    {"plane_gather", "",
     FERRITE_EXAMPLE(max_pool1d_with_indices(Tensor::from({1.f, 3.f, 2.f, 5.f}, {1, 4}), {2}).values)},
    {"plane_scatter", "torch.nn.functional.max_unpool1d, 2d, 3d",
     FERRITE_EXAMPLE(max_unpool1d(ones({1, 2}), Tensor::from<std::int64_t>({1, 2}, {1, 2}), {2}))},
    {"pool_sum", "", FERRITE_EXAMPLE(avg_pool1d(Tensor::from({1.f, 3.f, 2.f, 5.f}, {1, 4}), {2}))},
    {"pool_spread", "", FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(avg_pool1d(x, {2})); })(ones({1, 4})))},
    {"unfold_windows", "torch.nn.functional.unfold", FERRITE_EXAMPLE(unfold(reshape(arange(4.f), {1, 1, 4}), {2}))},
    {"fold_windows", "torch.nn.functional.fold", FERRITE_EXAMPLE(fold(ones({1, 2, 3}), {4}, {2}))},
    {"unfold_axis", "torch.Tensor.unfold", FERRITE_EXAMPLE(unfold(arange(5), 0, 3, 2))},
    {"resample", "torch.nn.functional.interpolate",
     FERRITE_EXAMPLE(interpolate(reshape(arange(3.f), {1, 1, 3}), {.scale_factor = {2}}))},
    {"resample_gradient", "", FERRITE_EXAMPLE(grad([](const Tensor& x) {
       return sum(interpolate(x, {.scale_factor = {2}}));
     })(ones({1, 1, 3})))},
    {"convolution", "torch.nn.functional.conv1d, 2d, 3d",
     FERRITE_EXAMPLE(conv1d(Tensor::from({1.f, 2.f, 3.f}, {1, 3}), ones({1, 1, 2})))},
    {"convolution_transposed", "torch.nn.functional.conv_transpose1d, 2d, 3d",
     FERRITE_EXAMPLE(conv_transpose1d(Tensor::from({1.f, 2.f}, {1, 2}), ones({1, 1, 2})))},
    {"convolution_weights", "torch.nn.grad.conv1d_weight and its like", FERRITE_EXAMPLE(grad([](const Tensor& w) {
       return sum(conv1d(ones({1, 5}), w));
     })(ones({1, 1, 2})))},

    // Transforms and frames.
    {"rfft", "torch.fft.rfft, whose values are complex", FERRITE_EXAMPLE(rfft(Tensor::from({1.f, 2.f, 3.f})))},
    {"irfft", "torch.fft.irfft, which takes complex values",
     FERRITE_EXAMPLE(irfft(Tensor::from({6.f, 0.f, -2.f, 0.f}, {2, 2})))},
    {"fft", "torch.fft.fft, whose values are complex",
     FERRITE_EXAMPLE(fft(Tensor::from({1.f, 0.f, 2.f, 0.f}, {2, 2})))},
    {"frame", "torch.Tensor.unfold of the last axis", FERRITE_EXAMPLE(frame(arange(6.f), 4, 2))},
    {"overlap_add", "", FERRITE_EXAMPLE(overlap_add(ones({2, 4}), 2))},

    // Matrices.
    {"solve", "torch.linalg.solve",
     FERRITE_EXAMPLE(solve(Tensor::from({2.f, 0.f, 0.f, 4.f}, {2, 2}), Tensor::from({2.f, 2.f})))},
    {"solve_triangular", "torch.linalg.solve_triangular",
     FERRITE_EXAMPLE(solve_triangular(Tensor::from({2.f, 0.f, 1.f, 1.f}, {2, 2}), ones({2, 1})))},
    {"det", "torch.linalg.det", FERRITE_EXAMPLE(det(Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2})))},
    {"slogdet", "torch.linalg.slogdet", FERRITE_EXAMPLE(slogdet(Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2})).logabsdet)},
    {"cholesky", "torch.linalg.cholesky, which reads one triangle",
     FERRITE_EXAMPLE(cholesky(Tensor::from({4.f, 2.f, 2.f, 5.f}, {2, 2})))},
    {"qr", "torch.linalg.qr", FERRITE_EXAMPLE(qr(Tensor::from({3.f, 1.f, 4.f, 2.f}, {2, 2})).R)},
    {"eigh", "torch.linalg.eigh, whose eigenvectors may have other signs",
     FERRITE_EXAMPLE(eigh(Tensor::from({2.f, 1.f, 1.f, 2.f}, {2, 2})).eigenvalues)},
};

}  // namespace

std::span<const OperationExample> structured_examples() { return kStructured; }

}  // namespace conformance
