// Examples of functions of tensors that are composed of operations.
#include "conformance/operation_examples.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/attention.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/fft.h"
#include "ferrite/tensor/linalg.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/normalization.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/pooling.h"
#include "ferrite/tensor/scatter.h"
#include "ferrite/tensor/shapes.h"
#include "ferrite/tensor/signal.h"
#include "ferrite/tensor/sorting.h"
#include "ferrite/tensor/windows.h"

namespace conformance {
namespace {

using namespace ferrite;

const OperationExample kComposed[] = {
    // Reductions, norms and distances.
    {"mean", "torch.mean", FERRITE_EXAMPLE(mean(Tensor::from({1.f, 2.f, 6.f})))},
    {"var", "torch.var", FERRITE_EXAMPLE(var(Tensor::from({1.f, 2.f, 6.f})))},
    {"stddev", "torch.std", FERRITE_EXAMPLE(stddev(Tensor::from({1.f, 2.f, 6.f})))},
    {"logsumexp", "torch.logsumexp", FERRITE_EXAMPLE(logsumexp(zeros({2})))},
    {"norm", "torch.linalg.vector_norm", FERRITE_EXAMPLE(norm(Tensor::from({3.f, 4.f})))},
    {"normalize", "torch.nn.functional.normalize", FERRITE_EXAMPLE(normalize(Tensor::from({3.f, 4.f}, {1, 2})))},
    {"cosine_similarity", "torch.nn.functional.cosine_similarity",
     FERRITE_EXAMPLE(cosine_similarity(Tensor::from({1.f, 0.f}), ones({2}), 0))},
    {"cdist", "torch.cdist", FERRITE_EXAMPLE(cdist(zeros({1, 2}), Tensor::from({3.f, 4.f}, {1, 2})))},
    {"pairwise_distance", "torch.nn.functional.pairwise_distance",
     FERRITE_EXAMPLE(pairwise_distance(zeros({2}), Tensor::from({3.f, 4.f})))},
    {"count_nonzero", "torch.count_nonzero", FERRITE_EXAMPLE(count_nonzero(Tensor::from({0.f, 3.f, 4.f})))},
    {"any", "torch.any", FERRITE_EXAMPLE(any(Tensor::from({0.f, 3.f, 4.f})))},
    {"all", "torch.all", FERRITE_EXAMPLE(all(Tensor::from({0.f, 3.f, 4.f})))},
    {"nansum", "torch.nansum", FERRITE_EXAMPLE(nansum(log(Tensor::from({-1.f, 1.f, 2.f}))))},
    {"nanmean", "torch.nanmean", FERRITE_EXAMPLE(nanmean(log(Tensor::from({-1.f, 1.f, 2.f}))))},
    {"aminmax", "torch.aminmax, which takes one axis or all", FERRITE_EXAMPLE(aminmax(Tensor::from({3.f, 1.f, 2.f})))},

    // Functions along axes, and their gradients.
    {"softmax", "torch.softmax", FERRITE_EXAMPLE(softmax(Tensor::from({0.f, 1.f})))},
    {"softmin", "torch.nn.functional.softmin", FERRITE_EXAMPLE(softmin(Tensor::from({0.f, 1.f})))},
    {"log_softmax", "torch.log_softmax", FERRITE_EXAMPLE(log_softmax(Tensor::from({0.f, 1.f})))},
    {"layer_norm", "torch.nn.functional.layer_norm, which takes the extents of the axes",
     FERRITE_EXAMPLE(layer_norm(Tensor::from({1.f, 2.f, 3.f})))},
    {"softmax_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(square(softmax(x))); })(Tensor::from({0.f, 1.f})))},
    {"log_softmax_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(square(log_softmax(x))); })(Tensor::from({0.f, 1.f})))},
    {"layer_norm_grad", "",
     FERRITE_EXAMPLE(grad([](auto x) { return sum(exp(layer_norm(x))); })(Tensor::from({1.f, 2.f, 4.f})))},
    {"affine", "torch.nn.functional.linear, whose weight is [out, in]",
     FERRITE_EXAMPLE(affine(ones({1, 2}), ones({2, 3}), ones({3})))},
    {"batch_norm", "torch.nn.functional.batch_norm with training=False",
     FERRITE_EXAMPLE(batch_norm(Tensor::from({1.f, 5.f}, {2, 1}), full({1}, 3), full({1}, 4)))},
    {"group_norm", "torch.nn.functional.group_norm",
     FERRITE_EXAMPLE(group_norm(Tensor::from({1.f, 3.f, 5.f, 9.f}, {1, 4}), 2))},
    {"rms_norm", "torch.nn.functional.rms_norm, which takes the extents of the axes",
     FERRITE_EXAMPLE(rms_norm(Tensor::from({3.f, 4.f})))},
    {"local_response_norm", "torch.nn.functional.local_response_norm",
     FERRITE_EXAMPLE(local_response_norm(ones({1, 3, 1}), 2, {.alpha = 2, .beta = 1}))},
    {"prelu", "torch.nn.functional.prelu", FERRITE_EXAMPLE(prelu(Tensor::from({-1.f, 2.f}), full({1}, 0.25)))},
    {"rrelu", "torch.nn.functional.rrelu with training=False",
     FERRITE_EXAMPLE(rrelu(Tensor::from({-1.f, 2.f}), 0.1, 0.3))},
    {"relu6", "torch.nn.functional.relu6", FERRITE_EXAMPLE(relu6(Tensor::from({-1.f, 3.f, 8.f})))},
    {"glu", "torch.nn.functional.glu", FERRITE_EXAMPLE(glu(Tensor::from({3.f, 5.f, 0.f, 1.f})))},

    // Shapes.
    {"transpose", "torch.transpose", FERRITE_EXAMPLE(transpose(reshape(arange(4), {2, 2})))},
    {"squeeze", "torch.squeeze, which leaves an axis of another extent", FERRITE_EXAMPLE(squeeze(ones({1, 3}), 0))},
    {"unsqueeze", "torch.unsqueeze", FERRITE_EXAMPLE(unsqueeze(arange(2), 1))},
    {"flatten", "torch.flatten", FERRITE_EXAMPLE(flatten(reshape(arange(4), {2, 2})))},
    {"flip", "torch.flip", FERRITE_EXAMPLE(flip(arange(3), {0}))},
    {"chunk", "torch.chunk", FERRITE_EXAMPLE(chunk(arange(5), 2))},
    {"sum_to", "torch.Tensor.sum_to_size", FERRITE_EXAMPLE(sum_to(ones({3, 2}), {1, 2}))},
    {"linspace", "torch.linspace", FERRITE_EXAMPLE(linspace(0, 1, 5))},
    {"eye", "torch.eye", FERRITE_EXAMPLE(eye(2))},
    {"one_hot", "torch.nn.functional.one_hot, whose values are int64", FERRITE_EXAMPLE(one_hot(arange(2), 3))},
    {"without_padding", "", FERRITE_EXAMPLE(without_padding(reshape(arange(4), {4, 1}), full({1}, 2, Dtype::i64)))},
    {"tril", "torch.tril", FERRITE_EXAMPLE(tril(ones({2, 2})))},
    {"triu", "torch.triu", FERRITE_EXAMPLE(triu(ones({2, 2})))},
    {"diagonal", "torch.diagonal", FERRITE_EXAMPLE(diagonal(reshape(arange(4), {2, 2})))},
    {"diag_embed", "torch.diag_embed", FERRITE_EXAMPLE(diag_embed(Tensor::from({1.f, 2.f})))},
    {"trace", "torch.trace", FERRITE_EXAMPLE(trace(eye(3)))},
    {"roll", "torch.roll", FERRITE_EXAMPLE(roll(arange(4), {1}, {0}))},
    {"rot90", "torch.rot90", FERRITE_EXAMPLE(rot90(reshape(arange(4), {2, 2})))},
    {"tile", "torch.tile", FERRITE_EXAMPLE(tile(arange(2), {2}))},
    {"repeat_interleave", "torch.repeat_interleave", FERRITE_EXAMPLE(repeat_interleave(arange(2), 2))},
    {"meshgrid", "torch.meshgrid", FERRITE_EXAMPLE(meshgrid({arange(2), arange(2)}))},
    {"movedim", "torch.movedim", FERRITE_EXAMPLE(movedim(zeros({2, 3, 4}), {0}, {2}))},

    // Products.
    {"einsum", "torch.einsum", FERRITE_EXAMPLE(einsum("ij,j->i", {eye(2), Tensor::from({1.f, 2.f})}))},
    {"outer", "torch.outer", FERRITE_EXAMPLE(outer(Tensor::from({1.f, 2.f}), Tensor::from({3.f, 4.f})))},
    {"cross", "torch.linalg.cross",
     FERRITE_EXAMPLE(cross(Tensor::from({1.f, 0.f, 0.f}), Tensor::from({0.f, 1.f, 0.f})))},
    {"kron", "torch.kron", FERRITE_EXAMPLE(kron(eye(2), ones({1, 2})))},
    {"tensordot", "torch.tensordot", FERRITE_EXAMPLE(tensordot(ones({2, 3}), ones({3, 2}), 1))},
    {"vander", "torch.vander", FERRITE_EXAMPLE(vander(Tensor::from({2.f, 3.f}), 3))},

    // Functions of elements.
    {"frac", "torch.frac", FERRITE_EXAMPLE(frac(Tensor::from({1.5f, -1.25f})))},
    {"round_decimals", "torch.round with decimals", FERRITE_EXAMPLE(round(Tensor::from({1.234f, 5.678f}), 2))},
    {"logaddexp2", "torch.logaddexp2", FERRITE_EXAMPLE(logaddexp2(zeros({2}), Tensor::from({0.f, 100.f})))},
    {"logit", "torch.logit", FERRITE_EXAMPLE(logit(Tensor::from({0.5f, 0.9f})))},
    {"lerp", "torch.lerp", FERRITE_EXAMPLE(lerp(zeros({2}), Tensor::from({1.f, 2.f}), 0.25))},
    {"nan_to_num", "torch.nan_to_num", FERRITE_EXAMPLE(nan_to_num(log(Tensor::from({-1.f, 2.f}))))},
    {"heaviside", "torch.heaviside", FERRITE_EXAMPLE(heaviside(Tensor::from({-1.f, 0.f, 2.f}), full({}, 0.5)))},
    {"isnan", "torch.isnan", FERRITE_EXAMPLE(isnan(log(Tensor::from({-1.f, 0.f, 1.f}))))},
    {"isinf", "torch.isinf", FERRITE_EXAMPLE(isinf(log(Tensor::from({-1.f, 0.f, 1.f}))))},
    {"isfinite", "torch.isfinite", FERRITE_EXAMPLE(isfinite(log(Tensor::from({-1.f, 0.f, 1.f}))))},
    {"isclose", "torch.isclose", FERRITE_EXAMPLE(isclose(ones({2}), Tensor::from({1.1f, 1.000001f})))},
    {"logical_xor", "torch.logical_xor",
     FERRITE_EXAMPLE(logical_xor(Tensor::from({1.f, 0.f}), Tensor::from({2.f, 1.f})))},

    // Windows, pixels and spectra.
    {"avg_pool", "torch.nn.functional.avg_pool1d, 2d, 3d",
     FERRITE_EXAMPLE(avg_pool2d(reshape(arange(4.f), {1, 2, 2}), {2}))},
    {"lp_pool", "torch.nn.functional.lp_pool1d, 2d, 3d",
     FERRITE_EXAMPLE(lp_pool1d(Tensor::from({3.f, 4.f}, {1, 2}), 2, {2}))},
    {"pad_mode", "torch.nn.functional.pad with a mode",
     FERRITE_EXAMPLE(pad(Tensor::from({1.f, 2.f, 3.f}), {1}, {1}, PaddingMode::reflect))},
    {"pixel_shuffle", "torch.nn.functional.pixel_shuffle",
     FERRITE_EXAMPLE(pixel_shuffle(reshape(arange(4), {4, 1, 1}), 2))},
    {"pixel_unshuffle", "torch.nn.functional.pixel_unshuffle",
     FERRITE_EXAMPLE(pixel_unshuffle(reshape(arange(4), {1, 2, 2}), 2))},
    {"channel_shuffle", "torch.nn.functional.channel_shuffle",
     FERRITE_EXAMPLE(channel_shuffle(reshape(arange(4), {1, 4, 1}), 2))},
    {"ifft", "torch.fft.ifft, whose values are complex",
     FERRITE_EXAMPLE(ifft(Tensor::from({3.f, 0.f, -1.f, 0.f}, {2, 2})))},
    {"fftshift", "torch.fft.fftshift", FERRITE_EXAMPLE(fftshift(arange(5)))},
    {"ifftshift", "torch.fft.ifftshift", FERRITE_EXAMPLE(ifftshift(arange(5)))},
    {"stft", "torch.stft, whose values are complex",
     FERRITE_EXAMPLE(stft(ones({8}), 4, {}, {.hop_length = 4, .center = false}))},
    {"istft", "torch.istft, which takes complex values", FERRITE_EXAMPLE(istft(stft(ones({4}), 4), 4))},

    // Matrices.
    {"inverse", "torch.linalg.inv", FERRITE_EXAMPLE(inverse(Tensor::from({2.f, 1.f, 0.f, 4.f}, {2, 2})))},
    {"eigvalsh", "torch.linalg.eigvalsh", FERRITE_EXAMPLE(eigvalsh(Tensor::from({2.f, 1.f, 1.f, 2.f}, {2, 2})))},
    {"lstsq", "torch.linalg.lstsq", FERRITE_EXAMPLE(lstsq(ones({2, 1}), Tensor::from({1.f, 3.f}, {2, 1})))},
    {"matrix_power", "torch.linalg.matrix_power",
     FERRITE_EXAMPLE(matrix_power(Tensor::from({1.f, 1.f, 0.f, 1.f}, {2, 2}), 3))},
    {"matrix_norm", "torch.linalg.matrix_norm",
     FERRITE_EXAMPLE(matrix_norm(Tensor::from({3.f, 0.f, 0.f, 4.f}, {2, 2})))},

    // Samples and order.
    {"diff", "torch.diff", FERRITE_EXAMPLE(diff(Tensor::from({1.f, 4.f, 9.f})))},
    {"trapezoid", "torch.trapezoid", FERRITE_EXAMPLE(trapezoid(Tensor::from({1.f, 2.f, 4.f})))},
    {"cumulative_trapezoid", "torch.cumulative_trapezoid",
     FERRITE_EXAMPLE(cumulative_trapezoid(Tensor::from({1.f, 2.f, 4.f})))},
    {"kthvalue", "torch.kthvalue", FERRITE_EXAMPLE(kthvalue(Tensor::from({3.f, 1.f, 2.f}), 2))},
    {"median", "torch.median", FERRITE_EXAMPLE(median(Tensor::from({3.f, 1.f, 2.f}), 0))},
    {"quantile", "torch.quantile", FERRITE_EXAMPLE(quantile(Tensor::from({1.f, 2.f, 3.f}), 0.25))},
    {"histc", "torch.histc", FERRITE_EXAMPLE(histc(Tensor::from({1.f, 2.f, 2.f}), 3, 0, 3))},
    {"bincount", "torch.bincount", FERRITE_EXAMPLE(bincount(Tensor::from<std::int64_t>({1, 1, 2}), {.size = 4}))},

    // Indices.
    {"take_along_axis", "torch.take_along_dim",
     FERRITE_EXAMPLE(take_along_axis(Tensor::from({3.f, 1.f, 2.f}), Tensor::from({2, 0}), 0))},
    {"scatter_reduce", "torch.scatter_reduce",
     FERRITE_EXAMPLE(scatter_reduce(ones({2}), 0, Tensor::from({1, 1}), full({2}, 4), ScatterReduction::mean))},
    {"index_copy", "torch.index_copy",
     FERRITE_EXAMPLE(index_copy(zeros({3}), 0, Tensor::from({2, 0}), Tensor::from({5.f, 7.f})))},
    {"index_put", "torch.index_put",
     FERRITE_EXAMPLE(index_put(zeros({3}), {Tensor::from({2, 0})}, Tensor::from({5.f, 7.f})))},
    {"masked_scatter", "torch.masked_scatter",
     FERRITE_EXAMPLE(masked_scatter(zeros({3}), Tensor::from({true, false, true}), Tensor::from({5.f, 7.f})))},

    // Attention.
    {"attention_weights", "", FERRITE_EXAMPLE(attention_weights(eye(2), eye(2)))},
    {"scaled_dot_product_attention", "torch.nn.functional.scaled_dot_product_attention",
     FERRITE_EXAMPLE(scaled_dot_product_attention(eye(2), eye(2), eye(2), {.causal = true}))},
    {"rotary_embedding", "", FERRITE_EXAMPLE(rotary_embedding(Tensor::from({1.f, 0.f}, {1, 2}), Tensor::from({1})))},
};

}  // namespace

std::span<const OperationExample> composed_examples() { return kComposed; }

}  // namespace conformance
