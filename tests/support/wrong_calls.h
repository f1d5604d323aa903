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

/// The message of what a call throws: "nothing" where it throws nothing, and that of another error with a word before
/// it.
template <class Error>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("another error: ") + e.what();
  }
  return "nothing";
}

template <class Error>
void check_refused(const std::vector<WrongCall>& calls) {
  for (const WrongCall& wrong : calls) BOOST_TEST(message_of<Error>(wrong.call) == wrong.sentence);
}

}  // namespace support
