#pragma once
#include "qinglong_sched/pg/pg.hpp"

namespace qinglong::pg {

// SQLSTATEs of this project; everything else uses PostgreSQL's own.
constexpr int kConflict = MAKE_SQLSTATE('Q', 'L', '0', '0', '1');
constexpr int kDamaged = MAKE_SQLSTATE('Q', 'L', '0', '0', '2');
constexpr int kClockBackwards = MAKE_SQLSTATE('Q', 'L', '0', '0', '3');

// An error of our own on its way to the client. Texts never carry a command, an environment value or a
// secret.
struct SqlError {
    int sqlstate;
    std::string message;
    std::string detail = {};
    std::string hint = {};
};

// An ereport() that pgcall() caught; the data lives in the memory context of the catching call.
struct PgError {
    ErrorData* data;
};

} // namespace qinglong::pg
