/// Writes matrix products.
#include <algorithm>

#include "ferrite/exchange/freeze/c_calls.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::exchange::detail {
namespace {

/// The strides of one operand of a product in the axes of the result's batch; 0 where it is repeated.
Shape batch_strides(const LoweredWindow& w, const Shape& batch) {
  Shape strides = Shape::filled(batch.rank(), 0);
  const int lead = w.spec.shape.rank() - 2;
  for (int k = 0; k < lead; ++k)
    if (w.spec.shape[k] != 1) strides[batch.rank() - lead + k] = w.strides[k];
  return strides;
}

struct Product {
  std::int64_t M, K, N, am, ak, bk, bn;
  std::string rows{};  ///< the address of a constant b whose rows are padded to whole vectors
};

/// Pads the rows of a constant to whole vectors, if nothing else reads it and it stays small.
void align(const CCall& c, Product& p) {
  const Tensor* constant = c.body.own_constant(c.in(1));
  const std::int64_t wide = whole_vectors(p.N, most_lanes_of(c.dtype()));
  if (!constant || p.bn != 1 || p.bk != p.N || p.N <= 16 || p.N == wide) return;
  if (p.K * wide * size_of(c.dtype()) <= ColumnProduct::kAlignedBytes)
    p.rows = c.body.module().rows(*constant, p.N, "", "constant");
}

/// Brings b into rows of columns, which vectors take: as a constant, or by a copy before a product of some rows.
void turn(const CCall& c, Product& p, std::string& b) {
  if (p.bn == 1 || p.N < 4) return;
  const Tensor* constant = constant_of(c, c.in(1));
  if (constant && constant->rank() == 2 && p.bk == 1 && p.bn == p.K && constant->numel() == p.K * p.N) {
    b = c.body.module().constant(contiguous(reshape(contiguous(*constant), {p.N, p.K}).view({p.K, p.N}, {1, p.K}, 0)),
                                 "constant, turned");
  } else if (p.M < 4) {
    return;
  } else {
    const std::string copy = c.body.scratch(c.dtype(), p.K * p.N);
    c.to.line(loop_over("k", p.K));
    c.to.line("  for (ptrdiff_t e = 0; e < " + text(p.N) + "; ++e) (" + copy + ")[k * " + text(p.N) + " + e] = (" + b +
              ")[k * " + text(p.bk) + " + e * " + text(p.bn) + "];");
    b = copy;
  }
  p.bk = p.N, p.bn = 1;
}

void write_product(const CCall& c, Product p, const std::string& a, std::string b, const std::string& y) {
  turn(c, p, b);
  const std::string s = suffix_of(c.dtype()), t(c_type(c.dtype()));
  const bool vectors = p.bn == 1 && p.N >= 4;
  const std::string kernel = c.kernel(vectors ? "rows" : "dots");
  const std::string head = "static void $name(const " + t + " *a, const " + t + " *b, " + t + " *y) {\n  " + kernel;
  const std::string ldb = p.rows.empty() ? text(p.bk) : wide_of(c.dtype(), p.N);
  const std::string body = vectors ? "(a, " + text(p.am) + ", " + text(p.ak) + ", b, " + ldb + ", y, " + text(p.N) +
                                         ", " + text(p.M) + ", " + text(p.K) + ", " + text(p.N) + ");\n}\n"
                                   : "(a, " + text(p.am) + ", " + text(p.ak) + ", b, " + text(p.bk) + ", " +
                                         text(p.bn) + ", y, " + text(p.N) + ", " + text(p.M) + ", " + text(p.K) + ", " +
                                         text(p.N) + ");\n}\n";
  const std::string name = "product_" + text(p.M) + "_" + text(p.K) + "_" + text(p.N);
  c.to.line(c.body.module().define(name, head + body) + "(" + a + ", " + b + ", " + y + ");");
}

void write_matmul(const CCall& c) {
  c.wants_floats();
  const LoweredWindow &a = c.in(0), &b = c.in(1), &y = c.out();
  const int ra = a.spec.shape.rank(), rb = b.spec.shape.rank(), r = y.spec.shape.rank();
  if (ra < 2 || rb < 2) c.body.refuse(c.node(), "it multiplies a vector; reshape it to a matrix");
  Product p{a.spec.shape[-2], a.spec.shape[-1], b.spec.shape[-1], a.strides[-2],
            a.strides[-1],    b.strides[-2],    b.strides[-1]};
  Shape batch;
  for (int k = 0; k + 2 < r; ++k) batch.push_back(y.spec.shape[k]);
  const Shape sa = batch_strides(a, batch), sb = batch_strides(b, batch);
  const bool shared = std::ranges::all_of(sb, [](std::int64_t s) { return s == 0; });
  if (p.M == 1) p.am = p.K;
  if (shared && is_dense(a)) {  // all rows of a by one matrix
    p.M *= batch.numel(), p.am = p.K, p.ak = 1;
    align(c, p);
    return write_product(c, p, c.at(a), p.rows.empty() ? c.at(b) : p.rows, c.at(y));
  }
  c.open(batch);
  write_product(c, p, c.at(a) + steps_along(batch, sa), c.at(b) + steps_along(batch, sb),
                c.at(y) + steps_along(batch, y.strides));
  c.close(batch);
}

constexpr CWriter kWriters[] = {{"matmul", write_matmul}};

}  // namespace

std::span<const CWriter> product_writers() { return kWriters; }

}  // namespace ferrite::exchange::detail
