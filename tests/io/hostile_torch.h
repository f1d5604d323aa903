#pragma once
/// Hostile PyTorch files, made in memory.
#include <string>
#include <vector>

#include "hostile_pickles.h"
#include "hostile_scripted.h"

namespace hostile_torch {

/// Returns a checkpoint {"a": tensor} with one part changed.
template <class F>
Case lie(const std::string& name, F&& change, const std::string& message) {
  TensorParts parts;
  change(parts);
  return {name, checkpoint(named(parts.str())), message};
}

inline std::vector<Case> of_tensors() {
  const std::int64_t huge = std::int64_t{1} << 62;
  using P = TensorParts;
  const auto sizes = [](std::vector<std::int64_t> values) {
    std::string s;
    for (const auto v : values) s += integer(v);
    return tuple(s);
  };
  return {
      {"good", checkpoint(named(good_tensor())), ""},
      lie(
          "numel_too_large", [](P& p) { p.numel = integer(5); },
          "'a': the storage is not as large as the pickle says: 16 bytes, not 20"),
      lie(
          "numel_too_small", [](P& p) { p.numel = integer(3); },
          "'a': reaches beyond the end of its storage: offset 0, shape [2, 2], strides [2, 1], 3 elements in the "
          "storage"),
      lie(
          "numel_negative", [](P& p) { p.numel = integer(-4); },
          "the number of elements of a storage is not a non-negative integer: -4"),
      lie(
          "numel_overflowing", [&](P& p) { p.numel = integer(huge); },
          "the size of a storage is more than can be counted"),
      lie(
          "numel_2_to_64", [](P& p) { p.numel = wide_integer(~0ULL); }, "an integer of more than 64 bits"),
      lie(
          "numel_a_float", [](P& p) { p.numel = std::string("G\x40\x10\0\0\0\0\0\0", 9); },
          "not a non-negative integer: a float"),
      lie(
          "numel_a_bool", [](P& p) { p.numel = "\x88"; }, "not a non-negative integer: a bool"),
      lie(
          "offset_beyond_the_end", [](P& p) { p.offset = integer(1); },
          "'a': reaches beyond the end of its storage: offset 1"),
      lie(
          "offset_far_beyond", [](P& p) { p.offset = integer(100); },
          "begins beyond the end of its storage: offset 100"),
      lie(
          "offset_negative", [](P& p) { p.offset = integer(-1); },
          "'a': the offset of a tensor is not a non-negative integer: -1"),
      lie(
          "offset_2_to_63_less_1", [](P& p) { p.offset = integer(INT64_MAX); }, "begins beyond the end"),
      lie(
          "size_too_large",
          [&](P& p) {
            p.size = sizes({2, 3});
          },
          "reaches beyond the end of its storage"),
      lie(
          "size_negative",
          [&](P& p) {
            p.size = sizes({2, -2});
          },
          "'a': the shape of a tensor is not a non-negative integer: -2"),
      lie(
          "size_overflowing",
          [&](P& p) {
            p.size = sizes({huge, huge});
            p.stride = sizes({0, 0});
          },
          "the size of the tensor is more than can be counted"),
      lie(
          "size_overflowing_behind_a_zero",
          [&](P& p) {
            p.size = sizes({0, huge, huge});
            p.stride = sizes({0, 0, 0});
          },
          "the size of the tensor is more than can be counted"),
      lie(
          "size_a_number", [](P& p) { p.size = integer(4); }, "'a': the shape of a tensor is no tuple: 4"),
      lie(
          "size_of_strings", [](P& p) { p.size = tuple(text("2") + text("2")); },
          "not a non-negative integer: a string"),
      lie(
          "stride_negative",
          [&](P& p) {
            p.stride = sizes({-2, 1});
          },
          "'a': the strides of a tensor is not a non-negative integer: -2"),
      lie(
          "stride_too_large",
          [&](P& p) {
            p.stride = sizes({3, 1});
          },
          "reaches beyond the end of its storage"),
      lie(
          "stride_overflowing",
          [&](P& p) {
            p.size = sizes({3, 3});
            p.stride = sizes({huge, huge});
          },
          "the reach of a stride is more than can be counted"),
      lie(
          "stride_missing", [&](P& p) { p.stride = sizes({1}); }, "'a': shape and strides differ in length: 2 and 1"),
      lie(
          "stride_0_bomb",
          [&](P& p) {
            p.size = sizes({std::int64_t{1} << 40});
            p.stride = sizes({0});
          },
          "'a': shows elements of its storage too often"),
      lie(
          "stride_0_bomb_of_many_axes",
          [&](P& p) {
            p.size = sizes({1 << 10, 1 << 10, 1 << 10, 1 << 10});
            p.stride = sizes({0, 0, 0, 0});
          },
          "shows elements of its storage too often"),
      lie(
          "overlapping_bomb",
          [&](P& p) {
            p.size = sizes({2, 2, 2, 2});
            p.stride = sizes({1, 1, 1, 0});
          },
          "shows elements of its storage too often"),
      lie(
          "dimensions_65",
          [&](P& p) {
            p.size = sizes(std::vector<std::int64_t>(65, 1));
            p.stride = p.size;
          },
          "has more than 64 dimensions"),
      lie(
          "dimensions_9",
          [&](P& p) {
            p.size = sizes(std::vector<std::int64_t>(9, 1));
            p.stride = p.size;
          },
          "'a': too many dimensions: 9, at most 8 are supported"),
      lie(
          "key_missing", [](P& p) { p.key = text("1"); },
          "'a': the storage is missing: the archive holds no 'a/data/1'"),
      lie(
          "key_traversal", [](P& p) { p.key = text("../version"); }, "the key of a storage is no number: '../version'"),
      lie(
          "key_empty", [](P& p) { p.key = text(""); }, "the key of a storage is no number: ''"),
      lie(
          "key_a_number", [](P& p) { p.key = integer(0); }, "the key of a storage is no number"),
      lie(
          "key_of_30_digits", [](P& p) { p.key = text(std::string(30, '0')); }, "the key of a storage is no number"),
      lie(
          "location_a_number", [](P& p) { p.location = integer(0); }, "the location of a storage is no string: 0"),
      lie(
          "class_wider", [](P& p) { p.storage_class = global("torch", "DoubleStorage"); },
          "the storage is not as large as the pickle says: 16 bytes, not 32"),
      lie(
          "class_narrower", [](P& p) { p.storage_class = global("torch", "ByteStorage"); },
          "the storage is not as large as the pickle says: 16 bytes, not 4"),
      lie(
          "class_a_dtype", [](P& p) { p.storage_class = global("torch", "float32"); },
          "the class of a storage is none: a Python name"),
      lie(
          "class_a_string", [](P& p) { p.storage_class = text("FloatStorage"); },
          "the class of a storage is none: a string"),
      lie(
          "class_untyped",
          [](P& p) {
            p.storage_class = global("torch.storage", "UntypedStorage");
            p.numel = integer(16);
          },
          "'a': a tensor without dtype on an untyped storage"),
      lie(
          "class_bool_of_floats",
          [](P& p) {
            p.storage_class = global("torch", "BoolStorage");
            p.numel = integer(16);
          },
          "'a': a BOOL is neither 0 nor 1: 128 at element 2"),
      lie(
          "complex_of_odd_stride",
          [](P& p) {
            p.storage_class = global("torch", "ComplexFloatStorage");
            p.numel = integer(3);
            p.size = tuple(integer(1));
            p.stride = tuple(integer((std::int64_t{1} << 62) + 1));
          },
          "'a': the strides reach further than can be counted: 4611686018427387905"),
      lie(
          "tag_wrong", [](P& p) { p.tag = text("module"); }, "a persistent id is no storage: 'module'"),
      lie(
          "tag_missing", [](P& p) { p.tag = ""; }, "a persistent id is no storage"),
      lie(
          "five_parts_too_few", [](P& p) { p.location = ""; }, "a persistent id has not five or six parts: 4"),
      lie(
          "arguments_missing", [](P& p) { p.rest = ""; },
          "'a': the arguments of a tensor are not those that PyTorch writes: 4 arguments"),
      lie(
          "arguments_too_many", [](P& p) { p.rest = "\x89" + kHooks + "NN"; },
          "are not those that PyTorch writes: 8 arguments"),
      lie(
          "requires_grad_a_number", [](P& p) { p.rest = integer(0) + kHooks; }, "are not those that PyTorch writes"),
      lie(
          "neg_bit", [](P& p) { p.rest = "\x89" + kHooks + "}" + text("neg") + "\x88s"; },
          "save x.resolve_conj().resolve_neg()"),
      lie(
          "v3_without_dtype",
          [](P& p) {
            p.function = global("torch._utils", "_rebuild_tensor_v3");
            p.rest += "N";
          },
          "'a': the dtype of a tensor is none: None"),
      lie(
          "parameter_of_a_number", [](P& p) { p.function = global("torch._utils", "_rebuild_parameter"); },
          "are not those that PyTorch writes"),
      {"parameter_of_a_dictionary",
       checkpoint(named(call(global("torch._utils", "_rebuild_parameter"), "}\x89" + kHooks))),
       "are not those that PyTorch writes"},
      {"parameter_of_a_device",
       checkpoint(named(call(global("torch._utils", "_rebuild_parameter"),
                             call(global("torch", "device"), text("cpu")) + "\x89" + kHooks))),
       "not made the way PyTorch makes tensors"},
      {"storage_an_integer",
       checkpoint(named(call(kRebuild, integer(1) + integer(0) + tuple("") + tuple("") + "\x89" + kHooks))),
       "'a': a tensor's storage is an integer"},
      {"unused_storage_is_bad",
       checkpoint(pickle(tuple(good_tensor() + "}" + text("x") + tuple(text("storage") + "NNNN") + "Qs"))),
       "the class of a storage is none: None"},
  };
}

inline std::vector<Case> of_archives() {
  const std::string good = named(good_tensor());
  const Members whole = {
      {"a/data.pkl", good}, {"a/byteorder", "little"}, {"a/data/0", floats(4)}, {"a/version", "3\n"}};
  const auto with = [&](const std::string& name, const std::string& content) {
    Members m = whole;
    m.emplace_back(name, content);
    return zip(m);
  };
  const auto without = [&](std::size_t i) {
    Members m = whole;
    m.erase(m.begin() + static_cast<std::ptrdiff_t>(i));
    return zip(m);
  };
  const auto changed = [&](std::size_t i, const std::string& content) {
    Members m = whole;
    m[i].second = content;
    return zip(m);
  };
  return {
      {"no_bytes", "", "not a file of torch.save: it is empty"},
      {"text", "hello world", "it begins with 68 65 6c 6c 6f 20 77 6f"},
      {"bare_pickle", good, "not a file of torch.save: neither a zip archive nor PyTorch's older form"},
      {"empty_archive", zip({}), "no checkpoint of PyTorch"},
      {"other_archive", zip({{"a.npy", "x"}}), "the zip archive holds no '<folder>/data.pkl'"},
      {"without_byteorder", without(1), ""},
      {"without_pickle", without(0), "the zip archive holds no '<folder>/data.pkl'"},
      {"without_storage", without(2), "'a': the storage is missing: the archive holds no 'a/data/0'"},
      {"without_version", without(3), "the archive holds no 'a/version'"},
      {"in_no_folder", zip({{"data.pkl", good}, {"data/0", floats(4)}, {"version", "3\n"}}),
       "'data.pkl' is in no folder"},
      {"in_two_folders", zip({{"b/a/data.pkl", good}, {"b/a/version", "3\n"}}), "no checkpoint of PyTorch"},
      {"two_checkpoints", with("b/data.pkl", good), "holds more than one checkpoint"},
      {"torchscript_of_a_dictionary", with("a/constants.pkl", "x"), "holds no module: it is a dictionary"},
      {"torchscript_code_and_a_dictionary", with("a/code/__torch__.py", "x"), "holds no module: it is a dictionary"},
      {"unknown_members", with("a/.data/serialization_id", "123"), ""},
      {"big_endian", changed(1, "big"), ""},
      {"middle_endian", changed(1, "middle"), "the byte order is neither little nor big: 'middle'"},
      {"byteorder_long", changed(1, std::string(1000, 'x')), "is larger than expected: 1000 bytes"},
      {"version_a_word", changed(3, "three"), "the archive's version is no number: 'three'"},
      {"storage_short", changed(2, floats(3)), "the storage is not as large as the pickle says: 12 bytes, not 16"},
      {"storage_long", changed(2, floats(5)), "the storage is not as large as the pickle says: 20 bytes, not 16"},
      {"storage_empty", changed(2, ""), "the storage is not as large as the pickle says: 0 bytes, not 16"},
  };
}

inline std::vector<Case> of_legacy() {
  const std::string good = named(good_tensor());
  const std::string keys = pickle("]" + text("0") + "a");
  const std::string four = little_endian(4, 8) + floats(4);
  const auto view = [](const std::string& values) {
    TensorParts p;
    p.numel = integer(4) + tuple(text("1") + values);
    p.size = tuple(integer(2));
    p.stride = tuple(integer(1));
    return named(p.str());
  };
  return {
      {"legacy", legacy(good), ""},
      {"legacy_view", legacy(view(integer(2) + integer(2))), ""},
      {"legacy_view_too_long", legacy(view(integer(2) + integer(3))),
       "the view of a storage reaches beyond its end: 2 + 3 of 4 elements"},
      {"legacy_view_too_short", legacy(view(integer(3) + integer(1))), "reaches beyond the end of its storage"},
      {"legacy_view_negative", legacy(view(integer(-1) + integer(1))),
       "the offset of a storage's view is not a non-negative integer: -1"},
      {"legacy_version", legacy(good, keys, four, pickle(integer(1000))), "the format's version is not 1001: 1000"},
      {"legacy_big_endian",
       legacy(good, keys, four, pickle(integer(1001)), pickle("}" + text("little_endian") + "\x89s")),
       "the byte order is not little"},
      {"legacy_system_a_list", legacy(good, keys, four, pickle(integer(1001)), pickle("]")),
       "the description of the system is no dictionary"},
      {"legacy_no_keys", legacy(good, pickle("]"), ""), "the storage is missing: '0'"},
      {"legacy_keys_a_dictionary", legacy(good, pickle("}"), four), "the list of storages is a dictionary"},
      {"legacy_key_a_number", legacy(good, pickle("]" + integer(0) + "a"), four), "the key of a storage is an integer"},
      {"legacy_key_twice", legacy(good, pickle("](" + text("0") + text("0") + "e"), four + four),
       "a storage is there twice: '0'"},
      {"legacy_key_unknown", legacy(good, pickle("](" + text("0") + text("7") + "e"), four + four),
       "a storage of the list is used nowhere: '7'"},
      {"legacy_count_wrong", legacy(good, keys, little_endian(3, 8) + floats(4)),
       "the storage is not as large as the pickle says: '0', 3 elements, not 4"},
      {"legacy_count_2_to_63", legacy(good, keys, little_endian(1ULL << 63, 8) + floats(4)),
       "9223372036854775808 elements, not 4"},
      {"legacy_count_missing", legacy(good, keys, "1234"), "the file is cut short before '0'"},
      {"legacy_storage_short", legacy(good, keys, little_endian(4, 8) + floats(3)),
       "the file is cut short in the storage '0': 16 bytes wanted, 12 are left"},
      {"legacy_bytes_behind", legacy(good, keys, four + "x"), "something follows the storages: 1 byte"},
      {"legacy_two_sizes",
       legacy(pickle(tuple(good_tensor() +
                           [] {
                             TensorParts p;
                             p.numel = integer(5);
                             return p.str();
                           }()))),
       "a storage is named with two sizes: '0', 16 bytes and 20"},
      {"legacy_eval", legacy(named(global("builtins", "eval"))), "'builtins.eval'"},
      {"legacy_only_magic", pickle("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"),
       "not a pickle of protocol 2 to 5"},
  };
}

inline std::vector<Case> all() {
  std::vector<Case> cases;
  for (const auto& group : {of_globals(), of_parts(), of_numpy_numbers(), of_pickles(), of_tensors(), of_archives(),
                            of_legacy(), of_scripted()})
    cases.insert(cases.end(), group.begin(), group.end());
  return cases;
}

}  // namespace hostile_torch
