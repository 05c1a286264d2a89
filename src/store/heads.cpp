#include "qinglong_sched/store/heads.hpp"

#include "qinglong_sched/pg/datum.hpp"

#include <map>
#include <tuple>

namespace qinglong::store {

namespace {

std::vector<pg::Version> find(const char* table, pg::Columns columns, const std::vector<pg::Value>& keys) {
    return pg::find_rows(pg::Find::visible, pg::table_oid("qinglong", table), columns, keys);
}

// Triggers share tasks, and all of them their project: each is looked up once.
template<typename Key>
class Distinct {
  public:
    // The place of the key among those seen; `fresh` when it is a new one.
    std::size_t place(const Key& key, bool& fresh) {
        const auto [found, inserted] = places_.try_emplace(key, places_.size());
        fresh = inserted;
        return found->second;
    }

  private:
    std::map<Key, std::size_t> places_;
};

} // namespace

std::vector<Heads> read_heads(const std::vector<RevisionKey>& keys, bool with_executions) {
    static constexpr const char* kTrigger[] = {"current_revision", "task_id"};
    static constexpr const char* kRevision[] = {"content_digest", "created_at_ms",       "task_id",
                                                "task_revision",  "task_content_digest", "spec_json",
                                                "enabled"};
    static constexpr const char* kTaskHead[] = {"current_revision"};
    static constexpr const char* kTask[] = {"content_digest", "name"};
    static constexpr const char* kExecution[] = {"task_revision", "source_content_digest", "plan_schema",
                                                 "plan_json", "content_digest"};
    static constexpr const char* kProject[] = {"status"};

    std::vector<pg::Value> trigger_keys, revision_keys;
    for (const RevisionKey& key : keys) {
        const pg::Value project = pg::value(key.project_id);
        const pg::Value trigger = pg::value(key.trigger_id);
        trigger_keys.insert(trigger_keys.end(), {project, trigger});
        revision_keys.insert(revision_keys.end(), {project, trigger, pg::value(key.revision)});
    }
    const auto triggers = find("triggers", kTrigger, trigger_keys);
    const auto revisions = find("trigger_revisions", kRevision, revision_keys);

    std::vector<Heads> heads(keys.size());
    std::vector<std::size_t> task_of(keys.size()), project_of(keys.size());
    Distinct<std::tuple<std::string_view, std::string, std::int32_t>> tasks;
    Distinct<std::string_view> projects;
    std::vector<pg::Value> head_keys, task_keys, execution_keys, project_keys;
    const pg::Value remote_worker = pg::value(std::string_view("remote_worker"));
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (triggers[i].row_id == 0 || revisions[i].row_id == 0)
            continue;
        const pg::Row& revision = revisions[i].row;
        Heads& head = heads[i];
        head.trigger_digest = revision.string(0);
        head.published_at_ms = revision.bigint(1);
        head.task_id = revision.string(2);
        head.task_revision = revision.integer(3);
        head.task_digest = revision.string(4);
        head.spec = revision.datum(5);
        head.current = triggers[i].row.integer(0) == keys[i].revision && revision.boolean(6) &&
                       triggers[i].row.string(1) == head.task_id;
        const pg::Value project = trigger_keys[2 * i];
        bool fresh;
        task_of[i] = tasks.place({keys[i].project_id, head.task_id, head.task_revision}, fresh);
        if (fresh) {
            const pg::Value task = pg::value(head.task_id);
            const pg::Value number = pg::value(head.task_revision);
            head_keys.insert(head_keys.end(), {project, task});
            task_keys.insert(task_keys.end(), {project, task, number});
            execution_keys.insert(execution_keys.end(), {project, task, number, remote_worker});
        }
        project_of[i] = projects.place(keys[i].project_id, fresh);
        if (fresh)
            project_keys.push_back(project);
    }
    const auto task_heads = find("task_definitions", kTaskHead, head_keys);
    const auto task_revisions = find("task_definition_revisions", kTask, task_keys);
    const auto project_rows = find("projects", kProject, project_keys);
    std::vector<pg::Version> executions;
    if (with_executions)
        executions = find("task_execution_revisions", kExecution, execution_keys);

    for (std::size_t i = 0; i < keys.size(); ++i) {
        Heads& head = heads[i];
        if (!head.current)
            continue;
        const pg::Version& task_head = task_heads[task_of[i]];
        const pg::Version& task = task_revisions[task_of[i]];
        const pg::Version& project = project_rows[project_of[i]];
        head.current = task_head.row_id != 0 && task_head.row.integer(0) == head.task_revision &&
                       task.row_id != 0 && task.row.string(0) == head.task_digest && project.row_id != 0 &&
                       project.row.string(0) == "active";
        if (!head.current)
            continue;
        head.task_name = task.row.string(1);
        if (with_executions && executions[task_of[i]].row_id != 0)
            head.execution = executions[task_of[i]].row;
    }
    return heads;
}

} // namespace qinglong::store
