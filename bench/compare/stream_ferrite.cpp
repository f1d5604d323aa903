// Streams of `.nam` nets and of RTNeural's JSON files, as bench/compare/streams.py asks for them.
#include <memory>
#include <span>
#include <string_view>

#include "ferrite/io/nam.h"
#include "ferrite/io/rtneural.h"
#include "ferrite/nn/stream/stream.h"
#include "stream_peer.h"

namespace {

std::shared_ptr<ferrite::nn::Layer> read(std::string_view path) {
  if (path.ends_with(".nam")) return std::move(ferrite::io::read_nam(path).layer);
  return ferrite::io::read_rtneural(path);
}

}  // namespace

int main(int count, char** words) {
  return serve(count, words, [](const char* path, int) {
    const auto net = read(path);
    net->eval();
    return [net, s = net->stream()](const float* x, float* y, int n) mutable {
      const std::span<const float> in(x, static_cast<std::size_t>(n));
      const std::span<float> out(y, static_cast<std::size_t>(n));
      n == 1 ? s.step(in, out) : s.steps(n, in, out);
    };
  });
}
