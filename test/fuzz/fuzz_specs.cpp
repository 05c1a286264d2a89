// Any text, read as a spec: it is refused, or its normal form is a fixed point, however the keys were
// ordered.
#include "qinglong_sched/core/canonical_json.hpp"
#include "qinglong_sched/core/digests.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>

using namespace qinglong::core;

namespace {

void require(bool truth) {
    if (!truth) {
        std::abort();
    }
}

void reverse_keys(Json& value) {
    std::reverse(value.members.begin(), value.members.end());
    for (JsonMember& member : value.members) {
        reverse_keys(member.value);
    }
    for (Json& item : value.items) {
        reverse_keys(item);
    }
}

void check_fixed_point(const Json& given, const std::function<Spec(const Json&)>& validate) {
    try {
        const Spec spec = validate(given);
        const std::string text = canonical_spec(spec);
        Json again = parse_json(text, task_limits);
        require(canonical_spec(validate(again)) == text);
        reverse_keys(again);
        require(canonical_spec(validate(again)) == text);
        if (spec.schema == command_schema) {
            const Json plan = compile_execution_plan(spec);
            execution_digest_input({"p", "t", 1, std::string(64, '0'), std::string(executor_type),
                                    std::string(plan_schema), plan});
        }
    } catch (const InvalidSpec& error) {
        require(!error.path.empty() && !error.hint.empty());
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto number = canonical_number(text)) {
        require(canonical_number(*number) == number);
    }
    Json given;
    try {
        given = parse_json(text, task_limits);
        const std::string canonical = canonical_json(given, stored_limits);
        require(canonical_json(parse_json(canonical, task_limits), stored_limits) == canonical);
    } catch (const InvalidSpec&) {
        return 0;
    }
    check_fixed_point(given, [](const Json& spec) { return validate_task_spec(spec, {"p", "command"}); });
    check_fixed_point(given, validate_trigger_spec);
    return 0;
}
