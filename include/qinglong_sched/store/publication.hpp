#pragma once
// Publication of tasks and triggers: an immutable revision, the head that points at it, and a trigger's
// schedule row, in one transaction. Call these with SPI open. A publication that the stored state refuses is
// QL001, damaged state QL002, a wrong argument 22023.

#include "qinglong_sched/pg/datum.hpp"

namespace qinglong::store {

struct TaskCommand {
    std::string project_id;
    std::string task_id;
    std::string name;
    std::optional<std::string> description;
    std::string kind;
    std::string spec;   // JSON
    std::string labels; // JSON
    bool enabled = true;
    std::optional<std::int32_t> expected_revision; // nothing creates
    std::optional<pg_uuid_t> mutation_id;
};

struct TriggerCommand {
    std::string project_id;
    std::string trigger_id;
    std::string task_id;
    std::int32_t task_revision = 0;
    std::string task_content_digest;
    std::string spec; // JSON
    bool enabled = true;
    std::optional<std::int32_t> expected_revision; // nothing creates
    std::optional<pg_uuid_t> mutation_id;
};

enum class PublicationStatus { created, updated, existing };
const char* to_text(PublicationStatus status);

struct Publication {
    PublicationStatus status = PublicationStatus::existing;
    std::int32_t revision = 0;
    std::string content_digest;
};

Publication publish_task(const TaskCommand& command);
Publication publish_trigger(const TriggerCommand& command);

// The first publication of a database makes it the owner of its state; every publication holds the project
// row FOR SHARE, so that no archiving passes it by. Answers the project's status, nothing when there is none.
std::optional<std::string> begin_publication(const std::string& project_id);

struct Project {
    std::string id;
    std::string name;
    std::string slug;
    std::string status;
    std::int32_t version = 0;
    std::int64_t created_at_ms = 0;
    std::int64_t updated_at_ms = 0;
};

// Creates the project or changes what differs; no name keeps the stored one.
Project put_project(const std::string& project_id, const std::optional<std::string>& name,
                    const std::string& status);

struct ScheduleRequest {
    std::string project_id;
    std::string trigger_id; // also the task's id
    std::string expression;
    std::string timezone;
    std::string misfire_policy;
    std::string command;
};

struct Scheduled {
    PublicationStatus status = PublicationStatus::existing;
    std::int32_t trigger_revision = 0;
    std::optional<std::int64_t> next_fire_at_ms;
};

// A shell task and its cron trigger under one name; publishes only what differs.
Scheduled schedule(const ScheduleRequest& request);
// Publishes a disabled revision; false when there is nothing to disable.
bool unschedule(const std::string& project_id, const std::string& trigger_id);

} // namespace qinglong::store
