#pragma once
/// The header of a frozen net.
#include <string>
#include <string_view>

#include "ferrite/exchange/freeze.h"
#include "ferrite/exchange/freeze/c_ends.h"
#include "ferrite/exchange/freeze/c_file.h"
#include "ferrite/exchange/freeze/c_states.h"

namespace ferrite::exchange::detail {

/// Returns the first lines of a file, whose name ends with `file`.
std::string head(const FreezeOptions& options, const FileFacts& facts, std::string_view file);

/// Returns the header. `work` is the working memory that the struct holds, if it does not fit on the stack;
/// `wide_masks` says whether truth values take 64 bits; `predict` has the ends of the program that predicts, or is
/// null.
std::string header(const FreezeOptions& options, const FileFacts& facts, Interface interface, const Ends& ends,
                   const CStates& states, const CWork& work, bool wide_masks, const Ends* predict = nullptr);

}  // namespace ferrite::exchange::detail
