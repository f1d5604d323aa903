#pragma once
/// Frozen nets, compiled by a C compiler, loaded and called.
#include <dlfcn.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/exchange/freeze.h"
#include "ferrite/tensor/instruction_set.h"
#include "io/temporary_folder.h"

namespace frozen {

using namespace ferrite;

/// Returns whether the library rounds multiply-adds once, as the C does.
inline bool rounds_once() { return instruction_set() != "sse2" && instruction_set() != "generic"; }

/// Returns the C compilers with which nets are tested: those in FERRITE_C_COMPILERS, separated by semicolons, else the
/// system's.
inline std::vector<std::string> compilers() {
  std::vector<std::string> all;
  const char* const chosen = std::getenv("FERRITE_C_COMPILERS");
  std::string_view rest = chosen ? chosen : "cc -std=c99 -O1 -march=native";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    all.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return all;
}
inline constexpr const char* kWarnings = " -Wall -Wextra -Wconversion -pedantic -Werror ";

/// One net of a library, with the functions of its header; those that it lacks are null.
template <class In, class Out>
struct Functions {
  using Run = int (*)(void*, const In*, Out*);
  void (*init)(void*);
  Run step, run;
  int (*steps)(void*, std::int32_t, const In*, Out*);
  int (*finish)(void*, Out*);
  void (*save)(const void*, void*);
  int (*restore)(void*, const void*);
  int (*check)(void*);
  std::size_t bytes;    ///< size of the struct
  std::size_t outputs;  ///< numbers that a step writes
  std::size_t saved;    ///< bytes that `save` writes
};

/// Several frozen nets in one shared library. Their names must differ.
class Library {
 public:
  void add(const std::string& name, const exchange::FrozenNet& net) {
    write(name + ".h", net.header), write(name + ".c", net.source);
    std::string upper = name;
    for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    const bool streams = net.header.find(upper + "_SAVED_BYTES") != std::string::npos;
    const bool one = net.header.find("define " + upper + "_OUTPUTS ") != std::string::npos;
    sizes_ += "#include \"" + name + ".h\"\n#ifdef __cplusplus\nextern \"C\"\n#else\nextern\n#endif\nconst size_t " +
              name + "_sizes[3];\nconst size_t " + name + "_sizes[3] = {sizeof(" + name + "), " +
              (one ? upper + "_OUTPUTS" : "0") + ", " + (streams ? upper + "_SAVED_BYTES" : "0") + "};\n";
  }
  /// Compiles and loads the library, with FERRITE_C_FLAGS besides the compiler's own. Returns the compiler's messages,
  /// empty on success.
  std::string build(const std::string& compiler) {
    write("sizes.c", "#include <stddef.h>\n" + sizes_);
    const std::string log = (folder_ / "log").string(), library = (folder_ / "nets.so").string();
    const char* const more = std::getenv("FERRITE_C_FLAGS");
    const std::string flags = more ? " " + std::string(more) + " " : " ";
    const std::string command = "unset LD_PRELOAD && cd " + (folder_ / "").string() +
                                " && ls *.c | xargs -P $(nproc) -n 1 " + compiler + flags + kWarnings + "-fPIC -c && " +
                                compiler + flags + "-shared -x none *.o -lm -o " + library;
    if (std::system(("(" + command + ") > " + log + " 2>&1").c_str()) != 0) {
      std::ifstream file(log);
      return "failed: " + std::string(std::istreambuf_iterator<char>(file), {}).substr(0, 2000);
    }
    handle_ = dlopen(library.c_str(), RTLD_NOW);
    return handle_ ? "" : dlerror();
  }
  Library() = default;
  ~Library() {
    if (handle_) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <class In, class Out>
  Functions<In, Out> functions(const std::string& name) const {
    Functions<In, Out> f{};
    find(name + "_init", f.init), find(name + "_step", f.step), find(name + "_run", f.run);
    find(name + "_steps", f.steps), find(name + "_finish", f.finish), find(name + "_save", f.save);
    find(name + "_restore", f.restore), find(name + "_check", f.check);
    const auto* const sizes = static_cast<const std::size_t*>(dlsym(handle_, (name + "_sizes").c_str()));
    BOOST_TEST_REQUIRE(sizes != nullptr, name);
    f.bytes = sizes[0], f.outputs = sizes[1], f.saved = sizes[2];
    return f;
  }
  template <class F>
  F* function(const std::string& name) const {
    F* f = nullptr;
    find(name, f);
    return f;
  }

 private:
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  template <class F>
  void find(const std::string& name, F*& f) const {
    f = reinterpret_cast<F*>(dlsym(handle_, name.c_str()));
  }

  io_test::TemporaryFolder folder_;
  std::string sizes_;
  void* handle_ = nullptr;
};

}  // namespace frozen
