#include "qinglong_sched/pg/spi.hpp"

namespace qinglong::pg {

namespace {

void pin_settings() {
    static constexpr const char* kOff[] = {"enable_seqscan",
                                           "enable_bitmapscan",
                                           "enable_hashjoin",
                                           "enable_mergejoin",
                                           "enable_material",
                                           "enable_memoize",
                                           "jit"};
    static constexpr const char* kOn[] = {"enable_indexscan", "enable_nestloop", "enable_tidscan"};
    for (const char* name : kOff)
        (void)set_config_option(name, "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
    for (const char* name : kOn)
        (void)set_config_option(name, "on", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
    // Tables of a young database have no statistics, and then the planner has no reason to begin with the few
    // rows that were locked: statements are joined in the order in which they are written.
    (void)set_config_option("join_collapse_limit", "1", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                            false);
    // No row lock of ours is held across a wait for another lock longer than a second.
    if (LockTimeout == 0 || LockTimeout > 1000)
        (void)set_config_option("lock_timeout", "1000", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                                false);
    (void)set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
                            true, 0, false);
}

void check(int code, int expected, const char* what) {
    if (code < expected)
        elog(ERROR, "%s failed: %s", what, SPI_result_code_string(code));
}

Rows run(Statement& statement, std::span<const Value> values, bool latest) {
    constexpr int kMost = 48;
    Assert(static_cast<int>(values.size()) == statement.count && statement.count <= kMost);
    return pgcall([&] {
        Datum datums[kMost];
        char nulls[kMost];
        for (int i = 0; i < statement.count; ++i) {
            datums[i] = values[static_cast<std::size_t>(i)].datum;
            nulls[i] = values[static_cast<std::size_t>(i)].null ? 'n' : ' ';
        }
        if (statement.plan == nullptr) {
            SPIPlanPtr const plan = SPI_prepare_cursor(
                statement.text, statement.count, const_cast<Oid*>(statement.types), CURSOR_OPT_GENERIC_PLAN);
            if (plan == nullptr)
                elog(ERROR, "could not prepare a statement: %s", SPI_result_code_string(SPI_result));
            check(SPI_keepplan(plan), 0, "SPI_keepplan");
            statement.plan = plan;
        }
        int code;
        if (latest) {
            code = SPI_execute_snapshot(statement.plan, datums, nulls, GetLatestSnapshot(), InvalidSnapshot,
                                        false, true, 0);
        } else {
            code = SPI_execute_plan(statement.plan, datums, nulls, false, 0);
        }
        check(code, 0, "SPI_execute_plan");
        return Rows(SPI_tuptable, SPI_processed);
    });
}

} // namespace

int begin_spi(bool nonatomic) {
    if (SPI_connect_ext(nonatomic ? SPI_OPT_NONATOMIC : 0) != SPI_OK_CONNECT)
        elog(ERROR, "could not connect to SPI");
    const int level = NewGUCNestLevel();
    pin_settings();
    return level;
}

void end_spi(int level) {
    AtEOXact_GUC(true, level);
    SPI_finish();
}

void commit_and_begin(IsolationLevel isolation) {
    // There is always an outer snapshot. A portal keeps its own; a background worker has no portal.
    if (ActivePortal == nullptr && ActiveSnapshotSet())
        PopActiveSnapshot();
    SPI_commit();
    // First of all, as SET TRANSACTION would have it; then what the commit has undone.
    const char* const level = isolation == IsolationLevel::serializable ? "serializable" : "read committed";
    (void)set_config_option("transaction_isolation", level, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL,
                            true, 0, false);
    (void)NewGUCNestLevel();
    pin_settings();
    if (ActivePortal == nullptr)
        PushActiveSnapshot(GetTransactionSnapshot());
    else
        EnsurePortalSnapshotExists();
}

void commit_asynchronously() {
    pgcall([] {
        (void)set_config_option("synchronous_commit", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL,
                                true, 0, false);
    });
}

Rows execute(Statement& statement, std::span<const Value> values) {
    return run(statement, values, false);
}

Rows execute_latest(Statement& statement, std::initializer_list<Value> values) {
    return run(statement, std::span<const Value>(values.begin(), values.size()), true);
}

Rows execute_scan(Statement& statement, std::initializer_list<Value> values) {
    const int level = pgcall([] {
        const int nested = NewGUCNestLevel();
        (void)set_config_option("enable_seqscan", "on", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                                false);
        return nested;
    });
    const Rows rows = execute(statement, values);
    pgcall([&] { AtEOXact_GUC(true, level); });
    return rows;
}

void read_as_whole(const char* schema, std::initializer_list<const char*> tables) {
    if (!IsolationIsSerializable())
        return;
    pgcall([&] {
        const Oid space = get_namespace_oid(schema, false);
        for (const char* const name : tables) {
            Relation const table = table_open(get_relname_relid(name, space), AccessShareLock);
            PredicateLockRelation(table, GetActiveSnapshot());
            List* const indexes = RelationGetIndexList(table);
            for (int i = 0; i < list_length(indexes); ++i) {
                Relation const index = index_open(list_nth_oid(indexes, i), AccessShareLock);
                PredicateLockRelation(index, GetActiveSnapshot());
                index_close(index, AccessShareLock);
            }
            list_free(indexes);
            table_close(table, AccessShareLock);
        }
    });
}

void pause_ms(double ms) {
    pgcall([&] {
        pg_usleep(static_cast<long>(ms * 1000));
        CHECK_FOR_INTERRUPTS();
    });
}

std::uint64_t affected_rows() {
    return SPI_processed;
}

Row::Row(const Rows& rows, std::uint64_t index) {
    pgcall([&] {
        TupleDesc const desc = rows.table_->tupdesc;
        values_ = static_cast<Datum*>(palloc(sizeof(Datum) * static_cast<std::size_t>(desc->natts)));
        nulls_ = static_cast<bool*>(palloc(sizeof(bool) * static_cast<std::size_t>(desc->natts)));
        heap_deform_tuple(rows.table_->vals[index], desc, values_, nulls_);
    });
}

std::string Row::string(int column) const {
    return maybe_string(column).value_or(std::string());
}

std::optional<std::string> Row::maybe_string(int column) const {
    if (nulls_[column])
        return std::nullopt;
    const text* const packed = pgcall([&] { return PG_DETOAST_DATUM_PACKED(values_[column]); });
    return std::string(VARDATA_ANY(packed), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(packed)));
}

std::string Row::bytes(int column) const {
    const auto* const plain = pgcall([&] { return PG_DETOAST_DATUM(values_[column]); });
    return std::string(reinterpret_cast<const char*>(plain), static_cast<std::size_t>(VARSIZE(plain)));
}

} // namespace qinglong::pg
