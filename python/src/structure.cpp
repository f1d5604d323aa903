// Nested tuples, lists and dictionaries of tensors.
#include "structure.h"

namespace ferrite::python {

Structure Structure::of(nb::handle object, Tensors& tensors, const char* where) {
  const Nesting level;
  Structure s;
  if (object.is_none()) return s;
  if (PyTuple_Check(object.ptr()) || PyList_Check(object.ptr())) {
    s.kind_ = PyList_Check(object.ptr()) ? Kind::list : Kind::tuple;
    if (s.kind_ == Kind::tuple && nb::hasattr(object, "_fields")) s.type_ = Kept(object.type());
    for (nb::handle each : object) s.parts_.push_back(of(each, tensors, where));
    return s;
  }
  if (PyDict_Check(object.ptr())) {
    s.kind_ = Kind::dict;
    for (const auto& [key, value] : nb::borrow<nb::dict>(object)) {
      s.names_.push_back(nb::cast<std::string>(key));
      s.parts_.push_back(of(value, tensors, where));
    }
    return s;
  }
  if (!is_tensor(object) && !is_array_like(object))
    throw ValueError(std::string(where) +
                     ": neither a tensor, an array or a number, nor a tuple, list or dictionary of " +
                     "them: " + nb::cast<std::string>(nb::str(nb::handle(object.type()).attr("__name__"))));
  s.kind_ = Kind::tensor;
  tensors.push_back(tensor_of(object));
  return s;
}

nb::object Structure::object(const Tensors& tensors, std::size_t& next) const {
  switch (kind_) {
    case Kind::none: return nb::none();
    case Kind::tensor: return nb::cast(tensors[next++]);
    case Kind::dict: {
      nb::dict all;
      for (std::size_t i = 0; i < parts_.size(); ++i) all[names_[i].c_str()] = parts_[i].object(tensors, next);
      return all;
    }
    case Kind::list:
    case Kind::tuple: break;
  }
  nb::list all;
  for (const Structure& p : parts_) all.append(p.object(tensors, next));
  if (kind_ == Kind::list) return all;
  return type_ ? type_.get()(*all) : nb::object(nb::tuple(all));
}

bool Structure::operator==(const Structure& o) const {
  return kind_ == o.kind_ && parts_ == o.parts_ && names_ == o.names_ && type_.get().is(o.type_.get());
}

}  // namespace ferrite::python
