// Any text, read as an instant and as each kind of name: what is accepted is clean, within its limits, and an
// instant prints back to itself.

#include "qinglong_sched/core/identifiers.hpp"
#include "qinglong_sched/core/instant.hpp"
#include "qinglong_sched/core/json.hpp"

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

void check(std::string_view text, Fault (*rule)(std::string_view), std::size_t most_bytes) {
    if (const Fault fault = rule(text)) {
        require(!fault->empty());
    } else {
        require(text.size() <= most_bytes && is_clean_utf8(text));
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto ms = parse_instant(text)) {
        require(*ms >= 0 && *ms <= 253402300799999);
        const std::string printed = print_instant(*ms);
        require(parse_instant(printed) == ms && print_instant(*parse_instant(printed)) == printed);
    }
    check(text, check_id, 128);
    check(text, check_owner_id, 128);
    check(text, check_name, 255);
    check(text, check_description, 4096);
    check(text, check_task_kind, 64);
    check(text, check_schema_name, 128);
    check(text, check_label_key, 127);
    check(text, check_label_value, 256);
    check(text, check_content_digest, 64);
    return 0;
}
