// A frozen net as bench/compare/streams.py asks for it. FROZEN names it, and the header is included with -include.
#include <cstdlib>
#include <memory>

#include "stream_peer.h"

#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)

int main(int count, char** words) {
  return serve(count, words, [](const char*, int) {
    auto net = std::make_shared<FROZEN>();
    NAME(FROZEN, _init)(net.get());
    return [net](const float* x, float* y, int n) {
      n == 1 ? NAME(FROZEN, _step)(net.get(), x, y) : NAME(FROZEN, _steps)(net.get(), n, x, y);
    };
  });
}
