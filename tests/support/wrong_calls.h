#pragma once
/// Tables of wrong calls, each of which throws its type of error with its full message.
#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <vector>

namespace support {

struct WrongCall {
  std::function<void()> call;
  std::string sentence;
};

/// Returns the message that a call throws, "nothing" if it throws nothing, or the message of another error with a
/// prefix.
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
