/// Plans of convolutions: strides become phases, so that packets of neighbouring results read neighbouring elements.
#include "ferrite/tensor/ops/detail/convolution.h"

#include <algorithm>
#include <array>

#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/reserve.h"

namespace ferrite::detail {
namespace {

/// Calls f({d, h, w}) for all indices below three counts.
template <class F>
void each(const std::array<std::int64_t, 3>& count, const F& f) {
  for (std::int64_t d = 0; d < count[0]; ++d)
    for (std::int64_t h = 0; h < count[1]; ++h)
      for (std::int64_t w = 0; w < count[2]; ++w) f(std::array<std::int64_t, 3>{d, h, w});
}

/// The positions of one pass, and their layout in the image and in the results.
struct PassGrid {
  std::array<std::int64_t, 3> count;    ///< depth, height, width
  std::array<std::int64_t, 3> to_step;  ///< in the results
  std::int64_t to = 0;                  ///< place of the first position
  std::int64_t plane, row;              ///< pitches of the image
};

/// Adds packets along each row.
void packets_by_rows(const PassGrid& g, std::int64_t lanes, ConvolutionPass& pass) {
  for (std::int64_t d = 0; d < g.count[0]; ++d)
    for (std::int64_t h = 0; h < g.count[1]; ++h)
      for (std::int64_t w = 0; w < g.count[2]; w += lanes) {
        const auto at = static_cast<std::int32_t>(pass.segments.size());
        const auto n = static_cast<std::int32_t>(std::min(lanes, g.count[2] - w));
        pass.segments.push_back({g.to + d * g.to_step[0] + h * g.to_step[1] + w * g.to_step[2], 0, n});
        pass.packets.push_back({d * g.plane + h * g.row + w, at, at + 1});
      }
}

/// Adds packets across the ends of rows: lanes between rows are computed and dropped.
void packets_across_rows(const PassGrid& g, std::int64_t lanes, ConvolutionPass& pass) {
  const std::int64_t width = g.count[2], length = (g.count[1] - 1) * g.row + width;
  for (std::int64_t d = 0; d < g.count[0]; ++d)
    for (std::int64_t f = 0; f < length; f += lanes) {
      const auto first = static_cast<std::int32_t>(pass.segments.size());
      const std::int64_t end = std::min(f + lanes, length);
      for (std::int64_t h = f / g.row; h * g.row < end; ++h) {
        const std::int64_t begin = std::max(f, h * g.row), stop = std::min(end, h * g.row + width);
        if (begin >= stop) continue;
        pass.segments.push_back({g.to + d * g.to_step[0] + h * g.to_step[1] + (begin - h * g.row) * g.to_step[2],
                                 static_cast<std::int32_t>(begin - f), static_cast<std::int32_t>(stop - f)});
      }
      const auto last = static_cast<std::int32_t>(pass.segments.size());
      if (last > first) pass.packets.push_back({d * g.plane + f, first, last});
    }
}

/// Adds the packets of a pass. Returns whether each packet lies in one row.
bool add_packets(const PassGrid& g, std::int64_t lanes, ConvolutionPass& pass) {
  pass.whole = std::ssize(pass.taps);
  for (std::int64_t k = 0; k < pass.whole; ++k) pass.indices.push_back(k);
  pass.step = g.to_step[2];
  for (const std::int64_t n : g.count)
    if (n == 0) return false;
  const auto packets = [&](std::int64_t n) { return (n + lanes - 1) / lanes; };
  const std::int64_t by_rows = g.count[1] * packets(g.count[2]);
  const std::int64_t across = packets((g.count[1] - 1) * g.row + g.count[2]);
  if (8 * across < 7 * by_rows) {  // storing segments costs more than storing whole packets
    packets_across_rows(g, lanes, pass);
    return false;
  }
  packets_by_rows(g, lanes, pass);
  return true;
}

/// Returns a distance of channels of an odd number of cache lines: at a power of two they would share a few sets of a
/// cache.
std::int64_t channel_pitch(std::int64_t elements) { return ((elements + 15) / 16 | 1) * 16; }

/// Sets the pitches of an image of these extents, given its phases.
void lay_out(ImagePlan& image, const std::array<std::int64_t, 3>& extent) {
  image.row = extent[2];
  image.plane = extent[1] * extent[2];
  image.volume = extent[0] * image.plane;
  const auto phases = static_cast<std::int64_t>(image.phases.size());
  image.channel = phases == 0 ? image.volume : channel_pitch(image.volume * phases);
}

/// Returns the distance of rows. Rows that are almost whole packets get whole ones: then most stores and loads cross no
/// cache line.
std::int64_t row_pitch(std::int64_t elements, std::int64_t lanes) {
  const std::int64_t whole = (elements + lanes - 1) / lanes * lanes;
  return 8 * (whole - elements) <= whole ? whole : elements;
}

std::int64_t floor_mod(std::int64_t a, std::int64_t n) { return (a % n + n) % n; }

/// Cuts a pass, whose packets lie in one row each, into parts that meet the same of its `count` taps: tap k of axis i
/// is met at a position where met(i, k, position). Returns none if there is only one part, or if parts are small.
template <class Met>
std::vector<ConvolutionPass> cut_rows(const ConvolutionPass& pass, const ImagePlan& image,
                                      const std::array<std::int64_t, 3>& count, const Met& met) {
  std::vector<ConvolutionPass> parts;
  if (count[0] * count[1] == 1) return parts;
  std::int64_t row = -1;  // of the packet before, whose part is `of`
  std::size_t of = 0;
  for (const PacketPlace& packet : pass.packets) {
    const std::int64_t d = packet.from / image.plane, h = packet.from % image.plane / image.row;
    if (packet.from / image.row != row) {
      row = packet.from / image.row;
      ConvolutionPass part;
      std::int64_t index = 0;
      each(count, [&](const std::array<std::int64_t, 3>& tap) {
        if (met(0, tap[0], d) && met(1, tap[1], h)) part.indices.push_back(index);
        ++index;
      });
      const auto same = [&](const ConvolutionPass& other) { return other.indices == part.indices; };
      of = static_cast<std::size_t>(std::find_if(parts.begin(), parts.end(), same) - parts.begin());
      if (of == 4) return {};
      if (of == parts.size()) {
        part.whole = pass.whole;
        part.step = pass.step;
        for (const std::int64_t k : part.indices) {
          part.taps.push_back(pass.taps[static_cast<std::size_t>(k)]);
          part.offsets.push_back(pass.offsets[static_cast<std::size_t>(k)]);
        }
        parts.push_back(std::move(part));
      }
    }
    ConvolutionPass& part = parts[of];
    const auto first = static_cast<std::int32_t>(part.segments.size());
    part.segments.push_back(pass.segments[static_cast<std::size_t>(packet.first)]);
    part.packets.push_back({packet.from, first, first + 1});
  }
  if (parts.size() == 1) return {};
  return parts;
}

/// The taps of one axis that meet one phase of the large side, and the distances from it at which they read the small
/// side.
struct PhaseTaps {
  std::vector<std::int64_t> taps, shifts;
};
PhaseTaps taps_of_phase(const WindowAxis& a, std::int64_t phase) {
  PhaseTaps p;
  for (std::int64_t t = 0; t < a.kernel; ++t) {
    const std::int64_t at = phase + a.before - t * a.dilation;
    if (floor_mod(at, a.stride) != 0) continue;
    p.taps.push_back(t);
    p.shifts.push_back(at / a.stride);
  }
  return p;
}
/// Returns the number of positions of the large side in a phase.
std::int64_t positions_of_phase(const WindowAxis& a, std::int64_t phase) {
  return phase >= a.large ? 0 : (a.large - phase + a.stride - 1) / a.stride;
}

/// Returns the places in an image of `count` indices, `step` apart along each axis, row-major.
std::vector<std::int64_t> grid_places(const ImagePlan& image, const std::array<std::int64_t, 3>& count,
                                      const std::array<std::int64_t, 3>& step) {
  std::vector<std::int64_t> all;
  all.reserve(static_cast<std::size_t>(count[0] * count[1] * count[2]));
  each(count, [&](const std::array<std::int64_t, 3>& at) {
    all.push_back(at[0] * step[0] * image.plane + at[1] * step[1] * image.row + at[2] * step[2]);
  });
  return all;
}
/// Returns one number of each axis: by_axis(g, &WindowAxis::small).
std::array<std::int64_t, 3> by_axis(const WindowGeometry& g, std::int64_t WindowAxis::*number) {
  return {g.axis[0].*number, g.axis[1].*number, g.axis[2].*number};
}

}  // namespace

ConvolutionPlan plan_convolution(const WindowGeometry& g, std::int64_t lanes) {
  ConvolutionPlan plan;
  ConvolutionPass& pass = plan.passes.emplace_back();
  // For each axis, the phases that taps read, and the extent of an image.
  std::array<std::vector<std::int64_t>, 3> phases;
  std::array<std::int64_t, 3> extent{};
  bool stands = true;
  for (std::size_t i = 0; i < 3; ++i) {
    const WindowAxis& a = g.axis[i];
    for (std::int64_t t = 0; t < a.kernel; ++t) {
      const std::int64_t phase = t * a.dilation % a.stride;
      if (std::find(phases[i].begin(), phases[i].end(), phase) == phases[i].end()) phases[i].push_back(phase);
    }
    extent[i] = a.small + (a.kernel - 1) * a.dilation / a.stride;
    stands = stands && a.stride == 1 && a.before == 0 && extent[i] <= a.large;
  }
  ImagePlan& image = plan.image;
  extent[2] = row_pitch(extent[2], lanes);
  if (stands) {
    for (std::size_t i = 0; i < 3; ++i) extent[i] = g.axis[i].large;
  } else {
    const std::array<std::int64_t, 3> count = {static_cast<std::int64_t>(phases[0].size()),
                                               static_cast<std::int64_t>(phases[1].size()),
                                               static_cast<std::int64_t>(phases[2].size())};
    each(count, [&](const std::array<std::int64_t, 3>& at) {
      ImageAxes& axes = image.phases.emplace_back();
      for (std::size_t i = 0; i < 3; ++i) {
        const WindowAxis& a = g.axis[i];
        axes.axis[i] = {a.large, extent[i], a.stride, phases[i][static_cast<std::size_t>(at[i])] - a.before};
      }
    });
  }
  lay_out(image, extent);
  each({g.axis[0].kernel, g.axis[1].kernel, g.axis[2].kernel}, [&](const std::array<std::int64_t, 3>& t) {
    std::int64_t phase = 0;
    std::array<std::int64_t, 3> at{};
    for (std::size_t i = 0; i < 3; ++i) {
      const WindowAxis& a = g.axis[i];
      const std::int64_t far = t[i] * a.dilation;
      const auto found = std::find(phases[i].begin(), phases[i].end(), far % a.stride);
      phase = phase * static_cast<std::int64_t>(phases[i].size()) + (found - phases[i].begin());
      at[i] = far / a.stride;
    }
    pass.taps.push_back(static_cast<std::int64_t>(pass.taps.size()));
    pass.offsets.push_back(phase * image.volume + at[0] * image.plane + at[1] * image.row + at[2]);
  });
  const std::int64_t height = g.axis[1].small, width = g.axis[2].small;
  const PassGrid grid{{g.axis[0].small, height, width}, {height * width, width, 1}, 0, image.plane, image.row};
  if (add_packets(grid, lanes, pass))
    plan.parts = cut_rows(pass, image, by_axis(g, &WindowAxis::kernel),
                          [&](std::size_t i, std::int64_t tap, std::int64_t position) {
                            const WindowAxis& a = g.axis[i];
                            const std::int64_t at = position * a.stride + tap * a.dilation - a.before;
                            return at >= 0 && at < a.large;
                          });
  return plan;
}

ConvolutionPlan plan_transposed(const WindowGeometry& g, std::int64_t lanes) {
  ConvolutionPlan plan;
  // The part of the small side that any phase reads: its first position and its extent.
  std::array<std::int64_t, 3> first{}, extent{};
  for (std::size_t i = 0; i < 3; ++i) {
    const WindowAxis& a = g.axis[i];
    std::int64_t low = 0, high = 0;
    bool any = false;
    for (std::int64_t phase = 0; phase < std::min(a.stride, a.large); ++phase) {
      const std::int64_t n = positions_of_phase(a, phase);
      if (n == 0) continue;
      for (const std::int64_t shift : taps_of_phase(a, phase).shifts) {
        low = any ? std::min(low, shift) : shift;
        high = any ? std::max(high, shift + n) : shift + n;
        any = true;
      }
    }
    first[i] = low;
    extent[i] = high - low;
  }
  ImagePlan& image = plan.image;
  bool stands = true;
  for (std::size_t i = 0; i < 3; ++i) stands = stands && first[i] == 0 && extent[i] == g.axis[i].small;
  if (!stands) {
    ImageAxes& axes = image.phases.emplace_back();
    for (std::size_t i = 0; i < 3; ++i) axes.axis[i] = {g.axis[i].small, extent[i], 1, first[i]};
  }
  lay_out(image, extent);

  const std::array<std::int64_t, 3> strides = {g.axis[0].stride, g.axis[1].stride, g.axis[2].stride};
  const auto phases = [&](std::size_t i) { return std::min(strides[i], g.axis[i].large); };
  bool cut = false;
  each({phases(0), phases(1), phases(2)}, [&](const std::array<std::int64_t, 3>& phase) {
    ConvolutionPass pass;
    PassGrid grid{{}, {}, 0, image.plane, image.row};
    std::array<PhaseTaps, 3> taps;
    const std::array<std::int64_t, 3> pitch = {g.axis[1].large * g.axis[2].large, g.axis[2].large, 1};
    for (std::size_t i = 0; i < 3; ++i) {
      taps[i] = taps_of_phase(g.axis[i], phase[i]);
      grid.count[i] = positions_of_phase(g.axis[i], phase[i]);
      grid.to_step[i] = pitch[i] * strides[i];
      grid.to += pitch[i] * phase[i];
    }
    if (grid.count[0] * grid.count[1] * grid.count[2] == 0) return;
    const auto number = [&](std::size_t i) { return static_cast<std::int64_t>(taps[i].taps.size()); };
    each({number(0), number(1), number(2)}, [&](const std::array<std::int64_t, 3>& t) {
      std::int64_t tap = 0;
      std::array<std::int64_t, 3> at{};
      for (std::size_t i = 0; i < 3; ++i) {
        const auto k = static_cast<std::size_t>(t[i]);
        tap = tap * g.axis[i].kernel + taps[i].taps[k];
        at[i] = taps[i].shifts[k] - first[i];
      }
      pass.taps.push_back(tap);
      pass.offsets.push_back(at[0] * image.plane + at[1] * image.row + at[2]);
    });
    // Rows of results that read nothing do not share packets: there is no image between them.
    if (pass.taps.empty()) grid.row = std::max<std::int64_t>(grid.row, grid.count[2]);
    std::vector<ConvolutionPass> parts;
    if (add_packets(grid, lanes, pass) && strides == std::array<std::int64_t, 3>{1, 1, 1})
      parts = cut_rows(pass, image, {number(0), number(1), number(2)},
                       [&](std::size_t i, std::int64_t tap, std::int64_t position) {
                         const std::int64_t at = position + taps[i].shifts[static_cast<std::size_t>(tap)];
                         return at >= 0 && at < g.axis[i].small;
                       });
    cut = cut || !parts.empty();
    if (parts.empty()) parts.push_back(pass);
    std::move(parts.begin(), parts.end(), std::back_inserter(plan.parts));
    plan.passes.push_back(std::move(pass));
  });
  if (!cut) plan.parts.clear();
  return plan;
}

PlanePass plane_of(const WindowGeometry& g, bool transposed) {
  const WindowAxis &d = g.axis[0], &h = g.axis[1], &w = g.axis[2];
  PlanePass p;
  if (d.large * d.small * d.kernel != 1 || h.stride != w.stride || h.stride > 2 || h.dilation != 1 ||
      h.large * h.small * w.large * w.small == 0 || !is_plane_kernel(h.kernel, w.kernel))
    return p;
  if (w.stride == 2 && w.dilation != 1) return p;
  p.spread = transposed && w.stride == 2;
  p.taps = w.kernel;
  p.stride = w.stride;
  p.rows_before = h.before;
  p.columns_before = w.before;
  p.width = transposed ? w.small : w.large;
  const std::int64_t rows = transposed ? h.small : h.large;
  p.row = transposed ? -p.width : p.width;
  p.start = transposed ? (rows - 1) * p.width : 0;
  p.last = h.before + h.large;
  p.first = p.last - rows;
  for (std::int64_t c = 0; c < p.taps; ++c)
    p.columns[c] = transposed ? w.before - c * w.dilation : c * w.dilation - w.before;
  return p;
}

LinePass line_of(const WindowGeometry& g, bool transposed, std::int64_t shortest) {
  const WindowAxis &d = g.axis[0], &h = g.axis[1], &w = g.axis[2];
  LinePass p;
  if (d.large * d.small * d.kernel * h.large * h.small * h.kernel != 1 || w.stride != 1 || w.kernel > kMostLineTaps ||
      std::min(w.large, w.small) < shortest)
    return p;
  p.taps = w.kernel;
  for (std::int64_t k = 0; k < p.taps; ++k)
    p.offsets[k] = transposed ? w.before - k * w.dilation : k * w.dilation - w.before;
  return p;
}

namespace {

PassTerms terms_of(const ConvolutionPass& pass, std::int64_t channels, std::int64_t channel) {
  PassTerms all;
  all.offsets.reserve(static_cast<std::size_t>(channels) * pass.offsets.size());
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::size_t k = 0; k < pass.offsets.size(); ++k) {
      const std::int64_t block = (c * pass.whole + pass.indices[k]) / kBlockK;
      while (std::ssize(all.ends) < block) all.ends.push_back(std::ssize(all.offsets));
      all.offsets.push_back(c * channel + pass.offsets[k]);
    }
  all.ends.resize(static_cast<std::size_t>((channels * pass.whole + kBlockK - 1) / kBlockK), std::ssize(all.offsets));
  return all;
}

}  // namespace

std::vector<TapSpan> tap_spans(const WindowGeometry& g) {
  std::vector<TapSpan> all;
  each(by_axis(g, &WindowAxis::kernel), [&](const std::array<std::int64_t, 3>& tap) {
    TapSpan& span = all.emplace_back();
    for (std::size_t i = 0; i < 3; ++i) {
      const WindowAxis& a = g.axis[i];
      const std::int64_t shift = tap[i] * a.dilation - a.before;  // position p meets p * stride + shift
      const auto at_least = [&](std::int64_t n) { return n <= 0 ? 0 : (n + a.stride - 1) / a.stride; };
      span.first[i] = std::min(a.small, at_least(-shift));
      span.last[i] = std::clamp(at_least(a.large - shift), span.first[i], a.small);
    }
  });
  return all;
}

TermPlan::TermPlan(const PlanKey& k)
    : key(k), plan(k.transposed ? plan_transposed(k.geometry, k.lanes) : plan_convolution(k.geometry, k.lanes)) {
  for (const ConvolutionPass& pass : plan.passes) terms.push_back(terms_of(pass, k.channels, plan.image.channel));
  for (const ConvolutionPass& part : plan.parts) part_terms.push_back(terms_of(part, k.channels, plan.image.channel));
}

namespace {

/// The positions of the results along an axis that meet the same taps, [first, last).
struct AxisClass {
  std::int64_t first, last;
  std::vector<std::int64_t> positions;
};

/// Returns the classes of an axis. If there are more than three, as for a kernel that is long compared to its operand,
/// returns one class of all positions and taps.
std::vector<AxisClass> axis_classes(const WindowAxis& a, bool transposed) {
  std::vector<AxisClass> classes;
  const std::int64_t count = transposed ? a.large : a.small;
  AxisClass all{0, a.kernel, {}};
  for (std::int64_t p = 0; p < count; ++p) {
    const auto exists = [&](std::int64_t tap) {
      const std::int64_t at = transposed ? p + a.before - tap * a.dilation : p * a.stride + tap * a.dilation - a.before;
      return at >= 0 && at < (transposed ? a.small : a.large);
    };
    std::int64_t first = 0;
    while (first < a.kernel && !exists(first)) ++first;
    std::int64_t last = first;
    while (last < a.kernel && exists(last)) ++last;
    all.positions.push_back(p);
    const auto same = [&](const AxisClass& c) { return c.first == first && c.last == last; };
    const auto found = std::find_if(classes.begin(), classes.end(), same);
    (found == classes.end() ? classes.emplace_back(AxisClass{first, last, {}}) : *found).positions.push_back(p);
  }
  if (classes.size() > 3) return {all};
  return classes;
}

/// Returns the classes of all positions: `taps` are the offsets of all taps, `step` the distances of positions in the
/// image.
std::vector<ChannelClass> channel_classes(const PlanKey& key, const ImagePlan& image,
                                          const std::vector<std::int64_t>& taps,
                                          const std::array<std::int64_t, 3>& step) {
  const WindowGeometry& g = key.geometry;
  const bool transposed = key.transposed;
  const std::array<std::vector<AxisClass>, 3> axes = {
      axis_classes(g.axis[0], transposed), axis_classes(g.axis[1], transposed), axis_classes(g.axis[2], transposed)};
  const auto size = by_axis(g, transposed ? &WindowAxis::large : &WindowAxis::small);
  const auto counts = [](const auto& lists) {
    return std::array<std::int64_t, 3>{std::ssize(lists[0]), std::ssize(lists[1]), std::ssize(lists[2])};
  };
  std::vector<ChannelClass> all;
  each(counts(axes), [&](const std::array<std::int64_t, 3>& which) {
    std::array<const AxisClass*, 3> c{};
    for (std::size_t i = 0; i < 3; ++i) c[i] = &axes[i][static_cast<std::size_t>(which[i])];
    ChannelClass& of = all.emplace_back();
    each(counts(std::array{c[0]->positions, c[1]->positions, c[2]->positions}),
         [&](const std::array<std::int64_t, 3>& index) {
           std::array<std::int64_t, 3> p{};
           for (std::size_t i = 0; i < 3; ++i) p[i] = c[i]->positions[static_cast<std::size_t>(index[i])];
           of.places.push_back(p[0] * step[0] * image.plane + p[1] * step[1] * image.row + p[2] * step[2]);
           of.results.push_back((p[0] * size[1] + p[1]) * size[2] + p[2]);
         });
    std::vector<std::int64_t> met;
    each(by_axis(g, &WindowAxis::kernel), [&](const std::array<std::int64_t, 3>& tap) {
      bool all_met = true;
      for (std::size_t i = 0; i < 3; ++i) all_met = all_met && tap[i] >= c[i]->first && tap[i] < c[i]->last;
      if (all_met) met.push_back((tap[0] * g.axis[1].kernel + tap[1]) * g.axis[2].kernel + tap[2]);
    });
    const std::int64_t terms = key.channels * g.taps();
    for (std::int64_t channel = 0; channel < key.channels; ++channel)
      for (const std::int64_t tap : met) {
        const std::int64_t term = channel * g.taps() + tap;
        while (std::ssize(of.ends) < term / kBlockK) of.ends.push_back(std::ssize(of.met));
        of.met.push_back({channel * image.channel + taps[static_cast<std::size_t>(tap)], term * key.lanes});
      }
    of.ends.resize(static_cast<std::size_t>((terms + kBlockK - 1) / kBlockK), std::ssize(of.met));
  });
  return all;
}

/// Returns the plan of a convolution with strides: the operand in place, or with its padding.
ChannelPlan strided_plan(const PlanKey& key) {
  const WindowGeometry& g = key.geometry;
  std::array<std::int64_t, 3> extent{};
  bool stands = true;
  for (std::size_t i = 0; i < 3; ++i) {
    const WindowAxis& a = g.axis[i];
    extent[i] = (a.small - 1) * a.stride + (a.kernel - 1) * a.dilation + 1;
    stands = stands && a.before == 0 && extent[i] <= a.large;
  }
  ChannelPlan plan;
  ImagePlan& image = plan.image;
  if (!stands) image.phases.emplace_back();
  for (std::size_t i = 0; i < 3; ++i) {
    const WindowAxis& a = g.axis[i];
    if (stands)
      extent[i] = a.large;
    else
      image.phases[0].axis[i] = {a.large, extent[i], 1, -a.before};
  }
  lay_out(image, extent);
  const std::vector<std::int64_t> taps =
      grid_places(image, by_axis(g, &WindowAxis::kernel), by_axis(g, &WindowAxis::dilation));
  plan.classes = channel_classes(key, image, taps, by_axis(g, &WindowAxis::stride));
  return plan;
}

}  // namespace

const ChannelPlan& TermPlan::channels() {
  if (channels_) return *channels_;
  const WindowGeometry& g = key.geometry;
  if (!key.transposed && by_axis(g, &WindowAxis::stride) != std::array<std::int64_t, 3>{1, 1, 1}) {
    channels_ = std::make_unique<ChannelPlan>(strided_plan(key));
  } else {
    channels_ = std::make_unique<ChannelPlan>(
        ChannelPlan{plan.image, channel_classes(key, plan.image, plan.passes[0].offsets, {1, 1, 1})});
  }
  return *channels_;
}

const std::vector<std::int64_t>& TermPlan::places() {
  if (places_.empty()) places_ = grid_places(plan.image, by_axis(key.geometry, &WindowAxis::small), {1, 1, 1});
  return places_;
}

std::size_t TermPlan::bytes() const {
  const auto taken = [](const auto& list) { return list.size() * sizeof(list[0]); };
  std::size_t all = sizeof(*this) + 2 * taken(plan.image.phases) + sizeof(ChannelPlan) +
                    2 * static_cast<std::size_t>(positions()) * sizeof(std::int64_t);
  for (const auto* passes : {&plan.passes, &plan.parts})
    for (const ConvolutionPass& pass : *passes)
      all += 3 * taken(pass.taps) + taken(pass.packets) + taken(pass.segments) + sizeof(pass);
  for (const auto* of_passes : {&terms, &part_terms})
    for (const PassTerms& of_pass : *of_passes) all += taken(of_pass.offsets) + taken(of_pass.ends);
  return all + 2 * taken(terms[0].offsets);
}

namespace {

struct KeptPlans {
  std::vector<std::unique_ptr<TermPlan>> plans;
  std::size_t next = 0;  ///< the plan that is replaced next
};

}  // namespace

TermPlan& planned(const PlanKey& key, std::unique_ptr<TermPlan>& own) {
  auto& [kept, next] = kept_for_calls<KeptPlans>();
  for (const std::unique_ptr<TermPlan>& plan : kept)
    if (plan->key == key) return *plan;
  own = std::make_unique<TermPlan>(key);
  if (own->bytes() > kLargestKept) return *own;
  if (kept.size() < kPlansKept) {
    kept.push_back(std::move(own));
    return *kept.back();
  }
  kept[next] = std::move(own);
  TermPlan& plan = *kept[next];
  next = (next + 1) % kPlansKept;
  return plan;
}

}  // namespace ferrite::detail
