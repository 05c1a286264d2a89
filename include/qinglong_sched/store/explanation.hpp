#pragma once
// What a published trigger is going to do.

#include "qinglong_sched/core/explain.hpp"

namespace qinglong::store {

// The next occurrences that will be admitted if a scheduler looks now, or nothing while the trigger may not
// fire. Needs SPI; throws 22023 when there is no such trigger, QL002 when its spec cannot be read.
std::vector<core::Explained> explain_trigger(const std::string& project_id, const std::string& trigger_id,
                                             std::size_t count, std::int64_t grace_ms);

} // namespace qinglong::store
