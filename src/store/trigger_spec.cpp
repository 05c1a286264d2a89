#include "qinglong_sched/store/trigger_spec.hpp"

#include "qinglong_sched/core/stable_hash.hpp"
#include "qinglong_sched/pg/zone.hpp"

namespace qinglong::store {

SpecReadings read_spec_readings(const std::string& json) {
    SpecReadings readings;
    try {
        const core::Json spec = core::parse_json(json, core::stored_limits);
        const core::Json* const config = spec.find("config");
        if (config == nullptr)
            return readings;
        const auto text = [&](std::string_view name) -> std::optional<std::string> {
            const core::Json* const member = config->find(name);
            if (member == nullptr || !member->is(core::Json::Kind::string))
                return std::nullopt;
            return member->text;
        };
        readings = {text("expression"), text("timezone"), text("misfirePolicy")};
    } catch (const core::InvalidSpec&) { // NOLINT(bugprone-empty-catch): a damaged spec has no readings
    }
    return readings;
}

core::Timing TriggerSpec::timing(const std::string& trigger_id, std::int64_t server_grace_ms) const {
    return {policy, grace_ms.value_or(server_grace_ms), core::due_delay_ms(trigger_id, jitter_ms)};
}

bool read_trigger_spec(const std::string& json, TriggerSpec& out, Damage& damage) {
    core::ScheduleSpec read;
    try {
        read = core::read_schedule(core::validate_trigger_spec(core::parse_json(json, core::trigger_limits)));
    } catch (const core::InvalidSpec&) {
        damage = {"spec_damaged", "the stored trigger spec cannot be read"};
        return false;
    }
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
