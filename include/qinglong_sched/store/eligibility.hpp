#pragma once
// The schedule rows that a change of a head or a project concerns. Every such change updates them in the same
// transaction (table triggers call the sweeps), so that an admission, which holds its schedule row, never
// sees half of the change. Rows are locked in key order.

#include "qinglong_sched/pg/datum.hpp"

namespace qinglong::store {

// Locks, in key order, the eligible rows of triggers that pin another revision of the task than this one.
std::vector<std::string> lock_task_schedules(const std::string& project_id, const std::string& task_id,
                                             std::int32_t revision);
// Locks all rows of a project in key order.
void lock_project_schedules(const std::string& project_id);

// What a change takes away: the row becomes ineligible and its claim dies, what was due until now is noted
// for counting. A trigger whose head moves: its row, unless it is bound to that revision already.
void sweep_trigger(const std::string& project_id, const std::string& trigger_id, std::int32_t revision);
// A task whose head moves: the rows of triggers that pin another revision.
void sweep_task(const std::string& project_id, const std::string& task_id, std::int32_t revision);
// A project that is archived: all its rows; one that becomes active: those whose facts are current again
// become eligible and go on from now.
void sweep_project(const std::string& project_id, bool active);

} // namespace qinglong::store
