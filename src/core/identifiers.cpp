#include "qinglong_sched/core/identifiers.hpp"

#include "qinglong_sched/core/json.hpp"

#include <algorithm>

namespace qinglong::core {

namespace {

bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_alphanumeric(char c) {
    return is_lower(c) || is_digit(c) || (c >= 'A' && c <= 'Z');
}

bool is_text(std::string_view text, std::size_t least, std::size_t most) {
    return text.size() >= least && text.size() <= most && is_clean_utf8(text);
}

// U+0000-001F, U+007F and, encoded as C2 80 to C2 9F, U+0080-009F: what [[:cntrl:]] is in SQL.
bool has_control(std::string_view utf8) {
    for (std::size_t i = 0; i < utf8.size(); ++i) {
        const auto byte = static_cast<unsigned char>(utf8[i]);
        if (byte < 0x20 || byte == 0x7F ||
            (byte == 0xC2 && i + 1 < utf8.size() && static_cast<unsigned char>(utf8[i + 1]) < 0xA0)) {
            return true;
        }
    }
    return false;
}

// [a-z][a-z0-9.-]{0,63}
bool is_schema_word(std::string_view word) {
    return !word.empty() && word.size() <= 64 && is_lower(word[0]) &&
           std::all_of(word.begin(), word.end(),
                       [](char c) { return is_lower(c) || is_digit(c) || c == '.' || c == '-'; });
}

// [a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?
bool is_label_word(std::string_view word) {
    const auto edge = [](char c) { return is_lower(c) || is_digit(c); };
    return !word.empty() && word.size() <= 63 && edge(word.front()) && edge(word.back()) &&
           std::all_of(word.begin(), word.end(),
                       [&](char c) { return edge(c) || c == '.' || c == '_' || c == '-'; });
}

} // namespace

Fault check_id(std::string_view id) {
    if (!is_text(id, 1, 128)) {
        return "must be 1 to 128 bytes of UTF-8";
    }
    if (has_control(id)) {
        return "must not contain control characters";
    }
    return {};
}

Fault check_owner_id(std::string_view owner) {
    const bool fits = !owner.empty() && owner.size() <= 128 && is_alphanumeric(owner[0]) &&
                      std::all_of(owner.begin(), owner.end(), [](char c) {
                          return is_alphanumeric(c) || c == '.' || c == '_' || c == ':' || c == '-';
                      });
    if (!fits) {
        return "must be 1 to 128 of the characters A-Z a-z 0-9 . _ : - and begin with a letter or digit";
    }
    return {};
}

Fault check_name(std::string_view name) {
    if (!is_text(name, 1, 255)) {
        return "must be 1 to 255 bytes of UTF-8";
    }
    return {};
}

Fault check_description(std::string_view description) {
    if (!is_text(description, 1, 4'096)) {
        return "must be 1 to 4096 bytes of UTF-8";
    }
    return {};
}

Fault check_task_kind(std::string_view kind) {
    for (const std::string_view known : {"script", "command", "workflow", "agent", "tool"}) {
        if (kind == known) {
            return {};
        }
    }
    return "must be one of script, command, workflow, agent and tool";
}

Fault check_schema_name(std::string_view schema) {
    constexpr std::string_view shape = "must look like example.org/name@v1, in lower case";
    const std::size_t slash = schema.find('/');
    const std::size_t version = schema.rfind("@v");
    if (slash == std::string_view::npos || version == std::string_view::npos || version < slash) {
        return shape;
    }
    const std::string_view number = schema.substr(version + 2);
    const bool fits = is_schema_word(schema.substr(0, slash)) &&
                      is_schema_word(schema.substr(slash + 1, version - slash - 1)) && !number.empty() &&
                      number.size() <= 6 && number[0] != '0' &&
                      std::all_of(number.begin(), number.end(), is_digit);
    if (!fits) {
        return shape;
    }
    return {};
}

Fault check_label_key(std::string_view key) {
    const std::size_t slash = key.find('/');
    const bool fits = slash == std::string_view::npos
                          ? is_label_word(key)
                          : is_label_word(key.substr(0, slash)) && is_label_word(key.substr(slash + 1));
    if (!fits) {
        return "must be one or two words joined by /, each 1 to 63 of the characters a-z 0-9 . _ - and with "
               "a "
               "letter or digit at both ends";
    }
    return {};
}

Fault check_label_value(std::string_view value) {
    if (!is_text(value, 0, 256)) {
        return "must be at most 256 bytes of UTF-8";
    }
    return {};
}

Fault check_content_digest(std::string_view digest) {
    const bool fits = digest.size() == 64 && std::all_of(digest.begin(), digest.end(), [](char c) {
                          return is_digit(c) || (c >= 'a' && c <= 'f');
                      });
    if (!fits) {
        return "must be 64 lowercase hexadecimal digits";
    }
    return {};
}

Fault check_revision(std::int64_t revision) {
    if (revision < 1 || revision > 2'147'483'647) {
        return "must be from 1 to 2147483647";
    }
    return {};
}

} // namespace qinglong::core
