/// Completion scripts: a table of the command line in the language of each shell.
#include "completion.h"

#include <algorithm>
#include <iterator>

#include "described.h"
#include "ferrite/tensor/error.h"
#include "tool_text.h"

namespace ferrite::tools {
namespace {

using Commands = std::vector<DescribedCommand>;

/// Returns the text in single quotes, as all three shells read them: a quote ends the string, follows escaped, and
/// begins the string again.
std::string in_quotes(const std::string& text) {
  std::string s = "'";
  for (const char c : text) s += c == '\'' ? "'\\''" : std::string(1, c);
  return s + "'";
}

/// Returns the words that a command takes, in their order.
std::vector<DescribedOption> words_of(const DescribedCommand& c) {
  std::vector<DescribedOption> words;
  std::ranges::copy_if(c.options, std::back_inserter(words), &DescribedOption::is_word);
  return words;
}

// ---- bash ----------------------------------------------------------------------------------------------------

std::string bash_candidates(const DescribedOption& o) {
  if (!o.choices.empty()) return "words=" + in_quotes(joined(o.choices, " "));
  if (!o.is_file) return ":";
  return "files=" + (o.endings.empty() ? in_quotes("*") : in_quotes("*@(" + joined(o.endings, "|") + ")"));
}

constexpr const char* kBash = R"sh(# Completion of ferrite for bash. Made by: ferrite completion bash
_ferrite() {
  local shown_glob current previous command= place=0 words= files= i word
  COMPREPLY=()
  current=${COMP_WORDS[COMP_CWORD]} previous=
  [[ COMP_CWORD -gt 0 ]] && previous=${COMP_WORDS[COMP_CWORD - 1]}
  if [[ $current == = ]]; then  # --option=
    current=
  elif [[ $previous == = && COMP_CWORD -gt 1 ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ -z $command ]]; then
      [[ $word == -* ]] || command=$word
      continue
    fi
    case $command:$word in
@VALUES@      *:= | *:-*) ;;
      *) ((++place)) ;;
    esac
  done
  case $command:$previous in
@AFTER@    *)
      case $command:$place:$current in
@OPTIONS@@WORDS@      esac
      ;;
  esac
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [[ -n $files ]]; then
    type compopt &>/dev/null && compopt -o filenames 2>/dev/null
    shown_glob=$(shopt -p extglob)
    shopt -s extglob
    while IFS= read -r word; do
      COMPREPLY+=("$word")
    done < <(compgen -f -X "!$files" -- "$current"; compgen -d -- "$current")
    $shown_glob
  fi
}
complete -F _ferrite ferrite
)sh";

void replace(std::string& text, const std::string& what, const std::string& by) {
  text.replace(text.find(what), what.size(), by);
}

std::string bash(const Commands& commands) {
  std::string values, after, options, words, names;
  for (const DescribedCommand& c : commands) {
    std::vector<std::string> dashed;
    for (const DescribedOption& o : c.options) {
      if (o.is_word) continue;
      dashed.insert(dashed.end(), o.names.begin(), o.names.end());
      if (!o.takes_value()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : o.names) patterns.push_back(c.name + ":" + name);
      const std::string pattern = joined(patterns, " | ");
      values += "      " + pattern + ") [[ ${COMP_WORDS[i + 1]} == = ]] && ((++i)); ((++i)) ;;\n";
      after += "    " + pattern + ") " + bash_candidates(o) + " ;;\n";
    }
    options += "        " + c.name + ":*:-*) words=" + in_quotes(joined(dashed, " ")) + " ;;\n";
    int place = 0;
    for (const DescribedOption& o : words_of(c))
      words += "        " + c.name + ":" + std::to_string(place++) + ":*) " + bash_candidates(o) + " ;;\n";
    if (!c.name.empty()) names += (names.empty() ? "" : " ") + c.name;
  }
  words += "        :*:*) words=" + in_quotes(names) + " ;;\n";
  std::string script = kBash;
  replace(script, "@VALUES@", values);
  replace(script, "@AFTER@", after);
  replace(script, "@OPTIONS@", options);
  replace(script, "@WORDS@", words);
  return script;
}

// ---- zsh -----------------------------------------------------------------------------------------------------

/// Returns the text with the characters escaped that _arguments would read as its own.
std::string escaped(const std::string& text) {
  std::string s;
  for (const char c : text) s += (c == ':' || c == '[' || c == ']' || c == '\\' ? "\\" : "") + std::string(1, c);
  return s;
}

std::string zsh_action(const DescribedOption& o) {
  if (!o.choices.empty()) return "(" + joined(o.choices, " ") + ")";
  if (!o.is_file) return " ";
  if (o.endings.empty()) return "_files";
  // A pattern "*(.a)" would be a glob qualifier.
  const std::string pattern = o.endings.size() == 1 ? "*" + o.endings[0] : "*(" + joined(o.endings, "|") + ")";
  return "_files -g \"" + pattern + "\"";
}

std::string zsh_arguments(const DescribedCommand& c) {
  std::string s;
  for (const DescribedOption& o : c.options) {
    if (o.is_word) {
      s += " \\\n        " + in_quotes((o.is_required ? ":" : "::") + escaped(o.names[0]) + ":" + zsh_action(o));
      continue;
    }
    for (const std::string& name : o.names) {
      const bool equals = o.takes_value() && name.starts_with("--");
      s += " \\\n        " +
           in_quotes("(" + joined(o.names, " ") + ")" + name + (equals ? "=" : "") + "[" + escaped(o.description) +
                     "]" + (o.takes_value() ? ":" + escaped(name) + ":" + zsh_action(o) : ""));
    }
  }
  return s;
}

std::string zsh(const Commands& commands) {
  std::string s =
      "#compdef ferrite\n# Completion of ferrite for zsh. Made by: ferrite completion zsh\n_ferrite() {\n"
      "  local curcontext=$curcontext context state state_descr line\n  typeset -A opt_args\n  local -a commands\n"
      "  commands=(\n";
  for (const DescribedCommand& c : commands)
    if (!c.name.empty()) s += "    " + in_quotes(c.name + ":" + escaped(c.description)) + "\n";
  s += "  )\n  _arguments -C" + zsh_arguments(commands[0]) +
       " \\\n        '1: :->command' '*:: :->arguments' && return 0\n"
       "  case $state in\n    command) _describe -t commands command commands ;;\n    arguments)\n"
       "      case $words[1] in\n";
  for (const DescribedCommand& c : commands)
    if (!c.name.empty()) s += "        " + c.name + ") _arguments" + zsh_arguments(c) + " ;;\n";
  return s +
         "      esac\n      ;;\n  esac\n}\n"
         "if [[ $funcstack[1] == _ferrite ]]; then _ferrite \"$@\"; else compdef _ferrite ferrite; fi\n";
}

// ---- fish ----------------------------------------------------------------------------------------------------

/// Returns the text in single quotes, in which fish knows no escapes but \' and \\.
std::string fish_quotes(const std::string& text) {
  std::string s = "'";
  for (const char c : text) s += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
  return s + "'";
}

/// Returns the arguments of `complete` for an option's or word's values: -a with a list, or a command that lists files.
std::string fish_candidates(const DescribedOption& o) {
  if (!o.choices.empty()) return " -a " + fish_quotes(joined(o.choices, " "));
  if (!o.is_file) return "";
  if (o.endings.empty()) return " -F";
  return " -k -a " + fish_quotes("(__ferrite_files " + joined(o.endings, " ") + ")");
}

constexpr const char* kFish = R"sh(# Completion of ferrite for fish. Made by: ferrite completion fish
# Files of these endings, and folders.
function __ferrite_files
  set -l token (commandline -ct | string replace -r '^--[^=]*=' '')
  for file in $token*
    if test -d $file
      echo $file/
    else
      for ending in $argv
        string match -q -- "*$ending" $file; and echo $file
      end
    end
  end
end
# Whether the next word is number argv[2] behind the command argv[1]; what options take is given as argv[3..].
function __ferrite_word
  set -l words (commandline -opc)
  set -l place 0
  set -l skip 0
  test (count $words) -ge 2; and test $words[2] = $argv[1]; or return 1
  for word in $words[3..-1]
    if test $skip = 1
      set skip 0
    else if contains -- $word $argv[3..-1]
      set skip 1
    else if not string match -q -- '-*' $word
      set place (math $place + 1)
    end
  end
  test $skip = 0; and test $place = $argv[2]
end
complete -c ferrite -f
)sh";

std::string fish(const Commands& commands) {
  std::string s = kFish;
  for (const DescribedCommand& c : commands) {
    const bool top = c.name.empty();
    if (!top)
      s += "complete -c ferrite -n __fish_use_subcommand -a " + c.name + " -d " + fish_quotes(c.description) + "\n";
    const std::string when = "complete -c ferrite -n " +
                             fish_quotes(top ? "__fish_use_subcommand" : "__fish_seen_subcommand_from " + c.name);
    std::string valued;
    for (const DescribedOption& o : c.options) {
      if (o.is_word) continue;
      s += when;
      for (const std::string& name : o.names) {
        s += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
        if (o.takes_value()) valued += " " + name;
      }
      if (o.takes_value()) s += o.is_file && o.endings.empty() ? " -r" : " -x";
      s += (o.takes_value() ? fish_candidates(o) : "") + " -d " + fish_quotes(o.description) + "\n";
    }
    int place = 0;
    for (const DescribedOption& o : words_of(c))
      s += "complete -c ferrite -n " +
           fish_quotes("__ferrite_word " + c.name + " " + std::to_string(place++) + valued) + fish_candidates(o) + "\n";
  }
  return s;
}

}  // namespace

std::string completion(const CLI::App& app, const std::string& shell) {
  const Commands commands = described(app);
  if (shell == "bash") return bash(commands);
  if (shell == "zsh") return zsh(commands);
  if (shell == "fish") return fish(commands);
  throw ValueError("completion: there are scripts for bash, zsh and fish, not for '" + shell + "'");
}

}  // namespace ferrite::tools
