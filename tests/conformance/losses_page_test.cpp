// docs/losses.md is generated from the headers of nn/losses/ and the records of the losses; this test keeps it current.
// FERRITE_REGENERATE=1 writes it.
#include <algorithm>
#include <sstream>

#include "conformance/header_text.h"
#include "conformance/operation_examples.h"
#include "ferrite/nn/operations.h"

namespace {

/// A documented declaration, or the title of a group of them.
struct Entry {
  std::string title{}, documentation{}, code{};
};

/// Returns the declarations of a header with their comments, the comment at its top first.
std::vector<Entry> entries_of(const std::string& header) {
  std::istringstream text(header);
  std::vector<Entry> list(1);
  bool top = true, in_struct = false, in_code = false;
  for (std::string line; std::getline(text, line);) {
    if (line == "#pragma once") continue;
    if (line.starts_with("/// ") && !in_struct) {
      if (top) {
        list[0].documentation += line.substr(4) + "\n";
        continue;
      }
      if (!list.back().code.empty() || !list.back().title.empty()) list.emplace_back();
      list.back().documentation += line.substr(4) + "\n";
      continue;
    }
    if (line == "///" && !in_struct) {
      list.back().documentation += "\n";
      continue;
    }
    if (top) list.emplace_back();
    top = false;
    if (line.starts_with("// ---- ")) {
      list.push_back({.title = line.substr(8, line.find(" --", 8) - 8)});
      continue;
    }
    if (line.starts_with("namespace detail {")) break;
    const bool declares = line.starts_with("Tensor ") || line.starts_with("double ") || line.starts_with("enum ");
    if (declares || line.starts_with("struct ")) {
      if (!list.back().title.empty()) list.emplace_back();
      in_code = declares, in_struct = !declares;
    }
    if (in_code || in_struct) list.back().code += line + "\n";
    if (in_code && line.ends_with(";")) in_code = false;
    if (line == "};") in_struct = false;
  }
  return list;
}

std::string summary_of(const std::string& name) {
  for (const auto& records : {ferrite::nn::operations(), ferrite::nn::composites()})
    for (const ferrite::Primitive* op : records)
      if (op->name == name) return std::string(op->summary);
  return "";
}

/// Returns the name of the function that a declaration begins with; empty for none.
std::string function_of(const std::string& code) {
  if (!code.starts_with("Tensor ") && !code.starts_with("double ")) return "";
  return code.substr(7, code.find('(') - 7);
}

/// Returns the sentences on a function's counterpart and its example.
std::string example_text(const std::string& name) {
  const conformance::OperationExample e = conformance::example_of(name);
  const std::string pytorch = conformance::pytorch_of(e);
  return (pytorch.empty() ? "" : "PyTorch: " + pytorch + ". ") + "Example: " + conformance::code_of(e) + " gives " +
         conformance::result_of(e.value()) + ".\n";
}

std::string first_sentence(const std::string& text) {
  std::string s = text.substr(0, text.find(". ") == std::string::npos ? text.find(".\n") : text.find(". "));
  std::replace(s.begin(), s.end(), '\n', ' ');
  return s;
}

std::string markdown() {
  std::ostringstream table, pages;
  for (const char* header : {"reduction", "regression", "classification", "ranking", "sequence", "audio"}) {
    const std::vector<Entry> entries = entries_of(pages::file_text("nn/losses/" + std::string(header) + ".h"));
    const std::string& about = entries[0].documentation;
    const std::string title = first_sentence(about);
    pages << "## " << title << "\n\n`nn/losses/" << header << ".h`";
    const std::size_t rest = std::min(about.size(), title.size() + 2);
    pages << (about.substr(rest).empty() ? "\n\n" : ": " + about.substr(rest) + "\n");
    for (std::size_t i = 1; i < entries.size(); ++i) {
      const Entry& e = entries[i];
      if (!e.title.empty())
        pages << "### " << static_cast<char>(std::toupper(e.title[0])) << e.title.substr(1) << "\n\n";
      if (e.code.empty()) continue;
      pages << "```text\n" << e.code << "```\n\n" << e.documentation << "\n";
      const std::string name = function_of(e.code);
      if (!name.empty()) pages << example_text(name) << "\n";
      const std::string summary = conformance::in_table(summary_of(name));
      if (!summary.empty()) table << "| `" << name << "` | " << summary << " |\n";
    }
  }
  return "# Losses\n\nChoose a loss, and see its formula, shapes and options. `nn/loss.h` includes all of them. The "
         "tests compare every loss and\nits first and second derivatives with PyTorch's function of its name, with "
         "auraloss, the formula of its paper or the sum\nover all alignments (`tests/data/make_loss_fixtures.py`). "
         "This page is generated from the headers of `nn/losses/` and the\nrecords of the losses; do not edit it.\n\n"
         "| function | of one element, row or sequence |\n"
         "|---|---|\n" +
         table.str() + "\n" + pages.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(losses_page)

BOOST_AUTO_TEST_CASE(losses_md) {
  std::string wanted = markdown();
  while (wanted.ends_with("\n\n")) wanted.pop_back();
  pages::check_page("docs/losses.md", wanted);
}

BOOST_AUTO_TEST_CASE(every_function_is_on_the_page) {
  const std::string page = markdown();
  for (const char* name : {"mse_loss", "cross_entropy", "bce_with_logits", "triplet_margin_loss", "ctc_loss",
                           "rnnt_loss", "esr_loss", "reduce_loss", "accuracy"})
    BOOST_TEST(page.find(" " + std::string(name) + "(") != std::string::npos, name);
}

BOOST_AUTO_TEST_SUITE_END()
