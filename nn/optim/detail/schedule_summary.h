#pragma once
/// Schedules in words.
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferrite::nn::detail {

/// One number, or one for each group.
using ScheduleOption = std::vector<double>;

/// "cosine(length=30, low=0)".
std::string summary_of_schedule(std::string_view kind,
                                std::initializer_list<std::pair<std::string_view, ScheduleOption>> options);

}  // namespace ferrite::nn::detail
