#pragma once
/// The parts of the bindings of data sets and training.
#include "ferrite/train/data_loader.h"
#include "ferrite/train/fit.h"
#include "kept.h"

namespace ferrite::python {

/// Returns the data set in an object: a Dataset, or a tuple or list of columns.
train::Dataset dataset_of(nb::handle data);
/// Returns a NumPy array of numbers.
nb::object array_of(std::vector<double> values);
/// Returns values by name as a dictionary.
nb::dict dict_of(const train::Logs& logs);
/// Returns what a Python object stands for in a list of metrics: a name, a Metric, or a function of (prediction,
/// target).
train::AnyMetric metric_of(nb::handle metric);

/// A running training as the callbacks of one call of `fit` see it in Python: one object, which says so when the
/// training has ended.
class Session {
 public:
  Session(nb::handle model, nb::handle optimizer, nb::handle data);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Returns the object for callbacks of the training that runs on this thread.
  static nb::object handle_of(train::Training& training);

 private:
  nb::object model_, optimizer_, data_, handle_;
  Session* outer_;
};

void define_callbacks(nb::module_& m);
void define_metrics(nb::module_& m);
void define_checkpoints(nb::module_& m);
void define_charts(nb::module_& m);

}  // namespace ferrite::python
