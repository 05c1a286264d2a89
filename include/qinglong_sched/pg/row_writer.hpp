#pragma once
// Rows written without the executor's plans, which cost more than the writing: as COPY inserts and as logical
// replication updates. Indexes, constraints, foreign keys, defaults, privileges and row triggers have their
// say as ever, INSERT's statement triggers too; UPDATE's have not, nor have rules, nor transition tables of
// an UPDATE.

#include "qinglong_sched/pg/row_version.hpp"

namespace qinglong::pg {

// Inserts rows, page by page. The values follow each other row by row, each of its column's type and within
// its length. Answers how many were inserted: a trigger may drop some.
std::size_t insert_rows(Oid table, Columns columns, std::span<const Value> values);

// Replaces columns of versions that lock_versions() has locked in this transaction; the values as above.
// Answers which were updated (their indexes, in order): a trigger may drop some.
std::vector<std::size_t> update_rows(Oid table, Columns columns, const std::vector<Datum>& row_ids,
                                     std::span<const Value> values);

} // namespace qinglong::pg
