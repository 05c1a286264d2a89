#include "qinglong_sched/core/cron_expression.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace qinglong::core {
namespace {

constexpr std::size_t kMaxFieldBytes = 128;
constexpr std::size_t kMaxFields = 6;

constexpr std::array<std::string_view, 12> kMonthNames{"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                                       "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::array<std::string_view, 7> kWeekdayNames{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};

struct FieldRules {
    CronField field;
    std::uint32_t min;
    std::uint32_t max; // of a value; "*" and "a/n" end at min + size - 1
    std::uint32_t size;
    std::string_view values;
    std::string_view steps;
    std::string_view items;
};

constexpr std::array<FieldRules, kMaxFields> kFields{{
    {CronField::second, 0, 59, 60, "0 to 59", "a step of 1 to 60",
     "*, n, n-m or these with /step, in a comma list"},
    {CronField::minute, 0, 59, 60, "0 to 59", "a step of 1 to 60",
     "*, n, n-m or these with /step, in a comma list"},
    {CronField::hour, 0, 23, 24, "0 to 23", "a step of 1 to 24",
     "*, n, n-m or these with /step, in a comma list"},
    {CronField::day_of_month, 1, 31, 31, "1 to 31", "a step of 1 to 31",
     "*, n, n-m or these with /step, L or nW, in a comma list, or LW alone"},
    {CronField::month, 1, 12, 12, "1 to 12 or JAN to DEC", "a step of 1 to 12",
     "*, n, n-m or these with /step, in a comma list"},
    {CronField::day_of_week, 0, 7, 7, "0 to 7 or SUN to SAT", "a step of 1 to 7",
     "*, n, n-m or these with /step, n#1 to n#5, n#L or nL, in a comma list"},
}};

struct Macro {
    std::string_view name;
    std::string_view hint;
};

constexpr std::array<Macro, 8> kMacros{{
    {"@YEARLY", "write 0 0 1 1 * instead of @yearly"},
    {"@ANNUALLY", "write 0 0 1 1 * instead of @annually"},
    {"@MONTHLY", "write 0 0 1 * * instead of @monthly"},
    {"@WEEKLY", "write 0 0 * * 0 instead of @weekly"},
    {"@DAILY", "write 0 0 * * * instead of @daily"},
    {"@MIDNIGHT", "write 0 0 * * * instead of @midnight"},
    {"@HOURLY", "write 0 * * * * instead of @hourly"},
    {"@EVERY", "write a step, such as */5 * * * * for every five minutes"},
}};

constexpr bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

constexpr char to_upper(char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

constexpr bool is_letter(char c) {
    const char upper = to_upper(c);
    return upper >= 'A' && upper <= 'Z';
}

constexpr bool is_allowed(char c) {
    return is_digit(c) || is_letter(c) || std::string_view("*?,/#-").find(c) != std::string_view::npos;
}

bool equal_ignoring_case(std::string_view text, std::string_view upper) {
    return text.size() == upper.size() && std::equal(text.begin(), text.end(), upper.begin(),
                                                     [](char a, char b) { return to_upper(a) == b; });
}

// Bits first, first + step, ... up to last.
constexpr std::uint64_t bits_of(std::uint32_t first, std::uint32_t last, std::uint32_t step) {
    std::uint64_t bits = 0;
    for (std::uint32_t value = first; value <= last; value += step) {
        bits |= std::uint64_t{1} << value;
    }
    return bits;
}

// Reads one field into `bits`, and what only day fields have straight into the expression.
class FieldParser {
  public:
    FieldParser(std::string_view text, std::uint32_t position, const FieldRules& rules, CronExpression& out,
                CronError& error)
        : text_(text), position_(position), rules_(rules), out_(out), error_(error) {}

    bool parse() {
        if (text_.size() > kMaxFieldBytes) {
            return fail(0, "field too long", "at most 128 characters");
        }
        while (parse_item()) {
            if (at_ == text_.size()) {
                return true;
            }
            if (text_[at_] != ',') {
                return fail_at_tail();
            }
            ++at_;
        }
        return false;
    }

    std::uint64_t bits = 0;

  private:
    bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }

    bool skip(char c) {
        const bool found = at(c);
        at_ += found ? 1U : 0U;
        return found;
    }

    bool fail(std::size_t where, std::string_view message, std::string_view expected,
              std::string_view hint = {}) {
        error_ = {rules_.field, position_ + static_cast<std::uint32_t>(where), message, expected, hint};
        return false;
    }

    bool fail_at_tail() {
        const std::string_view expected = rules_.items;
        switch (text_[at_]) {
        case 'l':
        case 'w':
            return fail(at_, "unexpected character", expected, "L and W are upper case");
        case 'L':
            return fail(at_, "L does not belong here", expected);
        case 'W':
            return fail(at_, "W does not belong here", expected);
        case '#':
            return fail(at_, "# does not belong here", expected);
        case '*':
        case '?':
            return fail(at_, "a wildcard stands alone", expected);
        case '-':
            return fail(at_, "a range does not belong here", expected);
        case '/':
            return fail(at_, "a step does not belong here", expected);
        default:
            return fail(at_, "unexpected character", expected);
        }
    }

    // item = ( "*" | "?" | value [ "-" value ] ) [ "/" step ] [ "#" nth | "L" ] | "L" | "LW" | value "W"
    bool parse_item() {
        const bool is_day = rules_.field == CronField::day_of_month;
        const std::size_t start = at_;
        if (at_ == text_.size() || at(',')) {
            return fail(at_, "empty list item", rules_.items);
        }
        if (is_day && skip('L')) {
            return parse_last_day(start);
        }
        std::uint32_t first = rules_.min;
        std::uint32_t last = rules_.min + rules_.size - 1;
        const bool is_wildcard = skip('*') || skip('?');
        bool is_single = false;
        if (!is_wildcard) {
            if (!parse_value(first, false)) {
                return false;
            }
            if (is_day && skip('W')) {
                out_.nearest_workdays |= 1U << first;
                return true;
            }
            is_single = !at('-');
            if (is_single) {
                last = first;
            } else if (!parse_range_end(start, first, last)) {
                return false;
            }
        }
        const bool has_step = skip('/');
        std::uint32_t step = 1;
        if (has_step) {
            if (!parse_step(step)) {
                return false;
            }
            if (is_single) {
                last = rules_.min + rules_.size - 1;
            }
            if (first > last) {
                return fail(start, "the start lies beyond the last value", "a start of 0 to 6",
                            "Sunday is 0 here");
            }
        }
        const std::uint64_t values = bits_of(first, last, step);
        if (rules_.field != CronField::day_of_week) {
            bits |= values;
            return true;
        }
        return parse_weekday_tail(values, is_wildcard && !has_step, has_step);
    }

    bool parse_last_day(std::size_t start) {
        if (skip('W')) {
            out_.last_workday = true;
            return text_.size() == 2 || fail(start, "LW stands alone", "LW as the whole field");
        }
        if (out_.last_day) {
            return fail(start, "L is given twice", "L at most once");
        }
        out_.last_day = true;
        return true;
    }

    bool parse_range_end(std::size_t start, std::uint32_t first, std::uint32_t& last) {
        ++at_;
        if (!parse_value(last, true)) {
            return false;
        }
        if (last < first) {
            return fail(start, "the range runs backwards", "a range that ends at or after its start",
                        "write a range over the end as two, such as 22-23,0-2");
        }
        return true;
    }

    // Weekdays are kept as k-th weekdays of a month; a plain weekday is all five of them.
    bool parse_weekday_tail(std::uint64_t values, bool is_plain_wildcard, bool has_step) {
        const std::uint64_t weekdays = (values | values >> 7) & 127U;
        const std::size_t start = at_;
        const bool has_hash = skip('#');
        if (is_plain_wildcard && (has_hash || at('L'))) {
            return fail(start, "a wildcard stands alone", rules_.items);
        }
        if (!has_hash && !(at('L') && !has_step)) {
            for (std::uint32_t week = 0; week < 5; ++week) {
                bits |= weekdays << (7 * week);
            }
            return true;
        }
        if (skip('L')) {
            out_.last_weekdays = static_cast<std::uint8_t>(out_.last_weekdays | weekdays);
            return true;
        }
        std::uint32_t nth = 0;
        if (!parse_digits(nth) || nth < 1 || nth > 5) {
            return fail(start + 1, "wrong occurrence of a weekday", "1 to 5 or L after #");
        }
        bits |= weekdays << (7 * (nth - 1));
        return true;
    }

    bool parse_step(std::uint32_t& step) {
        const std::size_t start = at_;
        if (!parse_digits(step)) {
            return fail(start, "the step is missing", rules_.steps);
        }
        if (step < 1 || step > rules_.size) {
            return fail(start, "step out of range", rules_.steps);
        }
        return true;
    }

    bool parse_value(std::uint32_t& value, bool is_end) {
        const std::size_t start = at_;
        if (parse_digits(value)) {
            if (value < rules_.min || value > rules_.max) {
                return fail(start, "value out of range", rules_.values);
            }
            return true;
        }
        while (at_ < text_.size() && is_letter(text_[at_])) {
            ++at_;
        }
        std::string_view name = text_.substr(start, at_ - start);
        if (name.empty()) {
            return fail(start, "a value is missing", rules_.values);
        }
        if (rules_.field == CronField::day_of_week && name.size() == 4 && name.back() == 'L') {
            name.remove_suffix(1); // FRIL, the last Friday
            --at_;
        }
        return parse_name(name, start, is_end, value);
    }

    bool parse_name(std::string_view name, std::size_t start, bool is_end, std::uint32_t& value) {
        std::span<const std::string_view> names;
        if (rules_.field == CronField::month) {
            names = kMonthNames;
        } else if (rules_.field == CronField::day_of_week) {
            names = kWeekdayNames;
        } else {
            return fail(start, "names have no place in this field", rules_.values);
        }
        const auto found = std::find_if(names.begin(), names.end(), [name](std::string_view known) {
            return equal_ignoring_case(name, known);
        });
        if (found == names.end()) {
            return fail(start, "unknown name", rules_.values, "names have three letters, in any case");
        }
        value = rules_.min + static_cast<std::uint32_t>(found - names.begin());
        if (is_end && value == 0) {
            value = 7; // SAT-SUN
        }
        return true;
    }

    // False without a digit. Leading zeros are fine; a number too large for any field stays too large.
    bool parse_digits(std::uint32_t& value) {
        const std::size_t start = at_;
        value = 0;
        for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
            value = std::min(value * 10 + static_cast<std::uint32_t>(text_[at_] - '0'), std::uint32_t{1000});
        }
        return at_ > start;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::uint32_t position_;
    const FieldRules& rules_;
    CronExpression& out_;
    CronError& error_;
};

struct Split {
    std::array<std::string_view, kMaxFields> fields;
    std::array<std::uint32_t, kMaxFields> positions{}; // in the normalized expression
    std::size_t count = 0;                             // may exceed kMaxFields
    std::uint32_t end = 1;                             // one beyond the last character
    std::uint32_t excess = 0;                          // position of the field too many
    std::uint32_t illegal = 0;                         // position of the first character not allowed
    std::size_t illegal_in = 0;                        // the field that holds it
};

Split split(std::string_view text) {
    Split result;
    std::size_t at = 0;
    while (true) {
        while (at < text.size() && is_blank(text[at])) {
            ++at;
        }
        if (at == text.size()) {
            return result;
        }
        const std::size_t start = at;
        result.end += result.count > 0 ? 1U : 0U;
        const std::uint32_t position = result.end;
        for (; at < text.size() && !is_blank(text[at]); ++at) {
            if (!is_allowed(text[at]) && result.illegal == 0) {
                result.illegal = result.end;
                result.illegal_in = result.count;
            }
            // A character beyond ASCII takes several bytes; its later ones are not counted.
            result.end += (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U ? 1U : 0U;
        }
        if (result.count < kMaxFields) {
            result.fields[result.count] = text.substr(start, at - start);
            result.positions[result.count] = position;
        } else if (result.excess == 0) {
            result.excess = position;
        }
        ++result.count;
    }
}

bool fail_on_whole(const Split& parts, CronError& error) {
    constexpr std::string_view kFive =
        "five fields (minute, hour, day of month, month, day of week), or six with "
        "seconds first";
    if (parts.count > 0 && parts.fields[0].front() == '@') {
        error = {CronField::expression, 1, "macros are not supported", kFive, "write the fields themselves"};
        for (const Macro& macro : kMacros) {
            if (equal_ignoring_case(parts.fields[0], macro.name)) {
                error.hint = macro.hint;
            }
        }
        return false;
    }
    if (parts.illegal != 0) {
        const bool is_whole = parts.count == kMaxFields - 1 || parts.count == kMaxFields;
        error = {is_whole ? kFields[parts.illegal_in + kMaxFields - parts.count].field
                          : CronField::expression,
                 parts.illegal,
                 "character not allowed",
                 "letters A to Z, digits, * ? , / # - and plain blanks",
                 {}};
        return false;
    }
    if (parts.count < kMaxFields - 1) {
        error = {CronField::expression, parts.end, "too few fields", kFive, {}};
        return false;
    }
    if (parts.count > kMaxFields) {
        error = {CronField::expression, parts.excess, "too many fields", kFive, {}};
        return false;
    }
    return true;
}

bool is_any(std::string_view field) {
    return field == "*" || field == "?";
}

// Appends "a", "a-b" for each run of bits, each followed by `suffix`.
void print_bits(std::string& field, std::uint64_t bits, std::string_view suffix = {}) {
    for (std::uint32_t value = 0; value < 64; ++value) {
        if ((bits >> value & 1U) == 0) {
            continue;
        }
        field += field.empty() ? "" : ",";
        field += std::to_string(value);
        const std::uint32_t first = value;
        while (value < 63 && (bits >> value >> 1 & 1U) != 0) {
            ++value;
        }
        if (value > first) {
            field += '-';
            field += std::to_string(value);
        }
        field += suffix;
    }
}

std::string print_days(const CronExpression& expression) {
    if (expression.any_day) {
        return "*";
    }
    if (expression.last_workday) {
        return "LW";
    }
    std::string field;
    print_bits(field, expression.days);
    for (std::uint32_t day = 1; day <= 31; ++day) {
        if ((expression.nearest_workdays >> day & 1U) != 0) {
            print_bits(field, std::uint64_t{1} << day, "W");
        }
    }
    field += !expression.last_day ? "" : field.empty() ? "L" : ",L";
    return field;
}

std::string print_weekdays(const CronExpression& expression) {
    if (expression.any_weekday) {
        return "*";
    }
    std::string field;
    std::uint64_t plain = 127;
    for (int week = 0; week < 5; ++week) {
        plain &= expression.weekdays >> (7 * week);
    }
    print_bits(field, plain);
    for (int week = 0; week < 5; ++week) {
        const std::uint64_t weekdays = (expression.weekdays >> (7 * week)) & 127U & ~plain;
        print_bits(field, weekdays, "#" + std::to_string(week + 1));
    }
    print_bits(field, expression.last_weekdays, "#L");
    return field;
}

} // namespace

std::string_view cron_field_name(CronField field) {
    constexpr std::array<std::string_view, 7> kNames{"expression",   "second", "minute",     "hour",
                                                     "day of month", "month",  "day of week"};
    return kNames[static_cast<std::size_t>(field)];
}

bool parse_cron(std::string_view text, CronExpression& out, CronError& error) {
    const Split parts = split(text);
    if (!fail_on_whole(parts, error)) {
        return false;
    }
    const bool has_seconds = parts.count == kMaxFields;
    CronExpression parsed;
    std::array<std::uint64_t, kMaxFields> bits{1}; // without a seconds field, second 0
    for (std::size_t i = 0; i < parts.count; ++i) {
        const std::size_t field = has_seconds ? i : i + 1;
        FieldParser parser(parts.fields[i], parts.positions[i], kFields[field], parsed, error);
        if (!parser.parse()) {
            return false;
        }
        bits[field] = parser.bits;
    }
    parsed.seconds = bits[0];
    parsed.minutes = bits[1];
    parsed.hours = static_cast<std::uint32_t>(bits[2]);
    parsed.days = static_cast<std::uint32_t>(bits[3]);
    parsed.months = static_cast<std::uint16_t>(bits[4]);
    parsed.weekdays = bits[5];
    parsed.any_day = is_any(parts.fields[parts.count - 3]);
    parsed.any_weekday = is_any(parts.fields[parts.count - 1]);
    out = parsed;
    return true;
}

std::string normalize_cron(std::string_view text) {
    std::string normalized;
    for (const char c : text) {
        if (!is_blank(c)) {
            normalized += c;
        } else if (!normalized.empty() && normalized.back() != ' ') {
            normalized += ' ';
        }
    }
    if (!normalized.empty() && normalized.back() == ' ') {
        normalized.pop_back();
    }
    return normalized;
}

std::string print_cron(const CronExpression& expression) {
    std::string text;
    for (const std::uint64_t bits :
         {expression.seconds, expression.minutes, std::uint64_t{expression.hours}}) {
        std::string field;
        print_bits(field, bits);
        text += field + ' ';
    }
    text += print_days(expression) + ' ';
    std::string months;
    print_bits(months, expression.months);
    return text + months + ' ' + print_weekdays(expression);
}

std::string cron_error_text(const CronError& error) {
    std::string text(cron_field_name(error.field));
    text += ", character " + std::to_string(error.position) + ": ";
    text += error.message;
    text += "; expected ";
    text += error.expected;
    return text;
}

} // namespace qinglong::core
