#pragma once

#include "doctor/answers.hpp"
#include "doctor/recorded_tree.hpp"
#include "topology/root.hpp"

namespace gdrbench::doctor {

/// All that readers and checks may look at of a root, and answers.json and topology.xml (hwloc's export):
/// what
/// `--snapshot` takes. Files that cannot be read become links to themselves, which cannot be read either. For
/// a process without threads and GPU: hwloc exports in a child.
RecordedTree record(const topology::Root& root, const Answers& answers);

}  // namespace gdrbench::doctor
