#pragma once
// SQL through SPI: statements that are prepared once per backend, and rows that are read without longjmp.

#include "qinglong_sched/pg/boundary.hpp"

namespace qinglong::pg {

// A statement with its parameter types, prepared when first used and kept. Declare it `static`; it is
// trivial.
struct Statement {
    const char* text;
    const Oid* types;
    int count;
    SPIPlanPtr plan;
};

template<Oid... Types>
inline constexpr std::array<Oid, sizeof...(Types)> parameter_types{Types...};

template<Oid... Types>
constexpr Statement statement(const char* text) {
    return Statement{text, parameter_types<Types...>.data(), static_cast<int>(sizeof...(Types)), nullptr};
}

// One parameter; NULL when empty.
struct Value {
    Datum datum = 0;
    bool null = true;
    Value() = default;
    explicit Value(Datum d) : datum(d), null(false) {}
};

// The rows of one result; lives until the SPI session ends.
class Rows {
  public:
    Rows() = default;
    explicit Rows(SPITupleTable* table, std::uint64_t count) : table_(table), count_(count) {}
    std::uint64_t size() const { return count_; }
    bool empty() const { return count_ == 0; }

  private:
    friend class Row;
    SPITupleTable* table_ = nullptr;
    std::uint64_t count_ = 0;
};

// One row, deformed once; columns count from 0.
class Row {
  public:
    Row() = default;
    Row(const Rows& rows, std::uint64_t index);
    Row(Datum* values, bool* nulls) : values_(values), nulls_(nulls) {}
    bool null(int column) const { return nulls_[column]; }
    Datum datum(int column) const { return values_[column]; }
    bool boolean(int column) const { return DatumGetBool(values_[column]); }
    std::int32_t integer(int column) const { return DatumGetInt32(values_[column]); }
    std::int64_t bigint(int column) const { return DatumGetInt64(values_[column]); }
    std::optional<std::int64_t> maybe_bigint(int column) const {
        return nulls_[column] ? std::nullopt : std::optional<std::int64_t>(bigint(column));
    }
    std::string string(int column) const; // empty for NULL
    std::optional<std::string> maybe_string(int column) const;
    pg_uuid_t uuid(int column) const { return *DatumGetUUIDP(values_[column]); }
    // The stored bytes of a varlena value, header included: equal bytes are equal values.
    std::string bytes(int column) const;

  private:
    Datum* values_ = nullptr;
    bool* nulls_ = nullptr;
};

int begin_spi(bool nonatomic);
void end_spi(int level);

enum class IsolationLevel { read_committed, serializable };
// Commits (which may raise, and then aborts) and starts the next transaction; nonatomic sessions only. After
// an error of the commit the new transaction has begun without pinned settings: call it again.
void commit_and_begin(IsolationLevel isolation);
// The commit of the transaction in hand does not wait for the disk.
void commit_asynchronously();

// Connects to SPI for the life of a function, with access paths pinned to index order and names resolved in
// pg_catalog only: bad estimates (fresh, never analysed or analysed-when-empty tables) must not choose a plan
// that sorts or scans, nor a caller's search_path an operator. Ends on the normal path only; an abort cleans
// up by itself.
template<typename F>
auto with_spi(F body) -> decltype(body()) {
    const int level = pgcall([] { return begin_spi(false); });
    if constexpr (std::is_void_v<decltype(body())>) {
        body();
        pgcall([&] { end_spi(level); });
    } else {
        auto result = body();
        pgcall([&] { end_spi(level); });
        return result;
    }
}

Rows execute(Statement& statement, std::span<const Value> values);
inline Rows execute(Statement& statement, std::initializer_list<Value> values) {
    return execute(statement, std::span<const Value>(values.begin(), values.size()));
}
// The same with the newest snapshot in every isolation level, for sweeps that must not miss a committed row.
Rows execute_latest(Statement& statement, std::initializer_list<Value> values);
// execute() for a statement that has to read a whole table: it may do so in the order of the pages.
Rows execute_scan(Statement& statement, std::initializer_list<Value> values);
// Lets a serializable transaction hold these tables with one predicate lock each, instead of taking one for
// each row and page that it is about to read: for tables that are read much and written seldom.
void read_as_whole(const char* schema, std::initializer_list<const char*> tables);
// Sleeps, but not past a cancellation. Call it while no row lock is held.
void pause_ms(double ms);

std::uint64_t affected_rows(); // of the last execute

} // namespace qinglong::pg
