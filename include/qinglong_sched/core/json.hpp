// A JSON value tree for specs, and the two ways to fill it within limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace qinglong::core {

// A spec that is refused. `path` says where (`config.environment[2].name`, or `spec` for the whole), `what()`
// what is wrong, `hint` what to do. None of them ever shows a command, an environment value or a secret.
struct InvalidSpec : std::runtime_error {
    InvalidSpec(std::string where, const std::string& message, std::string advice);
    std::string path;
    std::string hint;
};

// The schema itself is unknown here, which is not a mistake in the content.
struct UnsupportedSchema : InvalidSpec {
    using InvalidSpec::InvalidSpec;
};

struct JsonMember;

struct Json {
    enum class Kind { null, boolean, number, string, array, object };

    static Json null();
    static Json boolean(bool value);
    // `text` is any JSON number; it is kept as written so that no digit is lost before it is judged.
    static Json number(std::string text);
    static Json integer(std::int64_t value);
    static Json string(std::string text);
    static Json array(std::vector<Json> items);
    static Json object(std::vector<JsonMember> members);

    bool is(Kind other) const { return kind == other; }
    // The member of that name; nullptr when there is none or this is no object.
    const Json* find(std::string_view name) const;

    Kind kind = Kind::null;
    bool truth = false;
    std::string text; // of a string or a number
    std::vector<Json> items;
    std::vector<JsonMember> members;
};

struct JsonMember {
    std::string name;
    Json value;
};

struct JsonLimits {
    std::size_t bytes;        // of the whole canonical text
    std::size_t nodes;        // values of any kind, the root included
    std::size_t depth;        // nested arrays and objects, the root being the first
    std::size_t string_bytes; // of one string value, unescaped
    std::size_t entries;      // of one array or object
    std::size_t key_bytes;
};

inline constexpr JsonLimits task_limits{65'536, 1'024, 12, 16'384, 256, 128};
inline constexpr JsonLimits trigger_limits{16'384, 512, 8, 4'096, 128, 128};
// An execution plan may be this large; also wide enough for every spec that is already stored.
inline constexpr JsonLimits stored_limits{98'304, 2'048, 12, 98'304, 256, 128};

// Builds a tree from a stream of tokens and throws InvalidSpec as soon as a limit is passed, so that neither
// memory nor recursion ever depends on the input. A single string may fill the whole text here: which strings
// must be shorter depends on the schema and is judged with the spec.
class JsonBuilder {
  public:
    explicit JsonBuilder(const JsonLimits& limits) : limits_(limits) {}

    void begin_object();
    void begin_array();
    void key(std::string_view name);
    void end();
    void null();
    void boolean(bool value);
    void number(std::string_view text);
    void string(std::string_view text);
    // The tree, once every container has been ended.
    Json finish();

  private:
    struct Frame {
        Json container;
        std::string key;
    };

    [[noreturn]] void fail(const char* message, const char* advice) const;
    void admit(std::size_t text_bytes);
    void begin(Json container);
    void add(Json value);

    JsonLimits limits_;
    std::vector<Frame> open_;
    Json root_;
    std::size_t nodes_ = 0;
    std::size_t bytes_ = 0;
};

// Strict RFC 8259; duplicate keys, lone surrogates and NUL are refused.
Json parse_json(std::string_view text, const JsonLimits& limits);

// Well-formed UTF-8 without NUL: what every server encoding and jsonb can hold.
bool is_clean_utf8(std::string_view text);

// Appends `.key`, or `.(hidden key)` where the key is not made of at most 32 letters.
void append_path_key(std::string& path, std::string_view key);

} // namespace qinglong::core
