#include "qinglong_sched/store/trigger_spec.hpp"

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

bool read_trigger_spec(const std::string& json, TriggerSpec& out, Damage& damage) {
    core::CronTrigger cron;
    try {
        cron = core::read_cron_trigger(
            core::validate_trigger_spec(core::parse_json(json, core::trigger_limits)));
    } catch (const core::InvalidSpec&) {
        damage = {"spec_damaged", "the stored trigger spec cannot be read"};
        return false;
    }
    core::CronError error;
    if (!core::parse_cron(cron.expression, out.schedule.expression, error)) {
        damage = {"spec_damaged", "the stored cron expression cannot be read"};
        return false;
    }
    const auto zone = pg::find_zone(cron.timezone);
    if (!zone) {
        damage = {"zone_unknown", "the time zone of the stored trigger spec is not known to this server"};
        return false;
    }
    out.schedule.zone = *zone;
    out.policy = cron.misfire_policy == "skip" ? core::MisfirePolicy::skip : core::MisfirePolicy::fire_once;
    return true;
}

} // namespace qinglong::store
