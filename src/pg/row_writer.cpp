#include "qinglong_sched/pg/row_writer.hpp"

namespace qinglong::pg {

namespace {

// Everything in here may ereport: only for use inside pgcall().

struct Target {
    Relation table;
    EState* state;
    ResultRelInfo* result;
    const AttrNumber* numbers; // of the columns
};

Target open_target(Oid table_id, Columns columns, AclMode right) {
    PreventCommandIfReadOnly("scheduling");
    Relation const table = table_open(table_id, RowExclusiveLock);
    check_access(table, right);
    const AttrNumber* const numbers = column_numbers(table, columns);
    Bitmapset* written = nullptr;
    for (std::size_t i = 0; i < columns.size(); ++i)
        written = bms_add_member(written, numbers[i] - FirstLowInvalidHeapAttributeNumber);
    PushActiveSnapshot(GetTransactionSnapshot()); // for what triggers and constraints look up
    EState* const state = CreateExecutorState();
    init_range_table(state, table, right, written);
    ResultRelInfo* const result = makeNode(ResultRelInfo);
    InitResultRelInfo(result, table, 1, nullptr, 0);
    state->es_opened_result_relations = list_make1(result); // where triggers look for it
    state->es_output_cid = GetCurrentCommandId(true);
    state->es_snapshot = GetActiveSnapshot();
    AfterTriggerBeginQuery();
    ExecOpenIndices(result, false);
    return {table, state, result, numbers};
}

void close_target(const Target& target) {
    AfterTriggerEndQuery(target.state);
    ExecCloseIndices(target.result);
    ExecResetTupleTable(target.state->es_tupleTable, false);
    FreeExecutorState(target.state);
    PopActiveSnapshot();
    table_close(target.table, NoLock);
    CommandCounterIncrement();
}

void set_columns(TupleTableSlot* slot, const Target& target, std::span<const Value> row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
        slot->tts_values[target.numbers[i] - 1] = row[i].datum;
        slot->tts_isnull[target.numbers[i] - 1] = row[i].null;
    }
}

// The default of a column, for those that are not written.
struct Default {
    int index;
    ExprState* expression;
};

// The tables as shipped have none here; a column that an owner has added may.
std::size_t prepare_defaults(const Target& target, Columns columns, Default** defaults) {
    TupleDesc const desc = RelationGetDescr(target.table);
    *defaults = static_cast<Default*>(palloc(sizeof(Default) * static_cast<std::size_t>(desc->natts)));
    std::size_t count = 0;
    for (int index = 0; index < desc->natts; ++index) {
        const Form_pg_attribute attribute = TupleDescAttr(desc, index);
        bool named = attribute->attisdropped || attribute->attgenerated != '\0';
        for (std::size_t i = 0; i < columns.size() && !named; ++i)
            named = target.numbers[i] == index + 1;
        if (named || (!attribute->atthasdef && attribute->attidentity == '\0'))
            continue;
        auto* const expression = reinterpret_cast<Expr*>(build_column_default(target.table, index + 1));
        (*defaults)[count++] = {index, ExecInitExpr(expression_planner(expression), nullptr)};
    }
    return count;
}

void insert_slots(const Target& target, TupleTableSlot** slots, std::size_t count,
                  TransitionCaptureState* capture) {
    if (count == 0)
        return;
    table_multi_insert(target.table, slots, static_cast<int>(count), target.state->es_output_cid, 0, nullptr);
    for (std::size_t i = 0; i < count; ++i) {
        List* const recheck = insert_index_tuples(target.result, slots[i], target.state);
        ExecARInsertTriggers(target.state, target.result, slots[i], recheck, capture);
        list_free(recheck);
        ResetPerTupleExprContext(target.state);
    }
}

} // namespace

std::size_t insert_rows(Oid table, Columns columns, std::span<const Value> values) {
    return pgcall([&] {
        const Target target = open_target(table, columns, ACL_INSERT);
        EState* const state = target.state;
        TransitionCaptureState* const capture =
            MakeTransitionCaptureState(target.table->trigdesc, table, CMD_INSERT);
        const bool before_row =
            target.table->trigdesc != nullptr && target.table->trigdesc->trig_insert_before_row;
        const TupleConstr* const constraints = RelationGetDescr(target.table)->constr;
        Default* defaults;
        const std::size_t default_count = prepare_defaults(target, columns, &defaults);
        ExecBSInsertTriggers(state, target.result);
        const std::size_t count = values.size() / columns.size();
        auto** const slots = static_cast<TupleTableSlot**>(palloc(sizeof(TupleTableSlot*) * count));
        std::size_t pending = 0;
        std::size_t inserted = 0;
        for (std::size_t i = 0; i < count; ++i) {
            TupleTableSlot* const slot = table_slot_create(target.table, &state->es_tupleTable);
            ExecStoreAllNullTuple(slot);
            set_columns(slot, target, values.subspan(i * columns.size(), columns.size()));
            for (std::size_t k = 0; k < default_count; ++k)
                slot->tts_values[defaults[k].index] =
                    ExecEvalExpr(defaults[k].expression, GetPerTupleExprContext(state),
                                 &slot->tts_isnull[defaults[k].index]);
            if (before_row && !ExecBRInsertTriggers(state, target.result, slot)) {
                ResetPerTupleExprContext(state);
                continue;
            }
            if (before_row || default_count > 0)
                ExecMaterializeSlot(slot); // what triggers and defaults made lives for one row only
            if (constraints != nullptr && constraints->has_generated_stored)
                ExecComputeStoredGenerated(target.result, state, slot, CMD_INSERT);
            if (constraints != nullptr)
                ExecConstraints(target.result, slot, state);
            if (target.table->rd_rel->relispartition)
                (void)ExecPartitionCheck(target.result, slot, state, true);
            ResetPerTupleExprContext(state);
            slots[pending++] = slot;
            ++inserted;
            if (before_row) { // the next row's trigger may look for this one
                insert_slots(target, slots, pending, capture);
                pending = 0;
            }
        }
        insert_slots(target, slots, pending, capture);
        ExecASInsertTriggers(state, target.result, capture);
        close_target(target);
        return inserted;
    });
}

std::vector<std::size_t> update_rows(Oid table, Columns columns, const std::vector<Datum>& row_ids,
                                     std::span<const Value> values) {
    std::vector<char> updated(row_ids.size(), 0);
    pgcall([&] {
        const Target target = open_target(table, columns, ACL_UPDATE);
        TupleTableSlot* const old_row = table_slot_create(target.table, &target.state->es_tupleTable);
        TupleTableSlot* const new_row = table_slot_create(target.table, &target.state->es_tupleTable);
        EPQState recheck; // by row triggers; never of a row that is locked
        init_recheck(&recheck, target.state);
        for (std::size_t i = 0; i < row_ids.size(); ++i) {
            auto* const row_id = reinterpret_cast<ItemPointer>(DatumGetPointer(row_ids[i]));
            if (!table_tuple_fetch_row_version(target.table, row_id, SnapshotAny, old_row))
                elog(ERROR, "a locked row is gone");
            slot_getallattrs(old_row);
            ExecClearTuple(new_row);
            const auto size = static_cast<std::size_t>(RelationGetNumberOfAttributes(target.table));
            std::memcpy(new_row->tts_values, old_row->tts_values, size * sizeof(Datum));
            std::memcpy(new_row->tts_isnull, old_row->tts_isnull, size * sizeof(bool));
            set_columns(new_row, target, values.subspan(i * columns.size(), columns.size()));
            ExecStoreVirtualTuple(new_row);
            ExecSimpleRelationUpdate(target.result, target.state, &recheck, old_row, new_row);
            updated[i] = ItemPointerIsValid(&new_row->tts_tid) ? 1 : 0; // else a trigger has dropped it
            ExecClearTuple(old_row);
            ResetPerTupleExprContext(target.state);
        }
        EvalPlanQualEnd(&recheck);
        close_target(target);
    });
    return indexes_of(updated);
}

} // namespace qinglong::pg
