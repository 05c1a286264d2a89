// Task and trigger specs: what may be published, in which normal form, and the execution plan made of it.
#pragma once

#include "qinglong_sched/core/json.hpp"
#include "qinglong_sched/core/schedule.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace qinglong::core {

inline constexpr std::string_view command_schema = "qinglong/command@v1";
inline constexpr std::string_view cron_schema = "qinglong/cron@v1";
inline constexpr std::string_view cron_v2_schema = "qinglong/cron@v2";
inline constexpr std::string_view interval_schema = "qinglong/interval@v1";
inline constexpr std::string_view once_schema = "qinglong/once@v1";
inline constexpr std::string_view plan_schema = "qinglong/command-execution@v1";
inline constexpr std::string_view executor_type = "remote_worker";
// Placement speaks of the same executor with a hyphen.
inline constexpr std::string_view placement_executor = "remote-worker";

struct Spec {
    std::string schema;
    Json config;
};

// What the rules for a task spec need to know besides the spec.
struct TaskScope {
    std::string_view project_id;
    std::string_view kind;
};

// The content of a qinglong/cron@v1 trigger.
struct CronTrigger {
    std::string expression;
    std::string timezone;
    std::string misfire_policy; // skip or fire_once
};

// A trigger spec of one of the kinds that have a schedule.
struct ScheduleSpec {
    // Complete but for a cron schedule's expression and zone, which are the texts below.
    Schedule schedule;
    std::string expression;
    std::string timezone;
    std::string misfire_policy;
    std::int64_t jitter_ms = 0;
    std::optional<std::int64_t> grace_ms; // nothing: the server's setting
};

// All of these throw InvalidSpec, or UnsupportedSchema for a `qinglong/` schema that does not exist.

// Splits {schema, config} and judges nothing else: for specs that were validated when they were stored.
Spec read_spec(const Json& spec);

// The spec in normal form, defaults written out.
Spec validate_task_spec(const Json& spec, const TaskScope& scope);

// Whether triggers of this schema have a schedule. Others are stored and never fire.
bool has_schedule(std::string_view schema);

// Expression and time zone are checked for shape only. The caller evaluates both and puts the normalised
// expression and the zone in the catalogue's spelling in their place. Optional members stay out of the normal
// form where they were not given; instants are in the form of print_instant().
Spec validate_trigger_spec(const Json& spec);
ScheduleSpec read_schedule(const Spec& spec);
void put_cron_texts(Spec& spec, const std::string& expression, const std::string& timezone);
Spec cron_trigger_spec(const CronTrigger& trigger);

// Labels are an object of texts; the same object is returned for convenience.
const Json& validate_labels(const Json& labels);

// The execution plan of a validated qinglong/command@v1 spec.
Json compile_execution_plan(const Spec& spec);

// {"schema":...,"config":...}: the text to store and the form inside digests.
std::string canonical_spec(const Spec& spec);

} // namespace qinglong::core
