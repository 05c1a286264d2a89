#pragma once
// Values between PostgreSQL and C++.

#include "qinglong_sched/pg/spi.hpp"

namespace qinglong::pg {

Value value(std::string_view text);
inline Value value(const std::string& text) {
    return value(std::string_view(text));
}
Value value(const std::optional<std::string>& text);
inline Value value(bool flag) {
    return Value(BoolGetDatum(flag));
}
inline Value value(std::int32_t number) {
    return Value(Int32GetDatum(number));
}
inline Value value(std::int64_t number) {
    return Value(Int64GetDatum(number));
}
inline Value value(const std::optional<std::int64_t>& number) {
    return number ? value(*number) : Value();
}
Value value(const pg_uuid_t& id);
inline Value value(const char*) = delete; // would become a bool

// Arrays for set-wise statements.
Value array(const std::vector<std::string>& items);
Value array(const std::vector<std::int64_t>& items);

Value empty_multirange(Oid type);
bool is_empty_multirange(Datum multirange);

std::string to_string(Datum text);        // of a text-like datum
std::string json_text(Datum jsonb);       // jsonb's text form
Value jsonb_value(std::string_view text); // parses; the text is known to be JSON
std::string jsonb_bytes(Datum jsonb);     // the stored bytes, header included
Value jsonb_from_bytes(const std::string& bytes);

// Arguments of a SQL function.
std::optional<std::string> maybe_text_argument(FunctionCallInfo fcinfo, int index);
std::string text_argument(FunctionCallInfo fcinfo, int index, const char* name); // 22023 on NULL

// The fields of a composite argument.
class Composite {
  public:
    explicit Composite(Datum composite);
    bool null(int field) const { return nulls_[field]; }
    Datum datum(int field) const { return values_[field]; }
    std::optional<std::string> string(int field) const;
    std::optional<std::int64_t> bigint(int field) const;
    std::optional<std::int32_t> integer(int field) const;

  private:
    Datum* values_;
    bool* nulls_;
};

// Builds the composite result of a function.
Datum make_composite(FunctionCallInfo fcinfo, std::span<const Value> fields);
// The same for a procedure, whose result is a record of its one composite output argument.
Datum make_output_composite(FunctionCallInfo fcinfo, std::span<const Value> fields);
// Appends a row to the result set of a set-returning function that called begin_result_set().
void begin_result_set(FunctionCallInfo fcinfo, bool scalar = false);
void add_result_row(FunctionCallInfo fcinfo, std::span<const Value> fields);

pg_uuid_t new_uuid_v7();
pg_uuid_t new_uuid_v4();
std::string uuid_text(const pg_uuid_t& id);
inline bool operator_equal(const pg_uuid_t& a, const pg_uuid_t& b) {
    return std::memcmp(a.data, b.data, UUID_LEN) == 0;
}

std::string sha256_hex(std::string_view bytes);

// The server's clock (what clock_timestamp() returns) in milliseconds since the Unix epoch.
std::int64_t clock_ms();
// Whether the clock stands that much before a time it has shown in this process. Answers yes once.
bool clock_was_set_back(std::int64_t by_more_than_ms);
// Floor of a timestamptz in seconds since the Unix epoch, and back.
std::int64_t epoch_seconds(TimestampTz instant);
TimestampTz from_epoch_ms(std::int64_t ms);
// An argument of that type in whole seconds; 22023 on NULL and infinity.
std::int64_t finite_epoch_seconds_argument(FunctionCallInfo fcinfo, int index, const char* name);
Value interval_value(std::int32_t seconds);

} // namespace qinglong::pg
