#include "qinglong_sched/core/digests.hpp"

#include "qinglong_sched/core/canonical_json.hpp"

#include <algorithm>
#include <utility>

namespace qinglong::core {

namespace {

// An object whose members keep the order in which they are written.
class OrderedObject {
  public:
    OrderedObject& raw(std::string_view name, std::string_view json) {
        out_ += out_.empty() ? '{' : ',';
        append_json_string(out_, name);
        out_ += ':';
        out_ += json;
        return *this;
    }
    OrderedObject& text(std::string_view name, std::string_view value) {
        std::string quoted;
        append_json_string(quoted, value);
        return raw(name, quoted);
    }
    OrderedObject& integer(std::string_view name, std::int32_t value) {
        return raw(name, std::to_string(value));
    }
    OrderedObject& boolean(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
    std::string take() { return std::move(out_) + '}'; }

  private:
    std::string out_;
};

// The NUL ends the domain, so that no two kinds of content can share their bytes.
std::string in_domain(std::string_view domain, const std::string& json) {
    std::string out(domain);
    out += '\0';
    return out += json;
}

} // namespace

std::string task_digest_input(const TaskContent& task) {
    OrderedObject object;
    object.text("projectId", task.project_id)
        .text("taskId", task.task_id)
        .integer("revision", task.revision)
        .text("name", task.name);
    if (task.description) {
        object.text("description", *task.description);
    }
    return object.text("kind", task.kind)
        .raw("spec", canonical_spec(task.spec))
        .raw("labels", canonical_json(task.labels, stored_limits, "labels"))
        .boolean("enabled", task.enabled)
        .take();
}

std::string trigger_digest_input(const TriggerContent& trigger) {
    OrderedObject object;
    object.text("projectId", trigger.project_id)
        .text("triggerId", trigger.trigger_id)
        .integer("revision", trigger.revision)
        .text("taskId", trigger.task_id)
        .integer("taskRevision", trigger.task_revision)
        .text("taskContentDigest", trigger.task_content_digest)
        .raw("spec", canonical_spec(trigger.spec))
        .boolean("enabled", trigger.enabled);
    return in_domain("qinglong.trigger-definition.v1", object.take());
}

std::string execution_digest_input(const ExecutionContent& execution) {
    OrderedObject object;
    object.text("projectId", execution.project_id)
        .text("taskId", execution.task_id)
        .text("taskRevision", task_reference(execution.source_revision, execution.source_content_digest))
        .integer("sourceRevision", execution.source_revision)
        .text("sourceContentDigest", execution.source_content_digest)
        .text("executorType", execution.executor_type)
        .text("planSchema", execution.plan_schema);
    std::size_t covered = 0;
    for (const std::string_view name :
         {"command", "environment", "environmentBundleRef", "workingDirectory", "timeoutMs", "placement"}) {
        if (const Json* value = execution.plan.find(name)) {
            object.raw(name, canonical_json(*value, stored_limits, name));
            ++covered;
        }
    }
    // A member outside the digest could be changed unseen.
    if (covered != execution.plan.members.size() || execution.plan.find("command") == nullptr ||
        execution.plan.find("environment") == nullptr) {
        throw InvalidSpec("plan", "has missing or unknown members", "Publish the task again.");
    }
    return in_domain("qinglong.cluster-task-execution-revision.v1", object.take());
}

std::string task_reference(std::int32_t revision, std::string_view content_digest) {
    return "qltd:v1:" + std::to_string(revision) + ':' + std::string(content_digest);
}

} // namespace qinglong::core
