#pragma once
/// The opcodes of pickles that data needs.
#include <cstdint>
#include <string_view>

namespace ferrite::io::detail {

/// Opcodes of pickles of protocols 2 to 5 that plain data needs, by CPython's names (Lib/pickletools.py).
enum class Opcode : std::uint8_t {
  mark = '(',
  stop = '.',
  pop = '0',
  pop_mark = '1',
  none = 'N',
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  binfloat = 'G',
  binstring = 'T',
  short_binstring = 'U',
  binunicode = 'X',
  binbytes = 'B',
  short_binbytes = 'C',
  empty_tuple = ')',
  empty_list = ']',
  empty_dict = '}',
  tuple = 't',
  append = 'a',
  appends = 'e',
  setitem = 's',
  setitems = 'u',
  binput = 'q',
  long_binput = 'r',
  binget = 'h',
  long_binget = 'j',
  global = 'c',
  reduce = 'R',
  build = 'b',
  binpersid = 'Q',
  proto = 0x80,
  newobj = 0x81,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  newtrue = 0x88,
  newfalse = 0x89,
  long1 = 0x8a,
  long4 = 0x8b,
  short_binunicode = 0x8c,
  binunicode8 = 0x8d,
  binbytes8 = 0x8e,
  empty_set = 0x8f,
  additems = 0x90,
  frozenset = 0x91,
  newobj_ex = 0x92,
  stack_global = 0x93,
  memoize = 0x94,
  frame = 0x95,
  bytearray8 = 0x96,
};

/// The name of an opcode that is refused, "INST"; empty for what is no opcode at all.
std::string_view refused_opcode(std::uint8_t code);

/// Bytes of the length that stands behind an opcode of a string, bytes or long; 0 for the others.
int length_bytes(Opcode code);

}  // namespace ferrite::io::detail
