#pragma once
/// The words and options of `ferrite`, and the values that the user gave them.
#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "bench.h"
#include "tool_export.h"
#include "tool_freeze.h"
#include "tool_training.h"

namespace ferrite::tools {

/// The words and option values of a parsed command line.
struct Arguments {
  std::string first, second;  ///< the words after the command: files, a net
  double tolerance = 0;
  bool widen = false;
  BenchOptions timing{};
  ExportChoice choice{};                  ///< options of the `export` command
  FreezeChoice frozen{};                  ///< options of the `freeze` command
  std::string rows = "kernel-and-layer";  ///< of the profile's table
  std::string input, output, shell;
  TrainingChoice training{};  ///< options of the `train` command
};

/// Returns the command line, which writes into `arguments` and must not outlive them. Help, completion and the manual
/// page are all made from it. The types of options also say how to complete them: FILE, FILE(.a|.b) for files with
/// these endings, FOLDER, {a,b} for one of these words.
std::unique_ptr<CLI::App> command_line(Arguments& arguments);

}  // namespace ferrite::tools
