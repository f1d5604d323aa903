// Rules that all sources obey: layering, lengths, includes, names. Each is tried on a bad example first, to show that
// it can fail.
#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "house/sources.h"

using namespace house_rules;

namespace {

// ---- the rules -----------------------------------------------------------------------------------------

std::vector<std::string> includes_against_the_layers(const Source& s) {
  static const std::map<std::string, std::set<std::string>> allowed = {
      {"tensor", {}},
      {"autograd", {"tensor"}},
      {"compile", {"tensor", "autograd"}},
      {"nn", {"tensor", "autograd", "compile"}},
      {"dsl", {"tensor", "autograd", "compile", "nn"}},
      {"io", {"tensor", "autograd", "compile", "nn"}},
      {"exchange", {"tensor", "autograd", "compile", "nn", "io"}},
      {"train", {"tensor", "autograd", "compile", "nn", "dsl", "io"}},
      {"distributed", {"tensor", "autograd", "compile", "nn", "dsl", "io", "train"}}};
  const std::string folder = folder_of(s.path);
  if (!allowed.contains(folder)) return {};
  std::vector<std::string> faults;
  for (const std::string& header : included_by(s)) {
    const std::string other = is_umbrella(header) ? "ferrite" : folder_of(header);
    if (other != folder && !allowed.at(folder).contains(other)) faults.push_back(folder + " includes " + other);
  }
  return faults;
}

/// The subfolders of a folder, lowest first; "" is the folder itself.
const std::map<std::string, std::vector<std::string>> kSubfolders = {
    {"tensor", {"system", "", "kernel", "ops"}},
    {"compile", {"graph", "passes", "fuse", "plan", "scan", "stream", ""}},
    {"nn", {"", "optim", "losses", "layers", "recurrent", "stream", "operations"}},
    {"io",
     {"", "file", "zip", "safetensors", "torch", "numpy", "json", "gguf", "nam", "csv", "wav", "time_series", "png",
      "any", "module"}},
};
/// The subfolder to which a public header at the top of a folder, and the source next to it, belong, if there is one.
const std::map<std::string, std::string> kSubfolderOfHeader = {
    {"compile/graph.h", "graph"},
    {"compile/tracer.h", "graph"},
    {"compile/passes.h", "passes"},
    {"compile/plan.h", "plan"},
    {"compile/scan.h", "scan"},
    {"compile/scan_body.h", "scan"},
    {"compile/open_scan.h", "scan"},
    {"compile/stream_program.h", "stream"},
    {"compile/lowered.h", "plan"},
    {"compile/rewrite.h", "graph"},
    {"compile/graph_view.h", "graph"},
    {"compile/scan_stages.h", "scan"},
    {"io/atomic_file.h", "file"},
    {"io/text_file.h", "file"},
    {"io/torch.h", "torch"},
    {"io/safetensors.h", "safetensors"},
    {"io/numpy.h", "numpy"},
    {"io/keras.h", "json"},
    {"io/json_weights.h", "json"},
    {"io/rtneural.h", "json"},
    {"io/any_file.h", "any"},
    {"io/module_file.h", "module"},
    {"nn/operations.h", "operations"},
    {"nn/loss.h", "losses"},
    {"io/torch_optimizer.h", "torch"},
    {"io/csv.h", "csv"},
    {"io/wav.h", "wav"},
    {"io/time_series.h", "time_series"},
    {"io/png.h", "png"},
};

std::string subfolder_of(const std::string& path) {
  const auto header = kSubfolderOfHeader.find(path.substr(0, path.rfind('.')) + ".h");
  if (header != kSubfolderOfHeader.end()) return header->second;
  const std::size_t first = path.find('/'), second = path.find('/', first + 1);
  if (second == std::string::npos) return "";
  const std::string inner = path.substr(first + 1, second - first - 1);
  return inner == "detail" ? "" : inner;
}

std::vector<std::string> includes_against_the_subfolders(const Source& s) {
  const auto folders = kSubfolders.find(folder_of(s.path));
  if (folders == kSubfolders.end()) return {};
  const auto floor = [&](const std::string& path) {
    return std::find(folders->second.begin(), folders->second.end(), subfolder_of(path)) - folders->second.begin();
  };
  std::vector<std::string> faults;
  if (floor(s.path) == static_cast<std::ptrdiff_t>(folders->second.size()))
    faults.push_back(folders->first + " has no subfolder " + subfolder_of(s.path));
  for (const std::string& header : included_by(s))
    if (folder_of(header) == folders->first && floor(header) > floor(s.path))
      faults.push_back("includes " + header + " of a subfolder above it");
  return faults;
}

/// Returns includes of headers that a source must not include. Headers in detail/ belong to the folder directly above,
/// those in subfolders (except of nn/) to the top-level folder. Headers of tensor/kernel/ are open to all folders,
/// those with packets to the kernels of all; those of tensor/system/ are open to all.
std::vector<std::string> internals_of_others(const Source& s) {
  if (!in_library(s)) return {};
  std::vector<std::string> faults;
  for (const std::string& header : included_by(s)) {
    const std::size_t detail = header.find("/detail/");
    const bool own = detail == std::string::npos || s.path.starts_with(header.substr(0, detail + 1));
    const bool kernel = header.starts_with("tensor/kernel/") && (is_kernel(s) || !has_packets(header));
    const bool system = header.starts_with("tensor/system/");
    const bool inside = folder_of(header) == folder_of(s.path) || is_umbrella(header) || is_public_header({header, ""});
    if (!own || (!inside && !kernel && !system)) faults.push_back("includes " + header + ", which is not open to it");
  }
  return faults;
}

std::vector<std::string> long_files(const Source& s) {
  if (!s.path.ends_with(".h") && !s.path.ends_with(".cpp")) return {};
  const auto lines = std::count(s.text.begin(), s.text.end(), '\n');
  constexpr int kMost = 800;
  if (lines <= kMost) return {};
  return {std::to_string(lines) + " lines, at most " + std::to_string(kMost)};
}

/// Returns classes that are too long: such a class holds several concepts. Its end is the first line that closes a
/// brace at its indentation.
std::vector<std::string> long_classes(const Source& s) {
  static const std::set<std::string> longer = {"io/torch/pickle.cpp"};  // a method for each opcode
  if (!in_library(s) || longer.contains(s.path)) return {};
  constexpr int kMost = 200;
  static const std::regex begin(R"(^( *)(class|struct) \w[^;]*\{$)");
  std::istringstream text(s.text);
  std::vector<std::string> faults;
  std::map<std::string, int> open;  // line of the open class, by indentation
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    std::smatch match;
    if (std::regex_match(line, match, begin)) {
      open[match[1]] = number;
    } else if (const std::size_t at = line.find_first_not_of(' '); at != std::string::npos && line[at] == '}') {
      const auto found = open.find(line.substr(0, at));
      if (found == open.end()) continue;
      if (number - found->second >= kMost)
        faults.push_back("a class of more than 200 lines ends at line " + std::to_string(number));
      open.erase(found);
    }
  }
  return faults;
}

/// Returns functions that are too long: such a function has steps that deserve names. It begins with the line of its
/// signature and ends with the first line that closes a brace at that indentation. Statements that hold others count as
/// functions, too, and are shorter.
std::vector<std::string> long_functions(const Source& s) {
  if (!in_library(s)) return {};
  constexpr int kMost = 80;
  static const std::regex other(R"((//|#|\}|class\b|struct\b|enum\b|union\b|namespace\b|template\b[^(]*$).*)");
  std::istringstream text(s.text);
  std::vector<std::string> faults;
  std::map<std::size_t, int> begun;  // line of the last statement, by indentation
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    const std::size_t at = line.find_first_not_of(' ');
    if (at == std::string::npos) continue;
    const std::string code = line.substr(at);
    if (code == "}" && begun.contains(at)) {
      if (number - begun.at(at) >= kMost)
        faults.push_back("a function of more than 80 lines ends at line " + std::to_string(number));
      begun.erase(at);
    } else if (std::regex_match(code, other)) {
      if (code[0] != '/' && code[0] != '#') begun.erase(at);
    } else {
      begun[at] = number;
    }
  }
  return faults;
}

std::vector<std::string> foreign_public_headers(const Source& s) {
  // Headers that connect the library to another one; programs that have that library compile them.
  static const std::set<std::string> adapters = {"tensor/eigen.h", "tensor/spdlog_sink.h"};
  if (!is_public_header(s) || adapters.contains(s.path)) return {};
  static const std::regex pattern(
      R"(#include\s*[<"]((Eigen|unsupported|spdlog|fmt|nlohmann|google|boost|CLI)/|zlib|mpi\.h)[^\n]*)");
  return matches(s.text, pattern, "a public header includes");
}

std::vector<std::string> internal_includes(const Source& s) {
  if (!is_public_header(s)) return {};
  std::vector<std::string> faults;
  for (const std::string& header : included_by(s))
    if (!is_public_header({header, ""})) faults.push_back("a public header includes what is not installed: " + header);
  return faults;
}

std::vector<std::string> printing_or_aborting(const Source& s) {
  if (!in_library(s)) return {};
  static const std::regex pattern(
      R"(\bstd::(cout|cerr|clog|abort|exit|terminate|quick_exit)\b|\b(f?printf|puts|abort|assert|exit)\s*\()");
  return matches(code_of(s.text), pattern, "the library prints or aborts");
}

/// Returns what asks for a system, or calls it: in the library outside of tensor/system/, where there is a file for
/// each, and in programs; and what asks which system it is on in tests outside of their one source for that.
std::vector<std::string> systems_asked_for(const Source& s) {
  static const std::regex which(R"(\b(_WIN32|_WIN64|__MINGW\w*|__CYGWIN__)\b)");
  static const std::regex calls(R"(#include <(windows|unistd|fcntl|pthread|signal|io|malloc|dlfcn|sys/\w+)\.h>)");
  const std::string folder = folder_of(s.path);
  const bool test = folder == "tests", program = folder == "examples" || folder == "tools";
  const bool rule = s.path.starts_with("tests/house/"), writes_c = s.path == "exchange/freeze/casadi.cpp";  // for any
  if (rule || writes_c || (!in_library(s) && !program && !test)) return {};
  if (s.path.starts_with("tensor/system/") || s.path == "tests/support/system.cpp") return {};
  std::vector<std::string> faults = matches(s.text, which, "it asks for a system, which is left to tensor/system/");
  if (!test)
    for (std::string& fault : matches(s.text, calls, "it calls a system, which is left to tensor/system/"))
      faults.push_back(std::move(fault));
  return faults;
}

/// Returns variables of threads that g++ on Windows would allocate at first use, and free before their destructor runs.
std::vector<std::string> variables_of_threads(const Source& s) {
  if (!in_library(s) || s.path == "tensor/system/per_thread.h") return {};
  static const std::regex pattern(R"(\bthread_local\b)");
  return matches(code_of(s.text), pattern, "use PerThread or object_of_thread (tensor/system/per_thread.h)");
}

/// Returns calls of C functions that write state shared by threads, or read what setlocale and setenv change: lgamma
/// writes signgam. The environment may be read for a literal name.
std::vector<std::string> calls_with_shared_state(const Source& s) {
  if (!in_library(s) || s.path == "tensor/system/windows.cpp") return {};  // there lgamma writes nothing
  static const std::regex pattern(
      R"((std::|[^\w:]::)(lgamma[fl]?|ctime|rand)\s*\(|\bgetenv\s*\((?!\)))"
      R"(|\b(strtok|localtime|gmtime|asctime|strerror|srand|setlocale|localeconv|setenv|putenv|tmpnam|drand48)\s*\()");
  return matches(code_of(s.text), pattern, "a C function with state that threads share");
}

std::vector<std::string> headers_without_guard(const Source& s) {
  if (!is_header(s) || s.text.find("#pragma once") != std::string::npos) return {};
  return {"no #pragma once"};
}

/// Returns sources whose first line does not say what they are for.
std::vector<std::string> sources_without_purpose(const Source& s) {
  if (!s.path.ends_with(".h") && !s.path.ends_with(".cpp")) return {};
  const std::string guard = "#pragma once\n";
  const std::size_t begin = s.text.starts_with(guard) ? guard.size() : 0;
  if (s.text.compare(begin, 2, "//") == 0) return {};
  return {"does not begin with a sentence that says what it is for"};
}

/// Returns headers that do not include tensor/language.h although no included header of ours does.
std::vector<std::string> headers_of_no_language(const Source& s) {
  if (!is_public_header(s) || s.path == "tensor/language.h" || !included_by(s).empty()) return {};
  return {"a public header does not reach tensor/language.h, which says that C++20 is needed"};
}

std::vector<std::string> blanks(const Source& s) {
  std::vector<std::string> faults;
  if (s.text.find('\t') != std::string::npos) faults.push_back("a tab");
  if (s.text.find(" \n") != std::string::npos) faults.push_back("a blank at the end of a line");
  if (!s.text.empty() && s.text.back() != '\n') faults.push_back("no newline at the end");
  return faults;
}

std::vector<std::string> machine_paths(const Source& s) {
  if (s.path == "tests/house/house_test.cpp") return {};
  static const std::regex pattern(R"((^|[\s"'=(])/(work|root|home|opt)/[^\s]*)");
  return matches(s.text, pattern, "a path of somebody's machine");
}

/// Returns operations that are compared by name: the library knows them by identity (tensor/operations.h); names are
/// for texts, files and errors.
std::vector<std::string> operations_by_name(const Source& s) {
  static const std::set<std::string> texts = {"compile/operations.cpp"};
  if (!in_library(s) || folder_of(s.path) == "exchange" || texts.contains(s.path)) return {};
  static const std::regex pattern(R"(find_primitive\(\"|\bop(->|\.)name(\(\))? [=!]= \")");
  return matches(s.text, pattern, "an operation by its name");
}

/// Returns the names that the structs of all operations give their constants.
const std::set<std::string>& attribute_names() {
  static const std::set<std::string> all = [] {
    static const std::regex pattern(R"re(\battr\("(\w+)",)re");
    std::set<std::string> names;
    for (const Source& s : sources())
      for (auto at = std::sregex_iterator(s.text.begin(), s.text.end(), pattern); at != std::sregex_iterator(); ++at)
        if (in_library(s)) names.insert((*at)[1]);
    return names;
  }();
  return all;
}

/// Returns constants of operations that are named outside of the struct that declares them (`attr`). Readers of texts
/// pass names on without knowing any, and exporters have their own tables. Variables and keys of files above the
/// operations may have the same names.
std::vector<std::string> attributes_by_name(const Source& s) {
  static const std::set<std::string> texts = {"compile/graph/graph_text.cpp", "tensor/attrs.cpp"};
  static const std::set<std::string> sees = {"tensor", "autograd", "compile"};
  if (!in_library(s) || texts.contains(s.path)) return {};
  static const std::regex calls(
      R"re(\battrs(\(\))?(\.|->)(?!as<)\w+(<[^>\n]*>)?\(\s*\{*"|\bAttrs::from\(|\bAttrs\b[^;\n(]*\{\{")re");
  std::vector<std::string> faults = matches(s.text, calls, "a constant of an operation by its name");
  static const std::regex compared(R"re([=!]= "(\w+)")re");
  for (auto at = std::sregex_iterator(s.text.begin(), s.text.end(), compared); at != std::sregex_iterator(); ++at)
    if (sees.contains(folder_of(s.path)) && attribute_names().contains((*at)[1]))
      faults.push_back("a constant of an operation by its name: " + at->str());
  return faults;
}

/// Returns unchecked arithmetic of extents and offsets, which come from users and files: tensor/extents.h adds and
/// multiplies them.
std::vector<std::string> unchecked_arithmetic(const Source& s) {
  if (!in_library(s) || s.path == "tensor/extents.h") return {};
  static const std::regex pattern(R"(__builtin_\w+_overflow)");
  return matches(s.text, pattern, "checked arithmetic outside tensor/extents.h");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(house)

BOOST_AUTO_TEST_CASE(sources_are_found) {
  BOOST_TEST(sources().size() > 100U);
  std::set<std::string> folders;
  for (const Source& s : sources()) folders.insert(folder_of(s.path));
  for (const char* folder : {"tensor", "autograd", "nn", "dsl", "io", "exchange", "train", "tests", "examples"})
    BOOST_TEST(folders.contains(folder), folder);
}

BOOST_AUTO_TEST_CASE(includes_follow_the_layers) {
  enforce(includes_against_the_layers,
          {"nn/x.cpp", "#include \"ferrite/tensor/tensor.h\"\n#include \"ferrite/io/x.h\"\n"});
}
BOOST_AUTO_TEST_CASE(includes_follow_the_subfolders) {
  enforce(includes_against_the_subfolders,
          {"compile/fuse/x.cpp", "#include \"ferrite/compile/graph.h\"\n#include \"ferrite/compile/plan/body.h\"\n"});
  enforce(includes_against_the_subfolders, {"io/zip/x.cpp", "#include \"ferrite/io/any_file.h\"\n"});
  enforce(includes_against_the_subfolders, {"nn/other/x.cpp", ""});
}
BOOST_AUTO_TEST_CASE(internals_are_left_alone) {
  enforce(internals_of_others, {"compile/plan/x.cpp", "#include \"ferrite/compile/fuse/detail/groups.h\"\n"});
  enforce(internals_of_others, {"nn/x.cpp", "#include \"ferrite/compile/graph/rewrite.h\"\n"});
  enforce(internals_of_others, {"nn/x.cpp", "#include \"ferrite/tensor/kernel/tile.h\"\n"});
  BOOST_TEST(internals_of_others({"nn/x_kernel.cpp", "#include \"ferrite/tensor/kernel/tile.h\"\n"}).empty());
  BOOST_TEST(internals_of_others({"nn/x.cpp", "#include \"ferrite/tensor/kernel/gemm.h\"\n"}).empty());
}
/// The header has "everything a program needs": all that is public, except what names Eigen and what only compilers and
/// tests need.
BOOST_AUTO_TEST_CASE(one_header_reaches_all) {
  const std::set<std::string> apart = {"tensor/eigen.h",
                                       "tensor/spdlog_sink.h",
                                       "tensor/oracle.h",
                                       "compile/passes.h",
                                       "compile/scan_body.h",
                                       "compile/open_scan.h",
                                       "compile/lowered.h",
                                       "compile/rewrite.h",
                                       "compile/graph_view.h",
                                       "compile/scan_stages.h",
                                       "nn/recurrent/sequence_scans.h",
                                       "tensor/along_axis.h",
                                       "tensor/attention_parts.h",
                                       "compile/stream_program.h",
                                       "tensor/strided.h",
                                       "tensor/accumulate.h",
                                       "tensor/departed.h",
                                       "tensor/reserve.h",
                                       "tensor/storage_limit.h",
                                       "tensor/pointwise.h",
                                       "tensor/operations.h",
                                       "nn/step_graph.h",
                                       "nn/recurrent/sequence_parts.h",
                                       "io/png.h",
                                       "train/png_folder.h",
                                       "autograd/lenient_grad.h"};
  const auto writes_operations = [](const std::string& path) {
    return path.starts_with("tensor/define") || path == "tensor/attributes.h";
  };
  const auto is_optional = [](const std::string& path) {
    return path.starts_with("distributed/") || path.starts_with("exchange/onnx");
  };
  const std::set<std::string> reached = reached_from("ferrite.h");
  BOOST_TEST(reached.size() > 40U);
  for (const Source& s : sources())
    if (is_public_header(s) && !is_umbrella(s.path) && !writes_operations(s.path) && !is_optional(s.path))
      BOOST_TEST(reached.contains(s.path) != apart.contains(s.path), s.path);
}
/// The smaller header is a part of the whole one, without the headers that only training, export and compilers need.
BOOST_AUTO_TEST_CASE(one_small_header_reaches_what_runs_nets) {
  const std::set<std::string> whole = reached_from("ferrite.h"), small = reached_from("inference.h");
  for (const char* header : {"dsl/builder.h", "io/any_file.h", "nn/recurrent/gru.h", "nn/stream/stream.h"})
    BOOST_TEST(small.contains(header), header);
  for (const std::string& header : small) {
    BOOST_TEST((whole.contains(header) || is_umbrella(header)), header);
    for (const char* folder : {"autograd/", "train/", "exchange/", "nn/optim/", "nn/losses/"})
      BOOST_TEST(!header.starts_with(folder), header);
  }
}
BOOST_AUTO_TEST_CASE(files_are_short) {
  BOOST_TEST(long_files({"nn/x_kernel.cpp", std::string(800, '\n')}).empty());
  enforce(long_files, {"nn/x.cpp", std::string(801, '\n')});
}
BOOST_AUTO_TEST_CASE(classes_are_short) {
  const auto of = [](std::size_t n) { return "class A {\n" + std::string(n - 2, '\n') + "};\n"; };
  BOOST_TEST(long_classes({"nn/x.cpp", of(200)}).empty());
  enforce(long_classes, {"nn/x.cpp", of(201)});
}
BOOST_AUTO_TEST_CASE(functions_are_short) {
  const auto of = [](std::size_t n) { return "int f(int a,\n      int b) {\n" + std::string(n - 3, '\n') + "}\n"; };
  BOOST_TEST(long_functions({"nn/x.cpp", of(80)}).empty());
  enforce(long_functions, {"nn/x.cpp", of(81)});
}
BOOST_AUTO_TEST_CASE(public_headers_name_no_third_party) {
  enforce(foreign_public_headers,
          {"tensor/x.h", "#include <Eigen/Core>\n#include <fmt/core.h>\n#include <zlib.h>\n#include <mpi.h>\n"}, 4);
}
BOOST_AUTO_TEST_CASE(public_headers_need_no_internal_ones) {
  enforce(internal_includes, {"nn/x.h", "#include \"ferrite/tensor/ops/define.h\"\n"});
}
BOOST_AUTO_TEST_CASE(the_library_neither_prints_nor_aborts) {
  enforce(printing_or_aborting, {"nn/x.cpp", "void f() { std::cout << 1; abort(); }  // printf(\n"}, 2);
}
BOOST_AUTO_TEST_CASE(threads_share_nothing_of_the_c_library) {
  enforce(calls_with_shared_state,
          {"tensor/x.cpp", "return std::lgamma(x) + ::rand() + *strerror(1) + *getenv(name);\n"}, 4);
}
BOOST_AUTO_TEST_CASE(systems_are_asked_for_in_one_folder) {
  enforce(systems_asked_for, {"io/x.cpp", "#include <unistd.h>\n#ifdef _WIN32\n#include <sys/stat.h>\n"}, 3);
  enforce(systems_asked_for, {"examples/x.cpp", "#include <unistd.h>\n#if defined(_WIN32)\n"}, 2);
  enforce(systems_asked_for, {"tests/io/x.cpp", "#include <unistd.h>\n#if defined(_WIN32)\n"}, 1);
}
BOOST_AUTO_TEST_CASE(variables_of_threads_come_from_one_header) {
  enforce(variables_of_threads, {"tensor/x.cpp", "thread_local constinit bool a = false;\nthread_local Spare b;\n"}, 2);
}
BOOST_AUTO_TEST_CASE(headers_are_guarded) { enforce(headers_without_guard, {"nn/x.h", "int x;\n"}); }
BOOST_AUTO_TEST_CASE(operations_are_known_by_identity) {
  enforce(operations_by_name, {"compile/x.cpp", "if (n.op->name == \"matmul\") f(find_primitive(\"add\"));\n"}, 2);
}
BOOST_AUTO_TEST_CASE(attributes_are_named_by_their_structs) {
  BOOST_TEST(attribute_names().size() > 30U);
  enforce(attributes_by_name,
          {"compile/x.cpp",
           "const auto axis = n.attrs.get<std::int64_t>(\"axis\");\n"
           "n.attrs.each([&](auto name, auto& v) { if (name == \"axis\") f(v); });\n"
           "const Attrs a{{\"axis\", 1}}, b = Attrs::from(fields, {}, op.name);\n"},
          4);
  BOOST_TEST(attributes_by_name({"compile/x.cpp", "n.attrs.as<ScanAttrs>(\"scan\").steps"}).empty());
}
BOOST_AUTO_TEST_CASE(one_checked_arithmetic) {
  enforce(unchecked_arithmetic, {"io/x.cpp", "if (__builtin_mul_overflow(a, b, &c)) f();\n"});
}
BOOST_AUTO_TEST_CASE(headers_say_which_language_they_need) {
  enforce(headers_of_no_language, {"nn/x.h", "#include <span>\n"});
}
BOOST_AUTO_TEST_CASE(sources_say_what_they_are_for) {
  enforce(sources_without_purpose, {"nn/x.h", "#pragma once\n#include <span>\n"});
}
BOOST_AUTO_TEST_CASE(no_stray_blanks) { enforce(blanks, {"nn/x.cpp", "\tint x; \n//"}, 3); }
BOOST_AUTO_TEST_CASE(no_paths_of_machines) {
  enforce(machine_paths, {"docs/x.md", "see /home/me/x and \"/opt/y\"\n"}, 2);
}

BOOST_AUTO_TEST_SUITE_END()
