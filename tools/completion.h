#pragma once
/// Scripts with which shells complete the command.
#include <CLI/App.hpp>
#include <string>

namespace ferrite::tools {

/// Returns a script for "bash", "zsh" or "fish" that completes commands, options, the words that they take and files
/// with the right endings, all as `app` declares them. Throws ValueError for another shell.
std::string completion(const CLI::App& app, const std::string& shell);

}  // namespace ferrite::tools
