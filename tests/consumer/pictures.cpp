// A program that uses the component png.
#include <ferrite/io/png.h>
#include <ferrite/tensor/ops.h>

#include <cstdio>

int main() {
  const auto bytes = ferrite::io::serialize_png(ferrite::full({3, 2, 2}, 0.5));
  const ferrite::Tensor x = ferrite::io::parse_png(bytes);
  std::printf("%s\n", x.shape().str().c_str());
  return x.shape().str() == "[3, 2, 2]" ? 0 : 1;
}
