// oneDNN's convolutions for convolutions.py, without bias, on one thread: prints its version, then answers the lines of
// bench_convolution with microseconds for data in the order that oneDNN prefers and for plain data (channels before
// space); "none" for one that it lacks. Weights, and their gradient, are in oneDNN's own order in both.
#include <cstdlib>
#include <iostream>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>

#include "convolution_job.h"
#include "timing.h"

namespace {

using bench::ConvolutionJob;
using dnnl::memory;
using Dims = memory::dims;
using Tag = memory::format_tag;

/// Returns memory filled with numbers from -1 to 1.
memory filled(const memory::desc& d, const dnnl::engine& e) {
  memory m(d, e);
  auto* p = static_cast<float*>(m.get_data_handle());
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < d.get_size() / sizeof(float); ++i) {
    state = state * 1664525U + 1013904223U;
    p[i] = static_cast<float>(state >> 8U) * 0x1p-23F - 1.0F;
  }
  return m;
}

/// A convolution of one pass, ready to run.
class Call {
 public:
  Call(const ConvolutionJob& j, bool plain) {
    const std::size_t axes = j.kernel.size();
    Dims out{j.x[0], j.channels}, weight{j.channels, j.x[1] / j.groups};
    if (j.groups > 1) weight = {j.groups, j.channels / j.groups, j.x[1] / j.groups};
    for (std::size_t i = 0; i < axes; ++i) {
      out.push_back((j.x[i + 2] + j.before + j.after - j.dilation * (j.kernel[i] - 1) - 1) / j.stride + 1);
      weight.push_back(j.kernel[i]);
    }
    const Dims stride(axes, j.stride), dilation(axes, j.dilation - 1), before(axes, j.before), after(axes, j.after);
    const Tag order = !plain ? Tag::any : axes == 1 ? Tag::ncw : Tag::nchw;
    const memory::desc x(j.x, memory::data_type::f32, order), y(out, memory::data_type::f32, order),
        w(weight, memory::data_type::f32, Tag::any);
    const auto kind = j.pass == "forward" ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
    const auto direct = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(engine_, kind, direct, x, w, y, stride, dilation, before,
                                                            after);
    if (j.pass == "forward") {
      primitive_ = dnnl::convolution_forward(forward);
      arguments_ = {{DNNL_ARG_SRC, filled(forward.src_desc(), engine_)},
                    {DNNL_ARG_WEIGHTS, filled(forward.weights_desc(), engine_)},
                    {DNNL_ARG_DST, memory(forward.dst_desc(), engine_)}};
    } else if (j.pass == "input") {
      const dnnl::convolution_backward_data::primitive_desc back(engine_, direct, x, w, y, stride, dilation, before,
                                                                 after, forward);
      primitive_ = dnnl::convolution_backward_data(back);
      arguments_ = {{DNNL_ARG_DIFF_DST, filled(back.diff_dst_desc(), engine_)},
                    {DNNL_ARG_WEIGHTS, filled(back.weights_desc(), engine_)},
                    {DNNL_ARG_DIFF_SRC, memory(back.diff_src_desc(), engine_)}};
    } else {
      const dnnl::convolution_backward_weights::primitive_desc back(engine_, direct, x, w, y, stride, dilation, before,
                                                                    after, forward);
      primitive_ = dnnl::convolution_backward_weights(back);
      arguments_ = {{DNNL_ARG_SRC, filled(back.src_desc(), engine_)},
                    {DNNL_ARG_DIFF_DST, filled(back.diff_dst_desc(), engine_)},
                    {DNNL_ARG_DIFF_WEIGHTS, memory(back.diff_weights_desc(), engine_)}};
    }
  }

  void run() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
};

std::string microseconds(const ConvolutionJob& j, bool plain, double seconds) {
  try {
    Call call(j, plain);
    return std::to_string(1e6 * bench::interleaved_for({[&] { call.run(); }}, seconds)[0]);
  } catch (const dnnl::error&) {
    return "none";
  }
}

}  // namespace

int main() {
  setenv("OMP_NUM_THREADS", "1", 1);
  const dnnl_version_t* v = dnnl_version();
  std::cout << "oneDNN " << v->major << "." << v->minor << "." << v->patch << std::endl;
  ConvolutionJob job;
  double seconds = 0;
  while (std::cin >> job >> seconds)
    std::cout << microseconds(job, false, seconds) << " " << microseconds(job, true, seconds) << std::endl;
}
