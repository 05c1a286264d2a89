#include "qinglong_sched/store/trigger_spec.hpp"

#include "qinglong_sched/core/stable_hash.hpp"
#include "qinglong_sched/pg/zone.hpp"

namespace qinglong::store {

StoredSpec parse_stored_spec(const std::string& json) {
    try {
        return core::parse_json(json, core::stored_limits);
    } catch (const core::InvalidSpec&) {
        return std::nullopt;
    }
}

SpecReadings read_spec_readings(const StoredSpec& stored) {
    const core::Json* const config = stored ? stored->find("config") : nullptr;
    if (config == nullptr)
        return {};
    const auto text = [&](std::string_view name) -> std::optional<std::string> {
        const core::Json* const member = config->find(name);
        if (member == nullptr || !member->is(core::Json::Kind::string))
            return std::nullopt;
        return member->text;
    };
    return {text("expression"), text("timezone"), text("misfirePolicy")};
}

core::Timing TriggerSpec::timing(const std::string& trigger_id, std::int64_t server_grace_ms) const {
    return {policy, grace_ms.value_or(server_grace_ms), core::due_delay_ms(trigger_id, jitter_ms)};
}

bool read_trigger_spec(const StoredSpec& stored, TriggerSpec& out, Damage& damage) {
    std::optional<core::ScheduleSpec> readable;
    try {
        if (stored)
            readable = core::read_schedule(core::read_spec(*stored));
    } catch (const core::InvalidSpec&) { // NOLINT(bugprone-empty-catch): then it is not readable
    }
    if (!readable) {
        damage = {"spec_damaged", "the stored trigger spec cannot be read"};
        return false;
    }
    const core::ScheduleSpec& read = *readable;
    out.schedule = read.schedule;
    out.policy = read.misfire_policy == "skip" ? core::MisfirePolicy::skip : core::MisfirePolicy::fire_once;
    out.jitter_ms = read.jitter_ms;
    out.grace_ms = read.grace_ms;
    if (out.schedule.kind != core::ScheduleKind::cron)
        return true;
    core::CronError error;
    if (!core::parse_cron(read.expression, out.schedule.expression, error)) {
        damage = {"spec_damaged", "the stored cron expression cannot be read"};
        return false;
    }
    const auto zone = pg::find_zone(read.timezone);
    if (!zone) {
        damage = {"zone_unknown", "the time zone of the stored trigger spec is not known to this server"};
        return false;
    }
    out.schedule.zone = *zone;
    return true;
}

} // namespace qinglong::store
