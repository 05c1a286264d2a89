#include "qinglong_sched/core/canonical_json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace qinglong::core {

namespace {

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// value = 0.digits * 10^point, without zeros at either end; zero has no digits.
struct Decimal {
    bool negative = false;
    std::string digits;
    std::int64_t point = 0;
};

std::optional<Decimal> parse_decimal(std::string_view text) {
    Decimal decimal;
    std::size_t at = 0;
    const auto digits = [&](std::string& out) {
        const std::size_t start = at;
        while (at < text.size() && is_digit(text[at])) {
            ++at;
        }
        out += text.substr(start, at - start);
        return at > start;
    };
    if (at < text.size() && text[at] == '-') {
        decimal.negative = true;
        ++at;
    }
    const std::size_t first = at;
    if (!digits(decimal.digits) || (text[first] == '0' && at > first + 1)) {
        return {};
    }
    decimal.point = static_cast<std::int64_t>(decimal.digits.size());
    if (at < text.size() && text[at] == '.') {
        ++at;
        if (!digits(decimal.digits)) {
            return {};
        }
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        ++at;
        const bool minus = at < text.size() && text[at] == '-';
        if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
            ++at;
        }
        std::int32_t exponent = 0;
        const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), exponent);
        if (error != std::errc() || exponent < 0) {
            return {};
        }
        at = static_cast<std::size_t>(end - text.data());
        decimal.point += minus ? -exponent : exponent;
    }
    if (at != text.size()) {
        return {};
    }
    const std::size_t zeros = std::min(decimal.digits.find_first_not_of('0'), decimal.digits.size());
    decimal.digits.erase(0, zeros);
    decimal.point -= static_cast<std::int64_t>(zeros);
    decimal.digits.erase(decimal.digits.find_last_not_of('0') + 1);
    return decimal;
}

// ECMAScript's Number::toString for k digits with the decimal point at n.
std::string format_ecmascript(const Decimal& decimal) {
    const std::string& digits = decimal.digits;
    const auto k = static_cast<std::int64_t>(digits.size());
    const std::int64_t n = decimal.point;
    std::string out = decimal.negative ? "-" : "";
    if (k <= n && n <= 21) {
        return out + digits + std::string(static_cast<std::size_t>(n - k), '0');
    }
    if (0 < n && n <= 21) {
        return out.append(digits, 0, static_cast<std::size_t>(n)) + '.' +
               digits.substr(static_cast<std::size_t>(n));
    }
    if (-6 < n && n <= 0) {
        return out + "0." + std::string(static_cast<std::size_t>(-n), '0') + digits;
    }
    out += digits[0];
    if (k > 1) {
        out += '.' + digits.substr(1);
    }
    return out + (n > 0 ? "e+" : "e-") + std::to_string(std::abs(n - 1));
}

class Writer {
  public:
    Writer(const JsonLimits& limits, std::string_view root) : limits_(limits), root_(root) {}

    // One step from the root to the value in hand; chained on the stack, rendered only when something is
    // wrong.
    struct Step {
        const Step* parent;
        const std::string* key; // nullptr in an array
        std::size_t index;
    };

    void write(const Json& value, std::size_t depth, const Step* at) {
        if (++nodes_ > limits_.nodes) {
            fail(nullptr, "has too many values (at most " + std::to_string(limits_.nodes) + ")",
                 "Use fewer values.");
        }
        switch (value.kind) {
        case Json::Kind::null:
            out_ += "null";
            break;
        case Json::Kind::boolean:
            out_ += value.truth ? "true" : "false";
            break;
        case Json::Kind::number:
            number(value, at);
            break;
        case Json::Kind::string:
            string(value, at);
            break;
        case Json::Kind::array:
            container(value.items.size(), depth, at);
            array(value, depth, at);
            break;
        case Json::Kind::object:
            container(value.members.size(), depth, at);
            object(value, depth, at);
            break;
        }
        if (out_.size() > limits_.bytes) {
            fail(nullptr, "is too large (at most " + std::to_string(limits_.bytes) + " bytes)",
                 "Move bulk content out of the spec.");
        }
    }

    std::string take() { return std::move(out_); }

  private:
    static void render(std::string& path, const Step* at) {
        if (at == nullptr) {
            return;
        }
        render(path, at->parent);
        if (at->key != nullptr) {
            append_path_key(path, *at->key);
        } else {
            path += '[' + std::to_string(at->index) + ']';
        }
    }

    [[noreturn]] void fail(const Step* at, const std::string& message, const char* advice) const {
        std::string path(root_);
        render(path, at);
        throw InvalidSpec(std::move(path), message, advice);
    }

    void container(std::size_t entries, std::size_t depth, const Step* at) const {
        if (depth > limits_.depth) {
            fail(at, "is nested too deeply (at most " + std::to_string(limits_.depth) + " levels)",
                 "Flatten the value.");
        }
        if (entries > limits_.entries) {
            fail(at, "has too many entries (at most " + std::to_string(limits_.entries) + ")",
                 "Use fewer entries.");
        }
    }

    void number(const Json& value, const Step* at) {
        const auto text = canonical_number(value.text);
        if (!text) {
            fail(at, "is a number that would change its value in 64-bit floating point",
                 "Give it as a string, or with at most 15 significant digits.");
        }
        out_ += *text;
    }

    void string(const Json& value, const Step* at) {
        if (value.text.size() > limits_.string_bytes) {
            fail(at, "is too long (at most " + std::to_string(limits_.string_bytes) + " bytes)",
                 "Shorten the text.");
        }
        if (!is_clean_utf8(value.text)) {
            fail(at, "is not UTF-8 text", "Use UTF-8 without NUL characters.");
        }
        append_json_string(out_, value.text);
    }

    void array(const Json& value, std::size_t depth, const Step* at) {
        out_ += '[';
        for (std::size_t i = 0; i < value.items.size(); ++i) {
            if (i > 0) {
                out_ += ',';
            }
            const Step step{at, nullptr, i};
            write(value.items[i], depth + 1, &step);
        }
        out_ += ']';
    }

    void object(const Json& value, std::size_t depth, const Step* at) {
        std::vector<const JsonMember*> sorted;
        sorted.reserve(value.members.size());
        for (const JsonMember& member : value.members) {
            sorted.push_back(&member);
        }
        // std::string compares as unsigned bytes.
        std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->name < b->name; });
        out_ += '{';
        const std::string* previous = nullptr;
        for (const JsonMember* member : sorted) {
            if (!is_clean_utf8(member->name)) {
                fail(at, "has a key that is not UTF-8 text", "Use UTF-8 without NUL characters.");
            }
            const Step step{at, &member->name, 0};
            if (member->name.size() > limits_.key_bytes) {
                fail(&step,
                     "is a key that is too long (at most " + std::to_string(limits_.key_bytes) + " bytes)",
                     "Use shorter keys.");
            }
            if (previous != nullptr) {
                if (*previous == member->name) {
                    fail(&step, "is given twice", "Give each key once.");
                }
                out_ += ',';
            }
            previous = &member->name;
            append_json_string(out_, member->name);
            out_ += ':';
            write(member->value, depth + 1, &step);
        }
        out_ += '}';
    }

    const JsonLimits& limits_;
    std::string_view root_;
    std::string out_;
    std::size_t nodes_ = 0;
};

} // namespace

std::string canonical_json(const Json& value, const JsonLimits& limits, std::string_view root) {
    Writer writer(limits, root);
    writer.write(value, 1, nullptr);
    return writer.take();
}

std::optional<std::string> canonical_number(std::string_view text) {
    const auto given = parse_decimal(text);
    if (!given) {
        return {};
    }
    if (given->digits.empty()) {
        return "0"; // minus zero is zero
    }
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value); // out of range shows in the comparison
    if (!std::isfinite(value)) {
        return {};
    }
    char buffer[32];
    const auto written = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
    const auto kept = parse_decimal(std::string_view(buffer, static_cast<std::size_t>(written.ptr - buffer)));
    if (!kept || kept->digits != given->digits || kept->point != given->point) {
        return {};
    }
    return format_ecmascript(*kept);
}

void append_json_string(std::string& out, std::string_view text) {
    out += '"';
    for (const char c : text) {
        constexpr std::string_view named = "\"\\\b\f\n\r\t";
        constexpr std::string_view letters = "\"\\bfnrt";
        if (const auto which = named.find(c); which != std::string_view::npos) {
            out += '\\';
            out += letters[which];
        } else if (static_cast<unsigned char>(c) < 0x20) {
            constexpr std::string_view hex = "0123456789abcdef";
            out += "\\u00";
            out += hex[static_cast<unsigned char>(c) >> 4];
            out += hex[static_cast<unsigned char>(c) & 15];
        } else {
            out += c;
        }
    }
    out += '"';
}

} // namespace qinglong::core
