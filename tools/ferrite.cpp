// The command line: ferrite info, convert, diff, bench, train, run, summary.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "bench.h"
#include "commands.h"
#include "ferrite/tensor/error.h"
#include "training.h"

namespace {

constexpr int kDifferent = 1;
constexpr int kFailed = 2;

constexpr const char* kAbout =
    "Looks into files of weights: safetensors, PyTorch's .pt and .pth, NumPy's .npz and .npy, JSON.\n"
    "Nothing in a file is ever run. Times nets, and says which kernels and layers take the time.\n"
    "Trains nets on tables, arrays and time series, and runs them.\n";
constexpr const char* kExamples =
    "Examples:\n"
    "  ferrite info model.pt                      what is in it, and which layers that makes\n"
    "  ferrite info                               which instruction set the library uses here\n"
    "  ferrite convert model.pt model.safetensors a form that every language reads\n"
    "  ferrite diff before.pt after.safetensors   by how much they differ, tensor by tensor\n"
    "  ferrite bench \"sequence(12).gru(64).last_step().linear(9)\" --run compiled-train --batch 32 --profile\n"
    "                                             how long a training step takes, and which kernels it consists of\n"
    "  ferrite train sunspots.toml                trains as the file says; docs/command.md lists its keys\n"
    "  ferrite run sunspots/net.safetensors --input x.npy --output y.npy\n"
    "Exit codes: 0 done (diff: equal), 1 different, 2 an error, explained in one sentence.";

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(kAbout, "ferrite");
  app.footer(kExamples);
  app.require_subcommand(1);
  std::string a, b;
  double tolerance = 0;
  bool widen = false;
  CLI::App* info = app.add_subcommand("info", "Names, dtypes, shapes, sizes, recognised layers, metadata");
  info->add_option("FILE", a, "A file of weights; without one, the instruction sets of the library");
  CLI::App* convert =
      app.add_subcommand("convert", "Writes the tensors in another format, chosen by the extension of OUT");
  convert->add_option("IN", a, "A file of weights")->required();
  convert->add_flag("--widen", widen, "Write F16 and BF16 as F32, and I8 as I32");
  convert->add_option("OUT", b, "Its new name: .safetensors, .pt, .pth or .npz")->required();
  CLI::App* diff = app.add_subcommand("diff", "Largest difference of each tensor; exit code 1 if there is any");
  diff->add_option("A", a, "A file of weights")->required();
  diff->add_option("B", b, "Another one")->required();
  diff->add_option("--tolerance", tolerance, "Allowed difference, relative to max(1, largest |b|)")
      ->check(CLI::NonNegativeNumber);
  ferrite::tools::BenchOptions timing;
  CLI::App* bench = app.add_subcommand("bench", "Times a net on random numbers");
  bench
      ->add_option("NET", a,
                   "In words: sequence(n), features(n) or tokens(n), then linear(n), gru(n), lstm(n), rnn(n), "
                   "embedding(n), layer_norm(), last_step(), relu() and the like, with dots between; or a file of "
                   "RTNeural's JSON")
      ->required();
  bench->add_option("--run", timing.run, "How: eager, compiled, stream, train or compiled-train")
      ->capture_default_str();
  bench->add_option("--batch", timing.batch, "Sequences at a time")->capture_default_str();
  bench->add_option("--steps", timing.steps, "Steps of a sequence")->capture_default_str();
  bench->add_option("--calls", timing.calls, "How many; 0: for a third of a second")->capture_default_str();
  bench->add_option("--threads", timing.threads, "Threads of the pool")->capture_default_str();
  bench->add_flag("--profile", timing.profile, "Time and calls of each kernel, by layer");
  std::string by = "kernel-and-layer";
  bench->add_option("--by", by, "Rows of the profile: kernel-and-layer, kernel or layer")->capture_default_str();
  bench->add_option("--trace", timing.trace, "Writes a trace of the same calls for Perfetto and chrome://tracing");
  std::string input, output;
  CLI::App* train = app.add_subcommand("train", "Trains a net as a TOML file says, or goes on where that was stopped");
  train->add_option("CONFIG", a, "A TOML file: net, data, loss, optimizer, callbacks")->required();
  CLI::App* run = app.add_subcommand("run", "Runs a trained net on an array");
  run->add_option("NET", a, "A file that `ferrite train` wrote")->required();
  run->add_option("--input", input, "Numbers: .npy, .csv, or a tensor x of .npz or .safetensors")->required();
  run->add_option("--output", output, "An .npy file; printed without");
  CLI::App* summary = app.add_subcommand("summary", "The layers of a net, their output shapes, parameters and work");
  summary->add_option("NET", a, "In words, as for bench, or a file that `ferrite train` wrote")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kFailed;
  }
  try {
    if (info->parsed() && a.empty()) ferrite::tools::about(std::cout);
    if (info->parsed() && !a.empty()) ferrite::tools::info(a, std::cout);
    if (convert->parsed())
      ferrite::tools::convert(a, b, std::cout, widen, isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    timing.by = ferrite::tools::rows_by(by);
    if (bench->parsed()) ferrite::tools::bench(a, timing, std::cout);
    if (train->parsed()) ferrite::tools::train(a, std::cout, isatty(STDOUT_FILENO) != 0);
    if (run->parsed()) ferrite::tools::run(a, input, output, std::cout);
    if (summary->parsed()) ferrite::tools::summary(a, std::cout);
    if (diff->parsed()) return ferrite::tools::diff(a, b, tolerance, std::cout) ? 0 : kDifferent;
  } catch (const std::exception& e) {
    std::cerr << "ferrite: " << e.what() << '\n';
    return kFailed;
  }
  return 0;
}
