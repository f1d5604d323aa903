/// Pointwise operations printed as C functions: compiled by the system's C compiler, in plain C99 and with vectors,
/// they have the bits of the library's operations. FERRITE_C_COMPILERS adds compilers with their options, separated by
/// semicolons; FERRITE_FROZEN_VALUES changes how many values of each operation are compared.
#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <set>

#include "conformance/oracles/oracle.h"
#include "ferrite/exchange/freeze/c_functions.h"
#include "ferrite/tensor/instruction_set.h"
#include "io/temporary_folder.h"

namespace {

using namespace ferrite;
using exchange::detail::CFunctions;

/// The operations that have no form in C: of integers only, and loops over numbers of steps that depend on the operand.
const std::set<std::string_view> kOfIntegers = {"bitwise_and", "bitwise_or",         "bitwise_xor",
                                                "bitwise_not", "bitwise_left_shift", "bitwise_right_shift"};
const std::set<std::string_view> kRefused = {"digamma", "trigamma"};
const std::set<std::string_view> kRefusedInDoubles = {"erfinv"};

bool refused(const Primitive& op, Dtype dtype) {
  return kOfIntegers.contains(op.name) || kRefused.contains(op.name) ||
         (dtype == Dtype::f64 && kRefusedInDoubles.contains(op.name));
}

/// An operation with its operands and the library's result, as bits: numbers, or -1 and 0 for bool.
template <class Bits>
struct Case {
  const Primitive* op;
  std::string function;
  std::vector<std::vector<Bits>> operands;
  std::vector<Bits> expected;
  bool to_numbers = true;
};

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// Returns whether an operand of an operation is a bool.
bool is_condition(const Primitive& op, std::size_t operand) {
  return op.name.starts_with("logical_") || (op.name == "where" && operand == 0);
}

/// Draws operands: special numbers, any bits, and numbers of the operation's domain, near 0 and of all sizes.
template <class T>
class Draws {
 public:
  Draws(const Primitive& op, std::uint64_t seed) : random_(seed) {
    const auto [low, high] = oracles::of(op).domain;
    low_ = low, high_ = high;
  }
  T number() {
    using Limits = std::numeric_limits<T>;
    static constexpr T kSpecial[] = {0,
                                     T(-0.0),
                                     1,
                                     -1,
                                     T(0.5),
                                     T(-0.5),
                                     2,
                                     -2,
                                     3,
                                     -3,
                                     4,
                                     9,
                                     10,
                                     T(1e5),
                                     T(-1e5),
                                     T(1e9),
                                     T(0x1p27),
                                     T(0x1p30),
                                     Limits::infinity(),
                                     -Limits::infinity(),
                                     Limits::quiet_NaN(),
                                     Limits::min(),
                                     -Limits::min(),
                                     Limits::denorm_min(),
                                     -Limits::denorm_min(),
                                     Limits::max(),
                                     Limits::lowest(),
                                     Limits::epsilon(),
                                     T(88.3),
                                     T(-88.4),
                                     T(-104),
                                     T(709.5),
                                     T(-745),
                                     T(3e-39),
                                     T(-3e-39),
                                     T(12.5),
                                     T(-80),
                                     T(-700),
                                     T(-37),
                                     T(-39)};
    switch (random_() % 8) {
      case 0: return kSpecial[random_() % std::size(kSpecial)];
      case 1: return std::bit_cast<T>(static_cast<BitsOf<T>>(random_()));
      case 2: return static_cast<T>(std::floor(within(-20, 20)));
      case 3: return static_cast<T>(within(-1, 1));
      case 4: return static_cast<T>(within(-1, 1) * std::exp2(within(-40, 40)));
      case 5: return static_cast<T>(within(-110, 110));
      default: return static_cast<T>(within(low_, high_));
    }
  }
  bool truth() { return random_() % 2 != 0; }

 private:
  double within(double low, double high) { return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53; }
  std::mt19937_64 random_;
  double low_, high_;
};

template <class T>
std::vector<BitsOf<T>> bits_of(const Tensor& x) {
  std::vector<BitsOf<T>> bits;
  if (x.dtype() == Dtype::boolean) {
    for (const bool v : x.to_vector<bool>()) bits.push_back(v ? ~BitsOf<T>{0} : BitsOf<T>{0});
  } else {
    for (const T v : x.to_vector<T>()) bits.push_back(std::bit_cast<BitsOf<T>>(v));
  }
  return bits;
}

template <class T>
Case<BitsOf<T>> case_of(const Primitive& op, const std::string& function, std::int64_t n) {
  Draws<T> draws(op, static_cast<std::uint64_t>(op.name.size() + 31 * static_cast<std::size_t>(op.arity)));
  Tensors in;
  for (std::size_t j = 0; j < static_cast<std::size_t>(op.arity); ++j)
    in.push_back(is_condition(op, j) ? Tensor::build<bool>({n},
                                                           [&](std::span<bool> out) {
                                                             for (bool& v : out) v = draws.truth();
                                                           })
                                     : Tensor::build<T>({n}, [&](std::span<T> out) {
                                         for (T& v : out) v = draws.number();
                                       }));
  Case<BitsOf<T>> c{&op, function, {}, {}, true};
  for (const Tensor& x : in) c.operands.push_back(bits_of<T>(x));
  const Tensor y = op.apply(OperandList(in))[0];
  c.expected = bits_of<T>(y);
  c.to_numbers = y.dtype() != Dtype::boolean;
  return c;
}

/// Returns the C program: it reads operands of all cases and writes their results.
template <class Bits>
std::string program(const CFunctions& functions, const std::vector<Case<Bits>>& cases, Dtype dtype) {
  const bool narrow = dtype == Dtype::f32;
  const std::string number = narrow ? "f" : "d", integer = narrow ? "i" : "l", lanes = narrow ? "F" : "D";
  const std::string T = narrow ? "float" : "double", I = narrow ? "int32_t" : "int64_t";
  std::string text = "#include <stdio.h>\n#include <stdlib.h>\n";
  if (functions.calls_library()) text += "#include <math.h>\n";
  text += exchange::detail::c_vectors(narrow, !narrow || functions.uses_doubles()) + functions.text();
  text += "static " + I + "* block(int n) { return (" + I + "*)malloc((size_t)n * sizeof(" + I + ")); }\n";
  text += "#define READ(p) if (fread(p, sizeof *p, (size_t)n, stdin) != (size_t)n) return 1\n";
  text += "int main(void) {\n  int n, m, i;\n";
  for (const auto& c : cases) {
    const std::string result = c.to_numbers ? number : integer;
    text += "  {\n  if (fread(&n, sizeof n, 1, stdin) != 1) return 1;\n  " + I + "* y = block(n);\n";
    std::string arguments;
    for (std::size_t j = 0; j < c.operands.size(); ++j) {
      const std::string name = "x" + std::to_string(j), kind = is_condition(*c.op, j) ? integer : number;
      text += "  " + I + "* " + name + " = block(n);\n  READ(" + name + ");\n";
      arguments += (j > 0 ? ", " : "") + ("nf_get_" + kind) + "((const " + (kind == number ? T : I) +
                   "*)(const void*)" + name + " + i, m)";
    }
    text += "  for (i = 0; i < n; i += NF_LANES_" + lanes + ") {\n    m = n - i < NF_LANES_" + lanes +
            " ? n - i : NF_LANES_" + lanes + ";\n    nf_put_" + result + "((" + (c.to_numbers ? T : I) +
            "*)(void*)y + i, " + c.function + "(" + arguments + "), m);\n  }\n";
    text += "  fwrite(y, sizeof *y, (size_t)n, stdout);\n  free(y);\n";
    for (std::size_t j = 0; j < c.operands.size(); ++j) text += "  free(x" + std::to_string(j) + ");\n";
    text += "  }\n";
  }
  return text + "  return 0;\n}\n" + exchange::detail::c_end();
}

template <class Bits>
void write_operands(const std::filesystem::path& path, const std::vector<Case<Bits>>& cases) {
  std::ofstream file(path, std::ios::binary);
  for (const auto& c : cases) {
    const int n = static_cast<int>(c.expected.size());
    file.write(reinterpret_cast<const char*>(&n), sizeof n);
    for (const std::vector<Bits>& x : c.operands)
      file.write(reinterpret_cast<const char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(Bits)));
  }
}

template <class Bits>
void compare(const std::filesystem::path& path, const std::vector<Case<Bits>>& cases, const std::string& compiler) {
  using T = std::conditional_t<sizeof(Bits) == 4, float, double>;
  std::ifstream file(path, std::ios::binary);
  for (const auto& c : cases) {
    std::vector<Bits> got(c.expected.size());
    file.read(reinterpret_cast<char*>(got.data()), static_cast<std::streamsize>(got.size() * sizeof(Bits)));
    BOOST_TEST_REQUIRE(file.good(), c.function << ": too few results by " << compiler);
    const auto is_nan = [&](Bits b) { return c.to_numbers && std::isnan(std::bit_cast<T>(b)); };
    int failures = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i] == c.expected[i] || (is_nan(got[i]) && is_nan(c.expected[i])) || ++failures > 3) continue;
      std::string operands;
      for (const auto& x : c.operands) operands += " " + Scalar(static_cast<double>(std::bit_cast<T>(x[i]))).str();
      BOOST_TEST(got[i] == c.expected[i], c.function << " of" << operands << " at " << i << " by " << compiler << ": "
                                                     << std::bit_cast<T>(got[i]) << ", the library's "
                                                     << std::bit_cast<T>(c.expected[i]));
    }
    BOOST_TEST(failures == 0, c.function << " by " << compiler << ": " << failures << " differ");
  }
}

std::vector<std::string> compilers() {
  constexpr auto warnings = " -Wall -Wextra -Wconversion -pedantic -Werror -x c ";
  std::vector<std::string> all = {std::string("cc -std=c99 -O1 -DNF_VECTOR_BYTES=0") + warnings,
                                  std::string("cc -O2 -march=native") + warnings};
  const char* const more = std::getenv("FERRITE_C_COMPILERS");
  std::string_view rest = more ? more : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    all.push_back(std::string(rest.substr(0, end)) + (rest.substr(0, end).find("-x c") != rest.npos ? " " : warnings));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return all;
}

template <class T>
void check_functions(Dtype dtype) {
  const char* const asked = std::getenv("FERRITE_FROZEN_VALUES");
  const std::int64_t n = asked ? std::atoll(asked) : 4001;
  CFunctions functions;
  std::vector<Case<BitsOf<T>>> cases;
  for (const Primitive* op : primitives()) {
    if (!op->is_pointwise() || (!op->block(dtype) && !op->block(Dtype::boolean))) continue;
    const std::string function = functions.name_of(*op, dtype);
    BOOST_TEST(function.empty() == refused(*op, dtype), op->name << " in " << name_of(dtype));
    if (!function.empty()) cases.push_back(case_of<T>(*op, function, n));
  }
  const io_test::TemporaryFolder folder;
  const std::string base = (folder.path() / "functions").string();
  std::ofstream(base + ".c") << program(functions, cases, dtype);
  write_operands(base + ".in", cases);
  for (const std::string& compiler : compilers()) {
    const std::string run =
        compiler + "'" + base + ".c' -o '" + base + "' -lm && '" + base + "' < '" + base + ".in' > '" + base + ".out'";
    BOOST_TEST_REQUIRE(std::system(run.c_str()) == 0, run);
    compare(base + ".out", cases, compiler);
  }
}

/// Skips the tests where the library's multiply-adds are rounded twice, or without a C compiler.
boost::test_tools::assertion_result can_compare(boost::unit_test::test_unit_id) {
  const std::string_view level = instruction_set();
  if (level == "sse2" || level == "generic") return false;
  return std::system("cc --version > /dev/null 2>&1") == 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(frozen_functions, *boost::unit_test::precondition(can_compare))

BOOST_AUTO_TEST_CASE(functions_of_floats_have_the_library_s_bits) { check_functions<float>(Dtype::f32); }
BOOST_AUTO_TEST_CASE(functions_of_doubles_have_the_library_s_bits) { check_functions<double>(Dtype::f64); }

BOOST_AUTO_TEST_SUITE_END()
