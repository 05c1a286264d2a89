#pragma once
// Rows by the place of their version: found and locked without the executor.

#include "qinglong_sched/pg/boundary.hpp"

namespace qinglong::pg {

Oid table_oid(const char* schema, const char* name);

// Finds the latest committed versions of rows by two text columns, the key of this index of the table; 0
// where there is none. A serializable transaction leaves no predicate locks on the pages of the index, where
// the neighbours' writes would meet them. What was found must be read under the transaction's own snapshot
// before it counts.
std::vector<Datum> find_versions(const char* schema, const char* table, const char* index,
                                 const std::vector<std::pair<std::string_view, std::string_view>>& keys);

// Locks versions of rows for an update, at most so many, and answers which (their indexes, in order). A
// version that somebody holds or has replaced is passed over, and nothing of it is locked. SELECT ... SKIP
// LOCKED would follow it to its successor and lock that one, before it finds that it does not qualify any
// more; until the transaction ends its rightful holder would find it busy. The versions must be visible to a
// snapshot that is still active.
std::vector<std::size_t> lock_versions(Oid table, const std::vector<Datum>& row_ids, std::size_t most);

} // namespace qinglong::pg
