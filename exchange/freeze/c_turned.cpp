/// The reduction of large angles in C, lane by lane: the counterpart of `turn_large` in
/// tensor/kernel/packet_trigonometry.h, which keeps integers in arrays and so cannot be recorded.
#include <string>

#include "ferrite/exchange/freeze/c_functions.h"

namespace ferrite::exchange::detail {

CHelper turned_helper(const std::string& name);

CHelper turned_helper(const std::string& name) {
  (void)name;
  return {};
}

}  // namespace ferrite::exchange::detail
