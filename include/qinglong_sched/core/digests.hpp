// The exact bytes whose SHA-256 identifies a revision. Hashing is the caller's.
#pragma once

#include "qinglong_sched/core/specs.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace qinglong::core {

struct TaskContent {
    std::string project_id;
    std::string task_id;
    std::int32_t revision = 0;
    std::string name;
    std::optional<std::string> description;
    std::string kind;
    Spec spec;
    Json labels = Json::object({});
    bool enabled = true;
};

struct TriggerContent {
    std::string project_id;
    std::string trigger_id;
    std::int32_t revision = 0;
    std::string task_id;
    std::int32_t task_revision = 0;
    std::string task_content_digest;
    Spec spec;
    bool enabled = true;
};

struct ExecutionContent {
    std::string project_id;
    std::string task_id;
    std::int32_t source_revision = 0;
    std::string source_content_digest;
    std::string executor_type;
    std::string plan_schema;
    Json plan;
};

// They throw InvalidSpec where a stored value has a shape that cannot have been published.
std::string task_digest_input(const TaskContent& task);
std::string trigger_digest_input(const TriggerContent& trigger);
std::string execution_digest_input(const ExecutionContent& execution);

// `qltd:v1:<revision>:<digest>`: names one exact task revision.
std::string task_reference(std::int32_t revision, std::string_view content_digest);

} // namespace qinglong::core
