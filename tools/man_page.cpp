/// The manual page: help as roff.
#include "man_page.h"

#include <sstream>

#include "described.h"

namespace ferrite::tools {
namespace {

/// Returns the text as roff shows it: no requests at the beginning of lines, dashes that can be copied.
std::string roff(const std::string& text) {
  std::string s;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) s += "\\&";
    if (c == '\\')
      s += "\\e";
    else if (c == '-')
      s += "\\-";
    else
      s += c;
    begins = c == '\n';
  }
  return s;
}

/// Returns a paragraph as roff shows it, in lines of fewer than 80 characters.
std::string paragraph(const std::string& text) {
  std::string wrapped;
  std::istringstream words(text);
  std::size_t used = 0;
  for (std::string word; words >> word;) {
    const bool fits = used + 1 + word.size() < 76;
    wrapped += (wrapped.empty() ? "" : fits ? " " : "\n") + word;
    used = fits && wrapped.size() > word.size() ? used + 1 + word.size() : word.size();
  }
  return roff(wrapped);
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

/// Returns the heading of an option: "-h, --help", "--run {a,b}", "FILE", in the help's own words.
std::string title_of(const DescribedOption& o) {
  std::string s;
  for (const std::string& name : o.names) s += (s.empty() ? "" : ", ") + (o.is_word ? italic(name) : bold(name));
  if (!o.type.empty() && o.type != (o.names.empty() ? "" : o.names[0])) s += " " + italic(o.type);
  return s;
}

std::string synopsis_of(const DescribedCommand& c) {
  std::string s = bold("ferrite") + " " + bold(c.name), words;
  for (const DescribedOption& o : c.options) {
    if (!o.is_word && !o.is_required) continue;
    const std::string name = o.is_word ? italic(o.names[0]) : bold(o.names[0]) + " " + italic(o.type);
    words += o.is_required ? " " + name : " [" + name + "]";
  }
  return s + " [" + italic("options") + "]" + words;
}

void add_options(const DescribedCommand& c, std::ostream& out) {
  for (const DescribedOption& o : c.options) {
    out << ".TP\n" << title_of(o) << '\n' << paragraph(o.description);
    if (!o.otherwise.empty()) out << " (" << roff(o.otherwise) << ')';
    out << '\n';
  }
}

/// Writes the paragraphs of the footer: a line that ends with a colon begins a section of verbatim lines, "Title: text"
/// a section of text.
void add_footer(const std::string& footer, std::ostream& out) {
  std::istringstream lines(footer);
  bool verbatim = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(' ')) {
      out << roff(line) << '\n';
      continue;
    }
    if (verbatim) out << ".fi\n";
    const std::size_t colon = line.find(':');
    std::string title = line.substr(0, colon);
    for (char& c : title)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    out << ".SH " << roff(title) << '\n';
    verbatim = colon + 1 >= line.size();
    out << (verbatim ? ".nf" : paragraph(line.substr(colon + 2))) << '\n';
  }
  if (verbatim) out << ".fi\n";
}

}  // namespace

std::string man_page(const CLI::App& app) {
  const std::vector<DescribedCommand> commands = described(app);
  std::ostringstream out;
  out << ".TH FERRITE 1 \"\" \"Ferrite\" \"User Commands\"\n"
      << ".SH NAME\nferrite \\- trains and runs neural networks, and looks into files of weights\n.SH SYNOPSIS\n";
  for (std::size_t i = 1; i < commands.size(); ++i) out << (i > 1 ? ".br\n" : "") << synopsis_of(commands[i]) << '\n';
  out << ".SH DESCRIPTION\n" << paragraph(commands[0].description) << "\n.SH OPTIONS\n";
  add_options(commands[0], out);
  out << ".SH COMMANDS\n";
  for (std::size_t i = 1; i < commands.size(); ++i) {
    out << ".SS " << synopsis_of(commands[i]) << '\n' << paragraph(commands[i].description + ".") << '\n';
    add_options(commands[i], out);
  }
  add_footer(app.get_footer(), out);
  return out.str();
}

}  // namespace ferrite::tools
