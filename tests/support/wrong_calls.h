#pragma once
/// Tables of wrong calls: each is refused with its type of error and its whole sentence.
#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <vector>

namespace support {

struct WrongCall {
  std::function<void()> call;
  std::string sentence;
};

template <class Error>
void check_refused(const std::vector<WrongCall>& calls) {
  for (const WrongCall& wrong : calls) {
    std::string said = "nothing";
    try {
      wrong.call();
    } catch (const Error& e) {
      said = e.what();
    } catch (const std::exception& e) {
      said = std::string("another error: ") + e.what();
    }
    BOOST_TEST(said == wrong.sentence);
  }
}

}  // namespace support
