// A program that runs nets which ferrite_freeze wrote in its build, and links no library.
#include <cstdio>

#include "net.h"
#include "other.h"

int main() {
  static net first;
  static other second;
  net_init(&first);
  other_init(&second);
  const float x[NET_INPUTS] = {0.5F, -0.5F};
  float y[NET_OUTPUTS];
  if (net_check(&first) != 0 || other_check(&second) != 0 || net_step(&first, x, y) != 0) return 1;
  std::printf("%g %g %g\n", static_cast<double>(y[0]), static_cast<double>(y[1]), static_cast<double>(y[2]));
  return 0;
}
