#pragma once
/// The manual page of the command.
#include <CLI/App.hpp>
#include <string>

namespace ferrite::tools {

/// Returns section 1 of the manual for `man -l`, in the macros of man(7), all as `app` declares it: its description,
/// commands with their options, and its footer.
std::string man_page(const CLI::App& app);

}  // namespace ferrite::tools
