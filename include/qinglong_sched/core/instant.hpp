#pragma once
// RFC 3339 instants in specs, to the millisecond.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace qinglong::core {

// Strict: date, "T", time, at most three digits of a second, and "Z" or an offset; years 1970 to 9999 UTC.
// Anything else, a leap second included, is nothing.
std::optional<std::int64_t> parse_instant(std::string_view text);

// The one spelling that specs store: UTC with "Z", milliseconds only where there are any.
std::string print_instant(std::int64_t ms);

} // namespace qinglong::core
