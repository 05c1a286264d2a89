// Any text: no crash, errors that point into the text, and what is printed parses back to the same.

#include "qinglong_sched/core/cron_expression.hpp"
#include "qinglong_sched/core/describe.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

using namespace qinglong::core;

namespace {

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::string normalized = normalize_cron(text);
    require(normalize_cron(normalized) == normalized);

    CronExpression expression;
    CronExpression again;
    CronError error;
    CronError error_again;
    const bool is_parsed = parse_cron(text, expression, error);
    require(parse_cron(normalized, again, error_again) == is_parsed);
    if (!is_parsed) {
        require(error.position >= 1 && error.position <= normalized.size() + 1);
        require(error.position == error_again.position && error.field == error_again.field);
        require(!error.message.empty() && !error.expected.empty());
        require(!cron_error_text(error).empty());
        require(expression == CronExpression{});
        return 0;
    }
    require(again == expression);
    require(expression.seconds >> 60 == 0 && expression.minutes >> 60 == 0 && expression.hours >> 24 == 0);
    require((expression.days & 1U) == 0 && (expression.nearest_workdays & 1U) == 0);
    require((expression.months & 0xE001U) == 0 && expression.weekdays >> 35 == 0 &&
            expression.last_weekdays >> 7 == 0);
    require(expression.seconds != 0 && expression.minutes != 0 && expression.hours != 0 &&
            expression.months != 0);

    require(!describe(expression).empty());
    const std::string printed = print_cron(expression);
    CronExpression reparsed;
    if (parse_cron(printed, reparsed, error)) {
        require(reparsed == expression);
        require(print_cron(reparsed) == printed);
    } else {
        require(error.field == CronField::day_of_month && error.message == "field too long");
    }
    return 0;
}
