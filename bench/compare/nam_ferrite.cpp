// Streams of .nam nets, as bench/compare/nam.py asks for them.
#include <span>

#include "ferrite/io/nam.h"
#include "ferrite/nn/stream/stream.h"
#include "nam_streams.h"

int main(int count, char** words) {
  return serve(count, words, [](const char* path, int) {
    const ferrite::io::NamModel model = ferrite::io::read_nam(path);
    return [s = model.layer->stream()](const float* x, float* y, int n) mutable {
      const std::span<const float> in(x, static_cast<std::size_t>(n));
      const std::span<float> out(y, static_cast<std::size_t>(n));
      n == 1 ? s.step(in, out) : s.steps(n, in, out);
    };
  });
}
