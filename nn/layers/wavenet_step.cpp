/// A step of the stacked WaveNet: the steps of its layers, and what is added between them.
#include <optional>

#include "ferrite/nn/detail/joined_steps.h"
#include "ferrite/nn/layers/wavenet.h"
#include "ferrite/nn/step_graph.h"

namespace ferrite::nn {
namespace {

/// The steps of a net, value after value.
struct Steps {
  StepGraph& graph;
  const Wavenet& net;

  std::size_t sum(std::size_t a, std::size_t b) const {
    return graph.add(net, detail::sum_step(graph.rows(a), 2), {a, b});
  }
  /// Activated; with a gate the first half of each row times the second one, each with its own.
  std::size_t activated(const Wavenet::Unit& u, std::size_t z) const {
    if (!u.gate) return graph.add(*u.activation, z);
    const StepRows rows = graph.rows(z);
    const auto half = [&](std::int64_t first) {
      return graph.add(net, detail::columns_step(rows, first, rows.width / 2), {z});
    };
    const std::size_t a = graph.add(*u.activation, half(0)), g = graph.add(*u.gate, half(rows.width / 2));
    return graph.add(net, detail::product_step(graph.rows(a)), {a, g});
  }
};

}  // namespace

std::size_t Wavenet::add_steps(StepGraph& graph, std::size_t x) const {
  (void)whole();
  const Steps steps{graph, *this};
  std::size_t h = x;
  std::optional<std::size_t> skip;  // the sum for the head
  for (const Array& array : arrays_) {
    h = graph.add(*array.rechannel, h);
    for (const Unit& u : array.units) {
      const std::size_t conv = graph.add(*u.conv, h);
      const std::size_t a = steps.activated(u, steps.sum(conv, graph.add(*u.mix, x)));
      const std::size_t given = u.head1x1 ? graph.add(*u.head1x1, a) : a;
      skip = skip ? steps.sum(*skip, given) : given;
      if (u.layer1x1) h = steps.sum(h, graph.add(*u.layer1x1, a));
    }
    skip = graph.add(*array.head, *skip);
  }
  return graph.add(*this, detail::scale_step(graph.rows(*skip), head_scale()), {*skip});
}

}  // namespace ferrite::nn
