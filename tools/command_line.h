#pragma once
/// The words and options of `ferrite`, and what they were set to.
#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "bench.h"
#include "tool_export.h"
#include "tool_training.h"

namespace ferrite::tools {

/// What a command line said.
struct Arguments {
  std::string first, second;  ///< the words behind the command: files, a net
  double tolerance = 0;
  bool widen = false;
  BenchOptions timing{};
  ExportChoice choice{};                  ///< of export
  std::string rows = "kernel-and-layer";  ///< of the profile
  std::string input, output, shell;
  TrainingChoice training{};  ///< of train
};

/// The command line, which writes into `arguments`; it must not outlive them. Help, completion and the manual page are
/// all made from it. Types of options tell what completes them: FILE, FILE(.a|.b) for files of these endings, FOLDER,
/// {a,b} for one of these words.
std::unique_ptr<CLI::App> command_line(Arguments& arguments);

}  // namespace ferrite::tools
