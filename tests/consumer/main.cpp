// The smallest program of a user, built with an installed, fetched or included library.
#include <ferrite/ferrite.h>

#include <iostream>

int main() {
  const ferrite::Tensor t = ferrite::full({2, 3}, 1.5);
  const auto net = ferrite::dsl::sequence(3).gru(4).last_step().build(0);
  std::cout << t << '\n' << net(ferrite::ones({1, 2, 3})) << '\n';
  return ferrite::sum(t).item() == 9.0F ? 0 : 1;
}
