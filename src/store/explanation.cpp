#include "qinglong_sched/store/explanation.hpp"

#include "qinglong_sched/pg/datum.hpp"
#include "qinglong_sched/store/trigger_spec.hpp"

namespace qinglong::store {

std::vector<core::Explained> explain_trigger(const std::string& project_id, const std::string& trigger_id,
                                             std::size_t count, std::int64_t grace_ms) {
    static pg::Statement select = pg::statement<TEXTOID, TEXTOID>(
        "SELECT s.schedulable, s.next_fire_at_ms, r.created_at_ms, r.spec_json"
        "  FROM qinglong.trigger_schedules s"
        "  JOIN qinglong.trigger_revisions r"
        "    ON r.project_id = s.project_id AND r.trigger_id = s.trigger_id AND r.revision = "
        "s.trigger_revision"
        " WHERE s.project_id = $1 AND s.trigger_id = $2");
    const pg::Rows rows = pg::execute(select, {pg::value(project_id), pg::value(trigger_id)});
    if (rows.empty())
        throw pg::SqlError{ERRCODE_INVALID_PARAMETER_VALUE,
                           "trigger \"" + trigger_id + "\" of project \"" + project_id + "\" does not exist",
                           {},
                           "The view qinglong.schedules lists the triggers."};
    const pg::Row row(rows, 0);
    if (!row.boolean(0))
        return {};
    TriggerSpec spec;
    Damage damage;
    if (!read_trigger_spec(parse_stored_spec(pg::json_text(row.datum(3))), spec, damage))
        throw pg::SqlError{pg::kDamaged, damage.message, "It is the one of trigger \"" + trigger_id + "\".",
                           "A scheduler quarantines the trigger with this reason."};
    // As if it were claimed now.
    const core::Timing timing = spec.timing(trigger_id, grace_ms);
    const auto decision =
        core::decide(spec.schedule, timing, {row.maybe_bigint(1), row.bigint(2), pg::clock_ms()});
    if (!decision)
        return {};
    std::vector<core::Explained> explained;
    if (decision->scheduled_for_ms)
        explained = core::explain(spec.schedule, *decision->scheduled_for_ms - 1, 1);
    if (decision->next_fire_at_ms && count > explained.size()) {
        auto later = core::explain(spec.schedule, *decision->next_fire_at_ms - 1, count - explained.size());
        explained.insert(explained.end(), later.begin(), later.end());
    }
    if (timing.delay_ms > 0)
        for (core::Explained& each : explained)
            if (each.occurrence_ms)
                each.note.append(each.note.empty() ? "" : "; ")
                    .append("due " + std::to_string(timing.delay_ms) + " ms later");
    return explained;
}

} // namespace qinglong::store
