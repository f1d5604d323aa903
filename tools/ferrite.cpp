// The command line: ferrite info, convert, diff, bench, train, run, export, freeze, summary, completion, man.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "completion.h"
#include "ferrite/io/suggest.h"
#include "ferrite/tensor/error.h"
#include "ferrite/tensor/system/system.h"
#include "man_page.h"
#include "onnx_model.h"
#include "tool_training.h"

namespace {

constexpr int kDifferent = 1;
constexpr int kFailed = 2;

/// Runs the command that the user named and returns the exit code.
int run_command(const CLI::App& app, ferrite::tools::Arguments& a) {
  using namespace ferrite::tools;
  const auto named = [&](const char* command) { return app.got_subcommand(command); };
  if (named("info") && a.first.empty()) about(std::cout);
  const bool onnx = is_onnx(a.first);
  if (named("info") && !a.first.empty()) onnx ? info_onnx(a.first, std::cout) : info(a.first, std::cout);
  if (named("convert") && onnx) convert_onnx(a.first, a.second, std::cout);
  if (named("convert") && !onnx)
    convert(a.first, a.second, std::cout, a.widen, ferrite::detail::is_terminal(true) ? &std::cerr : nullptr);
  a.timing.by = rows_by(a.rows);
  if (named("bench")) onnx ? bench_onnx(a.first, a.timing, std::cout) : bench(a.first, a.timing, std::cout);
  if (named("train")) train(a.first, a.training, std::cout, ferrite::detail::is_terminal(false));
  if (named("run") && onnx) run_onnx(a.first, a.input, a.output, std::cout);
  if (named("run") && !onnx) run(a.first, a.input, a.output, std::cout);
  if (named("export")) export_net(a.first, a.second, a.choice, std::cout);
  if (named("freeze")) freeze_net(a.first, a.frozen, std::cout);
  if (named("summary")) summary(a.first, std::cout);
  if (named("completion")) std::cout << completion(app, a.shell);
  if (named("man")) std::cout << man_page(app);
  if (named("diff")) return diff(a.first, a.second, a.tolerance, std::cout) ? 0 : kDifferent;
  return 0;
}

/// Returns the message for a first word that is not a command, with the command that was probably meant; empty if the
/// first word is not at fault.
std::string no_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return {};
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view near = ferrite::io::detail::nearest(argv[1], known);
  return "there is no command '" + std::string(argv[1]) + "'" +
         (near.empty() ? "; ferrite --help lists them" : "; did you mean '" + std::string(near) + "'?");
}

/// Returns the exit code of a command, after all that it printed has reached its file or pipe.
int ended(int code) {
  std::cout.flush();
  if (std::cout) return code;
  std::cerr << "ferrite: cannot write to the standard output\n";
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  ferrite::tools::Arguments arguments;
  const std::unique_ptr<CLI::App> app = ferrite::tools::command_line(arguments);
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (const std::string fault = no_command(*app, argc, argv); !fault.empty()) {
      std::cerr << "ferrite: " << fault << '\n';
      return kFailed;
    }
    return ended(app->exit(e) == 0 ? 0 : kFailed);
  }
  try {
    return ended(run_command(*app, arguments));
  } catch (const std::exception& e) {
    std::cerr << "ferrite: " << e.what() << '\n';
    return kFailed;
  }
}
