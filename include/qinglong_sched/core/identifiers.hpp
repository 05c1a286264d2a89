// Rules for names and scalars that arrive from outside. Each check answers nothing when all is well, else
// what is wrong, ready to follow the name of the argument ("must be ...").
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace qinglong::core {

using Fault = std::optional<std::string_view>;

Fault check_id(std::string_view id); // of a project, task or trigger
Fault check_owner_id(std::string_view owner);
Fault check_name(std::string_view name);
Fault check_description(std::string_view description);
Fault check_task_kind(std::string_view kind);
Fault check_schema_name(std::string_view schema);
Fault check_label_key(std::string_view key);
Fault check_label_value(std::string_view value);
Fault check_content_digest(std::string_view digest);
Fault check_revision(std::int64_t revision);

} // namespace qinglong::core
