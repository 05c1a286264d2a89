#pragma once
// Rows by the place of their version: found and locked without the executor.

#include "qinglong_sched/pg/spi.hpp"

namespace qinglong::pg {

// Columns of a table by their names.
using Columns = std::span<const char* const>;

Oid table_oid(const char* schema, const char* name);
AttrNumber column_number(Relation table, const char* name); // may ereport

// The version of a row as it stood when it was found.
struct Version {
    Datum row_id = 0; // its place; 0: there is no such row
    TransactionId writer = InvalidTransactionId;
    bool visible = false; // to a statement that this transaction would run now
    Row row;
};

// Finds the latest committed versions of rows by two text columns, the key of this index of the table. A
// serializable transaction leaves no predicate locks, neither on the pages of the index, where the
// neighbours' writes would meet them, nor on the rows: what was found counts only once its version has been
// locked.
std::vector<Version> find_versions(const char* schema, const char* table, const char* index, Columns columns,
                                   const std::vector<std::pair<std::string_view, std::string_view>>& keys);

// Locks versions of rows for an update, at most so many, and answers which (their indexes, in order). A
// version that somebody holds or has replaced is passed over, and nothing of it is locked. SELECT ... SKIP
// LOCKED would follow it to its successor and lock that one, before it finds that it does not qualify any
// more; until the transaction ends its rightful holder would find it busy. Since the versions were found a
// snapshot must have been active all the time: it keeps their places from being given to other rows.
std::vector<std::size_t> lock_versions(Oid table, const std::vector<Datum>& row_ids, std::size_t most);

} // namespace qinglong::pg
