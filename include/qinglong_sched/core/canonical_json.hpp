// The one text form of a JSON value: what digests are taken of.
#pragma once

#include "qinglong_sched/core/json.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace qinglong::core {

// No white space, keys sorted by their UTF-8 bytes, strings and numbers as ECMAScript's JSON.stringify writes
// them. Throws InvalidSpec when a limit is passed, a key comes twice, a text is not clean UTF-8 or a number
// would change its value. `root` starts the path in errors.
std::string canonical_json(const Json& value, const JsonLimits& limits, std::string_view root = "");

// A JSON number as ECMAScript writes the nearest binary64; nothing when that would be another value (too many
// digits, overflow, underflow) or the text is no JSON number.
std::optional<std::string> canonical_number(std::string_view text);

// Appends the quoted string; only what JSON demands is escaped.
void append_json_string(std::string& out, std::string_view text);

} // namespace qinglong::core
