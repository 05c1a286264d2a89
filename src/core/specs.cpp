#include "qinglong_sched/core/specs.hpp"

#include "qinglong_sched/core/canonical_json.hpp"
#include "qinglong_sched/core/identifiers.hpp"
#include "qinglong_sched/core/instant.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

namespace qinglong::core {

namespace {

using Names = std::initializer_list<std::string_view>;

constexpr std::string_view reserved_schemas = "qinglong/";
constexpr std::string_view reserved_variables = "QL3_";
constexpr std::string_view secret_prefix = "qlsecret:v1:";

// One text of a command may be as large as the whole spec; the generic limit for strings holds elsewhere.
constexpr std::size_t largest_text = task_limits.bytes;
constexpr std::size_t largest_argument = 16'384;
constexpr std::size_t largest_path = 4'096;
constexpr std::int64_t longest_timeout_ms = 31'536'000'000;     // 365 days
constexpr std::int64_t longest_interval_ms = 3'155'760'000'000; // 100 years

std::string joined(std::string_view path, std::string_view name) {
    std::string out(path);
    append_path_key(out, name);
    return out;
}

std::string joined(std::string_view path, std::size_t index) {
    return std::string(path) + '[' + std::to_string(index) + ']';
}

std::optional<std::int64_t> to_integer(const Json& value) {
    const auto text = value.is(Json::Kind::number) ? canonical_number(value.text) : std::nullopt;
    if (!text) {
        return std::nullopt;
    }
    std::int64_t number = 0;
    const char* end = text->data() + text->size();
    const auto read = std::from_chars(text->data(), end, number);
    return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

bool is_integer(const Json& value, std::int64_t least, std::int64_t most) {
    const auto number = to_integer(value);
    return number && *number >= least && *number <= most;
}

// A value and where it stands, for reading with refusals that say where.
struct Place {
    const Json& value;
    std::string path;

    [[noreturn]] void refuse(const std::string& message, const char* advice) const {
        throw InvalidSpec(path, message, advice);
    }

    const Place& must_be_object() const {
        if (!value.is(Json::Kind::object)) {
            refuse("must be an object", "Give a JSON object here.");
        }
        return *this;
    }

    const Place& must_be_array() const {
        if (!value.is(Json::Kind::array)) {
            refuse("must be an array", "Give a JSON array here.");
        }
        return *this;
    }

    // An object of exactly these members; a missing one is the business of `at`.
    const Place& only(Names known) const {
        must_be_object();
        for (const JsonMember& member : value.members) {
            if (std::find(known.begin(), known.end(), member.name) == known.end()) {
                std::string advice = "Known here:";
                for (const std::string_view name : known) {
                    advice.append(name == *known.begin() ? " " : ", ").append(name);
                }
                throw InvalidSpec(joined(path, member.name), "is not known", advice + '.');
            }
        }
        return *this;
    }

    std::optional<Place> find(std::string_view name) const {
        const Json* found = value.find(name);
        return found == nullptr ? std::nullopt : std::optional<Place>({*found, joined(path, name)});
    }

    Place at(std::string_view name) const {
        if (auto found = find(name)) {
            return *std::move(found);
        }
        throw InvalidSpec(joined(path, name), "is missing", "Add it.");
    }

    Place at(std::size_t index) const { return {value.items[index], joined(path, index)}; }

    const std::string& text(std::size_t least, std::size_t most) const {
        if (!value.is(Json::Kind::string)) {
            refuse("must be a string", "Give a JSON string here.");
        }
        if (value.text.size() < least || value.text.size() > most) {
            refuse("must be " + std::to_string(least) + " to " + std::to_string(most) + " bytes",
                   "Change the length of the text.");
        }
        return value.text;
    }

    const std::string& one_of(Names choices) const {
        if (!value.is(Json::Kind::string) ||
            std::find(choices.begin(), choices.end(), value.text) == choices.end()) {
            std::string message = "must be";
            for (const std::string_view choice : choices) {
                message.append(choice == *choices.begin() ? " " : " or ").append(choice);
            }
            refuse(message, "Give one of these strings.");
        }
        return value.text;
    }

    void absolute_path() const {
        if (text(1, largest_path)[0] != '/') {
            refuse("must be an absolute path", "Begin the path with a slash.");
        }
    }

    std::int64_t integer(std::int64_t least, std::int64_t most) const {
        if (!is_integer(value, least, most)) {
            refuse("must be a whole number from " + std::to_string(least) + " to " + std::to_string(most),
                   "Give a JSON number in this range.");
        }
        return *to_integer(value);
    }

    std::int64_t instant() const {
        const auto read = parse_instant(text(1, 64));
        if (!read) {
            refuse("must be an RFC 3339 instant from 1970 to 9999",
                   "Write date, time and offset, such as 2026-03-29T09:30:00Z or 2026-03-29T09:30:00+02:00.");
        }
        return *read;
    }
};

std::optional<std::string> decode_base64url(std::string_view text) {
    constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::string out;
    unsigned bits = 0;
    int held = 0;
    for (const char c : text) {
        const auto digit = alphabet.find(c);
        if (digit == std::string_view::npos) {
            return {};
        }
        bits = (bits << 6 | static_cast<unsigned>(digit)) & 0xFFFFU;
        held += 6;
        if (held >= 8) {
            held -= 8;
            out += static_cast<char>(bits >> held & 0xFFU);
        }
    }
    // A lone last digit or set spare bits would be a second spelling of the same bytes.
    if (held >= 6 || (bits & ((1U << held) - 1U)) != 0) {
        return {};
    }
    return out;
}

enum class Version { optional, pinned };

// `qlsecret:v1:` + base64url of {"projectId":...,"name":...[,"version":...]}, in exactly this one spelling,
// so that two texts are the same secret only if they are equal. Nothing of it is ever shown.
void check_secret_reference(const Place& place, std::string_view project_id, Version version) {
    constexpr const char* advice = "Use the reference that the secret store gave out, unchanged.";
    const std::string_view reference = place.text(1, 512);
    std::optional<std::string> decoded;
    if (reference.starts_with(secret_prefix)) {
        decoded = decode_base64url(reference.substr(secret_prefix.size()));
    }
    Json payload;
    try {
        payload = parse_json(decoded.value_or(""), trigger_limits);
    } catch (const InvalidSpec&) {
        place.refuse("is not a secret reference", advice); // the inner error would speak of the payload
    }
    const Json* project = payload.find("projectId");
    const Json* name = payload.find("name");
    const Json* pinned = payload.find("version");
    if (project == nullptr || !project->is(Json::Kind::string) || name == nullptr ||
        !name->is(Json::Kind::string) || check_id(name->text) ||
        (pinned != nullptr && !is_integer(*pinned, 1, 2'147'483'647))) {
        place.refuse("is not a secret reference", advice);
    }
    std::string spelled = "{\"projectId\":";
    append_json_string(spelled, project->text);
    spelled += ",\"name\":";
    append_json_string(spelled, name->text);
    if (pinned != nullptr) {
        spelled += ",\"version\":" + pinned->text;
    }
    if (spelled + '}' != *decoded) {
        place.refuse("is not a secret reference", advice);
    }
    if (project->text != project_id) {
        place.refuse("belongs to another project", "Use a secret of the task's own project.");
    }
    if (version == Version::pinned && pinned == nullptr) {
        place.refuse("must pin a version", "Use a reference to one exact version of the bundle.");
    }
}

Json normal_command(const Place& command) {
    const std::string& kind = command.must_be_object().at("kind").one_of({"argv", "shell"});
    if (kind == "argv") {
        command.only({"kind", "file", "args"}).at("file").absolute_path();
        const Place args = command.at("args");
        if (args.must_be_array().value.items.size() > task_limits.entries) {
            args.refuse("must be at most " + std::to_string(task_limits.entries) + " arguments",
                        "Use fewer arguments.");
        }
        std::size_t total = 0;
        for (std::size_t i = 0; i < args.value.items.size(); ++i) {
            total += args.at(i).text(0, largest_argument).size();
        }
        if (total > largest_text) {
            args.refuse("must be at most " + std::to_string(largest_text) + " bytes together",
                        "Use fewer or shorter arguments.");
        }
        return command.value;
    }
    command.only({"kind", "command", "shell"}).at("command").text(1, largest_text);
    Json normal = command.value;
    if (const auto shell = command.find("shell")) {
        shell->one_of({"/bin/sh", "/bin/bash"});
    } else {
        normal.members.push_back({"shell", Json::string("/bin/sh")});
    }
    return normal;
}

void check_variable_name(const Place& place) {
    const std::string& name = place.text(1, 128);
    const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
    if (!letter(name[0]) ||
        !std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); })) {
        place.refuse("must be letters, digits and underscores, not beginning with a digit",
                     "Rename the variable.");
    }
    if (name.starts_with(reserved_variables)) {
        place.refuse("must not begin with QL3_", "The prefix QL3_ is reserved; rename the variable.");
    }
}

Json normal_environment(const Place& environment, std::string_view project_id) {
    Json normal = environment.must_be_array().value;
    if (normal.items.size() > task_limits.entries) {
        environment.refuse("must be at most " + std::to_string(task_limits.entries) + " variables",
                           "Use fewer variables, or a bundle.");
    }
    std::set<std::string_view> names;
    std::size_t total = 0;
    for (std::size_t i = 0; i < environment.value.items.size(); ++i) {
        const Place entry = environment.at(i);
        const Place name = entry.must_be_object().at("name");
        check_variable_name(name);
        if (!names.insert(name.value.text).second) {
            name.refuse("is given twice", "Give each variable once.");
        }
        total += name.value.text.size();
        if (entry.at("kind").one_of({"public", "secret"}) == "public") {
            total += entry.only({"name", "kind", "value"}).at("value").text(0, largest_argument).size();
        } else {
            const Place reference = entry.only({"name", "kind", "secretRef"}).at("secretRef");
            check_secret_reference(reference, project_id, Version::optional);
            total += reference.value.text.size();
        }
    }
    if (total > largest_text) {
        environment.refuse("must be at most " + std::to_string(largest_text) +
                               " bytes of names and values together",
                           "Use fewer or shorter variables.");
    }
    std::sort(normal.items.begin(), normal.items.end(),
              [](const Json& a, const Json& b) { return a.find("name")->text < b.find("name")->text; });
    return normal;
}

Json normal_command_config(const Place& config, std::string_view project_id) {
    config.only(
        {"command", "environment", "environmentBundleRef", "placement", "timeoutMs", "workingDirectory"});
    config.at("command");
    Json normal = Json::object({});
    for (const JsonMember& member : config.value.members) {
        const Place place = config.at(member.name);
        Json value = member.value;
        if (member.name == "command") {
            value = normal_command(place);
        } else if (member.name == "environment") {
            value = normal_environment(place, project_id);
        } else if (member.name == "environmentBundleRef") {
            check_secret_reference(place, project_id, Version::pinned);
        } else if (member.name == "placement") {
            place.must_be_object();
            canonical_json(value, task_limits, place.path); // the strings in it have no rule of their own
        } else if (member.name == "timeoutMs") {
            place.integer(1, longest_timeout_ms);
        } else {
            place.absolute_path();
        }
        normal.members.push_back({member.name, std::move(value)});
    }
    return normal;
}

Json as_json(const Spec& spec) {
    return Json::object({{"schema", Json::string(spec.schema)}, {"config", spec.config}});
}

void refuse_reserved(const Spec& spec, const char* advice) {
    if (spec.schema.starts_with(reserved_schemas)) {
        throw UnsupportedSchema("schema", "is not supported: schemas of qinglong/ are reserved", advice);
    }
}

std::optional<Place> find_in(const std::optional<Place>& outer, std::string_view name) {
    return outer ? outer->must_be_object().find(name) : std::nullopt;
}

// The task's own placement, completed: only this executor carries out the plans compiled here, so a placement
// that leaves the executors open is narrowed to it, and one that excludes it is refused rather than
// overruled.
Json effective_placement(const Place& config) {
    const auto own = config.find("placement");
    const auto required = find_in(own, "required");
    const auto executors = find_in(required, "executors");
    Json placement = own ? own->value : Json::object({});
    if (!placement.find("preferred")) {
        placement.members.push_back({"preferred", Json::array({})});
    }
    if (executors) {
        const auto& items = executors->must_be_array().value.items;
        if (std::none_of(items.begin(), items.end(), [](const Json& item) {
                return item.is(Json::Kind::string) && item.text == placement_executor;
            })) {
            executors->refuse("must contain remote-worker",
                              "Add \"remote-worker\", or leave the executors out.");
        }
        return placement;
    }
    Json completed = required ? required->value : Json::object({});
    completed.members.push_back({"executors", Json::array({Json::string(std::string(placement_executor))})});
    std::erase_if(placement.members, [](const JsonMember& member) { return member.name == "required"; });
    placement.members.push_back({"required", std::move(completed)});
    return placement;
}

} // namespace

Spec read_spec(const Json& spec) {
    const Place place{spec, ""};
    place.only({"schema", "config"});
    const Place schema = place.at("schema");
    const std::string& name = schema.text(1, largest_text);
    if (const Fault fault = check_schema_name(name)) {
        schema.refuse(std::string(*fault), "Name the schema of the spec.");
    }
    return {name, place.at("config").value};
}

Spec validate_task_spec(const Json& spec, const TaskScope& scope) {
    Spec normal = read_spec(spec);
    JsonLimits limits = task_limits;
    if (normal.schema == command_schema) {
        if (scope.kind != "command") {
            throw InvalidSpec("schema", "is only for tasks of kind command",
                              "Publish the task with kind command.");
        }
        normal.config = normal_command_config({*spec.find("config"), "config"}, scope.project_id);
        // The command's own rule grants a shell text 64 KiB, four times the generic limit of one string, and
        // every other string of this schema has a rule as well. So the generic string limit is replaced, not
        // added, and the limit on the whole canonical text still holds: it leaves a shell text nearly all of
        // the 64 KiB.
        limits.string_bytes = limits.bytes;
    } else {
        refuse_reserved(normal, "Use qinglong/command@v1, or a schema outside qinglong/.");
    }
    canonical_json(as_json(normal), limits);
    return normal;
}

bool has_schedule(std::string_view schema) {
    return schema == cron_schema || schema == cron_v2_schema || schema == interval_schema ||
           schema == once_schema;
}

Spec validate_trigger_spec(const Json& spec) {
    Spec normal = read_spec(spec);
    if (has_schedule(normal.schema)) {
        const ScheduleSpec read = read_schedule(normal);
        for (JsonMember& member : normal.config.members) {
            if (member.name == "startAt" || member.name == "anchorAt" || member.name == "at") {
                member.value.text = print_instant(read.schedule.begin_ms);
            } else if (member.name == "endAt") {
                member.value.text = print_instant(read.schedule.end_ms);
            }
        }
    } else {
        refuse_reserved(normal, "Use qinglong/cron@v1, qinglong/cron@v2, qinglong/interval@v1, "
                                "qinglong/once@v1, or a schema outside qinglong/.");
    }
    canonical_json(as_json(normal), trigger_limits);
    return normal;
}

ScheduleSpec read_schedule(const Spec& spec) {
    ScheduleSpec read;
    const Place config{spec.config, "config"};
    if (spec.schema == cron_schema) {
        config.only({"expression", "timezone", "misfirePolicy"});
    } else if (spec.schema == cron_v2_schema) {
        config.only({"expression", "timezone", "misfirePolicy", "gap", "overlap", "dayMatch", "startAt",
                     "endAt", "jitterMs", "misfireGraceMs"});
    } else if (spec.schema == interval_schema) {
        config.only({"everyMs", "anchorAt", "misfirePolicy"});
        read.schedule = interval_schedule(config.at("anchorAt").instant(),
                                          config.at("everyMs").integer(1'000, longest_interval_ms));
    } else if (spec.schema == once_schema) {
        config.only({"at", "misfirePolicy"});
        read.schedule = once_schedule(config.at("at").instant());
    } else {
        throw InvalidSpec("schema", "has no schedule", "Only cron, interval and once triggers have one.");
    }
    if (read.schedule.kind == ScheduleKind::cron) {
        read.expression = config.at("expression").text(1, 768);
        read.timezone = config.at("timezone").text(1, 128);
    }
    read.misfire_policy = config.at("misfirePolicy").one_of({"skip", "fire_once"});
    if (spec.schema != cron_v2_schema) {
        return read;
    }
    InstantRules& rules = read.schedule.rules;
    if (const auto gap = config.find("gap")) {
        rules.gap = gap->one_of({"shift", "skip"}) == "skip" ? Gap::skip : Gap::shift;
    }
    if (const auto overlap = config.find("overlap")) {
        const std::string& which = overlap->one_of({"first", "both", "second"});
        rules.overlap = which == "both"     ? Overlap::both
                        : which == "second" ? Overlap::second
                                            : Overlap::first;
    }
    if (const auto match = config.find("dayMatch")) {
        rules.day_match = match->one_of({"or", "and"}) == "and" ? DayMatch::both : DayMatch::either;
    }
    if (const auto start = config.find("startAt")) {
        read.schedule.begin_ms = start->instant();
    }
    if (const auto end = config.find("endAt")) {
        read.schedule.end_ms = end->instant();
        if (read.schedule.end_ms <= read.schedule.begin_ms) {
            end->refuse("must be later than startAt", "The end is exclusive.");
        }
    }
    if (const auto jitter = config.find("jitterMs")) {
        read.jitter_ms = jitter->integer(0, 300'000);
    }
    if (const auto grace = config.find("misfireGraceMs")) {
        read.grace_ms = grace->integer(0, 300'000);
    }
    return read;
}

void put_cron_texts(Spec& spec, const std::string& expression, const std::string& timezone) {
    for (JsonMember& member : spec.config.members) {
        if (member.name == "expression") {
            member.value.text = expression;
        } else if (member.name == "timezone") {
            member.value.text = timezone;
        }
    }
}

Spec cron_trigger_spec(const CronTrigger& trigger) {
    return {std::string(cron_schema), Json::object({{"expression", Json::string(trigger.expression)},
                                                    {"misfirePolicy", Json::string(trigger.misfire_policy)},
                                                    {"timezone", Json::string(trigger.timezone)}})};
}

const Json& validate_labels(const Json& labels) {
    constexpr std::size_t most_labels = 32;
    constexpr std::size_t most_bytes = 16'384;
    const Place place{labels, "labels"};
    if (place.must_be_object().value.members.size() > most_labels) {
        place.refuse("must be at most " + std::to_string(most_labels) + " labels", "Use fewer labels.");
    }
    for (const JsonMember& member : labels.members) {
        const Place label = place.at(member.name);
        if (const Fault fault = check_label_key(member.name)) {
            label.refuse("has a wrong key, which " + std::string(*fault), "Rename the label.");
        }
        if (const Fault fault = check_label_value(label.text(0, most_bytes))) {
            label.refuse(std::string(*fault), "Shorten the label's value.");
        }
    }
    canonical_json(labels, {most_bytes, most_labels + 1, 1, most_bytes, most_labels, 128}, "labels");
    return labels;
}

Json compile_execution_plan(const Spec& spec) {
    if (spec.schema != command_schema) {
        throw InvalidSpec("schema", "has no execution plan",
                          "Only qinglong/command@v1 tasks can be executed.");
    }
    const Place config{spec.config, "config"};
    Json plan = Json::object({});
    plan.members.push_back({"command", config.at("command").value});
    const auto environment = config.find("environment");
    plan.members.push_back({"environment", environment ? environment->value : Json::array({})});
    for (const char* name : {"environmentBundleRef", "workingDirectory", "timeoutMs"}) {
        if (const auto place = config.find(name)) {
            plan.members.push_back({name, place->value});
        }
    }
    plan.members.push_back({"placement", effective_placement(config)});
    canonical_json(plan, stored_limits, "plan");
    return plan;
}

std::string canonical_spec(const Spec& spec) {
    std::string out = "{\"schema\":";
    append_json_string(out, spec.schema);
    return out + ",\"config\":" + canonical_json(spec.config, stored_limits, "config") + '}';
}

} // namespace qinglong::core
