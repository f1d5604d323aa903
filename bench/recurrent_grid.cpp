// Times recurrent layers over a grid of sizes, prints a table and writes JSON; or answers bench/compare/run.py.
#include <cstdio>
#include <fstream>
#include <sstream>

#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/instruction_set.h"
#include "jobs.h"
#include "limit/limit.h"
#include "machine.h"
#include "own_cells.h"
#include "timing.h"

namespace bench {
namespace {

struct Options {
  bool full = false;
  bool serve = false;
  double seconds = 0.15;
  std::string json;
  std::vector<std::string> kinds;
};

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> out;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) out.push_back(word);
  return out;
}

Options parse(const std::vector<std::string>& kinds, int argc, const char* const* argv) {
  Options o;
  o.kinds = kinds;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (word == "--full") o.full = true;
    if (word == "--serve") o.serve = true;
    if (word == "--json") o.json = value();
    if (word == "--kinds") o.kinds = words(value());
    if (word == "--seconds") o.seconds = std::stod(value());
  }
  return o;
}

std::vector<Cell> grid(const std::string& job, const Options& o) {
  using List = std::vector<std::int64_t>;
  List widths = o.full ? List{4, 8, 16, 24, 32, 64, 128, 256, 512} : List{4, 16, 32, 64, 128, 256};
  List lengths = o.full ? List{1, 10, 50, 100} : List{1, 10, 100};
  if (job == "stream") lengths = {1};
  if (is_own(o.kinds.front())) widths = {16, 64, 128, 256}, lengths = {10, 100};
  const List batches = o.full ? List{1, 32, 128} : List{1, 32};
  std::vector<Cell> cells;
  for (const std::string& kind : o.kinds)
    for (const std::int64_t B : batches)
      for (const std::int64_t H : widths)
        for (const std::int64_t T : lengths) cells.push_back({kind, H, T, B});
  return cells;
}

/// The microseconds of one cell; limit is 0 if there is none.
struct Row {
  std::string job;
  Cell cell;
  double ours = 0, limit = 0, bound = 0;
  double over() const { return ours / (limit > 0 ? limit : bound); }
};

Row measure(const std::string& name, const Cell& cell, Bounds& bounds, double seconds) {
  check_limit(name, cell);
  std::vector<std::function<void()>> functions = {job(name, cell)};
  if (auto yardstick = job(name == "stream" ? "limit_forward" : "limit_" + name, cell)) functions.push_back(yardstick);
  const std::vector<double> t = interleaved_for(functions, seconds);
  return {name, cell, 1e6 * t[0], t.size() > 1 ? 1e6 * t[1] : 0, 1e6 * bounds.seconds(name, cell)};
}

void print(const Row& r) {
  std::printf("%-8s %-5s %4ld %4ld %4ld %11.2f ", r.job.c_str(), r.cell.kind.c_str(), static_cast<long>(r.cell.H),
              static_cast<long>(r.cell.T), static_cast<long>(r.cell.B), r.ours);
  if (r.limit > 0) {
    std::printf("%11.2f", r.limit);
  } else {
    std::printf("%11s", "-");
  }
  std::printf(" %11.2f %8.2f%s\n", r.bound, r.over(), r.limit > 0 ? "" : "  (of the bound)");
  std::fflush(stdout);
}

void write_json(const std::string& path, const std::vector<Row>& rows, double peak) {
  std::ofstream out(path);
  out << "{\"processor\": \"" << processor() << "\", \"peak_gflops\": " << peak * 1e-9
      << ", \"floats_in_a_packet\": " << kFloats << ", \"instruction_set\": \"" << ferrite::instruction_set()
      << "\""
         ", \"unit\": \"us\", \"cells\": [\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    out << " {\"job\": \"" << r.job << "\", \"kind\": \"" << r.cell.kind << "\", \"H\": " << r.cell.H
        << ", \"T\": " << r.cell.T << ", \"B\": " << r.cell.B << ", \"ours\": " << r.ours << ", \"limit\": ";
    if (r.limit > 0) {
      out << r.limit;
    } else {
      out << "null";
    }
    out << ", \"bound\": " << r.bound << "}" << (i + 1 < rows.size() ? ",\n" : "\n");
  }
  out << "]}\n";
}

}  // namespace

int run_grid(const std::vector<std::string>& jobs, const std::vector<std::string>& kinds, int argc,
             const char* const* argv) {
  const Options options = parse(kinds, argc, argv);
  if (options.serve) {
    serve();
    return 0;
  }
  const ferrite::FlushDenormals guard;
  Bounds bounds;
  std::printf("%s, peak %.1f GFLOP/s in packets of %d floats; kernels for %s; D = H; microseconds, medians, in turn\n",
              processor().c_str(), bounds.peak() * 1e-9, kFloats, std::string(ferrite::instruction_set()).c_str());
  if (!limit::available()) std::printf("the hand-written GRU needs AVX-512: its column is left out\n");
  std::printf("%-8s %-5s %4s %4s %4s %11s %11s %11s %8s\n", "job", "layer", "H", "T", "B", "ours", "limit", "bound",
              "ratio");
  std::vector<Row> rows;
  for (const std::string& name : jobs)
    for (const Cell& cell : grid(name, options)) {
      rows.push_back(measure(name, cell, bounds, options.seconds));
      print(rows.back());
    }
  if (!options.json.empty()) write_json(options.json, rows, bounds.peak());
  return 0;
}

}  // namespace bench
