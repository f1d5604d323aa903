// Every operation, except those that only move or convert elements, refuses bf16, f16 and i8 with the same message.
#include <boost/test/unit_test.hpp>
#include <set>

#include "../consumer/own_operations.h"
#include "cases.h"
#include "conformance/oracles/oracle.h"
#include "ferrite/nn/operations.h"
#include "ferrite/tensor/recorder.h"

namespace {

using ferrite::Dtype;
using ferrite::Primitive;
using ferrite::Spec;
using ferrite::Tensor;
using ferrite::Tensors;

constexpr Dtype kStored[] = {Dtype::bf16, Dtype::f16, Dtype::i8};

/// Returns the error of an application that refuses its operands; empty if it does not.
std::string refusal(const Primitive& op, const Tensors& in, const ferrite::Attrs& attrs) {
  try {
    conformance::apply(op, in, attrs);
  } catch (const ferrite::DtypeError& e) {
    return e.what();
  }
  return "";
}

/// The operands of one application: those of a sample, or of a pointwise operation.
struct Case {
  std::vector<Spec> inputs;
  ferrite::Attrs attrs;
};
std::vector<Case> cases_of(const Primitive& op) {
  if (op.is_pointwise()) return {{std::vector<Spec>(static_cast<std::size_t>(op.arity), Spec{{3}, Dtype::f32}), {}}};
  std::vector<Case> list;
  for (const ferrite::detail::Sample& s : oracles::samples(op)) list.push_back({s.inputs, s.attrs});
  return list;
}

/// Checks each operand in turn with a type that is only stored; the record alone decides, before shapes are checked.
void check_refuses(const Primitive& op) {
  const bool composite = op.is_composite();
  for (const Case& c : cases_of(op))
    for (std::size_t k = 0; k < c.inputs.size(); ++k)
      for (const Dtype stored : kStored) {
        Tensors in;
        for (std::size_t i = 0; i < c.inputs.size(); ++i) {
          Spec s = c.inputs[i];
          if (i == k) s.dtype = stored;
          in.push_back(ferrite::zeros(s.shape, s.dtype));
        }
        const std::string said = refusal(op, in, c.attrs);
        const std::string name(name_of(stored));
        BOOST_TEST(said.find(name) != std::string::npos, op.name << " takes " << name << ": " << said);
        if (composite) continue;
        BOOST_TEST(said.find(std::string(op.name) + ": " + name + " is only stored") == 0U, op.name << ": " << said);
        BOOST_TEST(said.find("; cast it to ") != std::string::npos, op.name << ": " << said);
      }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(storage_types)

BOOST_AUTO_TEST_CASE(only_these_operations_take_them) {
  std::set<std::string> taking;
  for (const auto& some : {ferrite::primitives(), ferrite::nn::operations()})
    for (const Primitive* op : some)
      if (op->takes_storage_types) taking.insert(std::string(op->name));
  const std::set<std::string> wanted{"cast",    "contiguous", "detach", "expand", "full",  "permute",
                                     "reshape", "select",     "slice",  "split",  "unbind"};
  BOOST_TEST(taking == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(every_other_operation_refuses_them_and_names_a_cast) {
  for (const auto& some : {ferrite::primitives(), ferrite::nn::operations()})
    for (const Primitive* op : some)
      if (!op->takes_storage_types) check_refuses(*op);
}

BOOST_AUTO_TEST_CASE(operations_of_a_program_refuse_them_without_a_word_of_their_own) {
  namespace define = ferrite::define;
  check_refuses(define::pointwise<own::Softsign>);
  check_refuses(define::structured<own::Cumsum>);
  check_refuses(define::structured<own::Diagonal>);
}

BOOST_AUTO_TEST_CASE(a_refused_application_changes_and_records_nothing) {
  ferrite::Tape tape;
  const Tensor x = tape.watch(ferrite::ones({3}));
  const Tensor stored = ferrite::cast(x, Dtype::bf16);
  const std::size_t before = tape.size();
  BOOST_CHECK_THROW(ferrite::add(stored, stored), ferrite::DtypeError);
  BOOST_TEST(tape.size() == before);
}

BOOST_AUTO_TEST_SUITE_END()
