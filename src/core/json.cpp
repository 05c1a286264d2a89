#include "qinglong_sched/core/json.hpp"

#include "qinglong_sched/core/canonical_json.hpp"

#include <algorithm>
#include <utility>

namespace qinglong::core {

InvalidSpec::InvalidSpec(std::string where, const std::string& message, std::string advice)
    : std::runtime_error(message), path(where.empty() ? "spec" : std::move(where)), hint(std::move(advice)) {}

Json Json::null() {
    return {};
}

Json Json::boolean(bool value) {
    Json json;
    json.kind = Kind::boolean;
    json.truth = value;
    return json;
}

Json Json::number(std::string text) {
    Json json;
    json.kind = Kind::number;
    json.text = std::move(text);
    return json;
}

Json Json::integer(std::int64_t value) {
    return number(std::to_string(value));
}

Json Json::string(std::string text) {
    Json json;
    json.kind = Kind::string;
    json.text = std::move(text);
    return json;
}

Json Json::array(std::vector<Json> items) {
    Json json;
    json.kind = Kind::array;
    json.items = std::move(items);
    return json;
}

Json Json::object(std::vector<JsonMember> members) {
    Json json;
    json.kind = Kind::object;
    json.members = std::move(members);
    return json;
}

const Json* Json::find(std::string_view name) const {
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const JsonMember& member) { return member.name == name; });
    return found == members.end() ? nullptr : &found->value;
}

void JsonBuilder::fail(const char* message, const char* advice) const {
    std::string path;
    for (const Frame& frame : open_) {
        if (frame.container.is(Json::Kind::array)) {
            path += '[' + std::to_string(frame.container.items.size()) + ']';
        } else if (!frame.key.empty()) {
            append_path_key(path, frame.key);
        }
    }
    throw InvalidSpec(std::move(path), message, advice);
}

void JsonBuilder::admit(std::size_t text_bytes) {
    // The canonical text is never shorter than the texts in it, so this refuses nothing that would fit.
    bytes_ += text_bytes;
    if (bytes_ > limits_.bytes) {
        throw InvalidSpec("", "is too large", "Move bulk content out of the spec.");
    }
}

void JsonBuilder::add(Json value) {
    if (++nodes_ > limits_.nodes) {
        throw InvalidSpec("", "has too many values", "Use fewer values.");
    }
    if (open_.empty()) {
        root_ = std::move(value);
        return;
    }
    Frame& top = open_.back();
    const bool in_object = top.container.is(Json::Kind::object);
    if ((in_object ? top.container.members.size() : top.container.items.size()) >= limits_.entries) {
        fail("is in a list or object with too many entries", "Use fewer entries.");
    }
    if (in_object) {
        top.container.members.push_back({std::move(top.key), std::move(value)});
        top.key.clear();
    } else {
        top.container.items.push_back(std::move(value));
    }
}

void JsonBuilder::begin(Json container) {
    if (open_.size() >= limits_.depth) {
        fail("is nested too deeply", "Flatten the value.");
    }
    open_.push_back({std::move(container), {}});
}

void JsonBuilder::begin_object() {
    begin(Json::object({}));
}

void JsonBuilder::begin_array() {
    begin(Json::array({}));
}

void JsonBuilder::end() {
    Json done = std::move(open_.back().container);
    open_.pop_back();
    add(std::move(done));
}

void JsonBuilder::key(std::string_view name) {
    if (!is_clean_utf8(name)) {
        fail("has a key that is not UTF-8 text", "Use UTF-8 without NUL characters.");
    }
    if (name.size() > limits_.key_bytes) {
        fail("has a key that is too long", "Use shorter keys.");
    }
    admit(name.size());
    open_.back().key = name;
}

void JsonBuilder::null() {
    add(Json::null());
}

void JsonBuilder::boolean(bool value) {
    add(Json::boolean(value));
}

void JsonBuilder::number(std::string_view text) {
    // Reduced at once: a numeric may come with a hundred thousand digits, of which the canonical text keeps
    // few.
    auto canonical = canonical_number(text);
    if (!canonical) {
        fail("is a number that would change its value in 64-bit floating point",
             "Give it as a string, or with at most 15 significant digits.");
    }
    add(Json::number(*std::move(canonical)));
}

void JsonBuilder::string(std::string_view text) {
    if (!is_clean_utf8(text)) {
        fail("is not UTF-8 text", "Use UTF-8 without NUL characters.");
    }
    admit(text.size());
    add(Json::string(std::string(text)));
}

Json JsonBuilder::finish() {
    return std::move(root_);
}

bool is_clean_utf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        if (lead == 0) {
            return false;
        }
        if (lead < 0x80) {
            ++i;
            continue;
        }
        const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        if (lead < 0xC2 || lead > 0xF4 || text.size() - i < length) {
            return false;
        }
        std::uint32_t point = lead & (0xFFU >> (length + 1));
        for (std::size_t k = 1; k < length; ++k) {
            const auto byte = static_cast<unsigned char>(text[i + k]);
            if ((byte & 0xC0) != 0x80) {
                return false;
            }
            point = (point << 6) | (byte & 0x3FU);
        }
        const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
        if (overlong || (point >= 0xD800 && point <= 0xDFFF) || point > 0x10FFFF) {
            return false;
        }
        i += length;
    }
    return true;
}

void append_path_key(std::string& path, std::string_view key) {
    if (!path.empty()) {
        path += '.';
    }
    // Where key and value were swapped the key may be a secret: shown is only what looks like a key of a
    // spec.
    const bool plain = !key.empty() && key.size() <= 32 && std::all_of(key.begin(), key.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
    path.append(plain ? key : "(hidden key)");
}

namespace {

class Parser {
  public:
    Parser(std::string_view text, const JsonLimits& limits) : text_(text), build_(limits) {}

    Json run() {
        value();
        skip_space();
        if (at_ != text_.size()) {
            fail();
        }
        return build_.finish();
    }

  private:
    [[noreturn]] static void fail() { throw InvalidSpec("", "is not valid JSON", "Check the JSON syntax."); }

    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    void skip_space() {
        while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos) {
            ++at_;
        }
    }

    bool accept(std::string_view token) {
        if (text_.substr(at_, token.size()) != token) {
            return false;
        }
        at_ += token.size();
        return true;
    }

    void expect(std::string_view token) {
        if (!accept(token)) {
            fail();
        }
    }

    // The builder bounds the depth before it recurses.
    void value() {
        skip_space();
        switch (peek()) {
        case '{':
            object();
            break;
        case '[':
            array();
            break;
        case '"':
            build_.string(string());
            break;
        case 't':
            expect("true");
            build_.boolean(true);
            break;
        case 'f':
            expect("false");
            build_.boolean(false);
            break;
        case 'n':
            expect("null");
            build_.null();
            break;
        default:
            number();
        }
    }

    void object() {
        expect("{");
        build_.begin_object();
        std::vector<std::string> seen;
        skip_space();
        while (!accept("}")) {
            if (!seen.empty()) {
                expect(",");
                skip_space();
            }
            std::string name = string();
            if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
                fail();
            }
            build_.key(name);
            seen.push_back(std::move(name));
            skip_space();
            expect(":");
            value();
            skip_space();
        }
        build_.end();
    }

    void array() {
        expect("[");
        build_.begin_array();
        bool first = true;
        skip_space();
        while (!accept("]")) {
            if (!std::exchange(first, false)) {
                expect(",");
            }
            value();
            skip_space();
        }
        build_.end();
    }

    void number() {
        const std::size_t start = at_;
        while (at_ < text_.size() &&
               std::string_view("+-.0123456789eE").find(text_[at_]) != std::string_view::npos) {
            ++at_;
        }
        if (at_ == start) {
            fail();
        }
        build_.number(text_.substr(start, at_ - start));
    }

    std::uint32_t hex4() {
        std::uint32_t unit = 0;
        for (int i = 0; i < 4; ++i, ++at_) {
            const char c = peek();
            const auto digit = std::string_view("0123456789abcdef")
                                   .find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
            if (digit == std::string_view::npos) {
                fail();
            }
            unit = unit << 4 | static_cast<std::uint32_t>(digit);
        }
        return unit;
    }

    static void append_utf8(std::string& out, std::uint32_t point) {
        const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
        if (point < 0x80) {
            put(point);
        } else if (point < 0x800) {
            put(0xC0 | point >> 6);
            put(0x80 | (point & 0x3F));
        } else if (point < 0x10000) {
            put(0xE0 | point >> 12);
            put(0x80 | (point >> 6 & 0x3F));
            put(0x80 | (point & 0x3F));
        } else {
            put(0xF0 | point >> 18);
            put(0x80 | (point >> 12 & 0x3F));
            put(0x80 | (point >> 6 & 0x3F));
            put(0x80 | (point & 0x3F));
        }
    }

    std::string string() {
        expect("\"");
        std::string out;
        for (;;) {
            const char c = peek();
            if (static_cast<unsigned char>(c) < 0x20) {
                fail();
            }
            ++at_;
            if (c == '"') {
                return out;
            }
            if (c != '\\') {
                out += c;
                continue;
            }
            const char escape = peek();
            ++at_;
            constexpr std::string_view from = "\"\\/bfnrt";
            constexpr std::string_view to = "\"\\/\b\f\n\r\t";
            if (const auto which = from.find(escape); which != std::string_view::npos) {
                out += to[which];
                continue;
            }
            if (escape != 'u') {
                fail();
            }
            std::uint32_t point = hex4();
            if (point >= 0xD800 && point < 0xDC00) {
                expect("\\u");
                const std::uint32_t low = hex4();
                if (low < 0xDC00 || low > 0xDFFF) {
                    fail();
                }
                point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
            }
            append_utf8(out, point); // a lone low surrogate is not clean UTF-8, the builder refuses it
        }
    }

    std::string_view text_;
    std::size_t at_ = 0;
    JsonBuilder build_;
};

} // namespace

Json parse_json(std::string_view text, const JsonLimits& limits) {
    return Parser(text, limits).run();
}

} // namespace qinglong::core
