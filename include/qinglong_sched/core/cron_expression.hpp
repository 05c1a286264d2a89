#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace qinglong::core {

// A parsed expression: bit sets only, so it can be copied as bytes and live anywhere.
struct CronExpression {
    std::uint64_t seconds = 0;  // bit s
    std::uint64_t minutes = 0;  // bit m
    std::uint64_t weekdays = 0; // bit 7 * (k - 1) + w: the k-th weekday w of a month, 0 = Sunday, k = 1..5
    std::uint32_t hours = 0;    // bit h
    std::uint32_t days = 0;     // bit d
    std::uint32_t nearest_workdays = 0; // bit d: "dW"
    std::uint16_t months = 0;           // bit m
    std::uint8_t last_weekdays = 0;     // bit w: "w#L"
    bool last_day = false;              // "L"
    bool last_workday = false;          // "LW", which stands alone
    bool any_day = false;               // the day-of-month field is exactly "*" or "?"
    bool any_weekday = false;           // the same of the day-of-week field

    friend bool operator==(const CronExpression&, const CronExpression&) = default;
};
static_assert(std::is_trivially_copyable_v<CronExpression> && std::is_standard_layout_v<CronExpression>);

enum class CronField : std::uint8_t { expression, second, minute, hour, day_of_month, month, day_of_week };

std::string_view cron_field_name(CronField field);

// All texts are literals. The position counts characters from 1 in the normalized expression; it is one
// beyond the end where something is missing there.
struct CronError {
    CronField field = CronField::expression;
    std::uint32_t position = 0;
    std::string_view message;
    std::string_view expected;
    std::string_view hint; // may be empty
};

// Every text the parser accepts has one meaning for ever: "qinglong/cron@v1".
bool parse_cron(std::string_view text, CronExpression& out, CronError& error);

// Trims, and collapses runs of ASCII blanks to single spaces.
std::string normalize_cron(std::string_view text);

// Canonical six-field text that parses back to an equal value. (Only a day-of-month field that mixes dozens
// of "nW" with stepped ranges can come out longer than a field may be.)
std::string print_cron(const CronExpression& expression);

// "minute, character 3: value out of range; expected 0 to 59", without the hint.
std::string cron_error_text(const CronError& error);

} // namespace qinglong::core
