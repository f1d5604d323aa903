#pragma once
/// Hostile archives of torch.jit.save.
#include <string>
#include <vector>

#include "hostile_pickles.h"

namespace hostile_torch {

inline std::vector<Case> of_scripted() {
  const std::string weight = "\"weight\", ", tensor = text("weight") + good_tensor();
  const std::string net = module_class("Net", weight), outer = module_class("Outer", "");
  const auto with = [](const std::string& name, const std::string& value, const std::string& code,
                       const std::string& message) {
    return Case{name, scripted(value, code), message};
  };
  /// A module with these attributes.
  const auto made = [&](const std::string& name, const std::string& attributes, const std::string& message) {
    return with(name, instance("Net", attributes), net, message);
  };
  const auto declared = [&](const std::string& name, const std::string& code, const std::string& message) {
    return with(name, instance("Net", tensor), code, message);
  };
  const auto state = [&](const std::string& name, const std::string& opcodes, const std::string& message) {
    return with(name, global("__torch__", "Net") + opcodes, net, message);
  };
  std::string deep, deep_end;
  for (int i = 0; i < 101; ++i) {
    deep += global("__torch__", "Outer") + ")\x81}(" + text("m");
    deep_end += "ub";
  }
  TensorParts missing, large;
  missing.key = text("7");
  large.numel = integer(5);
  const std::string no_file = "the code of a class is missing: the archive holds no 'a/code/";
  const std::string damaged = "'a/code/__torch__.py': a list of parameters or buffers is damaged: ";
  return {
      made("scripted", tensor, ""),
      made("scripted_none", text("weight") + "N", ""),
      made("scripted_other_attributes", tensor + text("x") + "K\1" + text("y") + good_tensor() + text("z") + "](K\1e",
           ""),
      with("scripted_class_in_c",
           instance("Outer", text("m") + global("__torch__.torch.classes.nn", "Packed") + ")\x81Nb"), outer, ""),
      with("scripted_enum", instance("Outer", text("m") + global("__torch__", "Colour") + "K\1R"),
           outer + "class Colour(Enum):\n  RED = 1\n", ""),
      declared("scripted_old_code", "class Net(Module):\n  __parameters__ = []\n", ""),
      declared("scripted_no_class", outer, "the code of the archive has no class '__torch__.Net'"),
      declared("scripted_no_code", "", "the code of the archive has no class '__torch__.Net'"),
      declared("scripted_no_module", "class Net:\n", "holds no module: it is an instance of a class"),
      declared("scripted_class_twice", net + net, "'a/code/__torch__.py': a class is there twice: 'Net'"),
      declared("scripted_head_without_end", "class Net(Module:\n  __parameters__ = []\n",
               "has no class '__torch__.Net'"),
      declared("scripted_list_without_end", module_class("Net", weight + "\"x"), damaged + "'\"x]'"),
      declared("scripted_list_without_bracket", "class Net(Module):\n  __parameters__ = [\"weight\", \n",
               damaged + "''"),
      declared("scripted_list_of_names", module_class("Net", "weight, "), damaged + "'weight, ]'"),
      declared("scripted_own_state", module_class("Net", weight, "  def __setstate__(self: Net) -> NoneType:\n"),
               "'': a module that restores itself with its own code, __setstate__; save the weights"),
      declared("scripted_parameter_that_is_not_there", module_class("Net", weight + "\"bias\", "),
               "'': lacks parameters or buffers of its class: it has 1 of 2"),
      made("scripted_parameter_a_number", text("weight") + "K\1",
           "'weight': a parameter or buffer is neither a tensor nor None: an integer"),
      made("scripted_parameter_a_list", text("weight") + "](" + good_tensor() + "e", "nor None: a list"),
      made("scripted_parameter_twice", tensor + tensor, "a name occurs twice: 'weight'"),
      made("scripted_attribute_a_number", "K\1N", "'': the name of an attribute is no string: an integer"),
      made("scripted_storage_missing", text("weight") + missing.str(),
           "'weight': the storage is missing: the archive holds no 'a/data/7'"),
      made("scripted_storage_too_small", text("weight") + large.str(),
           "'weight': the storage is not as large as the pickle says"),
      made("scripted_unknown_global", tensor + text("x") + global("os", "system"),
           "the file names something that is not read: 'os.system'"),
      made("scripted_global_beside", tensor + text("x") + global("__torch__x", "Net"), "not read: '__torch__x.Net'"),
      with("scripted_class_elsewhere", instance("Outer", text("m") + global("__torch__.a.b", "Net") + ")\x81}b"), outer,
           no_file + "__torch__/a/b.py'"),
      with("scripted_class_climbing", instance("Outer", text("m") + global("__torch__./../../data", "x") + ")\x81}b"),
           outer, no_file + "__torch__////////data.py'"),
      state("scripted_class_alone", "", "holds no module: it is a class"),
      state("scripted_without_state", ")\x81", "the state of a module is no dictionary: None"),
      state("scripted_state_a_tuple", ")\x81)b", "the state of a module is no dictionary: a tuple"),
      state("scripted_state_twice", ")\x81}b}b", "the file gives an object its state twice"),
      state("scripted_made_with_arguments", "N\x85\x81}b", "the file makes an object with arguments"),
      state("scripted_made_with_a_list", "]\x81}b", "making an object needs a tuple and meets a list"),
      state("scripted_called", "}R", "lacks parameters or buffers of its class: it has 0 of 1"),
      with("scripted_object_of_a_storage", kFloatStorage + ")\x81", net, "the file makes objects of a class"),
      with("scripted_object_of_a_number", "K\1)\x81", net, "the file makes objects of a class"),
      with("scripted_in_itself", global("__torch__", "Outer") + ")\x81q\1}(" + text("m") + "h\1ub", outer,
           "'m': contains itself"),
      with("scripted_state_in_itself",
           global("__torch__", "Outer") + ")\x81}q\1(" + text("m") + global("__torch__", "Outer") + ")\x81h\1bub",
           outer, "'m.m': contains itself"),
      with("scripted_deep", deep + "N" + deep_end, outer, "nested too deeply: more than 100 levels"),
      Case{"scripted_class_of_a_checkpoint", checkpoint(named(instance("Net", tensor))),
           "the file names something that is not read: '__torch__.Net'"},
  };
}

}  // namespace hostile_torch
