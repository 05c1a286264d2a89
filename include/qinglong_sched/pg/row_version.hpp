#pragma once
// Rows by the place of their version: found and locked without the executor.

#include "qinglong_sched/pg/spi.hpp"

namespace qinglong::pg {

// Columns of a table by their names.
using Columns = std::span<const char* const>;

Oid table_oid(const char* schema, const char* name);

// For use inside pgcall(): what the executor would check of the current user, and columns by number.
void check_access(Relation table, AclMode right);
AttrNumber* column_numbers(Relation table, Columns columns);

// The places of those flags that are set.
std::vector<std::size_t> indexes_of(const std::vector<char>& flags);

// The version of a row as it stood when it was found.
struct Version {
    Datum row_id = 0; // its place; 0: there is no such row
    TransactionId writer = InvalidTransactionId;
    bool visible = false; // to a statement that this transaction would run now
    Row row;
};

enum class Find {
    visible, // what a statement that this transaction would run now sees, with its predicate locks
    latest,  // the latest committed version, or this transaction's own, without predicate locks: neither on
            // the pages of the index, where the neighbours' writes would meet them, nor on the row. It counts
            // only once it has been locked.
};

// Finds rows by the columns, of types text and integer, of the primary key. The keys follow each other column
// by column; the answer has their order. The table stays locked to the end of the transaction.
std::vector<Version> find_rows(Find what, Oid table, Columns columns, std::span<const Value> keys);

// Rows as a statement sees them, in the order of an index whose first column is a bigint and its bounds.
// Close it; where an error is thrown past it the end of the transaction does.
class RowScan {
  public:
    enum class Bound { at_most, more_than };
    // Where to begin: a key of the index, whose other two columns are texts.
    struct Start {
        std::int64_t number;
        std::string_view first;
        std::string_view second;
    };

    RowScan(Oid table, const char* index, Columns columns, Bound bound, std::int64_t value,
            const std::optional<Start>& start = std::nullopt);
    bool next(Version& version); // false at the end, and from then on
    void close();
    std::uint64_t dead() const { return dead_; } // entries without a visible row that were passed

  private:
    Columns columns_;
    Relation heap_;
    Relation tree_;
    TupleTableSlot* slot_;
    Snapshot snapshot_;
    IndexScanDesc scan_;
    const AttrNumber* numbers_;
    std::uint64_t dead_ = 0;
    bool at_end_ = false;
};

// Locks versions of rows for an update, and answers which (their indexes, in order). A version that somebody
// holds or has replaced is passed over, and nothing of it is locked. SELECT ... SKIP LOCKED would follow it
// to its successor and lock that one, before it finds that it does not qualify any more; until the
// transaction ends its rightful holder would find it busy. Since the versions were found a snapshot must have
// been active and the table locked all the time, which keeps their places from being given to other rows.
std::vector<std::size_t> lock_versions(Oid table, const std::vector<Datum>& row_ids);

} // namespace qinglong::pg
