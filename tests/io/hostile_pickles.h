#pragma once
/// Hostile pickles in sound archives.
#include <string>
#include <vector>

#include "torch_builder.h"

namespace hostile_torch {

using namespace torch_builder;

/// A file, and a part of the error's message; if that is empty, the file can be read.
struct Case {
  std::string name;
  std::string bytes;
  std::string message;
  std::string key{};  ///< key of the part that is read
};

/// Returns a checkpoint of a pickle of any opcodes.
inline Case raw(const std::string& name, const std::string& data_pkl, const std::string& message) {
  return {name, checkpoint(data_pkl), message};
}

inline std::vector<Case> of_globals() {
  const auto calls = [](const std::string& name, const std::string& module, const std::string& function,
                        const std::string& arguments, const std::string& message) {
    return Case{name, checkpoint(named(call(global(module, function), arguments))), message};
  };
  const std::string named_global = "the file names something that is not read: ";
  return {
      calls("os_system", "os", "system", text("touch /tmp/x"),
            named_global + "'os.system' at byte 9 of the pickle; nothing in a file is ever run"),
      calls("posix_system", "posix", "system", text("true"), "'posix.system'"),
      calls("eval", "builtins", "eval", text("1"), "'builtins.eval'"),
      calls("old_eval", "__builtin__", "eval", text("1"), "'__builtin__.eval'"),
      calls("exec", "builtins", "exec", text("1"), "'builtins.exec'"),
      calls("getattr", "builtins", "getattr", text("x") + text("y"), "'builtins.getattr'"),
      calls("import", "builtins", "__import__", text("os"), "'builtins.__import__'"),
      calls("subprocess", "subprocess", "Popen", text("true"), "'subprocess.Popen'"),
      calls("runpy", "runpy", "_run_code", text("1"), "'runpy._run_code'"),
      calls("torch_load", "torch.serialization", "load", text("x"), "'torch.serialization.load'"),
      calls("torch_hub", "torch.hub", "load", text("x"), "'torch.hub.load'"),
      calls("dotted_name", "torch", "storage.UntypedStorage", text("x"), "'torch.storage.UntypedStorage'"),
      calls("other_case", "collections", "ordereddict", "", "'collections.ordereddict'"),
      calls("whole_module", "__main__", "Net", "",
            "'__main__.Net' at byte 9 of the pickle; is this a whole pickled module? save model.state_dict() instead"),
      calls("whole_layer", "torch.nn.modules.linear", "Linear", "", "save model.state_dict() instead"),
      calls("numpy_array", "numpy.core.multiarray", "_reconstruct", "", "turn NumPy arrays and numbers into tensors"),
      calls("numpy_scalar", "numpy._core.multiarray", "scalar", "", "turn NumPy arrays and numbers into tensors"),
      calls("sparse", "torch._utils", "_rebuild_sparse_tensor", "", "save x.to_dense()"),
      calls("sparse_layout", "torch.serialization", "_get_layout", text("torch.sparse_coo"), "save x.to_dense()"),
      calls("quantised", "torch._utils", "_rebuild_qtensor", "", "save x.dequantize()"),
      calls("quantised_storage", "torch", "QInt8Storage", "", "save x.dequantize()"),
      calls("meta_tensor", "torch._utils", "_rebuild_meta_tensor_no_storage", "",
            "a tensor on the meta device has no values"),
      calls("nested_tensor", "torch._utils", "_rebuild_nested_tensor", "", "x.unbind()"),
      calls("distributed", "torch.distributed.tensor", "DTensor", "", "save plain CPU tensors"),
      calls("call_a_type", "builtins", "list", "", "the file calls what data does not need: 'builtins.list'"),
      calls("call_a_dtype", "torch", "float32", "", "the file calls what data does not need: 'torch.float32'"),
      calls("call_a_storage", "torch", "FloatStorage", integer(1 << 30), "the file calls what data does not need"),
      raw("call_a_string", named(text("x") + ")R"), "the file calls what is no function: a string"),
      raw("call_a_tensor", named(good_tensor() + ")R"), "the file calls what is no function: an object"),
      raw("call_with_a_list", named(kRebuild + "]R"), "a call needs a tuple and meets a list"),
      raw("stack_global_eval", "\x80\x04" + ("}" + text("a") + text("builtins") + text("eval") + "\x93)Rs."),
          "'builtins.eval'"),
      raw("stack_global_of_numbers", named(integer(1) + integer(2) + "\x93"),
          "a name needs a string and meets an integer"),
      raw("build_on_a_dictionary", named("}}b"), "the file sets attributes of a dictionary"),
      raw("build_on_a_tensor", named(good_tensor() + "}b"), "the file sets attributes of an object"),
      raw("build_of_a_list", named(kHooks + "]b"), "setting attributes needs a dictionary and meets a list"),
      raw("newobj", named(kFloatStorage + ")\x81"), "the file makes objects of a class"),
      raw("newobj_ex", named(kFloatStorage + ")}\x92"), "the file makes objects of a class"),
      raw("inst", named("(i__main__\nNet\n"), "an opcode that data does not need: INST"),
      raw("obj", named("(" + kFloatStorage + "o"), "an opcode that data does not need: OBJ"),
      raw("ext1", named("\x82\x01"), "an opcode that data does not need: EXT1"),
      raw("ext2", named("\x83\x01"), "EXT2"),
      raw("ext4", named("\x84\x01"), "EXT4"),
      raw("text_persistent_id", named("P0\n"), "an opcode that data does not need: PERSID"),
      raw("next_buffer", named("\x97"), "an opcode that data does not need: NEXT_BUFFER"),
      raw("no_opcode", named("\xff"), "not an opcode: 255"),
      raw("text_integer", named("I1\n"), "an opcode that data does not need: INT"),
      raw("global_without_end", named("c" + std::string(2000, 'x')), "a name has no end within 1000 bytes"),
  };
}

/// Returns cases of values next to the part "m" that is read: those allowed, and those refused.
inline std::vector<Case> of_parts() {
  const auto beside = [](const std::string& name, const std::string& value, const std::string& message = "") {
    return Case{name, checkpoint(pickle("}(" + text("x") + value + text("m") + "}" + text("w") + good_tensor() + "su")),
                message, "m"};
  };
  const auto within = [](const std::string& name, const std::string& value, const std::string& message) {
    return Case{name, checkpoint(pickle("}" + text("m") + "}(" + text("v") + value + text("w") + good_tensor() + "us")),
                message, "m"};
  };
  const std::string space = global("argparse", "Namespace"), system = call(global("os", "system"), text("true"));
  const std::string mode = global("__main__", "Mode"), underflow = "the stack of the pickle is empty";
  return {
      beside("beside_a_call", system),
      beside("beside_an_object", space + ")\x81}" + text("a") + "Nsb"),
      beside("beside_an_object_with_keywords", space + ")}\x92"),
      beside("beside_a_list_of_its_own", space + ")R(NNe"),
      beside("beside_a_dictionary_of_its_own", space + ")R(NNu" + "NNs"),
      beside("beside_a_set_of_its_own", space + ")R(N\x90"),
      beside("beside_an_object_with_tensors", space + ")\x81}" + text("a") + good_tensor() + "sb"),
      beside("beside_calls_of_calls", repeated("(", 1000) + system + repeated("t", 1000)),
      beside("beside_a_key_of_a_class", "}" + call(mode, integer(1)) + "Ns"),
      beside("beside_many_names", repeated("cA\nB\n0", 20000) + "N"),
      beside("beside_many_calls", mode + integer(1) + "\x85R" +
                                      repeated("q\1h\1"
                                               "0",
                                               20000)),
      beside("beside_a_deep_state", space + ")\x81" + repeated("]", 200) + repeated("a", 199) + "b"),
      beside("beside_a_call_with_a_list", space + "]R", "a call needs a tuple and meets a list"),
      beside("beside_an_object_of_a_list", space + "]\x81", "making an object needs a tuple and meets a list"),
      beside("beside_keywords_of_a_list", space + ")]\x92", "making an object needs a dictionary and meets a list"),
      beside("beside_an_underflow", "0" + space + ")R(R", underflow),
      beside("beside_a_call_of_a_number", integer(1) + ")R", "the file calls what is no function: an integer"),
      beside("beside_a_class_of_data", kFloatStorage + ")\x81", "the file makes objects of a class"),
      beside("beside_attributes_of_data", good_tensor() + "}b", "the file sets attributes of an object"),
      beside("beside_an_odd_group", "}(Nu", "a dictionary is given a key without a value"),
      beside("beside_a_name_of_numbers", integer(1) + integer(2) + "\x93",
             "a name needs a string and meets an integer"),
      beside("beside_a_name_without_end", "c" + std::string(2000, 'x'), "a name has no end within 1000 bytes"),
      beside("beside_a_persistent_object", space + "Q", "a persistent id needs a tuple and meets what is not read"),
      within("within_a_call", system, "'v': the file names something that is not read: 'os.system' at byte"),
      within("within_an_object", space + ")\x81}b", "'argparse.Namespace' at byte"),
      within("within_a_list", "](" + system + "e", "'v.0': the file names something that is not read: 'os.system'"),
      within("within_a_key", "}" + system + "Ns",
             "a dictionary's key is neither a string nor a number: what is not read"),
      within("within_a_class", mode, "'__main__.Mode' at byte"),
      within("within_an_enum", call(mode, integer(1)), ""),
      within("within_an_enum_of_itself", call(mode, call(mode, integer(1))), "'__main__.Mode' at byte"),
      within("within_an_enum_of_two", call(mode, integer(1) + integer(2)), "'__main__.Mode' at byte"),
      within("within_an_enum_of_a_list", call(mode, "]"), "'__main__.Mode' at byte"),
      within("within_an_enum_called", call(mode, integer(1)) + ")R", "'__main__.Mode' at byte"),
      within("within_an_enum_with_a_state", call(mode, integer(1)) + "}b", "'__main__.Mode' at byte"),
      within("within_an_enum_with_items", call(mode, integer(1)) + "Na", "'__main__.Mode' at byte"),
      within("within_an_enum_of_a_function", call(global("__main__", "mode"), integer(1)), "'__main__.mode' at byte"),
      within(
          "within_a_storage_class",
          [] {
            TensorParts parts;
            parts.storage_class = global("torch", "QInt8Storage");
            return parts.str();
          }(),
          "the class of a storage is none: what is not read"),
      Case{"path_through_a_call", checkpoint(named(system)), "'os.system' at byte 9 of the pickle", "a.b"},
      Case{"root_a_call", checkpoint(pickle(system)), "x.pt: the file names something that is not read: 'os.system'",
           ""},
  };
}

/// Returns NumPy's numbers as it pickles them, in protocols 2 and 3.
inline std::vector<Case> of_numpy_numbers() {
  const std::string scalar = global("numpy.core.multiarray", "scalar");
  const auto dtype = [](const std::string& name, const std::string& order = "<") {
    return call(global("numpy", "dtype"), text(name) + "\x89\x88") + tuple(integer(3) + text(order) + "NNN") + "b";
  };
  const auto bytes = [](const std::string& s) { return "C" + std::string(1, static_cast<char>(s.size())) + s; };
  const auto encoded = [](const std::string& s) { return call(global("_codecs", "encode"), text(s) + text("latin1")); };
  const auto number = [&](const std::string& name, const std::string& arguments, bool legal = false) {
    return Case{name, checkpoint(named(call(scalar, arguments))),
                legal ? "" : "'a': a number of NumPy that is not read", ""};
  };
  const std::string eight(8, '\0'), type = global("numpy", "dtype");
  return {
      number("number", dtype("f8") + bytes(eight), true),
      number("number_encoded", dtype("f8") + encoded(eight), true),
      number("number_encoded_above_ascii", dtype("u1", "|") + encoded("\xc3\xbf"), true),
      number("number_of_one_argument", dtype("f8")),
      number("number_of_three_arguments", dtype("f8") + bytes(eight) + "N"),
      number("number_cut", dtype("f8") + bytes(eight.substr(1))),
      number("number_too_long", dtype("f4") + bytes(eight)),
      number("number_of_no_bytes", dtype("f8") + bytes("")),
      number("number_of_text", dtype("f8") + text(eight)),
      number("number_big_endian", dtype("f8", ">") + bytes(eight)),
      number("number_beyond_latin", dtype("u2") + encoded("\xe2\x82\xac")),
      number("number_of_a_list", dtype("f8") + "]"),
      number("number_of_strings", dtype("U2") + bytes(eight)),
      number("number_complex", dtype("c8") + bytes(eight)),
      number("number_bool_2", dtype("b1", "|") + bytes("\2")),
      number("number_without_a_state", call(type, text("f8")) + bytes(eight)),
      number("number_of_a_type_of_nothing", call(type, "") + bytes(eight)),
      number("number_of_a_type_of_a_number", call(type, integer(8)) + tuple("N" + text("<")) + "b" + bytes(eight)),
      number("number_of_a_class", type + bytes(eight)),
      number("number_of_a_short_state", call(type, text("f8")) + tuple("N") + "b" + bytes(eight)),
      number("number_of_a_state_of_numbers", call(type, text("f8")) + tuple("NN") + "b" + bytes(eight)),
      raw("dtype_alone", named(dtype("f8")), ""),
      raw("dtype_state_twice", named(dtype("f8") + tuple("N") + "b"), "the file gives an object its state twice"),
      raw("dtype_state_a_list", named(call(type, text("f8")) + "]b"),
          "setting attributes needs a tuple and meets a list"),
      raw("encoded_alone", named(encoded("x")), ""),
  };
}

inline std::vector<Case> of_pickles() {
  const auto deep_list = [](std::size_t n) { return repeated("](", n) + repeated("e", n); };
  return {
      raw("empty_pickle", "", "not a pickle of protocol 2 to 5"),
      raw("no_protocol", "}.", "not a pickle of protocol 2 to 5"),
      raw("protocol_1", "\x80\x01}.", "unsupported pickle protocol: 1"),
      raw("protocol_99", "\x80\x63}.", "unsupported pickle protocol: 99, supported are 2 to 5"),
      raw("no_stop", "\x80\x02}", "the pickle is cut short: 1 bytes wanted, 0 are left"),
      raw("only_stop", "\x80\x02.", "the pickle ends with 0 values"),
      raw("two_values", "\x80\x02}}.", "the pickle ends with 2 values"),
      raw("open_group", "\x80\x02}(.", "1 open group"),
      raw("bytes_behind_the_stop", pickle("}") + "x", "something follows the pickle in 'data.pkl': 1 byte"),
      raw("two_pickles", pickle("}") + pickle("}"), "something follows the pickle"),
      raw("underflow_of_setitem", pickle("s"), "the stack of the pickle is empty"),
      raw("underflow_of_append", pickle("]a"), "the stack of the pickle is empty"),
      raw("underflow_of_reduce", pickle(")R"), "the stack of the pickle is empty"),
      raw("underflow_of_build", pickle("}b"), "the stack of the pickle is empty"),
      raw("underflow_of_tuple", pickle("N\x86"), "the stack of the pickle is empty"),
      raw("underflow_of_persid", pickle("Q"), "the stack of the pickle is empty"),
      raw("underflow_of_put", pickle(std::string("q\0", 2)), "the stack of the pickle is empty"),
      raw("underflow_below_a_mark", pickle("N(\x85t"), "the stack of the pickle is empty"),
      raw("appends_without_list", pickle("(Ne"), "the stack of the pickle is empty"),
      raw("tuple_without_mark", pickle("t"), "closes a group that it has not opened"),
      raw("pop_mark_without_mark", pickle("1"), "closes a group that it has not opened"),
      raw("odd_setitems", pickle("}(Nu"), "a dictionary is given a key without a value"),
      raw("setitem_on_a_list", pickle("]NNs"), "setting an item needs a dictionary and meets a list"),
      raw("append_to_a_tuple", pickle(")Na"), "appending needs a list and meets a tuple"),
      raw("add_to_a_list", pickle("](N\x90"), "adding to a set needs a set and meets a list"),
      raw("memo_miss", pickle(std::string("h\0", 2)), "the memo has no such entry: 0"),
      raw("memo_gap",
          pickle("}q\x05h\x04"
                 "0"),
          "the memo has no such entry: 4"),
      raw("memo_index_2_to_32_less_1", pickle("}r\xff\xff\xff\xff"),
          "an index of the memo is beyond the pickle's size: 4294967295"),
      raw("string_of_2_to_31", pickle(std::string("X\0\0\0\x80", 5)),
          "the pickle is cut short: 2147483648 bytes wanted"),
      raw("string_of_2_to_64", pickle("\x8d" + std::string(8, '\xff')), "18446744073709551615 bytes wanted"),
      raw("bytes_of_2_to_63", pickle("\x8e" + little_endian(1ULL << 63, 8)), "9223372036854775808 bytes wanted"),
      raw("long_of_2_to_31", pickle("\x8b" + little_endian(1ULL << 31, 4)), "2147483648 bytes wanted"),
      raw("frame_of_2_to_64", "\x80\x04\x95" + std::string(8, '\xff') + "}.", "a frame is longer than the pickle"),
      raw("invalid_utf8", named(text("\xff\xfe")), "a string is not UTF-8: '\\xff\\xfe'"),
      raw("surrogate", named(text("\xed\xa0\x80")), "a string is not UTF-8"),
      raw("marks_100000", pickle(repeated("(", 100000)), "100000 open groups"),
      raw("list_10000_deep", named(deep_list(10000)), "nested too deeply: more than 100 levels"),
      raw("list_100000_deep", named(deep_list(100000)), "more memory than a file of this size warrants"),
      raw("tuple_100000_deep", pickle(")" + repeated("\x85", 100000)), "nested too deeply"),
      raw("list_of_itself", pickle(std::string("]q\0h\0a", 6)), "'0': contains itself"),
      raw("dictionary_of_itself", pickle("}q\x01" + text("a") + "h\x01s"), "'a': contains itself"),
      raw("billion_lists", named("]Naq\1" + repeated("0](h\1h\1eq\1", 40)), "the same values are used again and again"),
      raw("root_a_number", pickle(integer(3)), "holds no tensors: it is an integer"),
      raw("root_a_string", pickle(text("x")), "holds no tensors: it is a string"),
      raw("root_none", pickle("N"), "holds no tensors: it is None"),
      raw("tuple_as_key", pickle("}" + good_tensor() + good_tensor() + "s"),
          "a dictionary's key is neither a string nor a number"),
      raw("name_twice", pickle("}(" + text("a") + good_tensor() + text("a") + good_tensor() + "u"),
          "a name occurs twice: 'a'"),
      raw("name_twice_dotted",
          pickle("}(" + text("a.b") + good_tensor() + text("a") + "}" + text("b") + good_tensor() + "su"),
          "a name occurs twice: 'a.b'"),
      raw("nul_in_a_name", pickle("}" + text(std::string("a\0b", 3)) + good_tensor() + "s"), "a name holds a NUL"),
      raw("bare_storage", named(TensorParts().storage()), "'a': a bare storage"),
      raw("persistent_id_a_string", named(text("storage") + "Q"), "a persistent id needs a tuple and meets a string"),
      raw("persistent_id_empty", named(")Q"), "a persistent id is no storage: empty"),
      raw("persistent_id_module", named(tuple(text("module") + kFloatStorage + "NN") + "Q"),
          "a persistent id is no storage: 'module'"),
      raw("million_nones", pickle("(" + repeated("N", 1100000) + "t"), "the stack of the pickle is too deep"),
      raw("million_lists", pickle("(" + repeated("]", 1000000) + "t"),
          "the values need more memory than a file of this size warrants"),
  };
}

}  // namespace hostile_torch
