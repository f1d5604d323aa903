// Rearrangements and products along axes compared with PyTorch 2.13: values, gradients, second derivatives.
#include "ferrite/tensor/shapes.h"

#include "golden/elementwise_cases.h"

using namespace ferrite;

namespace {

using In = const Tensors&;
using golden::joined;

/// Returns einsum of all operands of a case.
golden::Function summed(std::string equation) {
  return [equation](In x) { return einsum(equation, std::span<const Tensor>(x.data(), x.size())); };
}

golden::Functions functions() {
  const std::map<std::string, std::string> equations = {{"matmul", "ij,jk->ik"},
                                                        {"batched", "bij,bjk->bik"},
                                                        {"diagonal", "ii->i"},
                                                        {"trace", "ii"},
                                                        {"transpose", "ji"},
                                                        {"sum", "ij->"},
                                                        {"outer", "i,j->ji"},
                                                        {"dot", "i,i"},
                                                        {"implied", "bA,Ac"},
                                                        {"ellipsis", "...ij,...jk->...ik"},
                                                        {"ellipsis_implied", "i...,...j"},
                                                        {"ellipsis_summed", "...i->i"},
                                                        {"chain", "ij,jk,kl->il"},
                                                        {"bilinear", "bn,anm,bm->ba"},
                                                        {"repeated", "iji,jk->kj"},
                                                        {"attention", "bhqd,bhkd->bhqk"},
                                                        {"hadamard", "ij,ij->ij"},
                                                        {"extent_1", "ij,ij->ij"},
                                                        {"scalar", ",i->i"},
                                                        {"alone", "ij,k->i"},
                                                        {"blanks", " i j , j -> i "},
                                                        {"empty", "ij,jk->ik"}};
  golden::Functions table = {
      {"tril", [](In x) { return tril(x[0]); }},
      {"tril_above", [](In x) { return tril(x[0], 1); }},
      {"tril_below", [](In x) { return tril(x[0], -2); }},
      {"triu", [](In x) { return triu(x[0]); }},
      {"triu_above", [](In x) { return triu(x[0], 2); }},
      {"triu_below", [](In x) { return triu(x[0], -1); }},
      {"diagonal", [](In x) { return diagonal(x[0]); }},
      {"diagonal_above", [](In x) { return diagonal(x[0], 2); }},
      {"diagonal_below", [](In x) { return diagonal(x[0], -1, -1, 0); }},
      {"diagonal_axes", [](In x) { return diagonal(x[0], 1, 2, 1); }},
      {"diag_embed", [](In x) { return diag_embed(x[0]); }},
      {"diag_embed_above", [](In x) { return diag_embed(x[0], 1, 0, 2); }},
      {"diag_embed_below", [](In x) { return diag_embed(x[0], -2, 2, 1); }},
      {"diag_vector", [](In x) { return diag(x[0], 1); }},
      {"diag_matrix", [](In x) { return diag(x[0], -1); }},
      {"trace", [](In x) { return trace(x[0]); }},
      {"roll", [](In x) { return roll(x[0], {2}); }},
      {"roll_axes",
       [](In x) {
         return roll(x[0], {-1, 5}, {0, 1});
       }},
      {"roll_twice",
       [](In x) {
         return roll(x[0], {1, 1}, {1, 1});
       }},
      {"rot90", [](In x) { return rot90(x[0]); }},
      {"rot90_back",
       [](In x) {
         return rot90(x[0], -1, {2, 0});
       }},
      {"rot90_half", [](In x) { return rot90(x[0], 2); }},
      {"tile",
       [](In x) {
         return tile(x[0], {2, 3});
       }},
      {"tile_last", [](In x) { return tile(x[0], {2}); }},
      {"tile_leading",
       [](In x) {
         return tile(x[0], {2, 1, 2});
       }},
      {"repeat",
       [](In x) {
         return repeat(x[0], {2, 1, 2});
       }},
      {"repeat_interleave", [](In x) { return repeat_interleave(x[0], 2); }},
      {"repeat_interleave_axis", [](In x) { return repeat_interleave(x[0], 3, 1); }},
      {"repeat_interleave_counts",
       [](In x) {
         return repeat_interleave(x[0], std::vector<std::int64_t>{2, 0, 1}, 0);
       }},
      {"meshgrid",
       [](In x) {
         return joined(meshgrid({x[0], x[1]}));
       }},
      {"meshgrid_xy",
       [](In x) {
         return joined(meshgrid({x[0], x[1], x[2]}, Indexing::xy));
       }},
      {"masked_fill", [](In x) { return masked_fill(x[0], x[1], 2.5); }},
      {"masked_fill_tensor", [](In x) { return masked_fill(x[0], x[1], x[2]); }},
      {"movedim",
       [](In x) {
         return movedim(x[0], {0, 2}, {2, 1});
       }},
      {"swapaxes", [](In x) { return swapaxes(x[0], 0, 2); }},
      {"unflatten",
       [](In x) {
         return unflatten(x[0], 1, {2, -1});
       }},
      {"broadcast_tensors",
       [](In x) {
         return joined(broadcast_tensors({x[0], x[1]}));
       }},
      {"atleast_1d", [](In x) { return atleast_1d(x[0]); }},
      {"atleast_2d", [](In x) { return atleast_2d(x[0]); }},
      {"atleast_3d", [](In x) { return atleast_3d(x[0]); }},
      {"atleast_3d_matrix", [](In x) { return atleast_3d(x[0]); }},
      {"hstack",
       [](In x) {
         return hstack({x[0], x[1]});
       }},
      {"hstack_vectors",
       [](In x) {
         return hstack({x[0], x[1]});
       }},
      {"vstack",
       [](In x) {
         return vstack({x[0], x[1]});
       }},
      {"tensordot", [](In x) { return tensordot(x[0], x[1]); }},
      {"tensordot_0", [](In x) { return tensordot(x[0], x[1], 0); }},
      {"tensordot_axes",
       [](In x) {
         return tensordot(x[0], x[1], {2, 0}, {0, 1});
       }},
      {"outer", [](In x) { return outer(x[0], x[1]); }},
      {"bmm", [](In x) { return bmm(x[0], x[1]); }},
      {"mv", [](In x) { return mv(x[0], x[1]); }},
      {"dot", [](In x) { return dot(x[0], x[1]); }},
      {"cross", [](In x) { return cross(x[0], x[1]); }},
      {"cross_axis0", [](In x) { return cross(x[0], x[1], 0); }},
      {"kron", [](In x) { return kron(x[0], x[1]); }},
      {"kron_ranks", [](In x) { return kron(x[0], x[1]); }},
      {"vander", [](In x) { return vander(x[0]); }},
      {"vander_increasing", [](In x) { return vander(x[0], 4, true); }},
  };
  for (const auto& [name, equation] : equations) table["einsum_" + name] = summed(equation);
  return table;
}

const bool registered = golden::register_cases("elementwise.safetensors", "shapes", functions());

}  // namespace
